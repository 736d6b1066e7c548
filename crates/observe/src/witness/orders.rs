//! What the witness is told, and what it answers: one JSON line each.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use wirelab_model::network::Vantage;
use wirelab_model::transport::TransportReport;

use crate::packets::tally::Tally;

/// What it is told. Of packets, a trial goes `Watch`, `Begin`, `End`, `Collect`; of connections, `WatchConnections` as the window
/// begins, `EndConnections` as it ends, and `CollectConnections` later.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub(crate) enum Order {
    /// Look at these interfaces from now on, and at no others any more.
    Watch {
        /// Which, each with the file that gets all its frames, where one is wanted.
        vantages: Vec<(Vantage, Option<PathBuf>)>,
    },
    /// The measured window begins: what passes from now on counts.
    Begin,
    /// The measured window has ended: what passes from now on does not count.
    End,
    /// Say what passed, once everything that did is read, and look no longer.
    Collect,
    /// Look at the TCP connections of these network namespaces from now on, and at no others any more.
    WatchConnections {
        /// As files that this user can open.
        namespaces: Vec<PathBuf>,
        /// The user namespace that owns them, where it is not wirelab's own.
        owner: Option<PathBuf>,
    },
    /// The measured window has ended: what connections count from now on does not count.
    EndConnections,
    /// Say what became of the connections in the window, and look no longer.
    CollectConnections {
        /// Which of them, for each namespace of `WatchConnections`.
        sought: Vec<Sought>,
    },
    /// Try whether packets can be captured at all.
    Try,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// It is done.
    Done,
    /// What passed at each vantage, in the order of `Watch`; or why that is not known.
    Collected {
        /// By vantage.
        tallies: Vec<Result<Tally, String>>,
    },
    /// Who waits for TCP connections, for each namespace of `WatchConnections`.
    Listening {
        /// By namespace.
        listeners: Vec<Vec<Listener>>,
    },
    /// What became of the connections, of all namespaces together.
    Connections {
        /// By side.
        transports: Box<Transports>,
    },
    /// It could not be done.
    Failed {
        /// What was attempted, and what happened.
        why: String,
    },
}

/// A TCP socket that waits for connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listener {
    /// The number by which `/proc/PID/fd` names it.
    pub inode: u32,
    /// Its port.
    pub port: u16,
}

/// Which connections of a namespace are whose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sought {
    /// Where the servers listen.
    pub server_ports: BTreeSet<u16>,
    /// Whether the client is here.
    pub has_client: bool,
}

impl Sought {
    pub(crate) fn is_servers(&self, local_port: u16) -> bool {
        self.server_ports.contains(&local_port)
    }

    pub(crate) fn is_clients(&self, local_port: u16, remote_port: u16) -> bool {
        let is_to_server = self.server_ports.is_empty() || self.server_ports.contains(&remote_port);
        self.has_client && is_to_server && !self.is_servers(local_port)
    }
}

/// What the transports of both sides counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transports {
    pub client: TransportReport,
    pub servers: TransportReport,
}

impl Transports {
    /// Those of two namespaces.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self { client: self.client.and(&other.client), servers: self.servers.and(&other.servers) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_belong_to_the_side_whose_they_are() {
        let of = |ports: &[u16], has_client| Sought { server_ports: ports.iter().copied().collect(), has_client };
        // A namespace of its own.
        assert!(of(&[], true).is_clients(40_000, 443) && !of(&[], true).is_servers(40_000));
        assert!(of(&[443], false).is_servers(443) && !of(&[443], false).is_clients(40_000, 443));
        // One for both: the server's connection, the client's, and a stranger's.
        let both = of(&[443], true);
        assert!(both.is_servers(443) && !both.is_clients(443, 40_000));
        assert!(both.is_clients(40_000, 443) && !both.is_servers(40_000));
        assert!(!both.is_clients(40_000, 22));
    }
}
