//! How a trial or a request ended. An outcome is never converted into another one.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// It ran to its end and every check passed. Single requests may have failed; they are counted in the metrics.
    Ok,
    /// It did not give a measurement that may be used.
    Failed {
        /// Who has to look into it.
        blame: Blame,
        /// What happened, and what was being attempted.
        reason: String,
    },
    /// The endpoint said that it cannot do what the cell asks for (exit status 127).
    Unsupported {
        /// The endpoint's own words.
        reason: String,
    },
}

/// How the reason of a trial begins that was not run, because its cell had been given up.
pub const NOT_RUN: &str = "not run, because";

impl Outcome {
    /// A failed outcome.
    pub fn failed(blame: Blame, reason: impl Into<String>) -> Self {
        Self::Failed { blame, reason: reason.into() }
    }
}

/// What reasons have in common that differ in numbers only (ports, times, identifiers, hexadecimal ones as well): two reasons
/// with the same answer are of the same kind.
#[must_use]
pub fn without_numbers(reason: &str) -> String {
    reason.chars().filter(|letter| !letter.is_ascii_hexdigit()).collect()
}

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The endpoint that plays the server.
    Server,
    /// The endpoint that plays the client.
    Client,
    /// An endpoint that plays a sidecar.
    Sidecar,
    /// The endpoint that plays the control plane.
    #[serde(rename = "control-plane")]
    ControlPlane,
    /// The lab: its network, its hosts.
    Lab,
    /// An observer.
    Observer,
    /// wirelab itself or the machine that it runs on.
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

/// Why a single request failed, as an endpoint classifies it.
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
    /// The peer broke the protocol, or another protocol was negotiated than the spec asks for.
    Protocol,
    /// The peer reset the connection or the stream.
    Reset,
    /// The response ended before its announced or expected length.
    Truncated,
    /// A deadline of the spec passed.
    Timeout,
    /// An unexpected HTTP status.
    Status,
    /// The body is not the expected one.
    Digest,
    /// A datagram was lost (bare UDP only, where nothing is retransmitted).
    Lost,
    /// Anything else; the message says what.
    Other,
}

impl ErrorKind {
    /// Every kind, in the order of the discriminants.
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

    /// The token of records and reports.
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
