//! The form of a job in files and messages: one flat object, in which a part that the job lacks is absent.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::job::{BUILTIN, Course, Job};
use super::load::{Load, ten_minutes};
use super::target::{OwnServers, Reach, Target};
use super::topology::Topology;
use super::work::{LoadedPage, Requests, Work};
use crate::link::Link;
use crate::network::{Address, Network, Servers};
use crate::nodes::Labels;
use crate::own_client::OwnClient;
use crate::page::{PageName, Priorities};
use crate::processors::Cpus;
use crate::protocol::Protocol;
use crate::request::WrittenRequest;
use crate::settings::Exchange;
use crate::site::Site;
use crate::spec::{ConnectionPolicy, Extent, Recording, Resumption, Schedule, Timeouts, Transport};
use crate::timeline::Timeline;
use crate::units::{Size, Span};

#[derive(Serialize, Deserialize)]
pub(super) struct FlatJob {
    protocol: Protocol,
    server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_command: Option<Vec<String>>,
    #[serde(default = "start_timeout", skip_serializing_if = "is_start_timeout")]
    start_timeout: Span,
    client: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    own_client: Option<OwnClient>,
    placement: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<Link>,
    #[serde(default)]
    network: Network,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offloads: Option<bool>,
    #[serde(default)]
    servers: Servers,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_nodes: Option<Labels>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_nodes: Option<Labels>,
    #[serde(default, skip_serializing_if = "Cpus::is_free")]
    cpus: Cpus,
    #[serde(default)]
    address: Address,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mesh: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    control_plane: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_protocol: Option<Protocol>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    site: Option<Site>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    page: Option<PageName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    early_hints: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priorities: Option<Priorities>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    own_requests: Vec<WrittenRequest>,
    exchange: Exchange,
    request_size: Size,
    response_size: Size,
    delay: Span,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    clients: u32,
    connections: ConnectionPolicy,
    schedule: Schedule,
    extent: Extent,
    warm_up: Option<Extent>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    until_steady: bool,
    resumption: Resumption,
    timeouts: Timeouts,
    #[serde(default = "ten_minutes", alias = "patience")]
    stall_timeout: Span,
    recording: Recording,
    transport: Transport,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_connection_age: Option<Span>,
    #[serde(default, skip_serializing_if = "is_zero")]
    added_work: Span,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    resolves_again: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeline: Option<Timeline>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    more_observers: Vec<String>,
    server_threads: Option<u16>,
    client_threads: Option<u16>,
}

const fn one() -> u32 {
    1
}

fn is_zero(work: &Span) -> bool {
    *work == Span(0)
}

const fn start_timeout() -> Span {
    OwnServers::START_TIMEOUT
}

fn is_start_timeout(limit: &Span) -> bool {
    *limit == OwnServers::START_TIMEOUT
}

const fn is_one(clients: &u32) -> bool {
    *clients == 1
}

impl From<Job> for FlatJob {
    fn from(job: Job) -> Self {
        // Files have values for servers even if none is started.
        let (servers, site) = match job.target {
            Target::Servers(servers) => (servers, None),
            Target::Site(site) => (OwnServers::one(BUILTIN), Some(site)),
        };
        let [request_size, response_size] = job.work.body_sizes();
        let mut own_requests = Vec::new();
        let (exchange, delay, page) = match job.work {
            Work::Requests(requests) => (requests.exchange, requests.delay, None),
            Work::Own(requests) => {
                own_requests = requests;
                (Exchange::Files, Span(0), None)
            }
            Work::Page(page) => (Exchange::Files, page.delay, Some(page)),
        };
        let address = servers.reach.address();
        let resolves_again = servers.reach == Reach::Headless { resolves_again: true };
        let (mesh, control_plane) = match servers.reach {
            Reach::Mesh(name) => (Some(name), None),
            Reach::ControlPlane(name) => (None, Some(name)),
            Reach::Server | Reach::Service | Reach::Headless { .. } | Reach::NodePort => (None, None),
        };
        Self {
            protocol: job.protocol,
            server: servers.endpoint,
            server_command: servers.command,
            start_timeout: servers.start_timeout,
            client: job.client,
            own_client: job.own_client,
            placement: job.topology.placement,
            link: job.topology.link,
            network: job.topology.network,
            offloads: job.topology.offloads,
            servers: servers.places,
            client_nodes: job.topology.client_nodes,
            cpus: job.topology.cpus,
            server_nodes: servers.nodes,
            address,
            mesh,
            control_plane,
            server_protocol: servers.protocol,
            site,
            page: page.as_ref().map(|page| page.name),
            early_hints: page.as_ref().and_then(|page| page.early_hints),
            priorities: page.as_ref().and_then(|page| page.priorities),
            hosts: page.map(|page| page.hosts).unwrap_or_default(),
            own_requests,
            exchange,
            request_size,
            response_size,
            delay,
            clients: job.load.clients,
            connections: job.load.connections,
            schedule: job.load.schedule,
            extent: job.load.extent,
            warm_up: job.load.warm_up,
            until_steady: job.load.until_steady,
            resumption: job.load.resumption,
            timeouts: job.load.timeouts,
            stall_timeout: job.load.stall_timeout,
            recording: job.load.recording,
            transport: job.transport,
            max_connection_age: servers.max_connection_age,
            added_work: servers.added_work,
            resolves_again,
            timeline: match job.course {
                Course::Steady => None,
                Course::Timeline(timeline) => Some(timeline),
            },
            more_observers: job.more_observers,
            server_threads: servers.threads,
            client_threads: job.load.threads,
        }
    }
}

impl TryFrom<FlatJob> for Job {
    type Error = JobError;

    fn try_from(mut flat: FlatJob) -> Result<Self, JobError> {
        Ok(Self {
            target: target(&mut flat)?,
            work: work(&mut flat)?,
            protocol: flat.protocol,
            client: flat.client,
            own_client: flat.own_client,
            topology: Topology {
                placement: flat.placement,
                link: flat.link,
                network: flat.network,
                offloads: flat.offloads,
                client_nodes: flat.client_nodes,
                cpus: flat.cpus,
            },
            load: Load {
                clients: flat.clients,
                connections: flat.connections,
                schedule: flat.schedule,
                extent: flat.extent,
                warm_up: flat.warm_up,
                until_steady: flat.until_steady,
                resumption: flat.resumption,
                timeouts: flat.timeouts,
                stall_timeout: flat.stall_timeout,
                recording: flat.recording,
                threads: flat.client_threads,
            },
            transport: flat.transport,
            course: flat.timeline.map_or(Course::Steady, Course::Timeline),
            more_observers: flat.more_observers,
        })
    }
}

/// Takes the keys of the target out of a job.
///
/// # Errors
/// If a key of servers stands beside `site`.
fn target(flat: &mut FlatJob) -> Result<Target, JobError> {
    let reach = reach(flat)?;
    let Some(site) = flat.site.take() else {
        return Ok(Target::Servers(OwnServers {
            endpoint: std::mem::take(&mut flat.server),
            command: flat.server_command.take(),
            start_timeout: flat.start_timeout,
            protocol: flat.server_protocol,
            places: flat.servers,
            nodes: flat.server_nodes.take(),
            reach,
            threads: flat.server_threads,
            max_connection_age: flat.max_connection_age,
            added_work: flat.added_work,
        }));
    };
    let of_servers = [
        ("mesh", matches!(reach, Reach::Mesh(_))),
        ("control_plane", matches!(reach, Reach::ControlPlane(_))),
        ("server_protocol", flat.server_protocol.is_some()),
        ("server_nodes", flat.server_nodes.is_some()),
        ("server_threads", flat.server_threads.is_some()),
        ("page", flat.page.is_some()),
        ("timeline", flat.timeline.is_some()),
    ];
    match of_servers.into_iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) => Err(JobError::BesideSite { key, url: site.url }),
        None => Ok(Target::Site(site)),
    }
}

/// Takes the keys of the way to the servers out of a job.
///
/// # Errors
/// If they contradict each other.
fn reach(flat: &mut FlatJob) -> Result<Reach, JobError> {
    match (flat.mesh.take(), flat.control_plane.take(), flat.address) {
        (Some(mesh), Some(control_plane), _) => Err(JobError::MeshAndControlPlane { mesh, control_plane }),
        (Some(name), None, Address::Server | Address::Service) => Ok(Reach::Mesh(name)),
        (None, Some(name), Address::Server | Address::Service) => Ok(Reach::ControlPlane(name)),
        (Some(name), None, _) | (None, Some(name), _) => Err(JobError::AddressBesideProxy { name }),
        (None, None, Address::Headless) => Ok(Reach::Headless { resolves_again: flat.resolves_again }),
        (None, None, _) if flat.resolves_again => Err(JobError::NothingToResolve),
        (None, None, Address::Server) => Ok(Reach::Server),
        (None, None, Address::Service) => Ok(Reach::Service),
        (None, None, Address::NodePort) => Ok(Reach::NodePort),
    }
}

/// Takes the keys of the clients' work out of a job.
///
/// # Errors
/// If a key of a page stands without `page`, or a page beside another exchange.
fn work(flat: &mut FlatJob) -> Result<Work, JobError> {
    if let Some(name) = flat.page {
        if flat.exchange != Exchange::Files {
            return Err(JobError::ExchangeBesidePage { exchange: flat.exchange, page: name });
        }
        return Ok(Work::Page(LoadedPage {
            name,
            size: flat.response_size,
            hosts: std::mem::take(&mut flat.hosts),
            delay: flat.delay,
            early_hints: flat.early_hints,
            priorities: flat.priorities,
        }));
    }
    let of_pages = [
        ("hosts", !flat.hosts.is_empty()),
        ("early_hints", flat.early_hints.is_some()),
        ("priorities", flat.priorities.is_some()),
    ];
    match of_pages.into_iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) => Err(JobError::WithoutPage { key }),
        None if !flat.own_requests.is_empty() => Ok(Work::Own(std::mem::take(&mut flat.own_requests))),
        None => Ok(Work::Requests(Requests {
            exchange: flat.exchange,
            request_size: flat.request_size,
            response_size: flat.response_size,
            delay: flat.delay,
        })),
    }
}

/// Keys of a job that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobError {
    /// A key of servers stands beside a site.
    BesideSite {
        key: &'static str,
        /// The site.
        url: String,
    },
    /// Clients cannot use a mesh and a control plane.
    MeshAndControlPlane {
        /// The endpoint of the mesh.
        mesh: String,
        /// The endpoint of the control plane.
        control_plane: String,
    },
    /// Clients that connect through an endpoint have no other address.
    AddressBesideProxy {
        /// The endpoint.
        name: String,
    },
    /// Clients that connect to an address resolve no name.
    NothingToResolve,
    /// A page has its own exchange.
    ExchangeBesidePage { exchange: Exchange, page: PageName },
    /// A key of pages stands without a page.
    WithoutPage { key: &'static str },
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BesideSite { key, url } => {
                write!(f, "the job has `{key}` beside `site` ({url}), whose servers wirelab does not start")
            }
            Self::MeshAndControlPlane { mesh, control_plane } => write!(
                f,
                "the job has both `mesh` ({mesh}) and `control_plane` ({control_plane}); clients use one of them"
            ),
            Self::AddressBesideProxy { name } => {
                write!(f, "the job has an `address` other than a service, but its clients connect through `{name}`")
            }
            Self::NothingToResolve => {
                f.write_str("the job has `resolves_again`, but its clients connect to an address, not to a name")
            }
            Self::ExchangeBesidePage { exchange, page } => {
                write!(f, "the job has the exchange `{}` beside the page `{page}`", exchange.token())
            }
            Self::WithoutPage { key } => write!(f, "the job has `{key}`, but no `page`"),
        }
    }
}

impl std::error::Error for JobError {}

#[cfg(test)]
#[path = "flat_tests.rs"]
mod tests;
