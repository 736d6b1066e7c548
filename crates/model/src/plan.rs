//! A plan: the seeded, ordered list of trials that a study resolves to.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::link::Link;
use crate::network::{Address, LINKERD, Network, Servers};
use crate::nodes::Labels;
use crate::page::{PageName, Priorities};
use crate::protocol::Protocol;
use crate::settings::Exchange;
use crate::site::Site;
use crate::spec::{ConnectionPolicy, Extent, Pause, Recording, Resumption, Schedule, Timeouts, Transport};
use crate::timeline::Timeline;
use crate::units::{Size, Span};

/// A resolved study: what `run` executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Every cell; the index is its number.
    pub cells: Vec<Cell>,
    /// The comparisons that the study asks for.
    pub comparisons: Vec<Comparison>,
    /// Seeds the order within blocks and every random choice of the endpoints.
    pub seed: u64,
    /// Blocks before any verdict, after the sample-size rule.
    pub min_blocks: u32,
    /// Blocks after which the study ends.
    pub max_blocks: u32,
    /// Time after which no new block starts once `min_blocks` are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Span>,
    /// Half-width of the intervals of the first metric at which the study ends, as a share.
    pub precision: f64,
}

/// One combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Level by factor, in the order of the study file.
    pub levels: IndexMap<String, String>,
    /// The cell that this one repeats under the same levels: the second half of an A/A pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin_of: Option<usize>,
    /// What is to be done, with every default resolved.
    pub job: Job,
}

impl Cell {
    /// The levels as one line: `protocol=h2 payload=1 KiB`.
    #[must_use]
    pub fn label(&self) -> String {
        let mut words: Vec<_> = self.levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
        if self.twin_of.is_some() {
            words.push("(A/A)".to_owned());
        }
        words.join(" ")
    }
}

/// What a trial does, with every default resolved; `run` adds addresses, ports and files to make specs of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What is spoken.
    pub protocol: Protocol,
    /// The endpoint that plays the server.
    pub server: String,
    /// The endpoint that plays the client.
    pub client: String,
    /// Where they run, in the lab's words.
    pub placement: String,
    /// The network between them, where the placement has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// How the hosts are joined.
    #[serde(default)]
    pub network: Network,
    /// Whether the hosts' interfaces cut, merge and checksum packets; absent: as the kernel has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloads: Option<bool>,
    /// How many servers there are, and where.
    #[serde(default)]
    pub servers: Servers,
    /// The labels of the client's node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_nodes: Option<Labels>,
    /// The labels of the nodes of the servers that are far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_nodes: Option<Labels>,
    /// What the client connects to.
    #[serde(default)]
    pub address: Address,
    /// The endpoint that plays the sidecars, through which everything goes, or [`LINKERD`]; absent: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
    /// The endpoint that plays the control plane, which clients ask who serves; absent: they are told by address and name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<String>,
    /// What the servers speak, where the client asks with what they do not speak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_protocol: Option<Protocol>,
    /// The page of a server that is not started here. Then `server`, `servers` and the network mean nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<Site>,
    /// The page that a browser loads. Then `exchange` is `files`, `response_size` is that of the whole page, and a request is a load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageName>,
    /// The names of the page's hosts, its document's first, where there are several; each has a server of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Whether early hints come before the page's document; absent: that is no question, and the server is as it is without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_hints: Option<bool>,
    /// What the server makes of the priorities of a page's requests; absent: that is no question either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priorities: Option<Priorities>,
    /// What is asked for.
    pub exchange: Exchange,
    /// Bytes of request body.
    pub request_size: Size,
    /// Bytes of response body.
    pub response_size: Size,
    /// The server's delay, for `Exchange::Delay` and for the document of a page.
    pub delay: Span,
    /// How many clients share the workload: what follows is that of all together.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub clients: u32,
    /// How connections are used.
    pub connections: ConnectionPolicy,
    /// When requests are sent.
    pub schedule: Schedule,
    /// How long the measured window lasts.
    pub extent: Extent,
    /// What comes before it.
    pub warm_up: Option<Extent>,
    /// What new connections may reuse.
    pub resumption: Resumption,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// Aborts the trial after consecutive time-outs for this long.
    #[serde(default = "ten_minutes", alias = "patience")]
    pub stall_timeout: Span,
    /// What is recorded.
    pub recording: Recording,
    /// Transport settings of both sides. A setting that the protocol does not have is absent.
    pub transport: Transport,
    /// How long a server keeps a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_connection_age: Option<Span>,
    /// Whether clients resolve the name of the servers again for each new connection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resolves_again: bool,
    /// What is done while the measured window goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Observers besides those of the study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_observers: Vec<String>,
    /// Threads of the server.
    pub server_threads: Option<u16>,
    /// Threads of the client.
    pub client_threads: Option<u16>,
}

const fn one() -> u32 {
    1
}

const fn is_one(clients: &u32) -> bool {
    *clients == 1
}

/// How long requests that time out one after the other are waited for, where a study says nothing.
#[must_use]
pub const fn ten_minutes() -> Span {
    Span::from_secs(600)
}

impl Job {
    /// The plainest job, to start others from: the built-in endpoint, one worker, one document of 1 KiB over a new connection.
    #[must_use]
    pub fn plain(protocol: Protocol) -> Self {
        Self {
            protocol,
            server: "builtin".to_owned(),
            client: "builtin".to_owned(),
            placement: "local".to_owned(),
            link: None,
            network: Network::Direct,
            offloads: None,
            servers: Servers::ONE,
            client_nodes: None,
            server_nodes: None,
            address: Address::Server,
            mesh: None,
            control_plane: None,
            server_protocol: None,
            site: None,
            page: None,
            hosts: Vec::new(),
            early_hints: None,
            priorities: None,
            exchange: Exchange::Files,
            request_size: Size(0),
            response_size: Size(1024),
            delay: Span(0),
            clients: 1,
            connections: ConnectionPolicy::PerRequest,
            schedule: Schedule::Closed { workers: 1, pause: Pause::None },
            extent: Extent::Requests(1),
            warm_up: None,
            resumption: Resumption::None,
            timeouts: Timeouts { connect_ns: 1_000_000_000, request_ns: 2_000_000_000 },
            stall_timeout: ten_minutes(),
            recording: Recording::Samples,
            transport: Transport::default(),
            max_connection_age: None,
            resolves_again: false,
            timeline: None,
            more_observers: Vec::new(),
            server_threads: None,
            client_threads: None,
        }
    }

    /// The endpoint that plays the sidecars; absent: there are none, or they are those of the cluster.
    #[must_use]
    pub fn sidecar(&self) -> Option<&String> {
        self.mesh.as_ref().filter(|name| *name != LINKERD)
    }

    /// Whether everything goes through the mesh of the cluster.
    #[must_use]
    pub fn is_in_linkerd(&self) -> bool {
        self.mesh.is_some() && self.sidecar().is_none()
    }

    /// The same with a page on these hosts, each with a server of its own on the other side of the link; none: on one, as it is.
    #[must_use]
    pub fn of_hosts(self, hosts: Vec<String>) -> Self {
        match u32::try_from(hosts.len()) {
            Ok(far @ 1..) => Self { servers: Servers { near: 0, far }, hosts, ..self },
            _ => self,
        }
    }

    /// What one of its clients does: an equal part of the workload. The plan refuses what does not divide.
    #[must_use]
    pub fn of_one_client(&self) -> Self {
        let part = |extent| match extent {
            Extent::Requests(requests) => Extent::Requests(requests / u64::from(self.clients)),
            duration @ Extent::DurationNs(_) => duration,
        };
        Self {
            clients: 1,
            connections: match self.connections {
                ConnectionPolicy::PerRequest => ConnectionPolicy::PerRequest,
                ConnectionPolicy::Persistent { connections, streams } => {
                    ConnectionPolicy::Persistent { connections: connections / self.clients, streams }
                }
            },
            schedule: match self.schedule {
                Schedule::Closed { workers, pause } => Schedule::Closed { workers: workers / self.clients, pause },
                // Poisson processes together are one of their rates together.
                Schedule::Open { rate_per_s, arrivals } => {
                    Schedule::Open { rate_per_s: rate_per_s / f64::from(self.clients), arrivals }
                }
            },
            extent: part(self.extent),
            warm_up: self.warm_up.map(part),
            ..self.clone()
        }
    }
}

/// Two cells to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The number of the cell in question.
    pub cell: usize,
    /// The number of the cell that it is compared with.
    pub baseline: usize,
    /// Whether it is an A/A pair, which can only differ by noise.
    pub aa: bool,
}

/// One execution of one cell: the unit of analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Its number in the run, from 0.
    pub number: u32,
    /// The block that it belongs to, from 0.
    pub block: u32,
    /// Its place within the block, from 0.
    pub position: u32,
    /// The number of its cell.
    pub cell: usize,
    /// Seeds the random choices of its endpoints.
    pub seed: u64,
}
