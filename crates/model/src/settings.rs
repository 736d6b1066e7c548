//! Settings of a cell: each quantity that a study may fix in `[workload]` or vary in `[factors]`.
//!
//! Both tables use the same flat list of keys. A factor of a study is either a list of values of the setting of the
//! same name (`protocol = ["h1", "h2"]`), or a table of named levels that set several settings each (`parallel = {
//! workers = 100 }`). The documentation of the keys (`wirelab studies keys`, the manual, the JSON Schema) is generated
//! from the comments in this file.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::network::{Address, Network, Servers};
use crate::nodes::Labels;
use crate::page::{PageName, Priorities};
use crate::protocol::Protocol;
use crate::queue::Queue;
use crate::spec::{Arrivals, Congestion, Recording, Resumption};
use crate::units::{BitRate, Frequency, Share, Size, Span};

/// The settings that a study fixes or varies. An absent key takes the default that its comment states.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The protocol between client and server. Required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The endpoint for both roles. As a level of a factor, `installed` stands for each installed endpoint that
    /// supports the protocol in that role; the same holds for `server` and `client`. Default: `builtin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The endpoint for the server. Default: `endpoint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The endpoint for the client. Default: `endpoint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Where client and server run; the lab defines the names. In the lab `netns` it is a preset of the emulated link
    /// (`wirelab labs` lists the presets), which the ten keys from `round_trip` on modify. In the lab `kubernetes` it
    /// is the location of the servers relative to the client: `same-node`, `other-node` (or `lan`), `same-zone` (or
    /// `single-az`) or `other-zone` (or `multi-az`). Default: `local`, which has no link; in the lab `kubernetes`
    /// `same-node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Round-trip time of the link: the sum of its delays in both directions. Default: from the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<Span>,
    /// Largest deviation of a packet's one-way delay, up or down. Default: from the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// Rate of the link from server to client; whole frames count. Default: from the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<BitRate>,
    /// Rate of the link from client to server. Default: `bandwidth` if set, otherwise from the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_up: Option<BitRate>,
    /// Size of the link's queue in each direction, in bytes or in packets (`100 packets`); a full queue drops packets.
    /// Default: `256 KiB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Share of packets that the link loses. Default: from the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Share>,
    /// Mean number of consecutive lost packets; 1 means independent losses. Default: from the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_burst: Option<f64>,
    /// Share of packets that skip the link's delay and overtake others. Default: `0 %`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Share>,
    /// Share of packets that arrive twice. Default: `0 %`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Share>,
    /// Size of the link's largest IP packet in bytes. Default: 1500.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Network between the hosts of client and servers: `direct`, only the link; or `overlay`, pods on two nodes of a
    /// Kubernetes cluster, with the link between the nodes and VXLAN on the link. Default: `direct`; in the lab
    /// `kubernetes` `overlay`, which is the cluster's own network and the only choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Whether the hosts' interfaces segment and merge packets and compute checksums (TSO, GSO, GRO, checksum offload).
    /// On an emulated link without an overlay, offloads cannot be on, because the emulator needs packets as a wire
    /// carries them. Default: the kernel's, all on except GRO.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offloads: Option<bool>,
    /// Number and location of the servers: `near`, on the client's node, or `far`, on the other node; `2 far`, `near +
    /// far`. Default: `far`, but `near` with `network = "overlay"` and `placement = "same-node"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Servers>,
    /// In the lab `kubernetes`: required labels of a client's node, separated by commas
    /// (`disk=ssd,kubernetes.io/arch=arm64`); the same in all cells. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_nodes: Option<Labels>,
    /// In the lab `kubernetes`: required labels of the nodes of `far` servers; `placement` still defines the location
    /// of these servers relative to the client. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_nodes: Option<Labels>,
    /// The address that clients connect to. `server`: the address of the single server. `service`: one address for all
    /// servers; each connection goes to a random one. `headless`: a name that resolves to all servers, which the client
    /// uses in turn. `node-port` (lab `kubernetes`): a port of a server's node, which stands for all servers. Default:
    /// `server` with one server, otherwise `service`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// The endpoint for the sidecars, one beside each server and one beside the clients, in their pods. The clients'
    /// sidecar forwards each of their requests, over HTTP/2, to the sidecar of the next server. Or `linkerd`, in the
    /// lab `kubernetes`: the pods join the Linkerd mesh, which must be installed in the cluster. For `h1c`, `h2c` and
    /// `grpcc` with `network = "overlay"`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
    /// The endpoint for a control plane, which announces the servers to the clients by xDS. `client` must be an
    /// endpoint that supports it; such a client opens a connection to each server and sends each request to the next.
    /// For `grpc` and `grpcc` with `network = "overlay"`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<String>,

    /// A protocol that the server does not support (`h1`, `h2` or `h3`): a client that tries it meets a server of
    /// another protocol, as at a site without HTTP/3. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_lacks: Option<Protocol>,
    /// URL of a page on a server that wirelab does not start, in the lab `internet`. Default: none; wirelab starts a
    /// server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// With `site`: the address to connect to, in place of a look-up of the URL's host. Default: the first address
    /// found, IPv4 before IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_address: Option<IpAddr>,
    /// With `site`: a file of trusted certificate authorities (PEM). Default: those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_trust: Option<PathBuf>,

    /// What requests ask for. `files`: GET of a document. `bytes`: GET of generated bytes. `echo`: POST; the response
    /// returns the body. `delay`: an empty answer after `delay`; one byte on the raw transports. `heron`: the square
    /// root of two by Heron's method, independent of `payload`; a small call, as text in HTTP, as a message in gRPC.
    /// `redirect`: GET of an address that redirects to itself; clients do not follow it, so the trial fails. Default:
    /// `files` for HTTP, `echo` for the raw transports, `heron` for gRPC, where it is the only choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Exchange>,
    /// Size of the response body (and of the request body, for `echo`). Default: `1 KiB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Size>,
    /// A page to load with all its resources, in place of one document. The client must be a browser; `requests` counts
    /// loads, all cold (default: 1); `request_timeout` is the deadline of a load. Pages of wirelab:
    /// `small-10`, `small-20`, `small-50`, `small-100`, `medium-10`, `medium-20`, `medium-50`, `medium-100`,
    /// `large-10`, `large-200`, `large-210`, `large-2`, `today`. Own pages: a path with a slash, relative to the
    /// directory where wirelab starts, of a folder with an `index.html` (`./site`), or of an HTTP Archive with the
    /// bodies of its responses (`./saved.har`). Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<PageName>,
    /// With `page`: number of hosts of a page of wirelab, up to 20. Each host has its own name, address and server; all
    /// share the link. The first host has the document and the fonts; style sheets, scripts and images are distributed
    /// over all hosts in turn. An archive has hosts of its own. For the lab `netns` and the built-in server. Default:
    /// `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u32>,
    /// Time that the server waits before its response, for `exchange = "delay"`; with `page`, before the response with
    /// the page's document, as if it had to generate the document. Default: `0 ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// With `page`: whether the server sends a response 103 (Early Hints) as soon as the request for the page's
    /// document arrives; the document follows after `delay`. The hints are links to the page's style sheets, scripts
    /// and fonts, or, in their absence, to the first six images. Both `true` and `false` allow browsers to cache files.
    /// For the built-in server; over HTTP/1.1 only Firefox accepts hints. Default: no hints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_hints: Option<bool>,
    /// With `page`: how the server treats the priorities of browsers' requests (RFC 9218, the field `priority`):
    /// `obeyed` or `ignored`. For the built-in server, which obeys priorities over HTTP/3 only: its HTTP/2 library
    /// sends responses in turns, and HTTP/1.1 has nothing to order. Default: `ignored`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priorities: Option<Priorities>,

    /// Number of clients that share the workload, all started at the same moment: separate processes, in the lab
    /// `kubernetes` separate pods. `workers`, `rate`, `requests`, `warm_up` and `connections` are totals over all
    /// clients and must be divisible by it. Results of the clients are merged, never averaged. Not with a timeline, a
    /// `mesh`, a `page` or a `site`. Default: `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// `per-request`, or the number of persistent connections. Default: `1`, or one for each of the `clients`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Concurrent requests on one connection, for protocols that multiplex. Default: `workers` divided by
    /// `connections`, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// Concurrent requests of a closed loop. A protocol that does not multiplex opens as many connections as it has
    /// workers. Default: `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Pause between a response and the next request of the same worker. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Span>,
    /// With `pause`: upper limit of pauses; each pause is drawn uniformly from `pause` to `pause_max`. Default: all
    /// pauses equal `pause`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_max: Option<Span>,
    /// Arrivals per second. Makes the loop an open one, in which requests start on schedule, independent of responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// Distribution of the intervals between arrivals of an open loop: `uniform` or `poisson`. Default: `poisson`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Number of requests in a trial. Either this or `duration`. Default: `100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Length of a trial's measured window. Either this or `requests`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// Number of warm-up requests before the measured window, on the same schedule, not recorded. Default: `0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<u64>,
    /// TLS session resumption policy for new connections: `none`, `resume` or `zero_rtt`. Default: `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumption: Option<Resumption>,
    /// Form of the records: `samples` (one per request) or `histograms`. Default: `histograms` if the plan expects more
    /// than 1,000,000 requests in a trial, or an open loop of more than 20,000 per second; otherwise `samples`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,

    /// Values of transport settings that the study does not set. `same`: the defaults named here, so that libraries are
    /// compared under equal conditions; a library that cannot be set so refuses. `library`: each library's own default,
    /// which the report shows. Default: `same`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport_defaults: Option<TransportDefaults>,
    /// Congestion control of TCP and QUIC: `cubic`, `bbr` or `reno`. Default: `cubic`, for equal conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<Congestion>,
    /// Flow-control window per stream (HTTP/2, QUIC, HTTP/3). Default: `1 MiB`, for equal conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_window: Option<Size>,
    /// Flow-control window per connection (HTTP/2, QUIC, HTTP/3). Default: `16 MiB`, for equal conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_window: Option<Size>,
    /// UDP send buffer. Default: the kernel's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp_send_buffer: Option<Size>,
    /// UDP receive buffer. Default: the kernel's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp_receive_buffer: Option<Size>,
    /// The largest UDP payload to send, in bytes. Default: the library's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_udp_payload: Option<u16>,
    /// UDP generic segmentation offload. Default: the library's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gso: Option<bool>,
    /// UDP generic receive offload. Default: the library's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gro: Option<bool>,
    /// TCP Fast Open. Default: off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast_open: Option<bool>,
    /// `TCP_NODELAY`. Default: on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_delay: Option<bool>,

    /// Deadline of a connection's handshake. Default: `5 s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<Span>,
    /// Deadline of a request, including the time to connect. Default: `10 s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_timeout: Option<Span>,
    /// Aborts the trial after consecutive time-outs for this long, in the warm-up and in the measured window. Default:
    /// `10 min`.
    #[serde(alias = "patience", skip_serializing_if = "Option::is_none")]
    pub stall_timeout: Option<Span>,
    /// Age of a connection at which the server asks the client, by the protocol's own signal, to open another one; the
    /// server still answers requests in flight. HTTP over TCP, and gRPC. Default: as long as the client keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connection_age: Option<Span>,
    /// With `address = "headless"`: whether clients resolve the name before each new connection, not only at their
    /// start. Default: off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolve_again: Option<bool>,
    /// Names of observers of these cells, in addition to the study's observers, to measure the cost of an observer.
    /// Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_observers: Option<Vec<String>>,
    /// Number of server threads. Default: the library's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_threads: Option<u16>,
    /// Number of client threads. Default: the library's; the built-in client has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_threads: Option<u16>,
}

/// What requests ask for.
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

    /// Returns the names of all keys in the order of declaration.
    #[must_use]
    pub fn keys() -> Vec<String> {
        Self::documented_keys().into_iter().map(|(name, _)| name).collect()
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
    fn the_keys_include_the_first_and_the_last_field() {
        let keys = Settings::keys();
        assert!(keys.iter().any(|k| k == "protocol") && keys.iter().any(|k| k == "client_threads"), "{keys:?}");
    }
}
