//! The metrics of packets, and how they are computed from the counts.

use wirelab_model::metric::{Better, Metric, Side, Unit};
use wirelab_model::missing::Missing;

use crate::packets::tally::{CLASSES, Flow};
use crate::packets::{Places, Seen};
use crate::window::{Reading, per_request};
use crate::{About, Window};

/// Name, cost and metrics.
pub const ABOUT: About = About {
    name: "packets",
    summary: "Packets and bytes at the client's interface and at that of the server's node, as the wire carries them.",
    cost: "The kernel copies the headers of each packet twice, once at each interface, and another process counts \
           them. Captures (`keep = [\"pcap\"]`) copy whole packets to the disk.",
    needs: Some(
        "a lab with interfaces of its own (netns), or agents on the nodes of client and servers (kubernetes, \
         docs/labs.md)",
    ),
    by_default: false,
    metrics: &METRICS,
};

const COUNT: usize = 19;

const METRICS: [Metric; COUNT] = [
    client("packets_client_sent_per_request", "Packets sent by the client, per request", Unit::Count, SENT),
    client("packets_client_received_per_request", "Packets received by the client, per request", Unit::Count, RECEIVED),
    client(
        "packets_client_bytes_sent_per_request",
        "Bytes sent by the client on the wire, per request",
        Unit::Bytes,
        BYTES_SENT,
    ),
    client(
        "packets_client_bytes_received_per_request",
        "Bytes received by the client from the wire, per request",
        Unit::Bytes,
        BYTES_RECEIVED,
    ),
    fuller(client("packets_client_largest", "Largest packet at the client", Unit::Bytes, LARGEST)),
    fuller(client("packets_client_mtu_share", "Largest packet at the client, of the MTU", Unit::Share, MTU_SHARE)),
    fuller(client(
        "packets_client_mean",
        "Mean packet at the client",
        Unit::Bytes,
        "Mean size of the IP packets of the direction that carried more bytes, in the measured window.",
    )),
    client(
        "packets_client_up_to_100_share",
        "Packets of up to 100 bytes at the client",
        Unit::Share,
        "Share of the IP packets of both directions that have at most 100 bytes: mostly acknowledgements.",
    ),
    client(
        "packets_client_up_to_576_share",
        "Packets of up to 576 bytes at the client",
        Unit::Share,
        "Share of the IP packets of both directions that have at most 576 bytes, those of up to 100 included.",
    ),
    client(
        "packets_client_up_to_1000_share",
        "Packets of up to 1000 bytes at the client",
        Unit::Share,
        "Share of the IP packets of both directions that have at most 1000 bytes, those of up to 576 included.",
    ),
    node("packets_server_node_sent_per_request", "Packets sent by the server's node, per request", Unit::Count, SENT),
    node(
        "packets_server_node_received_per_request",
        "Packets received by the server's node, per request",
        Unit::Count,
        RECEIVED,
    ),
    node(
        "packets_server_node_bytes_sent_per_request",
        "Bytes sent by the server's node on the wire, per request",
        Unit::Bytes,
        BYTES_SENT,
    ),
    node(
        "packets_server_node_bytes_received_per_request",
        "Bytes received by the server's node from the wire, per request",
        Unit::Bytes,
        BYTES_RECEIVED,
    ),
    fuller(node(LARGEST_OF_NODE[0], "Largest packet at the server's node", Unit::Bytes, LARGEST)),
    fuller(node(LARGEST_OF_NODE[1], "Largest packet at the server's node, of the MTU", Unit::Share, MTU_SHARE)),
    node(
        "packets_server_node_inner_bytes_sent_per_request",
        "Bytes sent by the server's node within VXLAN, per request",
        Unit::Bytes,
        "Bytes of the Ethernet frames that went out in VXLAN, without its 50 bytes, per request that succeeded.",
    ),
    node(
        "packets_server_node_inner_bytes_received_per_request",
        "Bytes received by the server's node within VXLAN, per request",
        Unit::Bytes,
        "Bytes of the Ethernet frames that came in VXLAN, without its 50 bytes, per request that succeeded.",
    ),
    client(
        "packets_overhead",
        "Bytes on the wire per byte of payload",
        Unit::Count,
        "Bytes of the frames of both directions at the client, divided by the payload bytes of the requests that \
         succeeded.",
    ),
];

/// Metrics whose value over several nodes is the maximum; the others add up.
pub(crate) const LARGEST_OF_NODE: [&str; 2] = ["packets_server_node_largest", "packets_server_node_mtu_share"];

const SENT: &str = "Packets that went out in the measured window, per request that succeeded; a super-packet of \
                    segmentation offload counts as the packets that it becomes.";
const RECEIVED: &str = "Packets that came in in the measured window, per request that succeeded; a super-packet of \
     segmentation offload counts as the packets that it becomes.";
const BYTES_SENT: &str = "Bytes of the Ethernet frames that went out in the measured window, headers included, \
                          checksum and preamble not, per request that succeeded.";
const BYTES_RECEIVED: &str = "Bytes of the Ethernet frames that came in in the measured window, headers included, \
                              checksum and preamble not, per request that succeeded.";
const LARGEST: &str = "The largest IP packet of either direction in the measured window, headers included.";
const MTU_SHARE: &str =
    "The largest IP packet of either direction in the measured window, divided by the interface's MTU.";

const fn client(name: &'static str, title: &'static str, unit: Unit, meaning: &'static str) -> Metric {
    let vantage = "the client's interface, every frame";
    Metric { name, title, unit, side: Side::Client, vantage, better: Better::Lower, meaning }
}

const fn node(name: &'static str, title: &'static str, unit: Unit, meaning: &'static str) -> Metric {
    let vantage = "the outer interface of the server's node, every frame";
    Metric { name, title, unit, side: Side::Server, vantage, better: Better::Lower, meaning }
}

/// Marks a metric as better if higher: fuller packets carry the same payload with fewer headers.
const fn fuller(metric: Metric) -> Metric {
    Metric { better: Better::Higher, ..metric }
}

/// The values, in the order of [`METRICS`].
pub(crate) fn readings(places: &Places, window: &Window) -> [Reading; COUNT] {
    let client = places.client.clone().and_then(|seen| plausible(seen, window));
    let node = &places.server_node;
    let of = |seen: &Result<Seen, Missing>, read: &dyn Fn(&Seen) -> Reading| {
        seen.as_ref().map_err(Clone::clone).and_then(read)
    };
    let each = |seen: &Result<Seen, Missing>, count: &dyn Fn(&Seen) -> u64| {
        per_request(&of(seen, &|seen| Ok(count(seen) as f64)), window)
    };
    let inner = |count: &dyn Fn(&Seen) -> u64| {
        per_request(
            &of(node, &|seen| {
                if seen.is_encapsulated { Ok(count(seen) as f64) } else { Err(Missing::NotEncapsulated) }
            }),
            window,
        )
    };
    let class = |number: usize| {
        of(&client, &|seen| {
            let both = seen.tally.outer.both();
            ratio(both.up_to[number] as f64, both.packets as f64, Missing::NoPackets)
        })
    };
    [
        each(&client, &|seen| seen.tally.outer.sent.packets),
        each(&client, &|seen| seen.tally.outer.received.packets),
        each(&client, &|seen| seen.tally.outer.sent.bytes),
        each(&client, &|seen| seen.tally.outer.received.bytes),
        of(&client, &largest),
        of(&client, &mtu_share),
        of(&client, &mean),
        class(0),
        class(1),
        class(2),
        each(node, &|seen| seen.tally.outer.sent.packets),
        each(node, &|seen| seen.tally.outer.received.packets),
        each(node, &|seen| seen.tally.outer.sent.bytes),
        each(node, &|seen| seen.tally.outer.received.bytes),
        of(node, &largest),
        of(node, &mtu_share),
        inner(&|seen| seen.tally.inner.sent.bytes),
        inner(&|seen| seen.tally.inner.received.bytes),
        of(&client, &|seen| ratio(seen.tally.outer.both().bytes as f64, window.bytes as f64, Missing::NoPayload)),
    ]
}

// The metrics' names contain these sizes.
const _: () = assert!(CLASSES[0] == 100 && CLASSES[1] == 576 && CLASSES[2] == 1000);

/// Checks that the counted bytes are at least the payload bytes; fewer mean that packets were missed.
fn plausible(seen: Seen, window: &Window) -> Result<Seen, Missing> {
    let (carried, payload) = (seen.tally.outer.both().bytes, window.bytes);
    if carried >= payload { Ok(seen) } else { Err(Missing::OtherWay { carried, payload }) }
}

fn largest(seen: &Seen) -> Reading {
    match seen.tally.outer.both().largest {
        0 => Err(Missing::NoPackets),
        bytes => Ok(bytes as f64),
    }
}

fn mtu_share(seen: &Seen) -> Reading {
    Ok(largest(seen)? / f64::from(seen.mtu))
}

/// Mean size of the IP packets of the direction that carried more bytes.
fn mean(seen: &Seen) -> Reading {
    let flows = &seen.tally.outer;
    let fuller = if flows.sent.bytes > flows.received.bytes { flows.sent } else { flows.received };
    let Flow { packets, bytes, .. } = fuller;
    ratio(bytes as f64, packets as f64, Missing::NoPackets).map(|frame| frame - super::frame::ETHERNET as f64)
}

fn ratio(number: f64, by: f64, otherwise: Missing) -> Reading {
    if by > 0.0 { Ok(number / by) } else { Err(otherwise) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::tally::{Flows, Tally};

    fn seen(is_encapsulated: bool) -> Seen {
        let sent = Flow { packets: 20, bytes: 2000, largest: 200, up_to: [18, 20, 20] };
        let received = Flow { packets: 40, bytes: 40_000, largest: 1500, up_to: [2, 2, 10] };
        let inner = Flows { sent: Flow { bytes: 1000, ..sent }, received: Flow { bytes: 38_000, ..received } };
        Seen { tally: Tally { outer: Flows { sent, received }, inner, trouble: None }, mtu: 1500, is_encapsulated }
    }

    fn readings(server_node: Result<Seen, Missing>, window: &Window) -> Vec<(&'static str, Reading)> {
        let places = Places { client: Ok(seen(false)), server_node };
        METRICS.iter().map(|metric| metric.name).zip(super::readings(&places, window)).collect()
    }

    fn of(readings: &[(&'static str, Reading)], name: &str) -> Reading {
        readings.iter().find(|(other, _)| *other == name).unwrap().1.clone()
    }

    const WINDOW: Window = Window { ns: 1000, requests: 10, bytes: 35_000 };

    #[test]
    fn values_follow_from_what_was_seen() {
        let readings = readings(Ok(seen(true)), &WINDOW);
        for (name, value) in [
            ("packets_client_sent_per_request", 2.0),
            ("packets_client_bytes_received_per_request", 4000.0),
            ("packets_client_largest", 1500.0),
            ("packets_client_mtu_share", 1.0),
            ("packets_client_mean", 986.0),
            ("packets_client_up_to_100_share", 20.0 / 60.0),
            ("packets_client_up_to_576_share", 22.0 / 60.0),
            ("packets_client_up_to_1000_share", 30.0 / 60.0),
            ("packets_server_node_received_per_request", 4.0),
            ("packets_server_node_inner_bytes_sent_per_request", 100.0),
            ("packets_server_node_inner_bytes_received_per_request", 3800.0),
            ("packets_overhead", 1.2),
        ] {
            assert_eq!(of(&readings, name), Ok(value), "{name}");
        }
    }

    #[test]
    fn a_place_without_counts_does_not_affect_the_other() {
        let readings = readings(Err(Missing::WitnessEnded), &WINDOW);
        assert_eq!(of(&readings, "packets_server_node_largest"), Err(Missing::WitnessEnded));
        assert_eq!(of(&readings, "packets_client_largest"), Ok(1500.0));
    }

    #[test]
    fn a_value_that_cannot_be_computed_has_a_reason() {
        assert_eq!(
            of(&readings(Ok(seen(false)), &WINDOW), "packets_server_node_inner_bytes_sent_per_request"),
            Err(Missing::NotEncapsulated)
        );
        let idle = readings(Ok(seen(false)), &Window { ns: 1000, requests: 0, bytes: 0 });
        assert!(of(&idle, "packets_client_sent_per_request").is_err() && of(&idle, "packets_overhead").is_err());
    }

    #[test]
    fn fewer_bytes_than_the_payload_make_the_counts_void() {
        let readings = readings(Ok(seen(false)), &Window { bytes: 42_001, ..WINDOW });
        let other_way = Missing::OtherWay { carried: 42_000, payload: 42_001 };
        assert_eq!(of(&readings, "packets_client_sent_per_request"), Err(other_way));
        assert!(of(&readings, "packets_client_largest").is_err());
        assert_eq!(of(&readings, "packets_server_node_sent_per_request"), Ok(2.0));
    }

    #[test]
    fn fuller_packets_are_better_and_more_of_them_worse() {
        let higher: Vec<_> = METRICS.iter().filter(|m| m.better == Better::Higher).map(|m| m.name).collect();
        assert_eq!(
            higher,
            [
                "packets_client_largest",
                "packets_client_mtu_share",
                "packets_client_mean",
                "packets_server_node_largest",
                "packets_server_node_mtu_share"
            ]
        );
    }
}
