//! The spec: the JSON job that an endpoint is given. See `contract/README.md`.
//!
//! An endpoint that cannot honour a field that is set exits with status 127 and says which; it never ignores it. A field
//! that is absent leaves the choice to the library's default, which the endpoint reports back as `configured`.

use std::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exposition::Exposition;
use crate::page::{ExpectedPage, ServedPage};
use crate::protocol::Protocol;

/// What a server is asked to do: `<endpoint> server --spec FILE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// The version of the contract, 1.
    pub contract: u32,
    /// What to speak.
    pub protocol: Protocol,
    /// The address to bind.
    pub address: IpAddr,
    /// The port to bind; 0 lets the kernel choose, and `ready` reports the choice.
    pub port: u16,
    /// The name that clients send (SNI, `Host`).
    pub server_name: String,
    /// Certificate and key; present exactly where the protocol has TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ServerTls>,
    /// Documents to serve under `/`; present where the feature `files` is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_root: Option<PathBuf>,
    /// A file with everything that is answered, in place of documents: the server is one of several hosts of a page. Absent: it is the only
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<PathBuf>,
    /// The features that the trial needs.
    pub features: Vec<Feature>,
    /// What is to be done for a page besides serving its files, where the feature `pages` is asked for. Absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<ServedPage>,
    /// An existing folder for qlog files, at least one per QUIC connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qlog_dir: Option<PathBuf>,
    /// Threads that serve requests; absent: the library's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u16>,
    /// After how many nanoseconds it asks the client of a connection to open another one (GOAWAY, `connection: close`); requests that are
    /// under way are answered. Absent: never. HTTP over TCP, and gRPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_connection_age_ns: Option<u64>,
    /// Whether it will be told `count`, at any time, which it answers with `counted`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
    /// Where it is to tell what it has counted, while it works. Absent: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposition: Option<Exposition>,
    /// Transport settings.
    #[serde(default)]
    pub transport: Transport,
}

/// A server's TLS material. TLS 1.3 only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerTls {
    /// Certificate chain, PEM, leaf first.
    pub certificate: PathBuf,
    /// Private key, PEM, PKCS #8.
    pub key: PathBuf,
    /// Where to append TLS secrets in the NSS key log format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_log: Option<PathBuf>,
    /// Whether to issue session tickets and to accept them.
    pub resumption: bool,
    /// Whether to accept 0-RTT data (implies `resumption`).
    pub early_data: bool,
}

/// What a client is asked to do: `<endpoint> client --spec FILE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientSpec {
    /// The version of the contract, 1.
    pub contract: u32,
    /// What to speak.
    pub protocol: Protocol,
    /// The server's address.
    pub address: IpAddr,
    /// Every address that `server_name` resolves to, `address` the first, where it is the name of several servers that
    /// listen at the same port: each new connection goes to the next of them, in turn, that of the check request to the
    /// first. Absent: there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// Whether `server_name` is to be resolved again for each new connection, by the system's resolver; `addresses` are then those of the
    /// start, and the next address is taken of what was found.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resolves: bool,
    /// Whether `address` and `port` are those of a control plane, which tells by xDS who serves `server_name`. Each connection of the
    /// policy, which is then a persistent one, is a channel: the library itself opens a connection to each server, and sends each
    /// request to the next.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discovers: bool,
    /// The server's port.
    pub port: u16,
    /// The name to send (SNI, `Host`, `:authority`) and to check the certificate against.
    pub server_name: String,
    /// Trust; present exactly where the protocol has TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ClientTls>,
    /// What to send, and what to expect.
    pub request: Request,
    /// Present where `request` is that for a page, to be loaded with everything in it: then each load counts as one request, and
    /// the client decides itself on the requests and connections of a load. Only browsers can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<ExpectedPage>,
    /// How connections are used.
    pub connections: ConnectionPolicy,
    /// When requests are sent.
    pub schedule: Schedule,
    /// How long the measured window lasts.
    pub extent: Extent,
    /// What to send, by the same schedule, before the measured window; it is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Extent>,
    /// What a new connection may reuse from earlier ones.
    #[serde(default)]
    pub resumption: Resumption,
    /// Time-outs; the same rule for every protocol.
    pub timeouts: Timeouts,
    /// Seeds every random choice (arrivals, pauses).
    pub seed: u64,
    /// What to record.
    pub recording: Recording,
    /// The file to write the records (JSON lines) or the histograms (one JSON object) to.
    pub results: PathBuf,
    /// An existing folder for qlog files, at least one per QUIC connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qlog_dir: Option<PathBuf>,
    /// Threads that send requests; absent: the library's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u16>,
    /// Where it is to tell what it has counted, while it works. Absent: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposition: Option<Exposition>,
    /// Transport settings.
    #[serde(default)]
    pub transport: Transport,
}

/// A client's trust.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientTls {
    /// Certificate authorities to trust, PEM; absent: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_anchor: Option<PathBuf>,
    /// Whether to verify the server's certificate. Only `wirelab load --insecure` turns it off.
    pub verify: bool,
    /// Where to append TLS secrets in the NSS key log format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_log: Option<PathBuf>,
}

/// What a sidecar is asked to do: `<endpoint> sidecar --spec FILE`. It takes requests at its address and sends each of them, not each
/// connection, on to the next of its upstreams, in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SidecarSpec {
    /// The version of the contract, 1.
    pub contract: u32,
    /// What is spoken to it.
    pub protocol: Protocol,
    /// What it speaks to its upstreams.
    pub upstream_protocol: Protocol,
    /// The address to bind.
    pub address: IpAddr,
    /// The port to bind; 0 lets the kernel choose, and `ready` reports the choice.
    pub port: u16,
    /// A file that names its upstreams: a JSON list of addresses with ports, `["192.0.2.1:80"]`. It is read before `ready`, and again at
    /// each word `reach`, before which it may have been replaced.
    pub upstreams: PathBuf,
    /// Threads that carry requests; absent: the library's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u16>,
    /// Transport settings, of the connections that it accepts and of those that it opens.
    #[serde(default)]
    pub transport: Transport,
}

/// What a control plane is asked to do: `<endpoint> control-plane --spec FILE`. It tells clients by xDS, over gRPC in clear text on one
/// aggregated stream (ADS), who serves a name, and that requests are to take turns over all of them. No request passes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControlPlaneSpec {
    /// The version of the contract, 1.
    pub contract: u32,
    /// What clients speak to the servers.
    pub protocol: Protocol,
    /// The address to bind.
    pub address: IpAddr,
    /// The port to bind; 0 lets the kernel choose, and `ready` reports the choice.
    pub port: u16,
    /// The name that clients ask for.
    pub server_name: String,
    /// A file that names the servers: a JSON list of addresses with ports, `["192.0.2.1:80"]`. It is read before `ready`, and again at
    /// each word `reach`, before which it may have been replaced.
    pub members: PathBuf,
}

/// One request, repeated. A body is the pattern whose byte at offset i is i mod 251.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The HTTP method. The raw transports echo with a wanted size and ignore method and path, but for the delay of a path
    /// `/delay/MICROSECONDS`; gRPC takes the number of a path `/heron/NUMBER`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Bytes of request body; of the message in gRPC.
    pub body_size: u64,
    /// Further header fields; metadata in gRPC.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// What a right response looks like. Absent where the server is not ours (`load`, `probe`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

/// A right response. Size and status are checked for every request; the digest for the check request, which comes
/// before the warm-up on a connection of its own, so that hashing is never part of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The HTTP status. gRPC always wants `grpc-status: 0`.
    pub status: u16,
    /// Bytes of response body; of the message in gRPC. The raw transports ask the server for this size.
    pub body_size: u64,
    /// SHA-256 of the response body, hexadecimal.
    pub sha256: String,
}

/// How connections are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum ConnectionPolicy {
    /// A new connection for every request, closed after it.
    PerRequest,
    /// A fixed number of connections, opened before the measured window and kept.
    Persistent {
        /// How many.
        connections: u32,
        /// Requests in flight on each at the same time; above 1 only for protocols that multiplex.
        streams: u32,
    },
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "loop", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// Each of `workers` sends, waits for the response, pauses, and sends again. The intended start is the end of the pause.
    Closed {
        /// Requests in flight at the same time.
        workers: u32,
        /// The pause between a response and the next request.
        #[serde(default)]
        pause: Pause,
    },
    /// Requests start at times that do not depend on responses, so a slow server cannot slow the clock
    /// (no coordinated omission). The intended start is the arrival time.
    Open {
        /// Arrivals per second.
        rate_per_s: f64,
        /// How they are spaced.
        arrivals: Arrivals,
    },
}

/// The pause of a closed loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Pause {
    /// None.
    #[default]
    None,
    /// Always the same.
    Fixed {
        /// Its length.
        ns: u64,
    },
    /// Uniformly distributed.
    Uniform {
        /// The shortest.
        min_ns: u64,
        /// The longest.
        max_ns: u64,
    },
}

/// How the arrivals of an open loop are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// At equal intervals.
    Uniform,
    /// A Poisson process: exponentially distributed intervals.
    Poisson,
}

/// How long something lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Extent {
    /// A number of requests.
    Requests(u64),
    /// Nanoseconds. Requests in flight at the end are completed and counted; none starts after it.
    DurationNs(u64),
}

/// What a new connection may reuse from earlier ones. Cold, resumed and 0-RTT are different experiments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resumption {
    /// Nothing: every handshake is a full one, every QUIC path unvalidated.
    #[default]
    None,
    /// TLS 1.3 session tickets, from the connection before.
    Resume,
    /// Session tickets and 0-RTT data: the request travels with the first flight.
    ZeroRtt,
}

/// Time-outs, the same for every protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    /// From the start of a connection to the end of its handshake.
    pub connect_ns: u64,
    /// From the actual start of a request (connecting included) to its last byte.
    pub request_ns: u64,
}

/// What a client records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Recording {
    /// One record per request (`sample.schema.json`), as JSON lines.
    Samples,
    /// Mergeable HDR histograms (`histograms.schema.json`).
    Histograms,
    /// One record per load of a page, as JSON lines. Of browsers only, and the only thing that they record.
    Loads,
}

/// Transport settings. Absent: the library's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transport {
    /// Congestion control of TCP (by socket option) or QUIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<Congestion>,
    /// Bytes of flow-control credit per stream (HTTP/2, QUIC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_window: Option<u64>,
    /// Bytes of flow-control credit per connection (HTTP/2, QUIC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_window: Option<u64>,
    /// `SO_SNDBUF` of a UDP socket; the kernel's doubling for bookkeeping is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_send_buffer: Option<u64>,
    /// `SO_RCVBUF` of a UDP socket; the kernel's doubling for bookkeeping is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_receive_buffer: Option<u64>,
    /// The largest UDP payload to send, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_udp_payload: Option<u16>,
    /// UDP generic segmentation offload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gso: Option<bool>,
    /// UDP generic receive offload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gro: Option<bool>,
    /// TCP Fast Open (RFC 7413).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_open: Option<bool>,
    /// `TCP_NODELAY`; absent: on, because every cell must agree and libraries do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_delay: Option<bool>,
}

/// A congestion control algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// CUBIC (RFC 9438).
    Cubic,
    /// BBR, in the version that the stack has.
    Bbr,
    /// Reno: NewReno in TCP (RFC 6582), the algorithm of RFC 9002 in QUIC.
    Reno,
}

impl Congestion {
    /// The token of specs, and the kernel's name for it.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Reno => "reno",
        }
    }
}

/// What a server can offer beyond the connection itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Feature {
    /// `GET` of files below the document root.
    Files,
    /// `GET` of files below the document root, each with the `content-type` of its ending and with its length: what browsers need of a
    /// page's server.
    Pages,
    /// `POST /echo` returns the body. On raw transports: the response has the size that the request header names.
    Echo,
    /// `GET /bytes/N` returns N bytes of the pattern whose byte at offset i is i mod 251.
    Bytes,
    /// `GET /delay/MICROSECONDS` answers with an empty body that long after the request arrived. For calibration.
    /// On raw transports: by a field of the request header.
    Delay,
    /// `GET /redirect` is answered with status 302 and its own address as `location`. No client follows it.
    Redirect,
    /// `GET /heron/NUMBER` returns its square root by Heron's method, as text; with gRPC the call of `heron.proto`.
    Heron,
}
