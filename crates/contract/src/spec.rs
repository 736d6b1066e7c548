//! The spec: the JSON file that tells an endpoint its part in a trial. See `contract/README.md`.
//!
//! An endpoint that cannot honour a set field exits with status 127 and names the field; it never ignores the field.
//! For an absent field the library's default applies, and the endpoint reports that default as `configured`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exposition::Exposition;
use crate::mix::{Content, MixedRequest};
use crate::page::{ExpectedPage, ServedPage};
use crate::protocol::Protocol;
use crate::via::Via;

/// The spec of a server: `<endpoint> server --spec FILE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// The version of the contract, 1.
    pub contract: u32,
    /// The protocol between client and server.
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
    /// Folder of the documents to serve under `/`; present if `features` has `files` or `pages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_root: Option<PathBuf>,
    /// A file that lists every answer of this server, in place of documents: the server is one of several hosts of a
    /// page. Absent: it is the only host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<PathBuf>,
    /// The features that the trial needs.
    pub features: Vec<Feature>,
    /// Further tasks of a page's server besides serving files; only with the feature `pages`. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<ServedPage>,
    /// An existing folder for qlog files, at least one per QUIC connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qlog_dir: Option<PathBuf>,
    /// Threads that serve requests; absent: the library's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u16>,
    /// Age of a connection, in nanoseconds, at which the server asks the client to open another one (GOAWAY,
    /// `connection: close`). The server still answers requests in flight. Absent: never. HTTP over TCP, and gRPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_connection_age_ns: Option<u64>,
    /// Time, in nanoseconds, for which the server works, by busy waiting, between the arrival of a whole request and
    /// its response: a difference of known size. Absent: none. wirelab sends it to its built-in server only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_work_ns: Option<u64>,
    /// Whether the command `count` may arrive at any time; the server answers it with the event `counted`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
    /// Where the endpoint exports its counters during the trial. Absent: it exports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposition: Option<Exposition>,
    /// Transport settings.
    #[serde(default)]
    pub transport: Transport,
}

/// Certificate, key and TLS policy of a server. TLS 1.3 only.
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

/// The spec of a client: `<endpoint> client --spec FILE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientSpec {
    /// The version of the contract, 1.
    pub contract: u32,
    /// The protocol between client and server.
    pub protocol: Protocol,
    /// The server's address; with a proxy as `via`, that of the proxy; unused with a Unix socket.
    pub address: IpAddr,
    /// All addresses that `server_name` resolves to, `address` first, if the name stands for several servers at the
    /// same port. New connections go to these addresses in turn; the connection of the check request goes to the first.
    /// Absent: only `address`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// Whether the client asks the system's resolver for `server_name` again before each new connection, and takes the
    /// next of the returned addresses. `addresses` then holds the addresses at the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resolves: bool,
    /// Whether `address` and `port` belong to a control plane, which announces the servers of `server_name` by xDS. The
    /// connection policy is then a persistent one, and each of its connections is a channel: the library itself opens a
    /// connection to each server, and sends each request to the next.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discovers: bool,
    /// The server's port.
    pub port: u16,
    /// The way of connections to the server; protocols over TCP only. Absent: they go to `address` and `port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// The name to send (SNI, `Host`, `:authority`) and to check the certificate against.
    pub server_name: String,
    /// Certificate authorities and TLS options; present exactly where the protocol has TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ClientTls>,
    /// The request to send, and the expected response.
    pub request: Request,
    /// The requests to send in place of `request`, which then repeats the first of them. Only clients whose description
    /// has `own_requests` support it, for HTTP; the load engine also for gRPC. Absent: all requests are equal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<MixedRequest>,
    /// The page, if `request` asks for a page's document and the client loads the page with all its resources. Each
    /// load counts as one request, and the client chooses the requests and connections of a load. Only browsers support
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<ExpectedPage>,
    /// The connection policy.
    pub connections: ConnectionPolicy,
    /// The schedule of requests.
    pub schedule: Schedule,
    /// The rates of an open loop over the time of the window, in place of the rate of `schedule`, which then repeats
    /// the highest one. `extent` is the time of all stages, and there is no `warm_up`. Only `wirelab load` sets it.
    /// Absent: the rate is constant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ramp: Vec<Stage>,
    /// Length of the measured window.
    pub extent: Extent,
    /// Length of the warm-up, which uses the same schedule and is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Extent>,
    /// Whether the warm-up ends as soon as response times are steady; `warm_up` is then its longest time. The event
    /// `warm` tells how it ended. Only clients whose description has `until_steady` support it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_steady: bool,
    /// TLS session resumption policy for new connections.
    #[serde(default)]
    pub resumption: Resumption,
    /// Time-outs; the same rule for every protocol.
    pub timeouts: Timeouts,
    /// Seed of every random choice (arrivals, pauses).
    pub seed: u64,
    /// The kind of records.
    pub recording: Recording,
    /// The file to write the records (JSON lines) or the histograms (one JSON object) to.
    pub results: PathBuf,
    /// An existing folder for qlog files, at least one per QUIC connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qlog_dir: Option<PathBuf>,
    /// Threads that send requests; absent: the library's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u16>,
    /// Where the endpoint exports its counters during the trial. Absent: it exports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposition: Option<Exposition>,
    /// Transport settings.
    #[serde(default)]
    pub transport: Transport,
}

impl ClientSpec {
    /// The place of the server in words: `127.0.0.1:443`, `the Unix socket PATH`, `NAME:443 through the proxy URL`.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.via {
            None => SocketAddr::new(self.address, self.port).to_string(),
            Some(via @ Via::UnixSocket(_)) => via.to_string(),
            Some(via @ Via::Proxy(_)) => format!("{}:{} through {via}", self.server_name, self.port),
        }
    }
}

/// TLS options of a client.
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
    /// The client's own certificate, for a server that asks for one; absent: none. Only `wirelab load` and `wirelab
    /// probe` set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<ClientIdentity>,
    /// The version of TLS. QUIC has no other than 1.3.
    #[serde(default, skip_serializing_if = "TlsVersion::is_default")]
    pub version: TlsVersion,
}

/// The certificate of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientIdentity {
    /// The certificate chain, PEM.
    pub certificate: PathBuf,
    /// The private key of the first certificate, PEM.
    pub key: PathBuf,
}

/// The version that a client offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[default]
    #[serde(rename = "1.3")]
    Tls13,
}

impl TlsVersion {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The spec of a sidecar: `<endpoint> sidecar --spec FILE`. A sidecar accepts requests at its address and forwards each
/// request, not each connection, to the next of its upstreams in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SidecarSpec {
    /// The version of the contract, 1.
    pub contract: u32,
    /// The protocol of incoming requests.
    pub protocol: Protocol,
    /// The protocol of requests to the upstreams.
    pub upstream_protocol: Protocol,
    /// The address to bind.
    pub address: IpAddr,
    /// The port to bind; 0 lets the kernel choose, and `ready` reports the choice.
    pub port: u16,
    /// A file that names the upstreams: a JSON list of addresses with ports, `["192.0.2.1:80"]`. The sidecar reads it
    /// before `ready`, and again at each command `reach`; the file may have been replaced by then.
    pub upstreams: PathBuf,
    /// Threads that forward requests; absent: the library's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u16>,
    /// Transport settings of accepted and of opened connections.
    #[serde(default)]
    pub transport: Transport,
}

/// The spec of a control plane: `<endpoint> control-plane --spec FILE`. A control plane tells clients the addresses of
/// a name's servers, with round-robin balancing, by xDS over gRPC in clear text on one aggregated stream (ADS).
/// Requests do not pass through it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControlPlaneSpec {
    /// The version of the contract, 1.
    pub contract: u32,
    /// The protocol between clients and servers.
    pub protocol: Protocol,
    /// The address to bind.
    pub address: IpAddr,
    /// The port to bind; 0 lets the kernel choose, and `ready` reports the choice.
    pub port: u16,
    /// The name that clients ask for.
    pub server_name: String,
    /// A file that names the servers: a JSON list of addresses with ports, `["192.0.2.1:80"]`. The control plane reads
    /// it before `ready`, and again at each command `reach`; the file may have been replaced by then.
    pub members: PathBuf,
}

/// The request that a client repeats. A body is the pattern whose byte at offset i is i mod 251, or `body`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The HTTP method. The raw transports ask for an echo of a given size; they ignore method and path, except the
    /// delay of a path `/delay/MICROSECONDS`. gRPC takes the number from a path `/heron/NUMBER`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Bytes of request body, or of the message in gRPC.
    pub body_size: u64,
    /// The bytes of the request body; only within `mix`. Absent: the pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Content>,
    /// Further header fields; metadata in gRPC.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The correct response. Absent if wirelab did not start the server (`load`, `probe`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

/// The correct response. The client checks size and status of every response. It checks the digest only for the check
/// request, which precedes the warm-up on a connection of its own, so that no measurement includes hashing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The HTTP status. gRPC always expects `grpc-status: 0`.
    pub status: u16,
    /// Bytes of response body, or of the message in gRPC. The raw transports ask the server for this size.
    pub body_size: u64,
    /// SHA-256 of the response body, hexadecimal.
    pub sha256: String,
}

/// How connections are opened and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum ConnectionPolicy {
    /// A new connection for every request, closed after it.
    PerRequest,
    /// A fixed number of connections, opened before the measured window and kept.
    Persistent {
        /// Number of connections.
        connections: u32,
        /// Concurrent requests on each connection; above 1 only for protocols that multiplex.
        streams: u32,
    },
}

/// The schedule of requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "loop", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// Closed loop: each of `workers` sends a request, waits for the response, pauses, and sends again. The intended
    /// start is the end of the pause.
    Closed {
        /// Number of concurrent requests.
        workers: u32,
        /// The pause between a response and the next request.
        #[serde(default)]
        pause: Pause,
    },
    /// Open loop: requests start at times that do not depend on responses, so that a slow server cannot delay them (no
    /// coordinated omission). The intended start is the arrival time.
    Open {
        /// Arrivals per second.
        rate_per_s: f64,
        /// Distribution of the intervals between arrivals.
        arrivals: Arrivals,
    },
}

/// A part of a ramp. Its rate is a straight line over its time, or constant; 0 is a pause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Arrivals per second at its beginning.
    pub from_per_s: f64,
    /// Arrivals per second at its end.
    pub to_per_s: f64,
    /// Its length.
    pub duration_ns: u64,
}

impl Stage {
    /// The number of arrivals that it has on average: the integral of its rate.
    #[must_use]
    pub fn arrivals(self) -> f64 {
        f64::midpoint(self.from_per_s, self.to_per_s) * self.duration_ns as f64 / 1e9
    }

    /// The rate at this time of the stage.
    #[must_use]
    pub fn rate_at(self, ns: u64) -> f64 {
        self.from_per_s + (self.to_per_s - self.from_per_s) * ns as f64 / self.duration_ns as f64
    }
}

/// The pause of a closed loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Pause {
    /// No pause.
    #[default]
    None,
    /// A constant pause.
    Fixed {
        /// Length of the pause.
        ns: u64,
    },
    /// Pauses with uniform distribution.
    Uniform {
        /// The shortest pause.
        min_ns: u64,
        /// The longest pause.
        max_ns: u64,
    },
}

/// Distribution of the intervals between arrivals in an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Equal intervals.
    Uniform,
    /// A Poisson process: exponentially distributed intervals.
    Poisson,
}

/// Length of a part of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Extent {
    /// A number of requests.
    Requests(u64),
    /// Nanoseconds. The client starts no request after the end; it completes and counts requests in flight.
    DurationNs(u64),
}

/// TLS session resumption policy for new connections. Full, resumed and 0-RTT handshakes are different experiments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resumption {
    /// No resumption: every handshake is a full one, and every QUIC path is unvalidated.
    #[default]
    None,
    /// TLS 1.3 session tickets from the previous connection.
    Resume,
    /// Session tickets and 0-RTT data: the request is part of the first flight.
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

/// A kind of records of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Recording {
    /// One record per request (`sample.schema.json`), as JSON lines.
    Samples,
    /// HDR histograms, which can be merged (`histograms.schema.json`).
    Histograms,
    /// One record per load of a page, as JSON lines. Browsers record loads and nothing else.
    Loads,
    /// Counts, and response times that the client computed itself (`totals.schema.json`). Programs of users that are no
    /// endpoints record totals and nothing else.
    Totals,
}

/// Transport settings. For an absent setting the library's default applies.
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
    /// `TCP_NODELAY`; absent: on, because the defaults of libraries differ and all cells must agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_delay: Option<bool>,
}

/// A congestion control algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// CUBIC (RFC 9438).
    Cubic,
    /// BBR, in the version of the stack.
    Bbr,
    /// Reno: NewReno in TCP (RFC 6582), the algorithm of RFC 9002 in QUIC.
    Reno,
}

impl Congestion {
    /// The name in specs, which is also the kernel's name.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Reno => "reno",
        }
    }
}

/// An optional capability of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Feature {
    /// `GET` of files below the document root.
    Files,
    /// `GET` of files below the document root, each with a `content-length` and the `content-type` of its file name
    /// extension, as browsers need them.
    Pages,
    /// `POST /echo` returns the body. On raw transports the request header names the size of the response.
    Echo,
    /// `GET /bytes/N` returns N bytes of the pattern whose byte at offset i is i mod 251.
    Bytes,
    /// `GET /delay/MICROSECONDS` returns an empty body that long after the arrival of the request, for calibration. On
    /// raw transports a field of the request header sets the delay.
    Delay,
    /// `GET /redirect` returns status 302 with its own address as `location`. Clients do not follow it.
    Redirect,
    /// `GET /heron/NUMBER` returns the square root of the number by Heron's method, as text; with gRPC, the call of
    /// `heron.proto`.
    Heron,
}
