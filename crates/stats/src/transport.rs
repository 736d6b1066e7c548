//! The values that endpoints report about the transport of their connections.

use wirelab_model::metric::{Better, Computed, Metric, Side, Unit, Value, Values, declared};
use wirelab_model::missing::Missing;
use wirelab_model::transport::TransportReport;

const VANTAGE: &str = "the sending transport's own account (TCP_INFO of the kernel, statistics of the QUIC library)";

const CLIENT: Side = Side::Client;
const SERVER: Side = Side::Server;

type Compute = fn(&TransportReport) -> Value;

const fn metric(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    side: Side,
    better: Better,
    meaning: &'static str,
    compute: Compute,
) -> Computed<Compute> {
    Computed { metric: Metric { name, title, unit, side, vantage: VANTAGE, better, meaning }, compute }
}

/// Every metric that [`transport`] produces, in its order.
pub static TRANSPORT_METRICS: &[Metric] = &declared(&TABLE);

static TABLE: [Computed<Compute>; 13] = [
    metric(
        "transport_client_round_trip_min",
        "Round trip, smallest (client)",
        Unit::Nanoseconds,
        CLIENT,
        Better::Lower,
        "The smallest round trip in the lifetime of any connection of the measured window (RFC 9002, section 5.2; \
         tcpi_min_rtt). A QUIC library takes the time in user space and can err in both directions while it is not \
         scheduled.",
        |report| known(report.round_trip_min_ns),
    ),
    metric(
        "transport_client_round_trip",
        "Round trip, smoothed (client)",
        Unit::Nanoseconds,
        CLIENT,
        Better::Lower,
        "The smoothed round trip (RFC 9002, section 5.3; RFC 6298, section 2) at the end of a connection, or of the \
         window if the connection was open: the mean over connections.",
        |report| known(report.round_trip_ns),
    ),
    metric(
        "transport_client_lost",
        "Packets lost (client)",
        Unit::Count,
        CLIENT,
        Better::Lower,
        "Packets of the measured window that QUIC declared lost (RFC 9002, section 6), or segments that TCP \
         retransmitted (tcp(7)), including late ones.",
        |report| known(report.packets_lost),
    ),
    metric(
        "transport_client_payload_max",
        "Largest payload of a packet (client)",
        Unit::Bytes,
        CLIENT,
        Better::Higher,
        "The largest payload of a UDP datagram (QUIC) or TCP segment (tcpi_snd_mss) that a connection may send, at its \
         end. The kernel's segmentation may hand several of them over at once.",
        |report| known(report.payload_max),
    ),
    metric(
        "transport_server_round_trip_min",
        "Round trip, smallest (server)",
        Unit::Nanoseconds,
        SERVER,
        Better::Lower,
        "The smallest round trip of any connection (RFC 9002, section 5.2; tcpi_min_rtt), including check request \
         and warm-up. A QUIC library takes the time in user space and can err in both directions while it is not \
         scheduled.",
        |report| known(report.round_trip_min_ns),
    ),
    metric(
        "transport_server_round_trip",
        "Round trip, smoothed (server)",
        Unit::Nanoseconds,
        SERVER,
        Better::Lower,
        "The smoothed round trip (RFC 9002, section 5.3; RFC 6298, section 2) at the end of a connection: the mean \
         over connections, including check request and warm-up.",
        |report| known(report.round_trip_ns),
    ),
    metric(
        "transport_server_sent",
        "Packets sent (server)",
        Unit::Count,
        SERVER,
        Better::Lower,
        "QUIC packets or TCP segments that the server sent, including acknowledgements, retransmissions, check \
         request and warm-up.",
        |report| known(report.packets_sent),
    ),
    metric(
        "transport_server_lost",
        "Packets lost (server)",
        Unit::Count,
        SERVER,
        Better::Lower,
        "Packets that QUIC declared lost (RFC 9002, section 6), or segments that TCP retransmitted (tcp(7)), \
         including late ones, check request and warm-up.",
        |report| known(report.packets_lost),
    ),
    metric(
        "transport_server_lost_share",
        "Share lost (server)",
        Unit::Share,
        SERVER,
        Better::Lower,
        "Packets that QUIC declared lost, or segments that TCP retransmitted, divided by all that the server sent, \
         including check request and warm-up.",
        lost_share,
    ),
    metric(
        "transport_server_lost_bytes",
        "Bytes lost (server)",
        Unit::Bytes,
        SERVER,
        Better::Lower,
        "Bytes of QUIC packets that were declared lost, or payload of retransmitted TCP segments, including check \
         request and warm-up.",
        |report| known(report.bytes_lost),
    ),
    metric(
        "transport_server_congestion_events",
        "Congestion events (server)",
        Unit::Count,
        SERVER,
        Better::Lower,
        "Reactions of the congestion controller to losses or marks (RFC 9002, section 7.3.2), including check \
         request and warm-up; TCP_INFO does not report them.",
        |report| known(report.congestion_events),
    ),
    metric(
        "transport_server_window",
        "Congestion window, largest (server)",
        Unit::Bytes,
        SERVER,
        Better::Higher,
        "The largest congestion window over connections, each at its end or when the server stopped; earlier maxima \
         are not recorded.",
        |report| known(report.congestion_window),
    ),
    metric(
        "transport_server_payload_max",
        "Largest payload of a packet (server)",
        Unit::Bytes,
        SERVER,
        Better::Higher,
        "The largest payload of a UDP datagram (QUIC) or TCP segment (tcpi_snd_mss) that a connection may send, at its \
         end. The kernel's segmentation may hand several of them over at once.",
        |report| known(report.payload_max),
    ),
];

/// The values of every metric in [`TRANSPORT_METRICS`]. Without a report, or with an impossible one, the values are
/// missing with the reason.
#[must_use]
pub fn transport(client: Option<&TransportReport>, server: Option<&TransportReport>) -> Values {
    let (client, server) = (usable(client, CLIENT), usable(server, SERVER));
    let value = |row: &Computed<Compute>| {
        let report = if row.metric.side == CLIENT { &client } else { &server };
        report.as_ref().map_or_else(|why| Value::missing(why.clone()), |report| (row.compute)(report))
    };
    TABLE.iter().map(|row| (row.metric.name.to_owned(), value(row))).collect()
}

fn usable(report: Option<&TransportReport>, side: Side) -> Result<&TransportReport, Missing> {
    let report = report.ok_or(Missing::NoTransportReport { side })?;
    if report.connections == 0 {
        return Err(Missing::NoConnection { side });
    }
    report.check().map_err(|error| Missing::ImplausibleReport { side, detail: error.to_string() })?;
    Ok(report)
}

fn known(value: Option<u64>) -> Value {
    value.map_or_else(|| Value::missing(Missing::NotReported), |value| Value::Measured(value as f64))
}

fn lost_share(report: &TransportReport) -> Value {
    match (report.packets_lost, report.packets_sent) {
        (Some(lost), Some(sent)) => Value::finite(lost as f64 / sent as f64, Missing::NoPacketSent),
        _ => known(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> TransportReport {
        TransportReport {
            connections: 2,
            round_trip_min_ns: Some(20_000_000),
            round_trip_ns: Some(21_000_000),
            packets_sent: Some(200),
            packets_lost: Some(6),
            bytes_lost: Some(7_000),
            congestion_events: None,
            congestion_window: Some(90_000),
            payload_max: Some(1452),
        }
    }

    fn reason(value: &Value) -> String {
        value.reason().unwrap_or_else(|| panic!("{value:?} has no reason"))
    }

    #[test]
    fn every_declared_metric_has_a_value_or_a_reason() {
        let values = transport(Some(&report()), Some(&report()));
        assert!(values.keys().map(String::as_str).eq(TRANSPORT_METRICS.iter().map(|metric| metric.name)));
        assert_eq!(values["transport_client_round_trip_min"], Value::Measured(20e6));
        assert_eq!(values["transport_server_lost_share"], Value::Measured(0.03));
        assert_eq!(values["transport_server_window"], Value::Measured(90_000.0));
        assert_eq!(reason(&values["transport_server_congestion_events"]), "the transport does not report it");
        assert!(TRANSPORT_METRICS.iter().all(|metric| metric.meaning.ends_with('.')));
    }

    #[test]
    fn an_endpoint_that_reports_nothing_or_nonsense_has_no_values_and_they_say_why() {
        let nonsense = TransportReport { packets_lost: Some(201), ..report() };
        let values = transport(None, Some(&nonsense));
        assert_eq!(reason(&values["transport_client_lost"]), "the client does not report on its transport");
        assert!(reason(&values["transport_server_lost"]).contains("201 packets were lost of 200"));
        let values = transport(Some(&TransportReport::default()), None);
        assert_eq!(reason(&values["transport_client_lost"]), "the client had no connection");
    }
}
