//! Settings of a cell: each quantity that a study may fix in `[workload]` or vary in `[factors]`.
//!
//! Both tables use the same flat list of keys. A factor of a study is either a list of values of the setting of the
//! same name (`protocol = ["h1", "h2"]`), or a table of named levels that set several settings each (`parallel = {
//! workers = 100 }`). The documentation of the keys (`wirelab studies keys`, the manual, the JSON Schema) is generated
//! from the comments in this file.

mod declare;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use declare::{Declared, Part};
use declare::{Setting, settings};

use crate::datagram::DatagramPayload;
use crate::network::{Address, Network, Servers};
use crate::nodes::Labels;
use crate::own_client::ClientOutput;
use crate::page::{MOST_HOSTS, PageName, Priorities};
use crate::plan::{BUILTIN, OwnServers, ten_minutes};
use crate::processors::Cpus;
use crate::protocol::Protocol;
use crate::proxy::ProxyUrl;
use crate::queue::Queue;
use crate::spec::{Arrivals, Congestion, Recording, Resumption};
use crate::units::{BitRate, Frequency, Share, Size, Span};
use crate::warm_up::WarmUp;

const DAY: Span = Span::from_secs(86_400);
const LARGEST: Size = Size(1 << 30);
const SLOWEST: BitRate = BitRate(1000);
const FASTEST: BitRate = BitRate(100_000_000_000);

/// Clients per trial, including restarted ones: each is a process.
pub const MAX_CLIENTS: u32 = 500;

// The ranges are what one machine can run, so that a typing error fails before it fills a disk or runs for a year.
settings! {
/// The settings that a study fixes or varies. An absent key takes its default; the comment states
/// a default that depends on other settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = with_ranges)]
pub struct Settings {
    /// The protocol between client and server. Required.
    protocol: Protocol;
    /// The endpoint for both roles. As a level of a factor, `installed` stands for each installed endpoint that
    /// supports the protocol in that role; the same holds for `server` and `client`.
    endpoint: String = (BUILTIN.to_owned());
    /// The endpoint for the server. Default: `endpoint`.
    server: String where excludes = &[Part::Site];
    /// Your program as the server: the words of its command line, `["./my-server", "--port", "{port}"]`. In the
    /// words, `{port}` and `{address}` stand for where it must listen, `{certificate}` and `{key}` for files with a
    /// certificate that the client trusts; the environment variable `PORT` has the port, too. If the words have
    /// `{socket}`, it must listen at the Unix socket with that path instead (lab `loopback`). wirelab starts it for
    /// each trial in the directory where wirelab was started, and waits until it listens. It may answer any `request`;
    /// without one, clients ask for `/`. For HTTP. Default: none.
    server_command: Vec<String> where excludes = &[Part::Site, Part::Page];
    /// Time limit for the program of `server_command` to listen. Before a run, wirelab starts each such program once;
    /// one that does not listen in time ends the run.
    start_timeout: Span = (OwnServers::START_TIMEOUT) where range = Span::from_millis(100)..=Span::from_secs(3600);
    /// The endpoint for the client. Default: `endpoint`.
    client: String;
    /// Your program as the client: the words of its command line, `["oha", "-n", "{requests}", "-c", "{connections}",
    /// "{url}"]`. wirelab starts it in each trial, and the measured window is from its start to its end. `{url}` stands
    /// for the document. `{address}` and `{port}` are its server's. `{requests}` or `{seconds}` is the length of the
    /// window. `{workers}` and `{connections}` are these settings, and `{ca}` is a file with the authority of the
    /// server's certificate. The program must end with a status other than 0 if it fails. Its processor time and system
    /// calls are measured as those of an endpoint, its memory by the observer `rusage`, and response times as
    /// `client_output` says. For HTTP and gRPC in the labs `loopback` and `netns`, with one client. Default: none.
    client_command: Vec<String> where excludes = &[Part::Site, Part::Page];
    /// Where the output of `client_command` has values: for each of `requests` (that succeeded), `failed`,
    /// `response_mean`, `response_min`, `response_median`, `response_p90`, `response_p99`, `response_p999` and
    /// `response_max`, a regular expression with one group. A time has its unit in the group (`"50% +([0-9.]+ms)"`), or
    /// the group has its name: `'"p50": (?<s>[0-9.]+)'` (ns, us, ms or s). wirelab cannot check such a time. Without
    /// `requests` the program sends as many as `{requests}` says; without `failed` the number of failures is unknown.
    client_output: ClientOutput where excludes = &[Part::Site, Part::Page];
    /// Where client and server run; the lab defines the names. In the lab `netns` it is a preset of the emulated link
    /// (`wirelab labs` lists the presets), which the ten keys from `round_trip` on modify. In the lab `kubernetes` it
    /// is the location of the servers relative to the client: `same-node`, `other-node` (or `lan`), `same-zone` (or
    /// `single-az`) or `other-zone` (or `multi-az`). The placement `local` has no link. The lab
    /// `kubernetes` sets `same-node` in place of the default.
    placement: String = ("local".to_owned()) where excludes = &[Part::Site];
    /// Round-trip time of the link: the sum of its delays in both directions. Default: from the placement.
    round_trip: Span where range = Span(0)..=Span::from_secs(10), needs = Part::Link;
    /// Largest deviation of a packet's one-way delay, up or down. Default: from the placement.
    jitter: Span where range = Span(0)..=Span::from_secs(1), needs = Part::Link;
    /// Rate of the link from server to client; whole frames count. Default: from the placement.
    bandwidth: BitRate where range = SLOWEST..=FASTEST, needs = Part::Link;
    /// Rate of the link from client to server. Default: `bandwidth` if set, otherwise from the placement.
    bandwidth_up: BitRate where range = SLOWEST..=FASTEST, needs = Part::Link;
    /// Size of the link's queue in each direction, in bytes or in packets (`100 packets`); a full queue drops packets.
    /// Default: `256 KiB`.
    queue: Queue where range = Size(1500)..=LARGEST, needs = Part::Link;
    /// Share of packets that the link loses. Default: from the placement.
    loss: Share where range = Share(0.0)..=Share(1.0), needs = Part::Link;
    /// Mean number of consecutive lost packets; 1 means independent losses. Default: from the placement.
    loss_burst: f64 where range = 1.0..=10_000.0, needs = Part::Link;
    /// Share of packets that skip the link's delay and overtake others. Default: `0 %`.
    reorder: Share where range = Share(0.0)..=Share(1.0), needs = Part::Link;
    /// Share of packets that arrive twice. Default: `0 %`.
    duplicate: Share where range = Share(0.0)..=Share(1.0), needs = Part::Link;
    /// Size of the link's largest IP packet in bytes. Default: 1500.
    // Lower bound: the smallest packet that a QUIC path carries (RFC 9000, section 14), with headers. Upper bound: the
    // largest IP packet.
    mtu: u32 where range = 1280..=65_535, needs = Part::Link;
    /// Network between the hosts of client and servers: `direct`, only the link; or `overlay`, pods on two nodes of a
    /// Kubernetes cluster, with the link between the nodes and VXLAN on the link. The lab
    /// `kubernetes` sets `overlay`, which is the cluster's own network and the only choice, in place of the default.
    network: Network = (Network::Direct) where excludes = &[Part::Site];
    /// Whether the hosts' interfaces segment and merge packets and compute checksums (TSO, GSO, GRO, checksum offload).
    /// On an emulated link without an overlay, offloads cannot be on, because the emulator needs packets as a wire
    /// carries them. Default: the kernel's, all on except GRO.
    offloads: bool;
    /// Number and location of the servers: `near`, on the client's node, or `far`, on the other node; `2 far`, `near +
    /// far`. Default: `far`, but `near` with `network = "overlay"` and `placement = "same-node"`.
    servers: Servers where excludes = &[Part::Site];
    /// In the lab `kubernetes`: required labels of a client's node, separated by commas
    /// (`disk=ssd,kubernetes.io/arch=arm64`); the same in all cells. Default: none.
    client_nodes: Labels where excludes = &[Part::Site];
    /// In the lab `kubernetes`: required labels of the nodes of `far` servers; `placement` still defines the location
    /// of these servers relative to the client. Default: none.
    server_nodes: Labels where excludes = &[Part::Site];
    /// The processors on which clients and servers run, with their sidecars. `shared`: one processor for both sides, so
    /// that a response time is the sum of both costs; the steadiest. `split`: half of the cores for each side, as on
    /// two machines. `free`: the kernel decides, and may move processes. Or lists: `{ client = "0", server = "1-3" }`.
    /// In the lab `kubernetes` wirelab does not control processors.
    cpus: Cpus = (Cpus::default());
    /// The address that clients connect to. `server`: the address of the single server. `service`: one address for all
    /// servers; each connection goes to a random one. `headless`: a name that resolves to all servers, which the client
    /// uses in turn. `node-port` (lab `kubernetes`): a port of a server's node, which stands for all servers. Default:
    /// `server` with one server, otherwise `service`.
    address: Address where excludes = &[Part::Site, Part::Page];
    /// The endpoint for the sidecars, one beside each server and one beside the clients, in their pods. The clients'
    /// sidecar forwards each of their requests, over HTTP/2, to the sidecar of the next server. Or `linkerd`, in the
    /// lab `kubernetes`: the pods join the Linkerd mesh, which must be installed in the cluster. For `h1c`, `h2c` and
    /// `grpcc` with `network = "overlay"`. Default: none.
    mesh: String where excludes = &[Part::Site];
    /// The endpoint for a control plane, which announces the servers to the clients by xDS. `client` must be an
    /// endpoint that supports it; such a client opens a connection to each server and sends each request to the next.
    /// For `grpc` and `grpcc` with `network = "overlay"`. Default: none.
    control_plane: String where excludes = &[Part::Site];

    /// A protocol that the server does not support (`h1`, `h2` or `h3`): a client that tries it meets a server of
    /// another protocol, as at a site without HTTP/3. Default: none.
    server_lacks: Protocol where excludes = &[Part::Site];
    /// URL of a page on a server that wirelab does not start, in the lab `internet`. Default: none; wirelab starts a
    /// server.
    site: String where excludes = &[Part::Page];
    /// With `site`: the address to connect to, in place of a look-up of the URL's host. Default: the first address
    /// found, IPv4 before IPv6.
    site_address: IpAddr where needs = Part::Site;
    /// With `site`: a file of trusted certificate authorities (PEM). Default: those of the system.
    site_trust: PathBuf where needs = Part::Site;
    /// With `site`: the Unix socket at which the server listens, a path relative to the directory where wirelab starts.
    /// The URL still gives scheme, host and path. For HTTP over TCP: not h3. A Unix socket has no transport settings of
    /// TCP and no packets. Default: none; the client connects to the host.
    site_unix_socket: PathBuf where needs = Part::Site;
    /// With `site`: the proxy through which the client connects, by a tunnel for each connection. It is
    /// `http://HOST:PORT`, `socks5://HOST:PORT` (SOCKS 5), or `socks5h://HOST:PORT`, where the proxy looks up the
    /// site's host, as with `http`. User and password stand before the host, the password as a placeholder:
    /// `http://me:{{env.PROXY_PASSWORD}}@HOST:PORT`. The time until the client is connected then includes the
    /// connection to the proxy, its answers and its own connection to the server; the transport metrics are those of
    /// the connection to the proxy. For HTTP over TCP: not h3. Variables such as `HTTPS_PROXY` have no effect. Default:
    /// none.
    site_proxy: ProxyUrl where needs = Part::Site;

    /// The exchange of a request. `files`: GET of a document. `bytes`: GET of generated bytes. `echo`: POST; the
    /// response returns the body. `delay`: an empty answer after `delay`; one byte on the raw transports. `heron`: the
    /// square root of two by Heron's method, independent of `payload`; a small call, as text in HTTP, as a message in
    /// gRPC. `redirect`: GET of an address that redirects to itself; clients do not follow it, so the trial fails.
    /// Default: `files` for HTTP, `echo` for the raw transports, `heron` for gRPC, where it is the only choice.
    exchange: Exchange where excludes = &[Part::Site, Part::Page], harmless = Exchange::Files;
    /// Size of the response body (and of the request body, for `echo`).
    payload: Size = (Size(1024)) where range = Size(0)..=LARGEST, excludes = &[Part::Site, Part::Page];
    /// A page to load with all its resources, in place of one document. The client must be a browser; `requests` counts
    /// loads, all cold (default: 1); `request_timeout` is the deadline of a load. Pages of wirelab:
    /// `small-10`, `small-20`, `small-50`, `small-100`, `medium-10`, `medium-20`, `medium-50`, `medium-100`,
    /// `large-10`, `large-200`, `large-210`, `large-2`, `today`. Own pages: a path with a slash, relative to the
    /// directory where wirelab starts, of a folder with an `index.html` (`./site`), or of an HTTP Archive with the
    /// bodies of its responses (`./saved.har`). Default: none.
    page: PageName;
    /// With `page`: number of hosts of a page of wirelab, up to 20. Each host has its own name, address and server; all
    /// share the link. The first host has the document and the fonts; style sheets, scripts and images are distributed
    /// over all hosts in turn. An archive has hosts of its own. For the lab `netns` and the built-in server. Default:
    /// `1`.
    hosts: u32 where range = 1..=MOST_HOSTS, needs = Part::Page;
    /// Time that the server waits before its response, for `exchange = "delay"`; with `page`, before the response with
    /// the page's document, as if it had to generate the document.
    delay: Span = (Span(0)) where range = Span(0)..=DAY;
    /// With `page`: whether the server sends a response 103 (Early Hints) as soon as the request for the page's
    /// document arrives; the document follows after `delay`. The hints are links to the page's style sheets, scripts
    /// and fonts, or, in their absence, to the first six images. Both `true` and `false` allow browsers to cache files.
    /// For the built-in server; over HTTP/1.1 only Firefox accepts hints. Default: no hints.
    early_hints: bool where needs = Part::Page;
    /// With `page`: how the server treats the priorities of browsers' requests (RFC 9218, the field `priority`):
    /// `obeyed` or `ignored`. For the built-in server, which obeys priorities over HTTP/3 only: its HTTP/2 library
    /// sends responses in turns, and HTTP/1.1 has nothing to order. Default: `ignored`.
    priorities: Priorities where needs = Part::Page;

    /// Number of clients that share the workload, all started at the same moment: separate processes, in the lab
    /// `kubernetes` separate pods. `workers`, `rate`, `requests`, `warm_up` and `connections` are totals over all
    /// clients and must be divisible by it. Results of the clients are merged, never averaged. Not with a timeline, a
    /// `mesh`, a `page` or a `site`.
    clients: u32 = (1) where range = 1..=MAX_CLIENTS;
    /// `per-request`, or the number of persistent connections. Default: `1`, or one for each of the `clients`.
    connections: Connections where excludes = &[Part::Page];
    /// Concurrent requests on one connection, for protocols that multiplex. Default: `workers` divided by
    /// `connections`, rounded up.
    streams: u32 where range = 1..=100_000, excludes = &[Part::Page];
    /// Concurrent requests of a closed loop. A protocol that does not multiplex opens as many connections as it has
    /// workers.
    workers: u32 = (1) where range = 1..=100_000, excludes = &[Part::Page], harmless = 1;
    /// Pause between a response and the next request of the same worker. Default: none.
    pause: Span where range = Span(0)..=DAY, excludes = &[Part::Page];
    /// With `pause`: upper limit of pauses; each pause is drawn uniformly from `pause` to `pause_max`. Default: all
    /// pauses equal `pause`.
    pause_max: Span where range = Span(0)..=DAY, excludes = &[Part::Page];
    /// Arrivals per second. Makes the loop an open one, in which requests start on schedule, independent of responses.
    rate: Frequency where range = ..=Frequency(1e7), excludes = &[Part::Page];
    /// Distribution of the intervals between arrivals of an open loop: `uniform` or `poisson`.
    arrivals: Arrivals = (Arrivals::Poisson);
    /// Number of requests in a trial. Either this or `duration`. Default: `100`.
    requests: u64 where range = 1..=1_000_000_000;
    /// Length of a trial's measured window. Either this or `requests`.
    duration: Span where range = Span::from_millis(1)..=DAY;
    /// The warm-up before the measured window, on the same schedule, not recorded: a number of requests, a time such as
    /// `"300 ms"`, or `"until steady"`. Choose a time where a system needs one to settle, because a fast cell sends
    /// many requests in it. Until steady, the warm-up ends as soon as its response times are shown to be steady, after
    /// 0.6 s at the earliest and 5 s at the latest; `"until steady within 10 s"` sets another limit. For single clients
    /// that support it, such as the built-in ones.
    warm_up: WarmUp = (WarmUp::Requests(0));
    /// TLS session resumption policy for new connections: `none`, `resume` or `zero_rtt`.
    resumption: Resumption = (Resumption::None) where excludes = &[Part::Page], harmless = Resumption::None;
    /// Form of the records: `samples` (one per request) or `histograms`. Default: `histograms` if the plan expects more
    /// than 1,000,000 requests in a trial, or an open loop of more than 20,000 per second; otherwise `samples`.
    recording: Recording where excludes = &[Part::Page];

    /// Values of transport settings that the study does not set. `same`: the defaults named here, so that libraries are
    /// compared under equal conditions; a library that cannot be set so refuses. `library`: each library's own default,
    /// which the report shows.
    transport_defaults: TransportDefaults = (TransportDefaults::Same);
    /// Congestion control of TCP and QUIC: `cubic`, `bbr` or `reno`. The default creates equal
    /// conditions.
    congestion: Congestion = (Congestion::Cubic);
    /// Flow-control window per stream (HTTP/2, QUIC, HTTP/3). The default creates equal conditions.
    stream_window: Size = (Size(1 << 20)) where range = Size(1)..=Size(1 << 32);
    /// Flow-control window per connection (HTTP/2, QUIC, HTTP/3). The default creates equal conditions.
    connection_window: Size = (Size(16 << 20)) where range = Size(1)..=Size(1 << 32);
    /// UDP send buffer. Default: the kernel's.
    udp_send_buffer: Size where range = Size(1)..=LARGEST;
    /// UDP receive buffer. Default of the built-in endpoint: the largest that TCP's autotuning may reach
    /// (`net.ipv4.tcp_rmem`), as far as `net.core.rmem_max` allows; of other endpoints: the library's or the kernel's.
    udp_receive_buffer: Size where range = Size(1)..=LARGEST;
    /// The largest UDP payload to send. A link carries the payload in one packet, so it must fit into the link's MTU,
    /// minus 28 bytes of headers (48 with IPv6): the loopback interface carries up to `65507 B`. QUIC searches for
    /// sizes above `1472 B` after the handshake. Default: the library's; `1452 B` in the built-in endpoint.
    // RFC 9000, section 14: a QUIC path carries datagrams of at least 1200 bytes. 65527 is the largest UDP payload.
    max_udp_payload: DatagramPayload where range = DatagramPayload(1200)..=DatagramPayload(65_527);
    /// UDP generic segmentation offload. Default: the library's.
    gso: bool;
    /// UDP generic receive offload. Default: the library's.
    gro: bool;
    /// TCP Fast Open. Default: off.
    fast_open: bool;
    /// `TCP_NODELAY`. The default creates equal conditions.
    no_delay: bool = (true);

    /// Deadline of a connection's handshake.
    connect_timeout: Span = (Span::from_secs(5)) where range = Span(1)..=DAY;
    /// Deadline of a request, including the time to connect.
    request_timeout: Span = (Span::from_secs(10)) where range = Span(1)..=DAY;
    /// Aborts the trial after consecutive time-outs for this long, in the warm-up and in the measured window.
    #[serde(alias = "patience")]
    stall_timeout: Span = (ten_minutes()) where range = Span::from_secs(1)..=DAY;
    /// Age of a connection at which the server asks the client, by the protocol's own signal, to open another one; the
    /// server still answers requests in flight. HTTP over TCP, and gRPC. Default: as long as the client keeps it.
    max_connection_age: Span where range = Span::from_millis(10)..=DAY;
    /// With `address = "headless"`: whether clients resolve the name before each new connection, not only at their
    /// start.
    resolve_again: bool = (false);
    /// Names of observers of these cells, in addition to the study's observers, to measure the cost of an observer.
    /// Default: none.
    more_observers: Vec<String>;
    /// Number of server threads. Default: the library's.
    server_threads: u16 where range = 1..=1024, excludes = &[Part::Site];
    /// Number of client threads. Default: the library's; the built-in client has one.
    client_threads: u16 where range = 1..=1024, excludes = &[Part::Page];
}
}

/// The kind of exchange of a request and its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Exchange {
    /// GET of a document below the document root.
    Files,
    /// GET of generated bytes.
    Bytes,
    /// POST; the response returns the body.
    Echo,
    /// An empty response after a delay.
    Delay,
    /// GET of an address that redirects to itself.
    Redirect,
    /// A square root by Heron's method.
    Heron,
}

impl Exchange {
    /// The name in study files.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Bytes => "bytes",
            Self::Echo => "echo",
            Self::Delay => "delay",
            Self::Redirect => "redirect",
            Self::Heron => "heron",
        }
    }
}

/// Values of transport settings that a study does not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransportDefaults {
    /// The same defaults for all libraries.
    Same,
    /// The default of each library.
    Library,
}

/// Connection policy, as written in a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// A new connection for every request.
    PerRequest,
    /// A number of persistent connections, at least 1.
    Persistent(u32),
}

const PER_REQUEST: &str = "per-request";

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerRequest => f.write_str(PER_REQUEST),
            Self::Persistent(count) => write!(f, "{count}"),
        }
    }
}

impl Serialize for Connections {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::PerRequest => serializer.serialize_str(PER_REQUEST),
            Self::Persistent(count) => serializer.serialize_u32(*count),
        }
    }
}

impl<'de> Deserialize<'de> for Connections {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Connections;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "`{PER_REQUEST}` or a number of connections from 1 to 1000000")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Connections, E> {
                if text == PER_REQUEST {
                    Ok(Connections::PerRequest)
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(text), &self))
                }
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Connections, E> {
                match u32::try_from(number) {
                    Ok(count @ 1..=1_000_000) => Ok(Connections::Persistent(count)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
                }
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Connections, E> {
                self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Connections {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Connections".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "oneOf": [{ "const": PER_REQUEST }, { "type": "integer", "minimum": 1, "maximum": 1_000_000 }]
        })
    }
}

impl Settings {
    /// Returns a copy in which each key that `over` sets has the value of `over`.
    ///
    /// # Panics
    /// Never: settings always serialise to an object, and a merge of two valid objects is valid.
    #[must_use]
    pub fn overlaid(&self, over: &Self) -> Self {
        let object = |settings: &Self| match serde_json::to_value(settings) {
            Ok(serde_json::Value::Object(map)) => map,
            _ => unreachable!("settings serialise to an object"),
        };
        let mut merged = object(self);
        merged.extend(object(over));
        serde_json::from_value(merged.into()).expect("a merge of valid settings is valid")
    }

    /// The first set key that needs this part.
    #[must_use]
    pub fn first_that_needs(&self, part: Part) -> Option<&'static str> {
        self.first_set(|setting| setting.needed_part() == Some(part))
    }

    /// The first set key that cannot stand beside this part.
    #[must_use]
    pub fn first_excluded_by(&self, part: Part) -> Option<&'static str> {
        self.first_set(|setting| setting.is_excluded_by(part))
    }

    fn first_set(&self, is_meant: impl Fn(&dyn Declared) -> bool) -> Option<&'static str> {
        let declared = Self::declared();
        let mut set = declared.iter().filter(|setting| setting.is_set(self) && is_meant(&***setting));
        set.next().map(|setting| setting.key())
    }

    /// Returns the names of all keys in the order of declaration.
    #[must_use]
    pub fn keys() -> Vec<String> {
        Self::declared().into_iter().map(|setting| setting.key().to_owned()).collect()
    }

    /// Returns name and documentation of all keys in the order of declaration.
    ///
    /// # Panics
    /// Never: the schema of a struct has properties.
    #[must_use]
    pub fn documented_keys() -> Vec<(String, String)> {
        let schema = schemars::schema_for!(Self);
        let properties =
            schema.get("properties").and_then(|p| p.as_object()).expect("a struct's schema has properties");
        let about = |key: &serde_json::Value| {
            key.get("description").and_then(|text| text.as_str()).unwrap_or_default().to_owned()
        };
        properties.iter().map(|(name, key)| (name.clone(), about(key))).collect()
    }
}

/// Adds default and valid values of each setting to its documentation.
fn with_ranges(schema: &mut Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(|keys| keys.as_object_mut()) else { return };
    for setting in Settings::declared() {
        let about = properties.get_mut(setting.key()).and_then(|key| key.get_mut("description"));
        let Some(serde_json::Value::String(about)) = about else { continue };
        if let Some(default) = setting.default() {
            about.push_str(&format!(" Default: `{default}`."));
        }
        if let Some(valid) = setting.valid_values() {
            about.push_str(&format!(" Valid: {valid}."));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_replaces_only_what_it_sets() {
        let base = Settings { protocol: Some(Protocol::H1), workers: Some(4), ..Settings::default() };
        let over = Settings { protocol: Some(Protocol::H2), ..Settings::default() };
        let merged = base.overlaid(&over);
        assert_eq!((merged.protocol, merged.workers), (Some(Protocol::H2), Some(4)));
    }

    #[test]
    fn each_key_is_documented_with_its_valid_values() {
        let documented = Settings::documented_keys();
        let names: Vec<_> = documented.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(names, Settings::keys());
        assert_eq!((names[0].as_str(), names[names.len() - 1].as_str()), ("protocol", "client_threads"));
        for (key, valid) in [
            ("mtu", "from 1280 to 65535"),
            ("queue", "from 1500 B to 1 GiB"),
            ("loss", "from 0 % to 100 %"),
            ("bandwidth", "from 1 kbit/s to 100 Gbit/s"),
            ("rate", "at most 10000000/s"),
        ] {
            let about = documented.iter().find(|(name, _)| name == key).map(|(_, about)| about.as_str());
            assert!(about.is_some_and(|about| about.ends_with(&format!(" Valid: {valid}."))), "{key}: {about:?}");
        }
        for (key, default) in [("payload", "1 KiB"), ("workers", "1"), ("arrivals", "poisson"), ("no_delay", "true")] {
            let about = documented.iter().find(|(name, _)| name == key).map(|(_, about)| about.as_str());
            assert!(about.is_some_and(|about| about.contains(&format!(" Default: `{default}`."))), "{key}: {about:?}");
        }
        let twice = documented.iter().find(|(_, about)| about.matches("Default: `").count() > 1);
        assert_eq!(twice, None);
    }

    #[test]
    fn every_default_is_a_valid_value_that_a_study_file_can_write() {
        let defaults: serde_json::Map<_, _> = Settings::declared()
            .iter()
            .filter_map(|setting| {
                let text = setting.default()?;
                let value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
                Some((setting.key().to_owned(), value))
            })
            .collect();
        assert!(defaults.len() > 15, "{defaults:?}");
        let settings: Settings = serde_json::from_value(defaults.into()).unwrap();
        let refusals = Settings::declared().iter().filter_map(|setting| setting.out_of_range(&settings)).collect();
        assert_eq!((refusals, settings.payload()), (Vec::new(), Settings::default().payload()));
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_the_valid_ones() {
        let refusals = |written: serde_json::Value| -> Vec<_> {
            let settings: Settings = serde_json::from_value(written).unwrap();
            Settings::declared().iter().filter_map(|setting| setting.out_of_range(&settings)).collect()
        };
        let most = serde_json::json!({ "mtu": 1280, "queue": "3 packets", "rate": "10M/s", "loss_burst": 1.0 });
        assert_eq!(refusals(most), [""; 0]);
        let expected = [
            "`queue` is 1 KiB, but must be from 1500 B to 1 GiB",
            "`loss_burst` is 0.5, but must be from 1 to 10000",
            "`mtu` is 1279, but must be from 1280 to 65535",
            "`rate` is 10000001/s, but must be at most 10000000/s",
        ];
        let wrong = serde_json::json!({ "mtu": 1279, "queue": "1 KiB", "rate": "10000001/s", "loss_burst": 0.5 });
        assert_eq!(refusals(wrong), expected);
    }

    #[test]
    fn a_part_is_needed_or_excluded_by_keys_that_are_set_to_a_value_of_their_own() {
        let settings = |workers, exchange| Settings { workers, exchange, hosts: Some(2), ..Settings::default() };
        let page = settings(Some(1), Some(Exchange::Files));
        assert_eq!((page.first_that_needs(Part::Page), page.first_excluded_by(Part::Page)), (Some("hosts"), None));
        assert_eq!(settings(Some(2), None).first_excluded_by(Part::Page), Some("workers"));
        assert_eq!(settings(None, Some(Exchange::Echo)).first_excluded_by(Part::Site), Some("exchange"));
        assert_eq!(page.first_that_needs(Part::Link), None);
    }
}
