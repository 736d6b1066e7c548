//! The events that an endpoint prints on standard output, and the commands that it reads on standard input.

use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error_kind::ErrorKind;
use crate::transport::TransportReport;

/// One line of an endpoint's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Server, sidecar, control plane: the endpoint accepts connections at `port`. Client: the runtime is up and
    /// nothing is connected.
    Ready {
        /// The bound port; absent for a client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// The Unix socket at which it listens in place of the port; only of a program of the user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        socket: Option<PathBuf>,
        /// The effective settings, from the spec or by default.
        #[serde(default)]
        configured: Configured,
    },
    /// Client: the check request succeeded and the warm-up is over; the client waits for `go`.
    Warm {
        /// How the warm-up ended; present exactly if the spec has `until_steady`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_steady: Option<WarmedUp>,
    },
    /// Client: the measured window is over, no request is in flight, no result is written yet; the client waits for
    /// `finish`.
    End {
        /// Length of the measured window: from the receipt of the second `go` to the end of the last request.
        window_ns: u64,
    },
    /// Server, sidecar: the answer to `count`.
    Counted {
        /// Number of requests answered since `ready`.
        requests: u64,
    },
    /// The answer to `reach`. Sidecar: requests that arrive from now on go to the upstreams in its file. Control plane:
    /// each client that asked has acknowledged the servers in its file.
    Reached,
    /// Client: the results are written. Other roles: the endpoint stopped cleanly.
    Done {
        /// Client: requests completed in the measured window. Server: requests answered since `ready`, the check
        /// request and the warm-up included; wirelab compares them with the client's records. Absent: the server does
        /// not count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requests: Option<u64>,
        /// Requests that failed, by kind.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        errors: IndexMap<ErrorKind, u64>,
        /// Negotiated parameters, for example `cipher`, `group`, `alpn`, and further facts.
        #[serde(default)]
        configured: Configured,
        /// Transport statistics of the connections; absent: the endpoint does not report them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transport: Option<Box<TransportReport>>,
    },
    /// An error that the endpoint cannot recover from. The exit status is 1.
    Error {
        /// The class of the error.
        kind: ErrorKind,
        /// The attempted operation and what went wrong.
        message: String,
    },
    /// The spec asks for something that this endpoint does not support. The exit status is 127.
    Unsupported {
        /// The field or value, and the reason.
        message: String,
    },
}

/// The end of a warm-up that lasts until response times are steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WarmedUp {
    /// Time from its first request to the end of its last one, in nanoseconds.
    pub took_ns: u64,
    /// Number of its requests, failed ones included.
    pub requests: u64,
    /// Whether response times were steady at its end.
    pub steadiness: Steadiness,
}

/// What the response times of a warm-up show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Steadiness {
    /// They are steady.
    Steady,
    /// They were still changing after the longest time of the warm-up.
    Changing,
    /// After the longest time of the warm-up, requests were too few or too noisy to tell.
    CannotTell,
}

/// Effective settings, by name: `congestion`, `stream_window`, `connection_window`, `udp_receive_buffer`, `gso`, `gro`,
/// `no_delay`, `fast_open`, `threads`, `cipher`, `group`, `alpn`, `certificate_chain_bytes`, ... The report marks two
/// compared cells that differ here in anything but a factor.
pub type Configured = IndexMap<String, serde_json::Value>;

/// A command: one line on an endpoint's standard input. The end of input means `stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Client: start (after `ready`: the check request and the warm-up; after `warm`: the measured window).
    Go,
    /// Client: close connections and write the results.
    Finish,
    /// Server whose spec has `counts`, sidecar: report the number of requests answered so far.
    Count,
    /// Sidecar, control plane: read the file of upstreams or members again.
    Reach,
    /// Client: abort. Other roles: stop cleanly.
    Stop,
}

impl Command {
    /// The line on standard input.
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
