//! The settings of a cell: every quantity that a study may fix in `[workload]` or vary in `[factors]`.
//!
//! One flat list of keys serves both. A study's factor is either a list of values of the setting of the same name
//! (`protocol = ["h1", "h2"]`) or a table of named levels that each set several (`parallel = { workers = 100 }`).
//! The documentation of the keys (`wirelab studies keys`, the manual, the JSON Schema) is generated from the comments here.

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

/// What a study fixes or varies. A key that is absent takes the default that its comment states.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What client and server speak. Required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The endpoint that plays both roles. Default: `builtin`. As a level of a factor, `installed` stands for every endpoint that is
    /// installed and speaks the protocol in that role; so it does for `server` and `client`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The endpoint that plays the server. Default: `endpoint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The endpoint that plays the client. Default: `endpoint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Where client and server run, in the lab's words. In the lab `netns` it is the link between them, by the name of a
    /// preset (`wirelab labs` lists them), which the ten keys from `round_trip` on change. In the lab `kubernetes` it is where the
    /// servers are, seen from the client: `same-node`, `other-node` (or `lan`), `same-zone` (or `single-az`) or `other-zone` (or `multi-az`). Default:
    /// `local`, which has no link; in the lab `kubernetes` `same-node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// The time that a packet is under way on the link, there and back together. Default: that of the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<Span>,
    /// By how much the delay of a packet in one direction differs at most, either way. Default: that of the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// How fast the link is from server to client, whole frames counted. Default: that of the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<BitRate>,
    /// How fast the link is from client to server. Default: `bandwidth` where that is set, or that of the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_up: Option<BitRate>,
    /// What may wait at the link in each direction before packets are dropped, in bytes or in packets (`100 packets`). Default:
    /// `256 KiB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The share of packets that the link loses. Default: that of the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Share>,
    /// The mean number of packets lost in a row; 1: independently of each other. Default: that of the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_burst: Option<f64>,
    /// The share of packets that overtake the others by skipping the link's delay. Default: `0 %`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Share>,
    /// The share of packets that arrive twice. Default: `0 %`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Share>,
    /// The largest IP packet of the link in bytes. Default: 1500.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// How the hosts of client and servers are joined: `direct`, by the link alone, or `overlay`, as pods on two nodes of a
    /// Kubernetes cluster, with the link between the nodes and VXLAN on it. Default: `direct`; in the lab `kubernetes` `overlay`,
    /// which there is the cluster's own network, and the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Whether the hosts' interfaces cut and merge packets and compute checksums themselves (TSO, GSO, GRO, checksum offload).
    /// On an emulated link without an overlay that cannot be on, because the emulator takes packets as a wire carries them.
    /// Default: the kernel's, all of it on but GRO.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offloads: Option<bool>,
    /// How many servers there are, and where: `near`, on the client's node, or `far`, on the other one; `2 far`,
    /// `near + far`. Default: `far`, but `near` with `network = "overlay"` and `placement = "same-node"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Servers>,
    /// In the lab `kubernetes`: the labels that a client's node has to have, several separated by commas
    /// (`disk=ssd,kubernetes.io/arch=arm64`); the same in all cells. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_nodes: Option<Labels>,
    /// In the lab `kubernetes`: the labels that the nodes of those servers have to have that are `far`; `placement` says as ever where
    /// these are, seen from the client. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_nodes: Option<Labels>,
    /// What the client connects to: `server`, the address of the one server, `service`, an address that stands for all of
    /// them, of which one is chosen at random for each connection, or `headless`, a name that resolves to all of them, of which
    /// the client takes one after the other; in the lab `kubernetes` also `node-port`, a port of a server's node that stands for all
    /// of them. Default: `server` where there is one, otherwise `service`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// The endpoint that plays a sidecar beside each server and beside the clients, in their pods. The clients' one takes their requests
    /// and sends each of them to the sidecar of the next server, over HTTP/2. Or `linkerd`, in the lab `kubernetes`: the pods are in
    /// the mesh of Linkerd, which has to be installed in the cluster. For `h1c`, `h2c` and `grpcc` with `network = "overlay"`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh: Option<String>,
    /// The endpoint that plays a control plane, which tells the clients by xDS who serves; `client` has to be one that asks,
    /// which then has a connection to each server and sends each request to the next. For `grpc` and `grpcc` with `network = "overlay"`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<String>,

    /// A protocol that the server does not speak (`h1`, `h2` or `h3`): a client that asks with it finds a server that speaks
    /// another one, as at a site without HTTP/3. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_lacks: Option<Protocol>,
    /// The URL of a page of a server that is not started here, in the lab `internet`. Default: none; a server is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// With `site`: the address to connect to, instead of looking up the host of the URL. Default: the first that is found,
    /// IPv4 before IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_address: Option<IpAddr>,
    /// With `site`: a file with the certificate authorities to trust (PEM). Default: those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_trust: Option<PathBuf>,

    /// What is asked for: `files` (GET of a document), `bytes` (GET of generated bytes), `echo` (POST, the body comes
    /// back), `delay` (an empty answer after `delay`; one byte on the raw transports), `heron` (the square root of two by
    /// Heron's method: a small call, as text in HTTP, as a message in gRPC, whatever `payload` says) or `redirect` (GET of an
    /// address that leads to itself, which no client follows, so that the trial fails). Default: `files` for HTTP, `echo` for
    /// the raw transports, `heron` for gRPC, which has nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Exchange>,
    /// Bytes of response body (and of request body, for `echo`). Default: `1 KiB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Size>,
    /// A page that is loaded with everything in it, instead of one document: the client has to be a browser, `requests` are loads, each
    /// cold (1, if nothing is said), and `request_timeout` is the deadline of a load. The pages: `small-10`, `small-20`, `small-50`, `small-100`, `medium-10`,
    /// `medium-20`, `medium-50`, `medium-100`, `large-10`, `large-200`, `large-210`, `large-2`, `today`; or one of your own, by a path with a slash in it, from
    /// where wirelab is started: a folder with an `index.html` (`./site`), or an HTTP Archive with the bodies of its responses (`./saved.har`). Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<PageName>,
    /// With `page`: over how many hosts a page that wirelab makes is spread, up to 20. Each has a name, an address and a server of its own,
    /// all behind the one link. The document and the fonts are on the first; style sheets, scripts and images each take turns over all of
    /// them. An archive has hosts of its own. The lab `netns`, the built-in server. Default: `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u32>,
    /// How long the server waits before it answers, for `exchange = "delay"`; with `page`, before it answers with the page's document, as
    /// one that has to be made. Default: `0 ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// With `page`: whether the server sends a response 103 (Early Hints) as soon as it is asked for the page's document, which follows
    /// after `delay`: with links to its style sheets, scripts and fonts or, where it has none, its first six images. Set
    /// either way, files may be cached. The built-in server; over HTTP/1.1 Firefox only, as Chromium takes no hints there. Default: it sends none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_hints: Option<bool>,
    /// With `page`: what the server makes of the priorities that browsers give their requests (RFC 9218, the field `priority`): `obeyed` or
    /// `ignored`. The built-in server; it obeys over HTTP/3 only, because the library that it has for HTTP/2 sends responses in turns, and over
    /// HTTP/1.1 there is nothing to be ordered. Default: it ignores them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priorities: Option<Priorities>,

    /// How many clients share the workload: processes of their own (in the lab `kubernetes` pods of their own), all told to go at the
    /// same moment. `workers`, `rate`, `requests`, `warm_up` and `connections` are those of all together and have to divide by it; what
    /// they recorded is merged, never averaged. Not with a timeline, a `mesh`, a `page` or a `site`. Default: `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// `per-request`, or how many persistent connections. Default: `1`, or one for each of the `clients`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Requests in flight on one connection at the same time, for protocols that multiplex. Default: `workers` divided
    /// by `connections`, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// Requests in flight at the same time, in a closed loop. Default: `1`. A protocol that does not multiplex opens as
    /// many connections as it has workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// The pause between a response and the next request of the same worker. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Span>,
    /// With `pause`: pauses are drawn uniformly from `pause` to this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_max: Option<Span>,
    /// Arrivals per second: makes the loop an open one, in which requests start at their time whatever the server does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// How the arrivals of an open loop are spaced: `uniform` or `poisson`. Default: `poisson`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Requests in a trial. Either this or `duration`. Default: `100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Length of a trial's measured window. Either this or `requests`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// Requests before the measured window, sent by the same schedule and not recorded. Default: `0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<u64>,
    /// What a new connection may reuse: `none`, `resume` or `zero_rtt`. Default: `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumption: Option<Resumption>,
    /// `samples` (one record per request) or `histograms`. Default: `histograms` where the plan expects more than
    /// 1,000,000 requests in a trial or an open loop of more than 20,000 per second, otherwise `samples`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,

    /// What becomes of transport settings that the study leaves alone: `same`, the defaults named here, so that libraries are
    /// compared under equal conditions (one that cannot be set so refuses), or `library`, each library's own choice, which the report
    /// shows. Default: `same`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport_defaults: Option<TransportDefaults>,
    /// Congestion control of TCP and QUIC: `cubic`, `bbr` or `reno`. Default: `cubic`, for parity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<Congestion>,
    /// Flow-control credit per stream (HTTP/2, QUIC, HTTP/3). Default: `1 MiB`, for parity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_window: Option<Size>,
    /// Flow-control credit per connection (HTTP/2, QUIC, HTTP/3). Default: `16 MiB`, for parity.
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

    /// The deadline of a connection's handshake. Default: `5 s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<Span>,
    /// The deadline of a request, connecting included. Default: `10 s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_timeout: Option<Span>,
    /// Aborts the trial after consecutive time-outs for this long, during the warm-up and in the measured window. Default: `10 min`.
    #[serde(alias = "patience", skip_serializing_if = "Option::is_none")]
    pub stall_timeout: Option<Span>,
    /// How long a server keeps a connection before it asks the client, in the protocol's own way, to open another one; requests that are
    /// under way are answered. HTTP over TCP, and gRPC. Default: as long as the client does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connection_age: Option<Span>,
    /// With `address = "headless"`: whether clients resolve the name again for each new connection, in place of once when they
    /// start. Default: off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolve_again: Option<bool>,
    /// Observers of these cells besides those of the study, by name: to measure what an observer costs. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_observers: Option<Vec<String>>,
    /// Threads of the server. Default: the library's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_threads: Option<u16>,
    /// Threads of the client. Default: the library's; the built-in client has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_threads: Option<u16>,
}

/// What is asked of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Exchange {
    /// GET of a document below the document root.
    Files,
    /// GET of generated bytes.
    Bytes,
    /// POST; the body comes back.
    Echo,
    /// An empty answer after a delay.
    Delay,
    /// GET of an address that redirects to itself.
    Redirect,
    /// A square root by Heron's method.
    Heron,
}

impl Exchange {
    /// The token of study files.
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

/// What becomes of transport settings that a study leaves alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransportDefaults {
    /// They are the same for all.
    Same,
    /// Each library does as it does.
    Library,
}

/// How connections are used, as a study writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// A new connection for every request.
    PerRequest,
    /// That many persistent ones, at least 1.
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
    /// These settings with every key that `over` sets replaced by its value.
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

    /// The names of all keys, in the order of their declaration.
    #[must_use]
    pub fn keys() -> Vec<String> {
        Self::documented_keys().into_iter().map(|(name, _)| name).collect()
    }

    /// The keys with their documentation, in the order of their declaration.
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
    fn the_keys_are_known_by_name() {
        let keys = Settings::keys();
        assert!(keys.iter().any(|k| k == "protocol") && keys.iter().any(|k| k == "client_threads"), "{keys:?}");
    }
}
