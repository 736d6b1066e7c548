//! The bytes that protocols add to a payload: a model beside the measurement.
//!
//! The model is that of M. Butkerei, Evaluation von modernen Webkommunikationsprotokollen in Kubernetes (HAW Hamburg,
//! 2023), section 3.3, with two corrections from captures in section 4.5: TCP headers have 12 bytes of options
//! (timestamps, RFC 7323), and each QUIC packet ends in 16 bytes of AEAD tag (RFC 9001, section 5.3). The model counts
//! the headers of packets with payload, filled to the MTU. It omits handshakes, acknowledgements, request lines and
//! header fields. TLS over TCP costs nothing in the model except in HTTP/2, with a record and a frame for each packet.

use wirelab_model::link::Link;
use wirelab_model::network::Network;
use wirelab_model::plan::{Cell, Job};
use wirelab_model::protocol::Protocol;
use wirelab_model::units::Size;

use crate::Input;
use crate::layout::sentence;
use crate::numbers::significant;

/// A place where packets are observed, with the names of its metrics.
struct Vantage {
    title: &'static str,
    /// Packets per request, towards the client.
    down: &'static str,
    /// Packets per request, towards the server.
    up: &'static str,
    /// Bytes of whole Ethernet frames per request, one metric for each direction.
    bytes: [&'static str; 2],
    /// Whether packets of an overlay network appear with their VXLAN headers.
    outside: bool,
}

const VANTAGES: [Vantage; 2] = [
    Vantage {
        title: "client",
        down: "packets_client_received_per_request",
        up: "packets_client_sent_per_request",
        bytes: ["packets_client_bytes_received_per_request", "packets_client_bytes_sent_per_request"],
        outside: false,
    },
    Vantage {
        title: "server's node",
        down: "packets_server_node_sent_per_request",
        up: "packets_server_node_received_per_request",
        bytes: ["packets_server_node_bytes_sent_per_request", "packets_server_node_bytes_received_per_request"],
        outside: true,
    },
];

/// Ethernet header and IPv4 header without options.
const ETHERNET: u64 = 14;
const IPV4: u64 = 20;
/// The bytes that VXLAN adds to a frame (RFC 7348): Ethernet 14, IPv4 20, UDP 8, VXLAN 8.
const VXLAN: u64 = 50;
/// A TCP header with the timestamps option, padded.
const TCP: u64 = 32;
const UDP: u64 = 8;
/// Header of a TLS record and its inner content type (RFC 8446, section 5.2).
const RECORD: u64 = 6;
/// Header of an HTTP/2 frame (RFC 9113, section 4.1).
const FRAME: u64 = 9;
/// QUIC's short header, header of a STREAM frame, AEAD tag.
const QUIC: u64 = 7 + 6 + 16;

/// The prediction for the payload of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Predicted {
    /// Packets that carry payload.
    packets: u64,
    /// Bytes of their frames at the client.
    bytes: u64,
    /// Bytes of their frames between the nodes.
    outside: u64,
}

/// Bytes between the IP header and the payload, in each packet.
const fn headers(protocol: Protocol) -> u64 {
    match protocol {
        Protocol::Udp => UDP,
        Protocol::Tcp | Protocol::Tls | Protocol::H1c | Protocol::H1 => TCP,
        Protocol::H2c | Protocol::Grpcc => TCP + FRAME,
        Protocol::H2 | Protocol::Grpc => TCP + RECORD + FRAME,
        Protocol::Quic | Protocol::H3 => UDP + QUIC,
    }
}

/// The model for request and response bodies. `None` if the lab has no link, and thus no known MTU, or if no payload
/// fits into the MTU.
fn predict(job: &Job) -> Option<Predicted> {
    let Link { mtu, .. } = job.topology.link?;
    let around = if job.topology.network == Network::Overlay { VXLAN } else { 0 };
    let room = u64::from(mtu).checked_sub(around + IPV4 + headers(job.protocol)).filter(|room| *room > 0)?;
    let bodies = job.work.body_sizes().map(Size::bytes);
    let packets: u64 = bodies.iter().map(|body| body.div_ceil(room)).sum();
    let bytes = bodies.iter().sum::<u64>() + packets * (ETHERNET + IPV4 + headers(job.protocol));
    Some(Predicted { packets, bytes, outside: bytes + packets * around })
}

/// The heading of the table.
pub(crate) const HEADER: [&str; 8] =
    ["cell", "seen at", "packets: model", "down", "up", "bytes: model", "measured", "measured / model"];

/// How to read the table.
pub(crate) const NOTE: &str = "Per request. The model fills packets up to the link's MTU with payload and adds headers: Ethernet and \
     IPv4 34 bytes (VXLAN 50 more between nodes), TCP 32, UDP 8; HTTP/2 a TLS record and a frame per packet, 15; QUIC header, STREAM \
     frame and tag, 29. The measurement also contains handshakes, acknowledgements, requests, header fields and partly filled \
     packets. Measured values are medians over trials.";

/// At most two rows for each cell with at least one of the measured numbers.
pub(crate) fn rows(input: &Input) -> Vec<[String; 8]> {
    let cells = input.manifest.plan.cells.iter().enumerate();
    let originals = cells.filter(|(_, cell)| cell.twin_of.is_none());
    originals.flat_map(|(number, cell)| of_cell(cell, &|metric| Some(input.estimate(number, metric)?.median))).collect()
}

/// `median` returns the measured median of a metric.
fn of_cell(cell: &Cell, median: &dyn Fn(&str) -> Option<f64>) -> Vec<[String; 8]> {
    let Some(model) = predict(&cell.job) else { return Vec::new() };
    // Packets to a server on the client's node never cross the link.
    let seen = |vantage: &&Vantage| !vantage.outside || cell.job.servers().is_none_or(|own| own.places.near == 0);
    let rows = VANTAGES.iter().filter(seen).filter_map(|vantage| {
        let [down, up] = [vantage.down, vantage.up].map(median);
        let bytes = vantage.bytes.iter().map(|direction| median(direction)).sum::<Option<f64>>();
        if [down, up, bytes].iter().all(Option::is_none) {
            return None;
        }
        let predicted = if vantage.outside { model.outside } else { model.bytes };
        let number = |value: Option<f64>| value.map_or_else(|| "not measured".to_owned(), significant);
        let ratio = bytes.filter(|_| predicted > 0).map(|bytes| bytes / predicted as f64);
        Some([
            sentence(&cell.levels),
            vantage.title.to_owned(),
            model.packets.to_string(),
            number(down),
            number(up),
            predicted.to_string(),
            number(bytes),
            number(ratio),
        ])
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use wirelab_model::network::Servers;
    use wirelab_model::plan::{OwnServers, Requests, Target, Topology, Work};

    use super::*;

    fn job(protocol: Protocol, payload: u64, network: Network) -> Job {
        let work = Work::Requests(Requests::document(Size(payload)));
        let topology = Topology { link: Some(Link::wire()), network, ..Topology::at("lan") };
        Job { topology, work, ..Job::plain(protocol) }
    }

    #[test]
    fn the_model_gives_what_is_computed_by_hand() {
        // Overlay: 1450 bytes of inner IP packet. HTTP/1.1: 1450 - 20 - 32 = 1398 of payload, 72 packets (71.5), each
        // with 66 bytes of headers at the client and 116 outside. HTTP/2: 1383, 73 packets (72.3), 81 and 131. HTTP/3:
        // 1393, 72 packets (71.8), 71 and 121.
        for (protocol, packets, bytes, outside) in [
            (Protocol::H1, 72, 104_752, 108_352),
            (Protocol::H2, 73, 105_913, 109_563),
            (Protocol::H3, 72, 105_112, 108_712),
        ] {
            let expected = Predicted { packets, bytes, outside };
            assert_eq!(predict(&job(protocol, 100_000, Network::Overlay)), Some(expected), "{protocol}");
        }
        // Without an overlay HTTP/1.1 has 1448 bytes of payload in a packet: 70 packets (69.1).
        let expected = Predicted { packets: 70, bytes: 104_620, outside: 104_620 };
        assert_eq!(predict(&job(Protocol::H1, 100_000, Network::Direct)), Some(expected));
    }

    #[test]
    fn bodies_of_both_directions_count_and_full_packets_are_not_rounded_up() {
        let requests = Requests { request_size: Size(1448), ..Requests::document(Size(2896)) };
        let both = Job { work: Work::Requests(requests), ..job(Protocol::Tcp, 0, Network::Direct) };
        assert_eq!(predict(&both).map(|model| (model.packets, model.bytes)), Some((3, 4344 + 3 * 66)));
        let empty = predict(&job(Protocol::H3, 0, Network::Overlay));
        assert_eq!(empty, Some(Predicted { packets: 0, bytes: 0, outside: 0 }));
    }

    #[test]
    fn without_a_link_or_room_for_payload_there_is_no_model() {
        assert_eq!(predict(&Job::plain(Protocol::H1)), None);
        let narrow = Link { mtu: 102, ..Link::wire() };
        let mut small = job(Protocol::H1, 1, Network::Overlay);
        small.topology.link = Some(narrow);
        assert_eq!(predict(&small), None);
    }

    #[test]
    fn the_model_stands_beside_the_measured_numbers_where_there_are_any() {
        let mut cell = Cell {
            levels: [("protocol".to_owned(), "h1".to_owned())].into(),
            twin_of: None,
            job: Job::plain(Protocol::H1),
        };
        cell.job = job(Protocol::H1, 100_000, Network::Overlay);
        assert!(of_cell(&cell, &|_| None).is_empty());
        let measured = |metric: &str| match metric {
            "packets_client_received_per_request" => Some(80.0),
            "packets_client_bytes_received_per_request" => Some(107_000.0),
            "packets_client_bytes_sent_per_request" => Some(3_000.0),
            "packets_server_node_bytes_sent_per_request" => Some(111_000.0),
            "packets_server_node_bytes_received_per_request" => Some(4_000.0),
            _ => None,
        };
        let rows = of_cell(&cell, &measured);
        assert_eq!(rows[0][1..], ["client", "72", "80.0", "not measured", "104752", "110000", "1.05"]);
        let missing = "not measured";
        assert_eq!(rows[1][1..], ["server's node", "72", missing, missing, "108352", "115000", "1.06"]);
        let places = Servers { near: 1, far: 1 };
        cell.job.target = Target::Servers(OwnServers { places, ..OwnServers::one("builtin") });
        assert_eq!(of_cell(&cell, &measured).len(), 1);
    }
}
