//! The job of a trial: its parts say what goes together.

use serde::{Deserialize, Serialize};

use super::flat::FlatJob;
use super::load::Load;
use super::target::{OwnServers, Reach, Target};
use super::topology::Topology;
use super::work::{LoadedPage, Requests, Work};
use crate::network::Servers;
use crate::own_client::OwnClient;
use crate::protocol::Protocol;
use crate::request::WrittenRequest;
use crate::site::Site;
use crate::spec::Transport;
use crate::timeline::Timeline;
use crate::units::Size;

/// A trial's job with every default resolved; `run` adds addresses, ports and files to derive the specs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "FlatJob", try_from = "FlatJob")]
pub struct Job {
    /// The protocol between client and server.
    pub protocol: Protocol,
    /// Name of the client's endpoint.
    pub client: String,
    /// The program of the user in place of the client's endpoint; `client` is then its
    /// [`command_name`](super::command_name).
    pub own_client: Option<OwnClient>,
    /// The hosts and the network between them.
    pub topology: Topology,
    /// The target of the requests.
    pub target: Target,
    /// The work of the clients.
    pub work: Work,
    pub load: Load,
    /// Transport settings of both sides. A setting that does not apply to the protocol is absent.
    pub transport: Transport,
    /// How servers and clients come and go.
    pub course: Course,
    /// Observers in addition to those of the study.
    pub more_observers: Vec<String>,
}

/// How servers and clients come and go during the measured window.
#[derive(Debug, Clone, PartialEq)]
pub enum Course {
    /// All of them stay from its beginning to its end.
    Steady,
    /// They follow the actions of a timeline.
    Timeline(Timeline),
}

/// Name of the endpoint that is part of wirelab.
pub const BUILTIN: &str = "builtin";

/// The name of the load engine, a client that is part of wirelab too.
pub const ENGINE: &str = "engine";

impl Job {
    /// The simplest job, as a base for others: the built-in endpoint, one worker, one document of 1 KiB per new
    /// connection.
    #[must_use]
    pub fn plain(protocol: Protocol) -> Self {
        Self {
            protocol,
            client: BUILTIN.to_owned(),
            own_client: None,
            topology: Topology::at("local"),
            target: Target::Servers(OwnServers::one(BUILTIN)),
            work: Work::Requests(Requests::document(Size(1024))),
            load: Load::plain(),
            transport: Transport::default(),
            course: Course::Steady,
            more_observers: Vec::new(),
        }
    }

    /// The timeline of the trial's course, if it has one.
    #[must_use]
    pub const fn timeline(&self) -> Option<&Timeline> {
        match &self.course {
            Course::Steady => None,
            Course::Timeline(timeline) => Some(timeline),
        }
    }

    /// The servers that wirelab starts; `None` for a site.
    #[must_use]
    pub const fn servers(&self) -> Option<&OwnServers> {
        match &self.target {
            Target::Servers(servers) => Some(servers),
            Target::Site(_) => None,
        }
    }

    /// The site; `None` if wirelab starts the servers.
    #[must_use]
    pub const fn site(&self) -> Option<&Site> {
        match &self.target {
            Target::Servers(_) => None,
            Target::Site(site) => Some(site),
        }
    }

    /// Name of the servers' endpoint; `None` for a site.
    #[must_use]
    pub fn server(&self) -> Option<&String> {
        self.servers().map(|servers| &servers.endpoint)
    }

    /// Number of servers that wirelab starts before the window.
    #[must_use]
    pub fn server_count(&self) -> u32 {
        self.servers().map_or(0, |servers| servers.places.count())
    }

    /// Name of the sidecars' endpoint; `None` without a mesh or with the cluster's own.
    #[must_use]
    pub fn sidecar(&self) -> Option<&String> {
        self.servers()?.reach.sidecar()
    }

    /// Name of the control plane's endpoint.
    #[must_use]
    pub fn control_plane(&self) -> Option<&String> {
        match &self.servers()?.reach {
            Reach::ControlPlane(name) => Some(name),
            _ => None,
        }
    }

    /// Whether all requests pass through a mesh.
    #[must_use]
    pub fn has_mesh(&self) -> bool {
        self.servers().is_some_and(|servers| matches!(servers.reach, Reach::Mesh(_)))
    }

    /// Whether all requests pass through the cluster's Linkerd mesh.
    #[must_use]
    pub fn is_in_linkerd(&self) -> bool {
        self.servers().is_some_and(|servers| servers.reach.is_in_linkerd())
    }

    /// The requests that the user wrote; empty if clients send others.
    #[must_use]
    pub const fn own_requests(&self) -> &[WrittenRequest] {
        match &self.work {
            Work::Own(requests) => requests.as_slice(),
            Work::Requests(_) | Work::Page(_) => &[],
        }
    }

    /// The equal requests of clients that load no page.
    #[must_use]
    pub const fn requests(&self) -> Option<&Requests> {
        match &self.work {
            Work::Requests(requests) => Some(requests),
            Work::Own(_) | Work::Page(_) => None,
        }
    }

    /// The page that browsers load, if they load one.
    #[must_use]
    pub const fn page(&self) -> Option<&LoadedPage> {
        match &self.work {
            Work::Requests(_) | Work::Own(_) => None,
            Work::Page(page) => Some(page),
        }
    }

    /// Returns the job with its page on these hosts, each with a `far` server of its own; unchanged if `hosts` is
    /// empty.
    #[must_use]
    pub fn of_hosts(mut self, hosts: Vec<String>) -> Self {
        if let (Work::Page(page), Target::Servers(servers)) = (&mut self.work, &mut self.target)
            && let Ok(far @ 1..) = u32::try_from(hosts.len())
        {
            servers.places = Servers { near: 0, far };
            page.hosts = hosts;
        }
        self
    }
}
