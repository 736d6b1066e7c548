//! The target of a job's requests: servers that wirelab starts, or a site.

use crate::network::{Address, LINKERD, Servers};
use crate::nodes::Labels;
use crate::protocol::Protocol;
use crate::site::Site;
use crate::units::Span;

/// The target of the requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// Servers that wirelab starts.
    Servers(OwnServers),
    /// A page on a server that wirelab does not start.
    Site(Site),
}

/// Servers that wirelab starts for a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnServers {
    /// Name of their endpoint.
    pub endpoint: String,
    /// The words of the user's program, in place of an endpoint; `endpoint` is then its [`command_name`].
    pub command: Option<Vec<String>>,
    /// Time limit for that program to listen.
    pub start_timeout: Span,
    /// Their protocol, if they do not support the client's.
    pub protocol: Option<Protocol>,
    /// Their number and location.
    pub places: Servers,
    /// Required labels of the nodes of `far` servers.
    pub nodes: Option<Labels>,
    /// How clients reach them.
    pub reach: Reach,
    /// Number of threads of each server; absent: the library's default.
    pub threads: Option<u16>,
    /// Age at which a server asks the client to open a new connection.
    pub max_connection_age: Option<Span>,
    /// Work of a server before each response, in addition to the usual.
    pub added_work: Span,
}

/// How clients reach the servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// At the address of the single server.
    Server,
    /// At the address of a service.
    Service,
    /// By a name that resolves to all servers.
    Headless {
        /// Whether clients resolve the name again for each new connection.
        resolves_again: bool,
    },
    /// At a port of a node.
    NodePort,
    /// Through a mesh: name of the sidecars' endpoint, or [`LINKERD`].
    Mesh(String),
    /// At the addresses that a control plane sends: name of its endpoint.
    ControlPlane(String),
}

/// Whether the words of a program of the user have the placeholder of a Unix socket.
#[must_use]
pub fn has_socket(words: &[String]) -> bool {
    words.iter().any(|word| word.contains(SOCKET))
}

/// The name of a program of the user in reports and files: the words of its command line.
#[must_use]
pub fn command_name(words: &[String]) -> String {
    words.join(" ")
}

/// The placeholder, in the words of a program of the user, of the Unix socket at which it listens.
pub const SOCKET: &str = "{socket}";

impl OwnServers {
    /// Time limit for a program to listen, unless a study sets another.
    pub const START_TIMEOUT: Span = Span::from_secs(20);

    /// Whether the server is a program of the user that listens at a Unix socket.
    #[must_use]
    pub fn listens_at_socket(&self) -> bool {
        self.command.as_ref().is_some_and(|words| has_socket(words))
    }

    /// One server with this endpoint, on another node.
    #[must_use]
    pub fn one(endpoint: &str) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
            command: None,
            start_timeout: Self::START_TIMEOUT,
            protocol: None,
            places: Servers::ONE,
            nodes: None,
            reach: Reach::Server,
            threads: None,
            max_connection_age: None,
            added_work: Span(0),
        }
    }
}

impl Reach {
    /// The kind of address of the servers. Sidecars and control planes stand for a service.
    #[must_use]
    pub const fn address(&self) -> Address {
        match self {
            Self::Server => Address::Server,
            Self::Service | Self::Mesh(_) | Self::ControlPlane(_) => Address::Service,
            Self::Headless { .. } => Address::Headless,
            Self::NodePort => Address::NodePort,
        }
    }

    /// Name of the sidecars' endpoint; `None` without a mesh or with the cluster's own.
    #[must_use]
    pub fn sidecar(&self) -> Option<&String> {
        match self {
            Self::Mesh(name) if name != LINKERD => Some(name),
            _ => None,
        }
    }

    /// Whether all requests pass through the cluster's Linkerd mesh.
    #[must_use]
    pub fn is_in_linkerd(&self) -> bool {
        matches!(self, Self::Mesh(name) if name == LINKERD)
    }
}
