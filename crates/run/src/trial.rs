//! The life cycle of one trial: fresh processes, one measured window, everything checked, everything ended.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use wirelab_lab::{Addresses, Afar, Aftermath, Lab, LabError, Launch, Role, Usage};
use wirelab_model::endpoint::Endpoint;
use wirelab_model::event::{Command, Configured, Event};
use wirelab_model::journal::{Portion, TrialRecord};
use wirelab_model::manifest::EndpointRecord;
use wirelab_model::metric::{Side, Value, Values};
use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::page::PageLoad;
use wirelab_model::plan::{Cell, Job, Plan, Trial};
use wirelab_model::study::Artifact;
use wirelab_model::timeline::{Course, Played};
use wirelab_model::transport::TransportReport;
use wirelab_model::warning::Warning;
use wirelab_observe::drops::COUNTERS;
use wirelab_observe::film::ABOUT as FILM;
use wirelab_observe::prometheus::ABOUT as PROMETHEUS;
use wirelab_observe::{Captures, Exporter, Observer, Reaped, Sidecars, Stage, Targets, Window, Witness};
use wirelab_stats::timeline;

use crate::control;
use crate::distorted;
use crate::error::RunError;
use crate::exposure::Exposure;
use crate::folder::{self, Folder};
use crate::journal::timestamp;
use crate::limits::{Limits, longest};
use crate::mesh::{self, Carried};
use crate::pace::Pace;
use crate::play::Play;
use crate::player::{Cut, Player};
use crate::preparation::{PREPARATION_METRICS, Preparation, Step};
use crate::results::{self, Results};
use crate::spec::{self, Files};
use crate::{crowd, merge, samples, verify, verify_loads};

/// What the trials of a session share.
pub(crate) struct Bench<'a> {
    pub lab: &'a mut dyn Lab,
    pub plan: &'a Plan,
    pub endpoints: &'a IndexMap<String, EndpointRecord>,
    pub observers: &'a [String],
    pub folder: &'a Folder,
    pub files: &'a Files,
    pub limits: Limits,
    /// What of each trial is kept beside its results.
    pub keep: &'a [Artifact],
    pub stop: &'a AtomicBool,
    pub witness: &'a Witness,
    /// The least time between two requests to a host that is not ours.
    pub interval: Duration,
    /// The study's name.
    pub study: &'a str,
    /// Who shows trials to Prometheus.
    pub exporter: Option<&'a Exporter>,
}

/// What is known of a trial so far; a failed one keeps it for the diagnosis.
#[derive(Default)]
struct Facts {
    server: Configured,
    client: Configured,
    preparation: Preparation,
    window_ns: u64,
    /// What the endpoints report of their transport.
    server_transport: Option<Box<TransportReport>>,
    client_transport: Option<Box<TransportReport>>,
    values: Values,
    results: Option<String>,
    /// What was done in the window, where there is a timeline.
    timeline: Option<Played>,
    /// What each client did, where several shared the workload.
    portions: Vec<Portion>,
    /// How many requests the sidecars carried, where there are any.
    carried: Option<Carried>,
    network: Aftermath,
    /// Who observes where processes are not to be seen from here.
    afar: Option<Box<dyn Afar>>,
    warnings: Vec<Warning>,
    /// Whether time passes for the processes as it does here.
    has_clock: bool,
}

impl Bench<'_> {
    /// Executes a trial; absent if it was interrupted, in which case nothing of it stays.
    pub(crate) fn run(&mut self, trial: &Trial) -> Result<Option<TrialRecord>, RunError> {
        let at = timestamp();
        let begun = Instant::now();
        let mut facts = Facts::default();
        let measured = self.measure(trial, &mut facts);
        let course = Course::of(&cell(self.plan, trial)?.job);
        let clients = (0..).take(course.clients.len()).map(client_log);
        let sidecars = mesh::logs(&cell(self.plan, trial)?.job, course.servers);
        let control_plane = cell(self.plan, trial)?.job.control_plane.as_ref().map(|_| control::LOG.to_owned());
        let logs = (0..course.servers).map(server_log).chain(clients).chain(sidecars).chain(control_plane);
        let logs: Vec<_> = logs.map(|name| self.folder.log(trial, &name)).collect();
        let outcome = match measured {
            Ok(()) => Outcome::Ok,
            Err(Cut::Outcome(outcome)) => {
                self.folder.has_room()?;
                self.keep_results(trial)?;
                outcome
            }
            Err(Cut::Interrupted) => {
                for log in logs {
                    remove(&log)?;
                }
                self.folder.remove_kept(trial)?;
                return Ok(None);
            }
            Err(Cut::Run(error)) => return Err(error),
        };
        if let Some(keys) = self.files.key_log.as_ref().filter(|_| self.keeps(Artifact::Keys)) {
            self.folder.keep_keys(trial, keys)?;
        }
        for log in logs {
            // A silent process is the normal case, and says nothing that would be worth a file.
            if fs::metadata(&log).is_ok_and(|about| about.len() == 0) {
                remove(&log)?;
            }
        }
        Ok(Some(TrialRecord {
            trial: *trial,
            at,
            took_ns: begun.elapsed().as_nanos() as u64,
            outcome,
            window_ns: facts.window_ns,
            values: facts.values,
            results: facts.results,
            server: facts.server,
            client: facts.client,
            timeline: facts.timeline,
            clients: facts.portions,
            warnings: facts.warnings,
        }))
    }

    fn measure(&mut self, trial: &Trial, facts: &mut Facts) -> Result<(), Cut> {
        let cell = cell(self.plan, trial)?;
        let more = cell.job.more_observers.iter().filter(|name| !self.observers.contains(name));
        let names: Vec<_> = self.observers.iter().chain(more).cloned().collect();
        let mut observers = observers(&names)?;
        // What a client of another trial left would be taken for that of one which writes nothing.
        for number in 0..Course::of(&cell.job).clients.len() as u32 {
            remove(&spec::results_of(self.files, number))?;
        }
        if let Some(keys) = &self.files.key_log {
            // Clients add to it, and those of the last trial are of no use.
            remove(keys)?;
        }
        self.conduct(trial, cell, &mut observers, facts)?;

        let read = match &mut facts.timeline {
            Some(played) => merge::read(self.files, played),
            None if cell.job.clients > 1 => merge::shared(self.files, cell.job.recording, &mut facts.portions),
            None => results::read(&self.files.results, cell.job.recording),
        };
        let results =
            read.map_err(|why| Cut::failed(Blame::Client, format!("the client `{}`: {why}", cell.job.client)))?;
        // Why a load is no sample says more than what it lacks because of that.
        if let Results::Loads(loads) = &results {
            verify_loads::loads(cell, loads).map_err(Cut::Outcome)?;
        }
        let checked = verify::negotiated(cell.job.protocol, &facts.client)
            .and_then(|()| verify::in_force(Role::Server, &cell.job.transport, &facts.server))
            .and_then(|()| verify::in_force(Role::Client, &cell.job.transport, &facts.client))
            .and_then(|()| verify::results(cell, facts.window_ns, &results));
        let tally = checked.map_err(Cut::Outcome)?;
        if let Some(played) = facts.timeline.as_ref().filter(|_| facts.has_clock) {
            verify::answered(&cell.job, played, &tally).map_err(Cut::Outcome)?;
        }
        if let Some(carried) = facts.carried.as_ref().filter(|_| facts.has_clock) {
            verify::carried(&cell.job, carried, facts.timeline.as_ref(), &tally).map_err(Cut::Outcome)?;
        }

        let mut values = match &results {
            Results::Samples(samples) => wirelab_stats::summarise(samples, facts.window_ns),
            Results::Histograms(histograms) => wirelab_stats::summarise_histograms(histograms, facts.window_ns)
                .map_err(|why| Cut::failed(Blame::Client, why))?,
            Results::Loads(loads) => wirelab_stats::pages(loads),
        };
        if let (Some(played), Some(timeline), Results::Samples(samples)) =
            (&mut facts.timeline, &cell.job.timeline, &results)
        {
            let window_ns = Course::of(&cell.job).window_ns;
            played.intervals = timeline::intervals(samples, window_ns);
            values.extend(timeline::values(timeline, played, samples, window_ns));
        }
        values.extend(wirelab_stats::clients(&facts.portions));
        values.extend(wirelab_stats::transport(facts.client_transport.as_deref(), facts.server_transport.as_deref()));
        let window = Window { ns: facts.window_ns, requests: tally.ok, bytes: tally.bytes };
        for observer in &mut observers {
            values.extend(observer.values(&window));
        }
        if let Some(afar) = &mut facts.afar {
            values.extend(afar.values(window.ns, window.requests, window.bytes));
        }
        values.extend(facts.preparation.values());
        if cell.job.site.is_some() {
            not_ours(&mut values);
        }
        let network = std::mem::take(&mut facts.network);
        values.extend(network.values);
        facts.warnings = network.warnings;
        facts.warnings.extend(tally.warnings(cell));
        facts.warnings.extend(drops(cell, &values));
        facts.warnings.extend(wirelab_stats::uneven(&cell.label(), &facts.portions, facts.window_ns));
        match distorted::by(&observers) {
            None => facts.results = Some(self.keep(trial, &results)?),
            // What it slowed down is not kept either: nobody shall draw it.
            Some(observer) => {
                distorted::leave_its_own(&mut values, &observers);
                facts.warnings = vec![distorted::warning(observer, cell.label())];
                facts.timeline = None;
                facts.portions = Vec::new();
            }
        }
        facts.values = values;
        Ok(())
    }

    /// Starts, synchronises and ends all processes.
    fn conduct(
        &mut self,
        trial: &Trial,
        cell: &Cell,
        observers: &mut [Box<dyn Observer>],
        facts: &mut Facts,
    ) -> Result<(), Cut> {
        let (limits, stop, job) = (self.limits, self.stop, &cell.job);
        let of_lab = |LabError(why)| Cut::failed(Blame::Lab, why);
        self.lab.begin_trial(trial, job).map_err(of_lab)?;
        let LabOf { addresses, client } = self.lab_of(job)?;

        let is_shown = observers.iter().any(|observer| observer.about().name == PROMETHEUS.name);
        let exposure = is_shown.then(|| {
            let of = (self.study, self.folder.path());
            Exposure::new(self.exporter, of, &self.files.folder, (trial.cell, cell))
        });
        let exposure = exposure.as_ref();
        let is_filmed = observers.iter().any(|observer| observer.about().name == FILM.name);
        let films = is_filmed.then(|| self.folder.make_films(trial)).transpose()?;
        let exposition = |name: &str, role, number| exposure?.of(self.endpoints.get(name)?, role, number);
        // A study goes on without the cells that a lab cannot have yet, as without those that an endpoint cannot.
        let beside = match job.sidecar() {
            Some(_) => self.lab.sidecars(job).map_err(unsupported)?,
            None => Vec::new(),
        };
        let asked_at = job.control_plane.as_ref().map(|_| self.lab.control_plane(job)).transpose();
        let asked_at = asked_at.map_err(unsupported)?;

        let attempt = "starting";
        let begun = Instant::now();
        let course = Course::of(job);
        // First the servers, later their sidecars or the control plane too.
        let mut others = Vec::new();
        for (number, address) in (0..).zip(&addresses.servers) {
            let server = self.endpoint(&job.server)?;
            let path = self.files.folder.join(format!("server{number}.json"));
            let mut of_server = spec::server(trial, job, number, *address, self.files);
            of_server.exposition = exposition(&job.server, Role::Server, number);
            of_server.qlog_dir = self.qlog_dir(trial, job, &server_name(number))?;
            spec::write(&path, &of_server)?;
            let log = self.folder.log(trial, &server_log(number));
            let launch = Launch { role: Role::Server, number, endpoint: &server, job, spec: &path, log: &log };
            others.push(Player::start(self.lab, &launch)?);
        }
        let mut ports = Vec::new();
        for server in &mut others {
            match server.wait(attempt, limits.startup, &mut [], stop)? {
                Event::Ready { port: Some(port), configured } => {
                    facts.server.extend(configured);
                    ports.push(port);
                }
                Event::Ready { port: None, .. } => {
                    return Err(Cut::failed(Blame::Server, format!("{server} printed `ready` without its port")));
                }
                other => return Err(server.unexpected(&other, attempt)),
            }
            facts.preparation.took(Step::StartServer, begun, server.pid());
        }
        let mesh = match job.sidecar() {
            Some(name) => {
                let endpoint = self.endpoint(name)?;
                let (mesh, players) = self.start_mesh((trial, job), &endpoint, &beside, &ports, &mut others)?;
                others.extend(players);
                facts.server.extend(prefixed("sidecar", &mesh.of_servers));
                facts.client.extend(prefixed("sidecar", &mesh.of_clients));
                Some(mesh)
            }
            None => None,
        };
        let control_plane = match (&job.control_plane, asked_at) {
            (Some(name), Some(address)) => {
                let endpoint = self.endpoint(name)?;
                let places = addresses.servers.iter().zip(&ports).map(|(host, port)| SocketAddr::new(*host, *port));
                let (of, places) = ((trial, job), places.collect());
                let (control_plane, player) = self.start_control_plane(of, &endpoint, address, places, &mut others)?;
                others.push(player);
                facts.client.extend(prefixed("control_plane", &control_plane.configured));
                Some(control_plane)
            }
            _ => None,
        };
        let mut connect = addresses.connect;
        let port = match (&job.site, &mesh, &control_plane) {
            (Some(site), ..) => {
                let address = SocketAddr::new(addresses.connect, site.port);
                facts.server.insert("address".to_owned(), address.to_string().into());
                site.port
            }
            (None, Some(mesh), _) => mesh.port,
            (None, None, Some(control_plane)) => {
                connect = control_plane.place.ip();
                control_plane.place.port()
            }
            // Those that come later are not reached yet.
            (None, None, None) => self.lab.publish(job, &ports[..job.servers.count() as usize]).map_err(of_lab)?,
        };
        let addresses = Addresses { connect, ..addresses };

        let begun = Instant::now();
        let mut files = Vec::new();
        for (number, life) in (0..).zip(&course.clients) {
            let path = self.files.folder.join(format!("{}.json", client_name(number)));
            let mut of_client = spec::client(trial, cell, &addresses, life, port, self.files)?;
            of_client.seed = trial.seed.wrapping_add(number.into());
            of_client.results = spec::results_of(self.files, number);
            of_client.exposition = exposition(&job.client, Role::Client, number);
            of_client.qlog_dir = self.qlog_dir(trial, job, &client_name(number))?;
            if let Some(page) = of_client.page.as_mut() {
                let keeps = |artifact| self.keeps(artifact).then_some(self.folder);
                page.har = keeps(Artifact::Har).map(|folder| folder.make_har(trial)).transpose()?;
                page.netlog_dir = keeps(Artifact::Netlog).map(|folder| folder.make_netlog(trial)).transpose()?;
                page.film.clone_from(&films);
            }
            spec::write(&path, &of_client)?;
            files.push((path, self.folder.log(trial, &client_log(number))));
        }
        let launches: Vec<_> = (0..)
            .zip(&files)
            .map(|(number, (spec, log))| Launch { role: Role::Client, number, endpoint: &client, job, spec, log })
            .collect();
        let mut clients = Player::start_all(self.lab, &launches)?;
        // A browser is a dozen processes and a new profile.
        let startup = if job.page.is_some() { limits.startup.saturating_mul(3) } else { limits.startup };
        for client in &mut clients {
            match client.wait(attempt, startup, &mut others, stop)? {
                Event::Ready { configured, .. } => facts.client.extend(configured),
                other => return Err(client.unexpected(&other, attempt)),
            }
        }
        facts.preparation.took(Step::StartClient, begun, clients[0].pid());
        let names: Vec<_> = observers.iter().map(|observer| observer.about().name).collect();
        facts.afar = self.lab.observe(&names).map_err(of_lab)?;

        self.prepare(trial, job, films.as_deref(), observers);
        self.keep_distance(job)?;
        let begun = Instant::now();
        // Those that come later in a timeline warm up then.
        let first = &mut clients[..job.clients as usize];
        for client in first.iter_mut() {
            client.send(Command::Go)?;
        }
        let attempt = "making the check request and warming up";
        let request = Duration::from_nanos(job.timeouts.connect_ns.saturating_add(job.timeouts.request_ns));
        let warm_up = job.warm_up.map_or(Duration::ZERO, |extent| longest(job, extent));
        let limit = limits.slack.saturating_add(request).saturating_add(warm_up);
        for client in first {
            match client.wait(attempt, limit, &mut others, stop)? {
                Event::Warm => {}
                other => return Err(client.unexpected(&other, attempt)),
            }
        }
        facts.preparation.took(Step::WarmUp, begun, clients[0].pid());

        self.keep_distance(job)?;
        let pids = |players: &[Player]| players.iter().map(Player::pid).collect();
        let (servers, rest) = others.split_at(ports.len());
        let (sidecars, asked) = rest.split_at(if mesh.is_some() { rest.len() } else { 0 });
        let targets = Targets {
            // Of no server at all nothing can be said, which is not 0.
            servers: if servers.is_empty() { None } else { pids(servers) },
            clients: pids(&clients),
            sidecars: sidecars.split_last().map(|(of_clients, of_servers)| Sidecars {
                of_servers: pids(of_servers),
                of_clients: of_clients.pid().map(|pid| vec![pid]),
            }),
            control_plane: asked.first().and_then(Player::pid),
        };
        facts.has_clock = clients[0].has_clock();
        for observer in observers.iter_mut() {
            observer.begin(&targets);
        }
        if let Some(afar) = &mut facts.afar {
            afar.begin();
        }
        if let Some(exposure) = exposure {
            // Strangers' servers are not ours to show.
            let servers = if job.site.is_some() { 0 } else { job.servers.count() };
            exposure.pods(servers as usize, job.clients as usize);
        }
        let ended = match &job.timeline {
            None if job.clients > 1 => {
                let limit = limits.slack.saturating_add(longest(job, job.extent));
                crowd::watch(&mut clients, &mut others, limit, stop).map(|portions| {
                    facts.portions = portions;
                    facts.portions.iter().map(|one| one.told_ns + one.window_ns).max().unwrap_or_default()
                })
            }
            None => watch(job, &mut clients[0], &mut others, limits, stop),
            Some(_) => {
                let (lab, course, ports) = (&mut *self.lab, &course, &ports);
                let of_control_plane = || control_plane.as_ref().map(|control_plane| &control_plane.membership);
                let membership = mesh.as_ref().map(|mesh| &mesh.membership).or_else(of_control_plane);
                let (others, clients) = (&mut others, &mut clients);
                let all = facts.timeline.insert(Played::default());
                let played = &mut *all;
                let changing = None;
                Play { lab, job, course, others, clients, ports, membership, limits, stop, played, exposure, changing }
                    .perform()
                    .map(|()| all.clients.iter().map(|one| one.from_ns + one.window_ns).max().unwrap_or_default())
            }
        };
        if let Some(exposure) = exposure {
            exposure.pods(0, 0);
        }
        if let Some(afar) = &mut facts.afar {
            afar.end();
        }
        // In reverse, so that the first observer encloses the others.
        for observer in observers.iter_mut().rev() {
            observer.end(&targets);
        }
        facts.window_ns = ended?;

        facts.network = self.lab.end_trial(&cell.label()).map_err(of_lab)?;

        for client in &mut clients {
            client.send(Command::Finish)?;
        }
        let attempt = "closing its connections and writing its results";
        let (mut usages, mut transports) = (Vec::new(), Vec::new());
        for client in &mut clients {
            match client.wait(attempt, limits.finish, &mut others, stop)? {
                Event::Done { configured, transport, .. } => {
                    facts.client.extend(configured);
                    transports.push(transport);
                }
                other => return Err(client.unexpected(&other, attempt)),
            }
            usages.push(client.end("ending after `done`", limits.exit)?.usage);
        }
        let of_clients = usages.into_iter().reduce(together).flatten();
        facts.client_transport = transports.into_iter().reduce(all).flatten();

        let (servers, rest) = others.split_at_mut(ports.len());
        if mesh.is_some() {
            facts.carried = Some(mesh::carried(rest, limits, stop)?);
        }
        for other in rest.iter_mut().rev().filter(|other| !other.is_gone()) {
            other.dismiss(limits.exit, stop)?;
        }

        let attempt = "stopping";
        let (mut usages, mut transports) = (Vec::new(), Vec::new());
        for server in servers {
            // Of one that went away before its end nothing is known.
            if server.is_gone() {
                usages.push(None);
                transports.push(None);
                continue;
            }
            server.send(Command::Stop)?;
            match server.wait(attempt, limits.exit, &mut [], stop)? {
                Event::Done { configured, transport, .. } => {
                    facts.server.extend(configured);
                    transports.push(transport);
                }
                other => return Err(server.unexpected(&other, attempt)),
            }
            usages.push(server.end("ending after `done`", limits.exit)?.usage);
        }
        let of_servers = usages.into_iter().reduce(together).flatten();
        facts.server_transport = transports.into_iter().reduce(all).flatten();
        let reaped = Reaped { server: of_servers, client: of_clients };
        for observer in observers.iter_mut() {
            observer.reaped(&reaped);
        }
        Ok(())
    }

    fn keeps(&self, artifact: Artifact) -> bool {
        self.keep.contains(&artifact)
    }

    /// Where an endpoint is to leave qlog files; nowhere if none are kept, or if its protocol has none.
    fn qlog_dir(&self, trial: &Trial, job: &Job, of: &str) -> Result<Option<PathBuf>, RunError> {
        if !self.keeps(Artifact::Qlog) || !job.protocol.uses_quic() {
            return Ok(None);
        }
        self.folder.make_qlog(trial, of).map(Some)
    }

    /// Lets the observers see the network from the first packet on.
    fn prepare(&self, trial: &Trial, job: &Job, films: Option<&Path>, observers: &mut [Box<dyn Observer>]) {
        let captures = self.files.key_log.as_ref().filter(|_| self.keeps(Artifact::Pcap)).map(|keys| Captures {
            stem: self.folder.capture(trial),
            keys: job.protocol.is_secure().then(|| keys.clone()),
        });
        let vantages = self.lab.vantages(job);
        let stage = Stage { vantages: &vantages, witness: self.witness, captures: captures.as_ref(), films };
        observers.iter_mut().for_each(|observer| observer.prepare(&stage));
    }

    fn lab_of(&self, job: &Job) -> Result<LabOf, Cut> {
        let addresses = self.lab.addresses(job).map_err(|LabError(why)| Cut::failed(Blame::Lab, why))?;
        Ok(LabOf { addresses, client: self.endpoint(&job.client)? })
    }

    /// Lets a host that is not ours rest before the next request. There is nothing to ask: the pause itself is what is owed.
    fn keep_distance(&self, job: &Job) -> Result<(), Cut> {
        if job.site.is_none() {
            return Ok(());
        }
        let mut pace = Pace::new(self.interval);
        pace.rest();
        pace.wait(self.stop);
        if self.stop.load(Ordering::Relaxed) { Err(Cut::Interrupted) } else { Ok(()) }
    }

    pub(crate) fn endpoint(&self, name: &str) -> Result<Endpoint, RunError> {
        let record = self.endpoints.get(name).ok_or_else(|| RunError::Refused {
            why: format!("the plan names the endpoint `{name}`, which is not part of the run"),
        })?;
        Ok(record.endpoint.clone())
    }

    /// Files the results under the trial's number; gives their path below the run folder.
    fn keep(&self, trial: &Trial, results: &Results) -> Result<String, RunError> {
        let stem = folder::stem(trial);
        let name = match results {
            Results::Samples(_) => format!("{stem}.parquet"),
            Results::Histograms(_) => format!("{stem}.json"),
            Results::Loads(_) => format!("{stem}.jsonl"),
        };
        let path = self.folder.samples().join(&name);
        match results {
            Results::Samples(records) => samples::write(&path, trial, records)?,
            Results::Histograms(histograms) => {
                let mut text = serde_json::to_vec(histograms).map_err(|error| RunError::Refused {
                    why: format!("histograms cannot be written as JSON: {error}"),
                })?;
                text.push(b'\n');
                folder::write_whole(&path, &text)?;
            }
            Results::Loads(loads) => folder::write_whole(&path, &lines(loads)?)?,
        }
        Ok(format!("samples/{name}"))
    }

    /// What the client of a failed trial wrote goes to the logs, not to the samples: it explains, and does not count.
    fn keep_results(&self, trial: &Trial) -> Result<(), RunError> {
        let kept = self.folder.log(trial, "client-results.jsonl");
        match fs::metadata(&self.files.results) {
            Ok(about) if about.len() > 0 => {
                fs::rename(&self.files.results, &kept).map_err(RunError::io("cannot keep the results as", &kept))
            }
            _ => Ok(()),
        }
    }
}

/// Lets a client measure; gives the length of its window.
fn watch(
    job: &Job,
    client: &mut Player,
    servers: &mut [Player],
    limits: Limits,
    stop: &AtomicBool,
) -> Result<u64, Cut> {
    let begun = Instant::now();
    client.send(Command::Go)?;
    let attempt = "measuring";
    match client.wait(attempt, limits.slack.saturating_add(longest(job, job.extent)), servers, stop)? {
        Event::End { window_ns } => {
            if client.has_clock() {
                verify::window(window_ns, begun.elapsed()).map_err(Cut::Outcome)?;
            }
            Ok(window_ns)
        }
        other => Err(client.unexpected(&other, attempt)),
    }
}

/// The accounts of two processes as one.
fn together(sum: Option<Usage>, one: Option<Usage>) -> Option<Usage> {
    Some(sum?.with(one?))
}

/// What two endpoints report of their transport as one; what one does not report is not known of all.
fn all(sum: Option<Box<TransportReport>>, one: Option<Box<TransportReport>>) -> Option<Box<TransportReport>> {
    Some(Box::new(sum?.and(one.as_ref()?)))
}

/// Records as JSON lines.
fn lines(loads: &[PageLoad]) -> Result<Vec<u8>, RunError> {
    let mut text = Vec::new();
    for load in loads {
        let written = serde_json::to_writer(&mut text, load);
        written.map_err(|error| RunError::Refused { why: format!("a load cannot be written as JSON: {error}") })?;
        text.push(b'\n');
    }
    Ok(text)
}

struct LabOf {
    addresses: Addresses,
    client: Endpoint,
}

/// Nobody can look into a server that is not ours, whatever an observer says.
fn not_ours(values: &mut Values) {
    let metrics =
        wirelab_observe::metrics().into_iter().chain(wirelab_stats::TRANSPORT_METRICS).chain(&PREPARATION_METRICS);
    for metric in metrics.filter(|metric| metric.side == Side::Server) {
        if let Some(value) = values.get_mut(metric.name) {
            *value = Value::missing("the server is not ours");
        }
    }
}

fn unsupported(LabError(reason): LabError) -> Cut {
    Cut::Outcome(Outcome::Unsupported { reason })
}

/// What a sidecar or a control plane says is in force, beside what its server or client says.
fn prefixed(by: &str, configured: &Configured) -> impl Iterator<Item = (String, serde_json::Value)> {
    configured.iter().map(move |(key, value)| (format!("{by}_{key}"), value.clone()))
}

/// The first server has the name that it has where there is only one.
pub(crate) fn server_name(number: u32) -> String {
    if number == 0 { "server".to_owned() } else { format!("server{number}") }
}

fn server_log(number: u32) -> String {
    format!("{}.log", server_name(number))
}

/// Clients likewise.
fn client_name(number: u32) -> String {
    if number == 0 { "client".to_owned() } else { format!("client{number}") }
}

fn client_log(number: u32) -> String {
    format!("{}.log", client_name(number))
}

fn cell<'a>(plan: &'a Plan, trial: &Trial) -> Result<&'a Cell, RunError> {
    plan.cells.get(trial.cell).ok_or_else(|| RunError::Refused {
        why: format!("trial {} is of cell {}, which the plan does not have", trial.number, trial.cell),
    })
}

/// New observers for a trial.
pub(crate) fn observers(names: &[String]) -> Result<Vec<Box<dyn Observer>>, RunError> {
    let unknown = |name: &String| RunError::Refused { why: wirelab_observe::unknown(name) };
    names.iter().map(|name| wirelab_observe::create(name).ok_or_else(|| unknown(name))).collect()
}

/// Drops that the kernel counted during the window, of the transport that the cell uses.
fn drops(cell: &Cell, values: &Values) -> Vec<Warning> {
    let count = |name: &str| values.get(name).and_then(Value::number).unwrap_or(0.0);
    let mut warnings = Vec::new();
    for counter in &COUNTERS {
        let (heading, name) = counter.kernel;
        let dropped = match (heading, name) {
            // A repair, and often of nothing that was dropped; the metric is there for who wants it.
            ("Tcp", "RetransSegs") => continue,
            // The kernel counts a full buffer in both.
            ("Udp", "InErrors") => count(counter.metric.name) - count("udp_receive_buffer_errors"),
            _ => count(counter.metric.name),
        };
        if dropped > 0.0 && (heading == "Udp") == cell.job.protocol.uses_udp() {
            let (cell, counter) = (cell.label(), format!("{heading} {name}"));
            warnings.push(Warning::Drops { cell, counter, count: dropped as u64 });
        }
    }
    warnings
}

fn remove(path: &Path) -> Result<(), RunError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(RunError::io("cannot remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::cell;

    #[test]
    fn only_drops_of_the_transport_in_use_are_warned_of_and_none_twice() {
        let values = [
            ("udp_receive_buffer_errors", 3.0),
            ("udp_in_errors", 3.0),
            ("tcp_listen_drops", 2.0),
            ("tcp_retransmitted", 9.0),
        ];
        let values: Values =
            values.map(|(name, count)| (name.to_owned(), Value::Measured(count))).into_iter().collect();
        let of = |protocol| {
            let mut cell = cell();
            cell.job.protocol = protocol;
            let count = |warning| match warning {
                Warning::Drops { counter, count, .. } => (counter, count),
                other => panic!("{other:?}"),
            };
            drops(&cell, &values).into_iter().map(count).collect::<Vec<_>>()
        };
        assert_eq!(of(wirelab_model::protocol::Protocol::H3), [("Udp RcvbufErrors".to_owned(), 3)]);
        assert_eq!(of(wirelab_model::protocol::Protocol::H2), [("TcpExt ListenDrops".to_owned(), 2)]);
    }
}
