//! A plan: the seeded, ordered list of trials of a study.

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

/// A resolved study, which `run` executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// All cells; a cell's index is its number.
    pub cells: Vec<Cell>,
    /// The comparisons of the study.
    pub comparisons: Vec<Comparison>,
    /// Seed of the order within blocks and of every random choice of the endpoints.
    pub seed: u64,
    /// Minimum number of blocks before a verdict, after the sample-size rule.
    pub min_blocks: u32,
    /// Maximum number of blocks.
    pub max_blocks: u32,
    /// Time after which no new block starts, once `min_blocks` are complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Span>,
    /// Half-width of the first metric's intervals at which the study ends, as a share.
    pub precision: f64,
}

/// One combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Level by factor, in the order of the study file.
    pub levels: IndexMap<String, String>,
    /// Number of the cell that this cell repeats with the same levels, as the second half of an A/A pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin_of: Option<usize>,
    /// The job, with every default resolved.
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

/// A trial's job with every default resolved; `run` adds addresses, ports and files to derive the specs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The protocol between client and server.
    pub protocol: Protocol,
    /// Name of the server's endpoint.
    pub server: String,
    /// Name of the client's endpoint.
    pub client: String,
    /// The placement; the lab defines the names.
    pub placement: String,
    /// The emulated link, if the placement defines one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// The network between the hosts.
    #[serde(default)]
    pub network: Network,
    /// Whether the hosts' interfaces segment, merge and checksum packets; absent: the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloads: Option<bool>,
    /// Number and location of the servers.
    #[serde(default)]
    pub servers: Servers,
    /// Required labels of the client's node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_nodes: Option<Labels>,
    /// Required labels of the nodes of `far` servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_nodes: Option<Labels>,
    /// The kind of address that the client connects to.
    #[serde(default)]
    pub address: Address,
    /// Name of the sidecars' endpoint, or [`LINKERD`]; all requests pass through the mesh. Absent: no mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
    /// Name of the control plane's endpoint, which clients ask for the servers; absent: clients get an address and a
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<String>,
    /// Protocol of the servers, if they do not support the client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_protocol: Option<Protocol>,
    /// The page on a server that wirelab does not start. `server`, `servers` and the network are then unused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<Site>,
    /// The page that a browser loads. `exchange` is then `files`, `response_size` is the size of the whole page, and a
    /// request is a load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageName>,
    /// Names of the page's hosts, the document's first, if there are several; each has a server of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Whether early hints precede the page's document; absent: the study does not set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_hints: Option<bool>,
    /// Treatment of request priorities; absent: the study does not set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priorities: Option<Priorities>,
    /// What requests ask for.
    pub exchange: Exchange,
    /// Size of the request body.
    pub request_size: Size,
    /// Size of the response body.
    pub response_size: Size,
    /// Delay of the server's response, for `Exchange::Delay` and for the document of a page.
    pub delay: Span,
    /// Number of clients that share the workload: the fields below are totals over all clients.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub clients: u32,
    /// The connection policy.
    pub connections: ConnectionPolicy,
    /// The schedule of requests.
    pub schedule: Schedule,
    /// Length of the measured window.
    pub extent: Extent,
    /// Length of the warm-up.
    pub warm_up: Option<Extent>,
    /// TLS session resumption policy for new connections.
    pub resumption: Resumption,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// Aborts the trial after consecutive time-outs for this long.
    #[serde(default = "ten_minutes", alias = "patience")]
    pub stall_timeout: Span,
    /// Form of the records.
    pub recording: Recording,
    /// Transport settings of both sides. A setting that does not apply to the protocol is absent.
    pub transport: Transport,
    /// Age at which a server asks the client to open a new connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_connection_age: Option<Span>,
    /// Whether clients resolve the servers' name again for each new connection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resolves_again: bool,
    /// Actions during the measured window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Observers in addition to those of the study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_observers: Vec<String>,
    /// Number of server threads; absent: the library's default.
    pub server_threads: Option<u16>,
    /// Number of client threads; absent: the library's default.
    pub client_threads: Option<u16>,
}

const fn one() -> u32 {
    1
}

const fn is_one(clients: &u32) -> bool {
    *clients == 1
}

/// Default of `stall_timeout`.
#[must_use]
pub const fn ten_minutes() -> Span {
    Span::from_secs(600)
}

impl Job {
    /// The simplest job, as a base for others: the built-in endpoint, one worker, one document of 1 KiB per new
    /// connection.
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

    /// Name of the sidecars' endpoint; `None` without a mesh or with the cluster's own.
    #[must_use]
    pub fn sidecar(&self) -> Option<&String> {
        self.mesh.as_ref().filter(|name| *name != LINKERD)
    }

    /// Whether all requests pass through the cluster's Linkerd mesh.
    #[must_use]
    pub fn is_in_linkerd(&self) -> bool {
        self.mesh.is_some() && self.sidecar().is_none()
    }

    /// Returns the job with a page on these hosts, each with a `far` server of its own; unchanged if `hosts` is empty.
    #[must_use]
    pub fn of_hosts(self, hosts: Vec<String>) -> Self {
        match u32::try_from(hosts.len()) {
            Ok(far @ 1..) => Self { servers: Servers { near: 0, far }, hosts, ..self },
            _ => self,
        }
    }

    /// Returns the job of a single client, an equal part of the workload. The plan refuses totals that are not
    /// divisible.
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
                // The sum of Poisson processes is a Poisson process with the sum of their rates.
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
    /// Number of the cell.
    pub cell: usize,
    /// Number of the baseline cell.
    pub baseline: usize,
    /// Whether it is an A/A pair, which differs only by noise.
    pub aa: bool,
}

/// One execution of one cell: the unit of analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Number in the run, from 0.
    pub number: u32,
    /// Number of its block, from 0.
    pub block: u32,
    /// Position within the block, from 0.
    pub position: u32,
    /// Number of its cell.
    pub cell: usize,
    /// Seed of the random choices of its endpoints.
    pub seed: u64,
}
