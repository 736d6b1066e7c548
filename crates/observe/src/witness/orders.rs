//! The orders to the witness and its answers, one JSON line each.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use wirelab_model::missing::Missing;
use wirelab_model::network::Vantage;
use wirelab_model::transport::TransportReport;

use crate::packets::tally::Tally;

/// An order. For packets, a trial sends `Watch`, `Begin`, `End`, `Collect`. For connections, it sends
/// `WatchConnections` at the begin of the window, `EndConnections` at its end, and `CollectConnections` later.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub(crate) enum Order {
    /// Write the log to this file.
    Log {
        /// Absolute path.
        path: PathBuf,
    },
    /// Capture at these interfaces from now on, and at no others.
    Watch {
        /// The interfaces, each with the file for its frames if frames are kept.
        vantages: Vec<(Vantage, Option<PathBuf>)>,
    },
    /// The measured window begins: count packets from now on.
    Begin,
    /// The measured window has ended: count no further packets.
    End,
    /// Read everything that was captured, answer with the counts, and stop capturing.
    Collect,
    /// Watch the TCP connections of these network namespaces from now on, and no others.
    WatchConnections {
        /// The namespaces as files that this user can open.
        namespaces: Vec<PathBuf>,
        /// The user namespace that owns them, if it is not wirelab's own.
        owner: Option<PathBuf>,
    },
    /// The measured window has ended: record the connections' counts.
    EndConnections,
    /// Answer with the connections' counts in the window, and stop watching.
    CollectConnections {
        /// The connections to count, for each namespace of `WatchConnections`.
        sought: Vec<Selection>,
    },
    /// Test whether packets can be captured.
    Try,
}

/// The answer to an order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Success without a result.
    Done,
    /// The counts at each vantage, in the order of `Watch`, or the reason why they are missing.
    Collected {
        /// By vantage.
        tallies: Vec<Result<Tally, Missing>>,
    },
    /// The listening TCP sockets of each namespace of `WatchConnections`.
    Listening {
        /// By namespace.
        listeners: Vec<Vec<Listener>>,
    },
    /// The connections' counts, over all namespaces.
    Connections {
        /// By side.
        transports: Box<Transports>,
    },
    /// The order failed.
    Failed {
        /// The reason.
        why: Missing,
    },
}

impl Answer {
    /// The reason why this answer, which does not fit the order, is no result.
    pub(crate) fn to(&self, order: &Order) -> Missing {
        Missing::WrongAnswer { order: format!("{order:?}"), answer: format!("{self:?}") }
    }
}

/// A listening TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listener {
    /// The inode number, as in the links of `/proc/PID/fd`.
    pub inode: u32,
    /// The local port.
    pub port: u16,
}

/// Assigns the connections of a namespace to the sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Selection {
    /// The servers' listening ports.
    pub server_ports: BTreeSet<u16>,
    /// Whether the client is in this namespace.
    pub has_client: bool,
}

impl Selection {
    pub(crate) fn is_servers(&self, local_port: u16) -> bool {
        self.server_ports.contains(&local_port)
    }

    pub(crate) fn is_clients(&self, local_port: u16, remote_port: u16) -> bool {
        let is_to_server = self.server_ports.is_empty() || self.server_ports.contains(&remote_port);
        self.has_client && is_to_server && !self.is_servers(local_port)
    }
}

/// The transport counts of both sides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transports {
    pub client: TransportReport,
    pub servers: TransportReport,
}

impl Transports {
    /// The sum over two namespaces.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self { client: self.client.and(&other.client), servers: self.servers.and(&other.servers) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_assigned_to_their_sides() {
        let of = |ports: &[u16], has_client| Selection { server_ports: ports.iter().copied().collect(), has_client };
        // Separate namespaces.
        assert!(of(&[], true).is_clients(40_000, 443) && !of(&[], true).is_servers(40_000));
        assert!(of(&[443], false).is_servers(443) && !of(&[443], false).is_clients(40_000, 443));
        // One shared namespace: the server's connection, the client's, and an unrelated one.
        let both = of(&[443], true);
        assert!(both.is_servers(443) && !both.is_clients(443, 40_000));
        assert!(both.is_clients(40_000, 443) && !both.is_servers(40_000));
        assert!(!both.is_clients(40_000, 22));
    }
}
