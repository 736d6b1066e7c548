//! The process that holds the network: it makes the namespaces, joins them, carries the frames of the emulated link, and
//! measures that link. A process of its own, so that its processor time is known apart, and so that the whole network goes with
//! it.
//!
//! It is told what to do by JSON lines on standard input, and answers each by one on standard output; the end of its input
//! ends it.

use std::io::{self, BufRead, Write};
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use wirelab_model::link::{Link, Reading};
use wirelab_model::network::{Network, Servers};
use wirelab_model::plan::Job;
use wirelab_model::timeline::Course;

use crate::netns::emulator::Tallies;
use crate::netns::interface::{self, Offloads};
use crate::netns::namespace::Namespace;
use crate::netns::overlay::{self, Overlay};
use crate::netns::pair::{Pair, Way};
use crate::netns::{measure, privilege, service, settings};

/// The word on wirelab's command line that makes it this process.
pub const SUBCOMMAND: &str = "fabric";

/// What it is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Make the network of a trial.
    Prepare {
        /// What the trial does.
        job: Box<Job>,
        /// Seeds the link's random choices.
        seed: u64,
    },
    /// Let the service stand for these servers, and for no others.
    Publish {
        /// The port of the service.
        port: u16,
        /// The servers by their numbers, and where they listen.
        servers: Vec<(u32, SocketAddrV4)>,
    },
    /// What happened since the network was prepared?
    Tally,
    /// Shape the link and measure what it does.
    Measure {
        /// What it is to do.
        link: Link,
        /// Seeds its random choices.
        seed: u64,
    },
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// It is there, and can make networks.
    Ready {
        /// The user namespace that owns the network namespaces, where it is not that of wirelab.
        owner: Option<PathBuf>,
    },
    /// The network of the trial is there.
    Prepared(Hosts),
    /// The service is there.
    Published,
    /// What happened.
    Tallied(Tallied),
    /// What the link does.
    Measured(Reading),
    /// It could not be done.
    Failed {
        /// What was attempted, and what happened.
        why: String,
    },
}

/// The network namespaces of a trial, as paths.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Hosts {
    /// That of the client.
    pub client: PathBuf,
    /// Those of the servers.
    pub servers: Vec<PathBuf>,
    /// That of the other node, which the link leads to.
    pub far_node: PathBuf,
}

/// What happened in the network since it was prepared.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Tallied {
    /// What the emulated link did.
    pub lines: Tallies,
    /// Processor time of this process so far, in nanoseconds.
    pub cpu_ns: u64,
    /// How many connections the service led to each server; empty: there is no service.
    pub chosen: Vec<u64>,
}

/// The whole process: `wirelab fabric`.
#[must_use]
pub fn main() -> ExitCode {
    let built = privilege::obtain().and_then(|owner| Ok((owner, Fabric::build()?)));
    let (owner, mut fabric) = match built {
        Ok(built) => built,
        Err(why) => {
            say(&Answer::Failed { why });
            return ExitCode::FAILURE;
        }
    };
    say(&Answer::Ready { owner });
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let answer = serde_json::from_str(&line)
            .map_err(|error| format!("reading an order: {error}"))
            .and_then(|ask| fabric.obey(ask))
            .unwrap_or_else(|why| Answer::Failed { why });
        say(&answer);
    }
    ExitCode::SUCCESS
}

fn say(answer: &Answer) {
    let mut out = io::stdout().lock();
    // Nobody listens any more where wirelab has ended; then the end of input ends this process too.
    let _ = serde_json::to_writer(&mut out, answer);
    let _ = out.write_all(b"\n").and_then(|()| out.flush());
}

struct Fabric {
    pair: Pair,
    /// Made when a trial first needs it.
    overlay: Option<Overlay>,
    /// How many servers the service has stood for; 0: there is none.
    published: u32,
}

impl Fabric {
    fn build() -> Result<Self, String> {
        Ok(Self { pair: Pair::build()?, overlay: None, published: 0 })
    }

    fn obey(&mut self, ask: Ask) -> Result<Answer, String> {
        match ask {
            Ask::Prepare { job, seed } => {
                // Without a service the nodes translate nothing, and remember no connections.
                if self.published > 0 {
                    service::withdraw(&self.pair.nodes[0])?;
                    self.published = 0;
                }
                let link = job.link.as_ref().ok_or("a network needs a link")?;
                self.pair.shape(link, seed)?;
                let hosts = match job.network {
                    Network::Direct => self.direct(&job, link),
                    Network::Overlay => self.overlay(&job, link),
                };
                hosts.map(Answer::Prepared).map_err(|error| format!("making the network of the trial: {error}"))
            }
            Ask::Publish { port, servers } => {
                let highest = servers.iter().map(|(number, _)| *number).max().ok_or("a service needs a server")?;
                service::publish(&self.pair.nodes[0], port, &servers)?;
                self.published = self.published.max(highest + 1);
                Ok(Answer::Published)
            }
            Ask::Tally => {
                let chosen = match self.published {
                    0 => Vec::new(),
                    servers => service::chosen(&self.pair.nodes[0], servers)?,
                };
                Ok(Answer::Tallied(Tallied { lines: self.pair.tally()?, cpu_ns: privilege::cpu_ns(), chosen }))
            }
            Ask::Measure { link, seed } => {
                self.pair.shape(&link, seed)?;
                let addresses = Way::of(&link).addresses;
                measure::measure(&self.pair.nodes, addresses, &link, || self.pair.tally()).map(Answer::Measured)
            }
        }
    }

    fn direct(&mut self, job: &Job, link: &Link) -> io::Result<Hosts> {
        // The servers of a page's hosts share the node, and with it the link, each at an address of its own.
        self.pair.house(Way::of(link), job.servers.count())?;
        if !job.hosts.is_empty() {
            settings::open_ports(&self.pair.nodes[1])?;
        }
        for node in &self.pair.nodes {
            settings::adapt(node, job)?;
            // An emulated link has none, ever.
            if link.is_wire() {
                interface::offload(node, Way::of(link).interface, Offloads::of(job))?;
            }
        }
        let [client, server] = self.pair.nodes.each_ref().map(Namespace::path);
        Ok(Hosts { client, servers: vec![server.clone(); job.servers.count() as usize], far_node: server })
    }

    fn overlay(&mut self, job: &Job, link: &Link) -> io::Result<Hosts> {
        let nodes = &self.pair.nodes;
        if self.overlay.is_none() {
            self.overlay = Some(Overlay::build(nodes)?);
        }
        let overlay = self.overlay.as_mut().expect("it was just made");
        let servers = Course::of(job).servers;
        // Those that come later are on the other node.
        overlay.populate(nodes, Servers { far: servers - job.servers.near, ..job.servers })?;
        overlay.lead(nodes, Way::of(link).addresses)?;
        overlay.set_mtu(nodes, link.mtu)?;
        let servers = (0..servers).map(|number| overlay.pod(overlay::server(job.servers, number)));
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
