//! The protocols that wirelab compares.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A protocol between client and server. The suffix `c` of a name means clear text, as in `h2c` of RFC 7540.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Bare UDP datagrams; nothing is retransmitted, so a lost datagram is a failed request.
    Udp,
    /// A TCP byte stream in clear text.
    Tcp,
    /// TLS 1.3 over TCP.
    Tls,
    /// QUIC version 1 (RFC 9000), one bidirectional stream per request.
    Quic,
    /// HTTP/1.1 in clear text.
    H1c,
    /// HTTP/1.1 over TLS 1.3.
    H1,
    /// HTTP/2 in clear text with prior knowledge (RFC 9113, section 3.3).
    H2c,
    /// HTTP/2 over TLS 1.3.
    H2,
    /// HTTP/3 over QUIC (RFC 9114).
    H3,
    /// gRPC over HTTP/2 in clear text with prior knowledge.
    Grpcc,
    /// gRPC over HTTP/2 over TLS 1.3.
    Grpc,
}

impl Protocol {
    /// Every protocol, transports first, in the order of reports.
    pub const ALL: [Self; 11] = [
        Self::Udp,
        Self::Tcp,
        Self::Tls,
        Self::Quic,
        Self::H1c,
        Self::H1,
        Self::H2c,
        Self::H2,
        Self::H3,
        Self::Grpcc,
        Self::Grpc,
    ];

    /// The name in specs, study files and on the command line.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Quic => "quic",
            Self::H1c => "h1c",
            Self::H1 => "h1",
            Self::H2c => "h2c",
            Self::H2 => "h2",
            Self::H3 => "h3",
            Self::Grpcc => "grpcc",
            Self::Grpc => "grpc",
        }
    }

    /// The name in reports.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Tls => "TCP+TLS",
            Self::Quic => "QUIC",
            Self::H1c => "HTTP/1.1 clear text",
            Self::H1 => "HTTP/1.1",
            Self::H2c => "HTTP/2 clear text",
            Self::H2 => "HTTP/2",
            Self::H3 => "HTTP/3",
            Self::Grpcc => "gRPC clear text",
            Self::Grpc => "gRPC",
        }
    }

    /// Whether the payload is encrypted (TLS 1.3, alone or inside QUIC).
    #[must_use]
    pub const fn is_secure(self) -> bool {
        matches!(self, Self::Tls | Self::Quic | Self::H1 | Self::H2 | Self::H3 | Self::Grpc)
    }

    /// Whether one connection carries several requests at once.
    #[must_use]
    pub const fn multiplexes(self) -> bool {
        self.is_http2() || self.uses_quic()
    }

    /// Whether it runs over UDP datagrams.
    #[must_use]
    pub const fn uses_udp(self) -> bool {
        matches!(self, Self::Udp | Self::Quic | Self::H3)
    }

    /// Whether it runs over QUIC.
    #[must_use]
    pub const fn uses_quic(self) -> bool {
        matches!(self, Self::Quic | Self::H3)
    }

    /// Whether requests are plain HTTP requests, with any method, path and status; gRPC requests are calls.
    #[must_use]
    pub const fn is_http(self) -> bool {
        matches!(self, Self::H1c | Self::H1 | Self::H2c | Self::H2 | Self::H3)
    }

    /// Whether requests are gRPC calls.
    #[must_use]
    pub const fn is_grpc(self) -> bool {
        matches!(self, Self::Grpcc | Self::Grpc)
    }

    /// Whether it is HTTP/2 or runs over it.
    #[must_use]
    pub const fn is_http2(self) -> bool {
        matches!(self, Self::H2c | Self::H2 | Self::Grpcc | Self::Grpc)
    }

    /// The ALPN protocol identifier to negotiate (RFC 7301); `None` without TLS.
    ///
    /// The raw transports use identifiers of their own, so that a mismatch is detected.
    #[must_use]
    pub const fn alpn(self) -> Option<&'static str> {
        match self {
            Self::H1 => Some("http/1.1"),
            Self::H2 | Self::Grpc => Some("h2"),
            Self::H3 => Some("h3"),
            Self::Tls | Self::Quic => Some("wirelab"),
            Self::Udp | Self::Tcp | Self::H1c | Self::H2c | Self::Grpcc => None,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.token())
    }
}

impl std::str::FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        let known = Self::ALL.into_iter().find(|protocol| protocol.token() == text);
        known.ok_or_else(|| UnknownProtocol(text.to_owned()))
    }
}

/// A text that is no protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownProtocol(String);

impl fmt::Display for UnknownProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = Protocol::ALL.iter().map(|protocol| protocol.token()).collect();
        write!(f, "unknown protocol `{}`, expected one of {}", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownProtocol {}
