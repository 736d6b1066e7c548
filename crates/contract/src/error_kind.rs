//! The kinds of failed requests.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// The proxy did not open a tunnel to the server: it was not reached, it refused, or it broke its protocol.
    Proxy,
    /// A datagram was lost (only bare UDP, which has no retransmission).
    Lost,
    /// Any other error; see the message.
    Other,
}

impl ErrorKind {
    /// Every kind in the order of the discriminants.
    pub const ALL: [Self; 13] = [
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
        Self::Proxy,
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
            Self::Proxy => "proxy",
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
