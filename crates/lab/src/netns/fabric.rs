//! The process that holds the network: it creates and connects the namespaces, carries the frames of the emulated
//! link, and measures that link. It is a separate process so that its CPU time is known, and so that the whole
//! network ends with it.
//!
//! It reads requests as JSON lines from standard input, and writes one JSON line for each to standard output. It ends
//! with its input.

use std::io::{self, BufRead, Write};
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use tracing::{debug, info, warn};
use wirelab_model::link::{Link, Reading};
use wirelab_model::network::{Network, Servers};
use wirelab_model::plan::Job;
use wirelab_model::reason::LabFailure;
use wirelab_model::timeline::Lifetimes;

use crate::LabError;
use crate::netns::emulator::Tallies;
use crate::netns::interface::{self, Offloads};
use crate::netns::namespace::Namespace;
use crate::netns::overlay::{self, Overlay};
use crate::netns::pair::{Pair, Way};
use crate::netns::{measure, privilege, service, settings};

/// Subcommand that makes wirelab this process.
pub const SUBCOMMAND: &str = "fabric";

/// Orders to the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(crate) enum Request {
    /// Write the log to this file.
    Log {
        /// Absolute path.
        path: PathBuf,
    },
    /// Create the network of a trial.
    Prepare {
        /// Job of the trial.
        job: Box<Job>,
        /// Seed of the link's random choices.
        seed: u64,
    },
    /// Make the service stand for exactly these servers.
    Publish {
        /// Port of the service.
        port: u16,
        /// Servers by number, with their addresses.
        servers: Vec<(u32, SocketAddrV4)>,
    },
    /// Remove the service, if the trial has one.
    Withdraw,
    /// Report events since the last `Prepare`.
    Tally,
    /// Shape the link and measure it.
    Measure {
        /// Link specification.
        link: Link,
        /// Seed of its random choices.
        seed: u64,
    },
}

/// Answers of the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The process is ready to create networks.
    Ready {
        /// User namespace that owns the network namespaces, if it differs from wirelab's.
        owner: Option<PathBuf>,
    },
    /// The log has its file.
    Logging,
    /// The network of the trial is ready.
    Prepared(Hosts),
    /// The service is ready.
    Published,
    /// The service is gone.
    Withdrawn,
    /// Events since the last `Prepare`.
    Tallied(Tallied),
    /// Measured values of the link.
    Measured(Reading),
    /// The request failed.
    Failed(LabFailure),
}

/// Paths of the network namespaces of a trial.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Hosts {
    /// Namespace of the client.
    pub client: PathBuf,
    /// Namespaces of the servers.
    pub servers: Vec<PathBuf>,
    /// Namespace of the other node, at the far end of the link.
    pub far_node: PathBuf,
}

/// Counters since the network was prepared.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Tallied {
    /// Counters of the emulated link.
    pub lines: Tallies,
    /// CPU time of this process since its start, in nanoseconds.
    pub cpu_ns: u64,
    /// Connections per server of the service; empty: no service.
    pub chosen: Vec<u64>,
}

/// Runs `wirelab fabric`. `keep_log` opens its log.
#[must_use]
pub fn main(keep_log: &dyn Fn(&Path)) -> ExitCode {
    let built = privilege::obtain().and_then(|owner| Ok((owner, Fabric::build(keep_log)?)));
    let (owner, mut fabric) = match built {
        Ok(built) => built,
        Err(error) => {
            write_answer(&Answer::Failed(error.into()));
            return ExitCode::FAILURE;
        }
    };
    write_answer(&Answer::Ready { owner });
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let answer = serde_json::from_str(&line)
            .map_err(|error| LabError::network("cannot read the request").because(error))
            .and_then(|request| fabric.execute(request))
            .unwrap_or_else(|error| {
                warn!(%error, "request failed");
                Answer::Failed(error.into())
            });
        write_answer(&answer);
    }
    ExitCode::SUCCESS
}

fn write_answer(answer: &Answer) {
    let mut out = io::stdout().lock();
    // If wirelab has ended, the write fails, and the end of input then ends this process.
    let _ = serde_json::to_writer(&mut out, answer);
    let _ = out.write_all(b"\n").and_then(|()| out.flush());
}

struct Fabric<'a> {
    keep_log: &'a dyn Fn(&Path),
    pair: Pair,
    /// Created when a trial first needs it.
    overlay: Option<Overlay>,
    /// Number of servers that the service has had; 0: no service.
    published: u32,
}

impl<'a> Fabric<'a> {
    fn build(keep_log: &'a dyn Fn(&Path)) -> Result<Self, LabError> {
        Ok(Self { keep_log, pair: Pair::build()?, overlay: None, published: 0 })
    }

    fn execute(&mut self, request: Request) -> Result<Answer, LabError> {
        match request {
            Request::Log { path } => {
                (self.keep_log)(&path);
                info!("network namespaces created");
                Ok(Answer::Logging)
            }
            Request::Prepare { job, seed } => {
                self.withdraw()?;
                let link = job.topology.link.as_ref().ok_or_else(|| LabError::network("a network needs a link"))?;
                self.pair.shape(link, seed)?;
                let servers = job.servers().ok_or_else(|| LabError::network("a network needs servers"))?;
                let hosts = match job.topology.network {
                    Network::Direct => self.direct(&job, servers.places, link),
                    Network::Overlay => self.overlay(&job, servers.places, link),
                };
                info!(network = ?job.topology.network, servers = Lifetimes::of(&job).servers, "preparing the network");
                let attempt = "making the network of the trial";
                hosts.map(Answer::Prepared).map_err(|error| LabError::network(attempt).because(error))
            }
            Request::Publish { port, servers } => {
                let highest = servers.iter().map(|(number, _)| *number).max();
                let highest = highest.ok_or_else(|| LabError::network("a service needs a server"))?;
                service::publish(&self.pair.nodes[0], port, &servers)?;
                self.published = self.published.max(highest + 1);
                // A timeline changes the service within the measured window, where no line of `info` belongs.
                debug!(?servers, "service published");
                Ok(Answer::Published)
            }
            Request::Withdraw => self.withdraw().map(|()| Answer::Withdrawn),
            Request::Tally => {
                let chosen = match self.published {
                    0 => Vec::new(),
                    servers => service::chosen(&self.pair.nodes[0], servers)?,
                };
                Ok(Answer::Tallied(Tallied { lines: self.pair.tally()?, cpu_ns: privilege::cpu_ns(), chosen }))
            }
            Request::Measure { link, seed } => {
                self.pair.shape(&link, seed)?;
                let addresses = Way::of(&link).addresses;
                let reading = measure::measure(&self.pair.nodes, addresses, &link, || self.pair.tally())?;
                info!(round_trip = %link.round_trip, "link measured");
                Ok(Answer::Measured(reading))
            }
        }
    }

    /// Removes the service. Without it, nodes translate no addresses and track no connections.
    fn withdraw(&mut self) -> Result<(), LabError> {
        if self.published > 0 {
            service::withdraw(&self.pair.nodes[0])?;
            self.published = 0;
        }
        Ok(())
    }

    fn direct(&mut self, job: &Job, places: Servers, link: &Link) -> io::Result<Hosts> {
        // The servers of a page's hosts share the node and its link; each has its own address.
        self.pair.add_server_addresses(Way::of(link), places.count())?;
        if job.page().is_some_and(|page| !page.hosts.is_empty()) {
            settings::open_ports(&self.pair.nodes[1])?;
        }
        for node in &self.pair.nodes {
            settings::adapt(node, job)?;
            // Interfaces of emulated links never have offloads.
            if link.is_wire() {
                interface::offload(node, Way::of(link).interface, Offloads::of(job))?;
            }
        }
        let [client, server] = self.pair.nodes.each_ref().map(Namespace::path);
        Ok(Hosts { client, servers: vec![server.clone(); places.count() as usize], far_node: server })
    }

    fn overlay(&mut self, job: &Job, places: Servers, link: &Link) -> io::Result<Hosts> {
        let nodes = &self.pair.nodes;
        if self.overlay.is_none() {
            self.overlay = Some(Overlay::build(nodes)?);
        }
        let overlay = self.overlay.as_mut().expect("it was just made");
        let servers = Lifetimes::of(job).servers;
        // Servers that are added later run on the other node.
        overlay.populate(nodes, Servers { far: servers - places.near, ..places })?;
        overlay.set_tunnel(nodes, Way::of(link).addresses)?;
        overlay.set_mtu(nodes, link.mtu)?;
        let servers = (0..servers).map(|number| overlay.pod(overlay::server(places, number)));
        let (client, servers) = (overlay.pod(overlay::CLIENT), servers.collect::<Vec<_>>());
        for pod in servers.iter().chain([&client]) {
            settings::adapt(pod, job)?;
            interface::offload(pod, overlay::POD_INTERFACE, Offloads::of(job))?;
        }
        Ok(Hosts {
            client: client.path(),
            servers: servers.into_iter().map(Namespace::path).collect(),
            far_node: nodes[1].path(),
        })
    }
}
