//! The form of a job in files and messages: one flat object, in which a part that the job lacks is absent.

use serde::{Deserialize, Serialize};

use super::job::{Course, Job, ten_minutes};
use crate::link::Link;
use crate::network::{Address, Network, Servers};
use crate::nodes::Labels;
use crate::page::{PageName, Priorities};
use crate::protocol::Protocol;
use crate::settings::Exchange;
use crate::site::Site;
use crate::spec::{ConnectionPolicy, Extent, Recording, Resumption, Schedule, Timeouts, Transport};
use crate::timeline::Timeline;
use crate::units::{Size, Span};

#[derive(Serialize, Deserialize)]
pub(super) struct FlatJob {
    protocol: Protocol,
    server: String,
    client: String,
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
    resumption: Resumption,
    timeouts: Timeouts,
    #[serde(default = "ten_minutes", alias = "patience")]
    stall_timeout: Span,
    recording: Recording,
    transport: Transport,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_connection_age: Option<Span>,
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

const fn is_one(clients: &u32) -> bool {
    *clients == 1
}

impl From<Job> for FlatJob {
    fn from(job: Job) -> Self {
        Self {
            protocol: job.protocol,
            server: job.server,
            client: job.client,
            placement: job.placement,
            link: job.link,
            network: job.network,
            offloads: job.offloads,
            servers: job.servers,
            client_nodes: job.client_nodes,
            server_nodes: job.server_nodes,
            address: job.address,
            mesh: job.mesh,
            control_plane: job.control_plane,
            server_protocol: job.server_protocol,
            site: job.site,
            page: job.page,
            hosts: job.hosts,
            early_hints: job.early_hints,
            priorities: job.priorities,
            exchange: job.exchange,
            request_size: job.request_size,
            response_size: job.response_size,
            delay: job.delay,
            clients: job.clients,
            connections: job.connections,
            schedule: job.schedule,
            extent: job.extent,
            warm_up: job.warm_up,
            resumption: job.resumption,
            timeouts: job.timeouts,
            stall_timeout: job.stall_timeout,
            recording: job.recording,
            transport: job.transport,
            max_connection_age: job.max_connection_age,
            resolves_again: job.resolves_again,
            more_observers: job.more_observers,
            server_threads: job.server_threads,
            client_threads: job.client_threads,
            timeline: match job.course {
                Course::Steady => None,
                Course::Timeline(timeline) => Some(timeline),
            },
        }
    }
}

impl TryFrom<FlatJob> for Job {
    type Error = String;

    fn try_from(flat: FlatJob) -> Result<Self, String> {
        Ok(Self {
            protocol: flat.protocol,
            server: flat.server,
            client: flat.client,
            placement: flat.placement,
            link: flat.link,
            network: flat.network,
            offloads: flat.offloads,
            servers: flat.servers,
            client_nodes: flat.client_nodes,
            server_nodes: flat.server_nodes,
            address: flat.address,
            mesh: flat.mesh,
            control_plane: flat.control_plane,
            server_protocol: flat.server_protocol,
            site: flat.site,
            page: flat.page,
            hosts: flat.hosts,
            early_hints: flat.early_hints,
            priorities: flat.priorities,
            exchange: flat.exchange,
            request_size: flat.request_size,
            response_size: flat.response_size,
            delay: flat.delay,
            clients: flat.clients,
            connections: flat.connections,
            schedule: flat.schedule,
            extent: flat.extent,
            warm_up: flat.warm_up,
            resumption: flat.resumption,
            timeouts: flat.timeouts,
            stall_timeout: flat.stall_timeout,
            recording: flat.recording,
            transport: flat.transport,
            max_connection_age: flat.max_connection_age,
            resolves_again: flat.resolves_again,
            more_observers: flat.more_observers,
            server_threads: flat.server_threads,
            client_threads: flat.client_threads,
            course: flat.timeline.map_or(Course::Steady, Course::Timeline),
        })
    }
}
