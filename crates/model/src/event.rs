//! The lines that an endpoint prints on standard output, and those it reads on standard input.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcome::ErrorKind;
use crate::transport::TransportReport;

/// One line of an endpoint's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Server, sidecar, control plane: it accepts connections at `port`. Client: its runtime is started and nothing is connected.
    Ready {
        /// The port that it is bound to; absent for a client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// What is in force, whether asked for or by default.
        #[serde(default)]
        configured: Configured,
    },
    /// Client: the check request was right and the warm-up is over; it waits for `go`.
    Warm,
    /// Client: the measured window is over, nothing is in flight, nothing is written yet; it waits for `finish`.
    End {
        /// Length of the measured window: from the receipt of the second `go` to the end of the last request.
        window_ns: u64,
    },
    /// Server, sidecar: the answer to `count`.
    Counted {
        /// How many requests it has answered since `ready`.
        requests: u64,
    },
    /// The answer to `reach`. Sidecar: requests that it takes from now on go to the upstreams of its file. Control plane: every client that
    /// asked has acknowledged the members of its file.
    Reached,
    /// Client: the results are written. All others: it stopped cleanly.
    Done {
        /// Requests completed (client) or answered (server) in the measured window; servers may leave it out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requests: Option<u64>,
        /// Requests that failed, by kind.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        errors: IndexMap<ErrorKind, u64>,
        /// What was negotiated, for example `cipher`, `group`, `alpn`; and further facts worth recording.
        #[serde(default)]
        configured: Configured,
        /// What the transport says of the connections; absent: the endpoint does not report it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transport: Option<Box<TransportReport>>,
    },
    /// Something made it impossible to go on. The exit status is 1.
    Error {
        /// The class of the error.
        kind: ErrorKind,
        /// What was attempted and what happened.
        message: String,
    },
    /// The spec asks for something that this endpoint cannot do. The exit status is 127.
    Unsupported {
        /// Which field or value, and why.
        message: String,
    },
}

/// Facts about what is in force, by name: `congestion`, `stream_window`, `connection_window`, `udp_receive_buffer`,
/// `gso`, `gro`, `no_delay`, `fast_open`, `threads`, `cipher`, `group`, `alpn`, `certificate_chain_bytes`, ...
/// Two compared cells that differ here in something that is not a factor are labelled in the report.
pub type Configured = IndexMap<String, serde_json::Value>;

/// One line that an endpoint reads on standard input. The end of input means `stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Client: begin (after `ready`: check and warm-up; after `warm`: the measured window).
    Go,
    /// Client: close connections and write the results.
    Finish,
    /// Server whose spec has `counts`, sidecar: say how many requests were answered so far.
    Count,
    /// Sidecar, control plane: read the file of the upstreams, or members, again.
    Reach,
    /// Client: give up. All others: stop cleanly.
    Stop,
}

impl Command {
    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Finish => "finish",
            Self::Count => "count",
            Self::Reach => "reach",
            Self::Stop => "stop",
        }
    }
}
