//! Outcomes of trials and requests. An outcome is never converted into another one.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outcome of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// The trial completed and every check passed. Single requests may have failed; metrics count them.
    Ok,
    /// The trial gave no valid measurement.
    Failed {
        /// The party at fault.
        blame: Blame,
        /// The attempted operation and what went wrong.
        reason: String,
    },
    /// The endpoint does not support what the cell asks for (exit status 127).
    Unsupported {
        /// The endpoint's message.
        reason: String,
    },
}

/// Prefix of the reason of a trial that did not run because its cell was abandoned.
pub const NOT_RUN: &str = "not run, because";

impl Outcome {
    /// A failed outcome.
    pub fn failed(blame: Blame, reason: impl Into<String>) -> Self {
        Self::Failed { blame, reason: reason.into() }
    }
}

/// Removes numbers (ports, times, identifiers, hexadecimal digits) from a reason: two reasons with equal results are of
/// the same kind.
#[must_use]
pub fn without_numbers(reason: &str) -> String {
    reason.chars().filter(|letter| !letter.is_ascii_hexdigit()).collect()
}

/// The party at fault for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The server's endpoint.
    Server,
    /// The client's endpoint.
    Client,
    /// A sidecar's endpoint.
    Sidecar,
    /// The control plane's endpoint.
    #[serde(rename = "control-plane")]
    ControlPlane,
    /// The lab: its network, its hosts.
    Lab,
    /// An observer.
    Observer,
    /// wirelab itself, or its machine.
    Runner,
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Sidecar => "sidecar",
            Self::ControlPlane => "control plane",
            Self::Lab => "lab",
            Self::Observer => "observer",
            Self::Runner => "wirelab",
        })
    }
}

/// The kind of a request's failure, as classified by an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Nothing listens at the address (TCP RST, ICMP port unreachable).
    Refused,
    /// No route, or the host does not answer at all.
    Unreachable,
    /// The server's certificate was not accepted.
    Certificate,
    /// Another TLS failure.
    Tls,
    /// The peer violated the protocol, or the negotiated protocol is not the one of the spec.
    Protocol,
    /// The peer reset the connection or the stream.
    Reset,
    /// The response ended before its announced or expected length.
    Truncated,
    /// A deadline of the spec expired.
    Timeout,
    /// An unexpected HTTP status.
    Status,
    /// The body differs from the expected one.
    Digest,
    /// A datagram was lost (only bare UDP, which has no retransmission).
    Lost,
    /// Any other error; see the message.
    Other,
}

impl ErrorKind {
    /// Every kind in the order of the discriminants.
    pub const ALL: [Self; 12] = [
        Self::Refused,
        Self::Unreachable,
        Self::Certificate,
        Self::Tls,
        Self::Protocol,
        Self::Reset,
        Self::Truncated,
        Self::Timeout,
        Self::Status,
        Self::Digest,
        Self::Lost,
        Self::Other,
    ];

    /// The name in records and reports.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Certificate => "certificate",
            Self::Tls => "tls",
            Self::Protocol => "protocol",
            Self::Reset => "reset",
            Self::Truncated => "truncated",
            Self::Timeout => "timeout",
            Self::Status => "status",
            Self::Digest => "digest",
            Self::Lost => "lost",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_alike_that_differ_in_numbers_only() {
        let slow = |measured: &str| {
            without_numbers(&format!("the round trip is {measured} ms where 5.093 ms were configured"))
        };
        assert_eq!(slow("19.064"), slow("7.2"));
        assert_ne!(slow("19.064"), without_numbers("the rate is 19.064 Mbit/s where 5.093 ms were configured"));
    }
}
