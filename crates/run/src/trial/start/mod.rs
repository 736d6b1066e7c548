//! Starts the processes of a trial: servers, their sidecars or the control plane, then the clients.

pub(crate) mod control;
pub(crate) mod mesh;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use wirelab_lab::{Addresses, Arena, LabError, Launch, Role};
use wirelab_model::event::{Configured, Event};
use wirelab_model::exposition::Exposition;
use wirelab_model::outcome::Outcome;
use wirelab_model::plan::{Cell, Job, Target, Trial, Work};
use wirelab_model::reason::{Attempt, Reason};
use wirelab_model::study::Artifact;
use wirelab_model::timeline::Lifetimes;
use wirelab_model::via::Via;
use wirelab_observe::Observer;
use wirelab_observe::film::ABOUT as FILM;
use wirelab_observe::prometheus::ABOUT as PROMETHEUS;

use crate::exporter::TrialExporter;
use crate::requests;
use crate::spec;
use crate::trial::clients::Clients;
use crate::trial::context::{Facts, TrialContext, TrialInputs};
use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::trial::names::{client_log, client_name, server_log, server_name};
use crate::trial::preparation::Step;
use crate::trial::start::control::ControlPlane;
use crate::trial::start::mesh::Mesh;

const STARTING: Attempt = Attempt::Starting;

/// All processes except the clients. Drop kills the running ones.
#[derive(Default)]
pub(crate) struct Serving {
    /// Servers, then their sidecars and that of the clients, or the control plane.
    pub handles: Vec<EndpointHandle>,
    /// Ports of the servers.
    pub ports: Vec<u16>,
    /// The Unix socket of the only server, if it listens there in place of its port.
    pub socket: Option<PathBuf>,
    pub mesh: Option<Mesh>,
    pub control_plane: Option<ControlPlane>,
}

impl TrialContext<'_> {
    pub(crate) fn trial_inputs<'a>(
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
    pub(crate) fn start_servers(
        &self,
        arena: &mut dyn Arena,
        inputs: &TrialInputs<'_>,
        facts: &mut Facts,
    ) -> Result<Serving, TrialAbort> {
        let (trial, job) = (inputs.trial, inputs.job);
        let Target::Servers(own) = &job.target else { return Ok(Serving::default()) };
        let begun = Instant::now();
        let startup = self.limits.startup_of(own);
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
        let (mut ports, mut socket) = (Vec::new(), None);
        for server in &mut handles {
            match server.wait(STARTING, startup, &mut [], self.stop)? {
                Event::Ready { port: Some(port), socket: at, configured } => {
                    socket = at;
                    facts.server.extend(configured);
                    ports.push(port);
                }
                Event::Ready { port: None, .. } => return Err(server.without_port()),
                other => return Err(server.unexpected(&other, STARTING)),
            }
            facts.preparation.took(Step::StartServer, begun, server.pid());
        }
        Ok(Serving { handles, ports, socket, mesh: None, control_plane: None })
    }

    pub(crate) fn start_sidecars_or_control_plane(
        &self,
        arena: &mut dyn Arena,
        inputs: &TrialInputs<'_>,
        serving: &mut Serving,
        facts: &mut Facts,
    ) -> Result<(), TrialAbort> {
        let (of, job) = ((inputs.trial, inputs.job), inputs.job);
        let Serving { handles, ports, mesh, control_plane, .. } = serving;
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
    pub(crate) fn start_clients(
        &self,
        arena: &mut dyn Arena,
        inputs: &TrialInputs<'_>,
        serving: &mut Serving,
        facts: &mut Facts,
    ) -> Result<Clients, TrialAbort> {
        let (trial, cell, job) = (inputs.trial, inputs.cell, inputs.job);
        let connect_address = self.connect_address(arena, inputs, serving, facts)?;
        // A proxy has a port of its own, the only one on the client's wire.
        let proxy = job.site().and_then(|site| site.proxy.as_ref());
        facts.connect_port = Some(proxy.map_or(connect_address.port(), |proxy| proxy.port));
        let addresses = Addresses { connect: connect_address.ip(), ..inputs.addresses.clone() };
        let begun = Instant::now();
        let mut files = Vec::new();
        for (number, life) in (0..).zip(&inputs.lifetimes.clients) {
            let path = self.files.folder.join(format!("{}.json", client_name(number)));
            let mut of_client = spec::client(trial, cell, &addresses, life, connect_address.port(), self.files)?;
            if let Some(path) = &serving.socket {
                of_client.via = Some(Via::UnixSocket(path.clone()));
            }
            of_client.seed = trial.seed.wrapping_add(number.into());
            requests::divide(&mut of_client.mix, number, job.load.clients);
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
        self.can_do(job)?;
        let launches: Vec<_> = (0..)
            .zip(&files)
            .map(|(number, (spec, log))| Launch { role: Role::Client, number, endpoint: &endpoint, spec, log })
            .collect();
        let mut clients = Clients::new(EndpointHandle::start_all(arena, job, &launches)?);
        let startup = self.limits.startup;
        // A browser starts a dozen processes and creates a profile.
        let startup = match job.work {
            Work::Requests(_) | Work::Own(_) => startup,
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

    /// Refuses what the client cannot do according to its description.
    fn can_do(&self, job: &Job) -> Result<(), TrialAbort> {
        let client = self.endpoints.get(&job.client).and_then(|record| record.description.client.as_ref());
        let Some(role) = client else { return Ok(()) };
        let endpoint = job.client.clone();
        let reason = if !job.own_requests().is_empty() && !role.own_requests {
            Reason::OwnRequests { endpoint }
        } else if job.load.until_steady && !role.until_steady {
            Reason::UntilSteady { endpoint }
        } else {
            return Ok(());
        };
        Err(TrialAbort::Outcome(Outcome::Unsupported { reason }))
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
                let (key, place) = match (&site.unix_socket, &site.proxy) {
                    (Some(path), _) => ("unix_socket", path.display().to_string()),
                    (None, Some(proxy)) => ("proxy", format!("{} ({connect})", proxy.shown())),
                    (None, None) => ("address", SocketAddr::new(connect, site.port).to_string()),
                };
                facts.server.insert(key.to_owned(), place.into());
                SocketAddr::new(connect, site.port)
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
}

/// Configuration keys of a sidecar or control plane, with a prefix.
fn prefixed(by: &str, configured: &Configured) -> impl Iterator<Item = (String, serde_json::Value)> {
    configured.iter().map(move |(key, value)| (format!("{by}_{key}"), value.clone()))
}

fn unsupported(error: LabError) -> TrialAbort {
    TrialAbort::Outcome(Outcome::Unsupported { reason: error.into() })
}
