//! Starts and ends the processes of a trial: servers, sidecars or control plane, and clients; then warm-up, measured
//! window, and the end in reverse order of start.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wirelab_lab::{Addresses, Arena, LabError, Launch, PreparedLab, Role, Usage};
use wirelab_model::event::{Command, Configured, Event};
use wirelab_model::exposition::Exposition;
use wirelab_model::outcome::Outcome;
use wirelab_model::plan::{Cell, Course, Job, Target, Trial, Work};
use wirelab_model::reason::Attempt;
use wirelab_model::study::Artifact;
use wirelab_model::timeline::{Lifetimes, TimelineRecord};
use wirelab_model::transport::TransportReport;
use wirelab_observe::film::ABOUT as FILM;
use wirelab_observe::prometheus::ABOUT as PROMETHEUS;
use wirelab_observe::{Captures, Observer, Reaped, Sidecars, Stage, Targets};

use crate::exporter::TrialExporter;
use crate::limits::longest;
use crate::pace::Pace;
use crate::spec;
use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::trial::preparation::Step;
use crate::trial::start::control::ControlPlane;
use crate::trial::start::mesh::{self, Mesh};
use crate::trial::stop::{self, Clients, End};
use crate::trial::verify;
use crate::trial::window::shared;
use crate::trial::window::timeline::TimelineRun;
use crate::trial::{Facts, TrialContext, client_log, client_name, server_log, server_name};

const STARTING: Attempt = Attempt::Starting;

/// Inputs of every step of a trial.
struct TrialInputs<'a> {
    trial: &'a Trial,
    cell: &'a Cell,
    job: &'a Job,
    lifetimes: Lifetimes,
    addresses: Addresses,
    /// Addresses of the server sidecars, if any.
    sidecar_addresses: Vec<IpAddr>,
    /// Address of the control plane, if any.
    control_plane_address: Option<IpAddr>,
    /// Export to Prometheus, if any.
    exporter: Option<TrialExporter<'a>>,
    /// Folder for films of its loads, if it is filmed.
    films: Option<PathBuf>,
}

/// All processes except the clients. Drop kills the running ones.
#[derive(Default)]
struct Serving {
    /// Servers, then their sidecars and that of the clients, or the control plane.
    handles: Vec<EndpointHandle>,
    /// Ports of the servers.
    ports: Vec<u16>,
    mesh: Option<Mesh>,
    control_plane: Option<ControlPlane>,
}

impl TrialContext<'_> {
    /// Starts, synchronises and ends all processes.
    pub(super) fn conduct(
        &self,
        lab: &mut dyn PreparedLab,
        trial: &Trial,
        cell: &Cell,
        observers: &mut [Box<dyn Observer>],
        facts: &mut Facts,
    ) -> Result<(), TrialAbort> {
        // Dropped after the processes below, which use its network.
        let mut arena = lab.open(trial, &cell.job)?;
        let arena = arena.as_mut();
        facts.has_clock = arena.has_clock();
        let inputs = self.trial_inputs(arena, trial, cell, observers)?;
        let mut serving = self.start_servers(arena, &inputs, facts)?;
        self.start_sidecars_or_control_plane(arena, &inputs, &mut serving, facts)?;
        let mut clients = self.start_clients(arena, &inputs, &mut serving, facts)?;
        let names: Vec<_> = observers.iter().map(|observer| observer.about().name).collect();
        facts.remote_observer = arena.remote_observer(&names)?;

        self.prepare(arena, &inputs, observers);
        self.keep_interval(inputs.job)?;
        self.warm_up(&inputs, &mut clients, &mut serving, facts)?;
        self.keep_interval(inputs.job)?;
        self.window(arena, &inputs, &mut clients, &mut serving, observers, facts)?;
        facts.network = arena.end_window(&cell.label())?;

        let of_clients = self.end_clients(&mut clients, &mut serving, facts)?;
        let of_servers = self.end_servers(&mut serving, facts)?;
        let reaped = Reaped { server: of_servers, client: of_clients };
        for observer in observers.iter_mut() {
            observer.reaped(&reaped);
        }
        Ok(())
    }

    fn trial_inputs<'a>(
        &'a self,
        arena: &dyn Arena,
        trial: &'a Trial,
        cell: &'a Cell,
        observers: &[Box<dyn Observer>],
    ) -> Result<TrialInputs<'a>, TrialAbort> {
        let job = &cell.job;
        let addresses = arena.addresses().clone();
        let has = |name: &str| observers.iter().any(|observer| observer.about().name == name);
        let exporter = has(PROMETHEUS.name).then(|| {
            let of = (self.study, self.folder.path());
            TrialExporter::new(self.exporter, of, &self.files.folder, (trial.cell, cell))
        });
        let films = has(FILM.name).then(|| self.folder.make_films(trial)).transpose()?;
        // An unsupported lab feature fails the cell, not the study, as for unsupported endpoints.
        let sidecar_addresses = match job.sidecar() {
            Some(_) => arena.sidecars().map_err(unsupported)?,
            None => Vec::new(),
        };
        let control_plane_address = job.control_plane().map(|_| arena.control_plane()).transpose();
        let control_plane_address = control_plane_address.map_err(unsupported)?;
        Ok(TrialInputs {
            trial,
            cell,
            job,
            lifetimes: Lifetimes::of(job),
            addresses,
            sidecar_addresses,
            control_plane_address,
            exporter,
            films,
        })
    }

    /// Starts all servers of the course.
    fn start_servers(
        &self,
        arena: &mut dyn Arena,
        inputs: &TrialInputs<'_>,
        facts: &mut Facts,
    ) -> Result<Serving, TrialAbort> {
        let (trial, job) = (inputs.trial, inputs.job);
        let Target::Servers(own) = &job.target else { return Ok(Serving::default()) };
        let begun = Instant::now();
        let mut handles = Vec::new();
        for (number, address) in (0..).zip(&inputs.addresses.servers) {
            let endpoint = self.endpoint(&own.endpoint)?;
            let path = self.files.folder.join(format!("server{number}.json"));
            let mut of_server = spec::server(trial, (job, own), number, *address, self.files);
            of_server.exposition = self.exposition(inputs, &own.endpoint, Role::Server, number);
            of_server.qlog_dir = self.qlog_dir(trial, job, &server_name(number))?;
            spec::write(&path, &of_server)?;
            let log = self.folder.log(trial, &server_log(number));
            let launch = Launch { role: Role::Server, number, endpoint: &endpoint, spec: &path, log: &log };
            handles.push(EndpointHandle::start(arena, job, &launch)?);
        }
        let mut ports = Vec::new();
        for server in &mut handles {
            match server.wait(STARTING, self.limits.startup, &mut [], self.stop)? {
                Event::Ready { port: Some(port), configured } => {
                    facts.server.extend(configured);
                    ports.push(port);
                }
                Event::Ready { port: None, .. } => return Err(server.without_port()),
                other => return Err(server.unexpected(&other, STARTING)),
            }
            facts.preparation.took(Step::StartServer, begun, server.pid());
        }
        Ok(Serving { handles, ports, mesh: None, control_plane: None })
    }

    /// Starts the sidecars or the control plane.
    fn start_sidecars_or_control_plane(
        &self,
        arena: &mut dyn Arena,
        inputs: &TrialInputs<'_>,
        serving: &mut Serving,
        facts: &mut Facts,
    ) -> Result<(), TrialAbort> {
        let (of, job) = ((inputs.trial, inputs.job), inputs.job);
        let Serving { handles, ports, mesh, control_plane } = serving;
        if let Some(name) = job.sidecar() {
            let endpoint = self.endpoint(name)?;
            let (started, sidecars) =
                self.start_mesh(arena, of, &endpoint, &inputs.sidecar_addresses, ports, handles)?;
            handles.extend(sidecars);
            facts.server.extend(prefixed("sidecar", &started.of_servers));
            facts.client.extend(prefixed("sidecar", &started.of_clients));
            *mesh = Some(started);
        }
        if let (Some(name), Some(address)) = (job.control_plane(), inputs.control_plane_address) {
            let endpoint = self.endpoint(name)?;
            let places = inputs.addresses.servers.iter().zip(&*ports).map(|(host, port)| SocketAddr::new(*host, *port));
            let (started, handle) =
                self.start_control_plane(arena, of, &endpoint, address, places.collect(), handles)?;
            handles.push(handle);
            facts.client.extend(prefixed("control_plane", &started.configured));
            *control_plane = Some(started);
        }
        Ok(())
    }

    /// Starts all clients of the course.
    fn start_clients(
        &self,
        arena: &mut dyn Arena,
        inputs: &TrialInputs<'_>,
        serving: &mut Serving,
        facts: &mut Facts,
    ) -> Result<Clients, TrialAbort> {
        let (trial, cell, job) = (inputs.trial, inputs.cell, inputs.job);
        let connect_address = self.connect_address(arena, inputs, serving, facts)?;
        let addresses = Addresses { connect: connect_address.ip(), ..inputs.addresses.clone() };
        let begun = Instant::now();
        let mut files = Vec::new();
        for (number, life) in (0..).zip(&inputs.lifetimes.clients) {
            let path = self.files.folder.join(format!("{}.json", client_name(number)));
            let mut of_client = spec::client(trial, cell, &addresses, life, connect_address.port(), self.files)?;
            of_client.seed = trial.seed.wrapping_add(number.into());
            of_client.results = spec::results_of(self.files, number);
            of_client.exposition = self.exposition(inputs, &job.client, Role::Client, number);
            of_client.qlog_dir = self.qlog_dir(trial, job, &client_name(number))?;
            if let Some(page) = of_client.page.as_mut() {
                let keeps = |artifact| self.keeps(artifact).then_some(self.folder);
                page.har = keeps(Artifact::Har).map(|folder| folder.make_har(trial)).transpose()?;
                page.netlog_dir = keeps(Artifact::Netlog).map(|folder| folder.make_netlog(trial)).transpose()?;
                page.film.clone_from(&inputs.films);
            }
            spec::write(&path, &of_client)?;
            files.push((path, self.folder.log(trial, &client_log(number))));
        }
        let endpoint = self.endpoint(&job.client)?;
        let launches: Vec<_> = (0..)
            .zip(&files)
            .map(|(number, (spec, log))| Launch { role: Role::Client, number, endpoint: &endpoint, spec, log })
            .collect();
        let mut clients = Clients::new(EndpointHandle::start_all(arena, job, &launches)?);
        let startup = self.limits.startup;
        // A browser starts a dozen processes and creates a profile.
        let startup = match job.work {
            Work::Requests(_) => startup,
            Work::Page(_) => startup.saturating_mul(3),
        };
        for client in clients.iter_mut() {
            match client.wait(STARTING, startup, &mut serving.handles, self.stop)? {
                Event::Ready { configured, .. } => facts.client.extend(configured),
                other => return Err(client.unexpected(&other, STARTING)),
            }
        }
        facts.preparation.took(Step::StartClient, begun, clients[0].pid());
        Ok(clients)
    }

    /// Address that the clients connect to.
    fn connect_address(
        &self,
        arena: &mut dyn Arena,
        inputs: &TrialInputs<'_>,
        serving: &Serving,
        facts: &mut Facts,
    ) -> Result<SocketAddr, TrialAbort> {
        let connect = inputs.addresses.connect;
        Ok(match (&inputs.job.target, &serving.mesh, &serving.control_plane) {
            (Target::Site(site), ..) => {
                let address = SocketAddr::new(connect, site.port);
                facts.server.insert("address".to_owned(), address.to_string().into());
                address
            }
            (Target::Servers(_), Some(mesh), _) => SocketAddr::new(connect, mesh.port),
            (Target::Servers(_), None, Some(control_plane)) => control_plane.place,
            // Servers that start later are not published yet.
            (Target::Servers(own), None, None) => {
                let first = &serving.ports[..own.places.count() as usize];
                SocketAddr::new(connect, arena.publish(first)?)
            }
        })
    }

    fn exposition(&self, inputs: &TrialInputs<'_>, endpoint: &str, role: Role, number: u32) -> Option<Exposition> {
        inputs.exporter.as_ref()?.of(self.endpoints.get(endpoint)?, role, number)
    }

    /// Prepares the observers, so that they see the network from the first packet on.
    fn prepare(&self, arena: &dyn Arena, inputs: &TrialInputs<'_>, observers: &mut [Box<dyn Observer>]) {
        let job = inputs.job;
        let captures = self.files.key_log.as_ref().filter(|_| self.keeps(Artifact::Pcap)).map(|keys| Captures {
            stem: self.folder.capture(inputs.trial),
            keys: job.protocol.is_secure().then(|| keys.clone()),
        });
        let vantages = arena.vantages();
        let films = inputs.films.as_deref();
        let stage = Stage { vantages: &vantages, witness: self.witness, captures: captures.as_ref(), films };
        observers.iter_mut().for_each(|observer| observer.prepare(&stage));
    }

    /// Keeps the minimum interval between requests to a foreign host.
    fn keep_interval(&self, job: &Job) -> Result<(), TrialAbort> {
        if let Target::Servers(_) = job.target {
            return Ok(());
        }
        let mut pace = Pace::new(self.interval);
        pace.rest();
        pace.wait(self.stop);
        if self.stop.load(Ordering::Relaxed) { Err(TrialAbort::Interrupted) } else { Ok(()) }
    }

    /// Warms up the initial clients; those of a timeline's later actions warm up when they start.
    fn warm_up(
        &self,
        inputs: &TrialInputs<'_>,
        clients: &mut Clients,
        serving: &mut Serving,
        facts: &mut Facts,
    ) -> Result<(), TrialAbort> {
        const ATTEMPT: Attempt = Attempt::WarmingUp;
        let job = inputs.job;
        let begun = Instant::now();
        let first = &mut clients[..job.load.clients as usize];
        for client in first.iter_mut() {
            client.send(Command::Go)?;
        }
        let request = Duration::from_nanos(job.load.timeouts.connect_ns.saturating_add(job.load.timeouts.request_ns));
        let warm_up = job.load.warm_up.map_or(Duration::ZERO, |extent| longest(job, extent));
        let limit = self.limits.slack.saturating_add(request).saturating_add(warm_up);
        for client in first {
            match client.wait(ATTEMPT, limit, &mut serving.handles, self.stop)? {
                Event::Warm => {}
                other => return Err(client.unexpected(&other, ATTEMPT)),
            }
        }
        facts.preparation.took(Step::WarmUp, begun, clients[0].pid());
        Ok(())
    }

    /// Runs the measured window with all observers.
    fn window(
        &self,
        arena: &mut dyn Arena,
        inputs: &TrialInputs<'_>,
        clients: &mut Clients,
        serving: &mut Serving,
        observers: &mut [Box<dyn Observer>],
        facts: &mut Facts,
    ) -> Result<(), TrialAbort> {
        let targets = targets(clients, serving);
        for observer in observers.iter_mut() {
            observer.begin(&targets);
        }
        if let Some(remote_observer) = &mut facts.remote_observer {
            remote_observer.begin();
        }
        if let Some(exporter) = &inputs.exporter {
            exporter.pods(inputs.job.server_count() as usize, inputs.job.load.clients as usize);
        }
        let ended = self.run_clients(arena, inputs, clients, serving, facts);
        if let Some(exporter) = &inputs.exporter {
            exporter.pods(0, 0);
        }
        if let Some(remote_observer) = &mut facts.remote_observer {
            remote_observer.end();
        }
        // In reverse order, so that the first observer encloses the others.
        for observer in observers.iter_mut().rev() {
            observer.end(&targets);
        }
        facts.window_ns = ended?;
        Ok(())
    }

    /// Runs the clients' measurement; returns the length of the window in nanoseconds.
    fn run_clients(
        &self,
        arena: &mut dyn Arena,
        inputs: &TrialInputs<'_>,
        clients: &mut Clients,
        serving: &mut Serving,
        facts: &mut Facts,
    ) -> Result<u64, TrialAbort> {
        let (job, limits, stop) = (inputs.job, self.limits, self.stop);
        let limit = limits.slack.saturating_add(longest(job, job.load.extent));
        match job.course {
            Course::Timeline(_) => {
                let Serving { handles, ports, mesh, control_plane } = serving;
                let of_control_plane = || control_plane.as_ref().map(|control_plane| &control_plane.membership);
                let played = facts.timeline.insert(TimelineRecord::default());
                TimelineRun {
                    arena,
                    job,
                    lifetimes: &inputs.lifetimes,
                    others: handles,
                    clients,
                    ports,
                    membership: mesh.as_ref().map(|mesh| &mesh.membership).or_else(of_control_plane),
                    limits,
                    stop,
                    played: &mut *played,
                    exporter: inputs.exporter.as_ref(),
                    changing: None,
                }
                .run()?;
                Ok(played.clients.iter().map(|one| one.from_ns + one.window_ns).max().unwrap_or_default())
            }
            Course::Steady if job.load.clients > 1 => {
                facts.portions = shared::measure(clients, &mut serving.handles, limit, stop)?;
                Ok(facts.portions.iter().map(|one| one.told_ns + one.window_ns).max().unwrap_or_default())
            }
            Course::Steady => self.run_client(&mut clients[0], &mut serving.handles, limit),
        }
    }

    /// Runs the measurement of the only client; returns the length of its window in nanoseconds.
    fn run_client(
        &self,
        client: &mut EndpointHandle,
        servers: &mut [EndpointHandle],
        limit: Duration,
    ) -> Result<u64, TrialAbort> {
        const ATTEMPT: Attempt = Attempt::Measuring;
        let begun = Instant::now();
        client.send(Command::Go)?;
        match client.wait(ATTEMPT, limit, servers, self.stop)? {
            Event::End { window_ns } => {
                if client.has_clock() {
                    verify::window(window_ns, begun.elapsed()).map_err(TrialAbort::Outcome)?;
                }
                Ok(window_ns)
            }
            other => Err(client.unexpected(&other, ATTEMPT)),
        }
    }

    /// Ends the clients; returns their resource usage in total.
    fn end_clients(
        &self,
        clients: &mut Clients,
        serving: &mut Serving,
        facts: &mut Facts,
    ) -> Result<Option<Usage>, TrialAbort> {
        let (mut usages, mut transports) = (Vec::new(), Vec::new());
        for End { configured, transport, usage } in
            stop::end_all(clients, &mut serving.handles, self.limits, self.stop)?
        {
            facts.client.extend(configured);
            transports.push(transport);
            usages.push(usage);
        }
        facts.client_transport = transports.into_iter().reduce(merge_transport).flatten();
        Ok(usages.into_iter().reduce(merge_usage).flatten())
    }

    /// Stops sidecars or control plane in reverse order of start, then the servers. Returns the servers' resource
    /// usage in total.
    fn end_servers(&self, serving: &mut Serving, facts: &mut Facts) -> Result<Option<Usage>, TrialAbort> {
        const ATTEMPT: Attempt = Attempt::Stopping;
        let (limits, stop) = (self.limits, self.stop);
        let (servers, rest) = serving.handles.split_at_mut(serving.ports.len());
        if serving.mesh.is_some() {
            facts.carried = Some(mesh::carried(rest, limits, stop)?);
        }
        for other in rest.iter_mut().rev().filter(|other| !other.is_stopped()) {
            other.stop(limits.exit, stop)?;
        }
        let (mut usages, mut transports) = (Vec::new(), Vec::new());
        for server in servers {
            // The usage of a server that ended earlier is unknown.
            if server.is_stopped() {
                usages.push(None);
                transports.push(None);
                continue;
            }
            server.send(Command::Stop)?;
            match server.wait(ATTEMPT, limits.exit, &mut [], stop)? {
                Event::Done { configured, transport, .. } => {
                    facts.server.extend(configured);
                    transports.push(transport);
                }
                other => return Err(server.unexpected(&other, ATTEMPT)),
            }
            usages.push(server.end(Attempt::Ending, limits.exit)?.usage);
        }
        facts.server_transport = transports.into_iter().reduce(merge_transport).flatten();
        Ok(usages.into_iter().reduce(merge_usage).flatten())
    }
}

/// Processes for the observers.
fn targets(clients: &Clients, serving: &Serving) -> Targets {
    let pids = |handles: &[EndpointHandle]| handles.iter().map(EndpointHandle::pid).collect();
    let (servers, rest) = serving.handles.split_at(serving.ports.len());
    let (sidecars, asked) = rest.split_at(if serving.mesh.is_some() { rest.len() } else { 0 });
    Targets {
        // With no server, the value is missing, not zero.
        servers: if servers.is_empty() { None } else { pids(servers) },
        clients: pids(clients),
        sidecars: sidecars.split_last().map(|(of_clients, of_servers)| Sidecars {
            of_servers: pids(of_servers),
            of_clients: of_clients.pid().map(|pid| vec![pid]),
        }),
        control_plane: asked.first().and_then(EndpointHandle::pid),
    }
}

/// Sum of two usages; `None` if one is unknown.
fn merge_usage(sum: Option<Usage>, one: Option<Usage>) -> Option<Usage> {
    Some(sum?.with(one?))
}

/// Merges the transport reports of two endpoints; `None` if one is missing.
fn merge_transport(
    sum: Option<Box<TransportReport>>,
    one: Option<Box<TransportReport>>,
) -> Option<Box<TransportReport>> {
    Some(Box::new(sum?.and(one.as_ref()?)))
}

/// Configuration keys of a sidecar or control plane, with a prefix.
fn prefixed(by: &str, configured: &Configured) -> impl Iterator<Item = (String, serde_json::Value)> {
    configured.iter().map(move |(key, value)| (format!("{by}_{key}"), value.clone()))
}

fn unsupported(error: LabError) -> TrialAbort {
    TrialAbort::Outcome(Outcome::Unsupported { reason: error.into() })
}
