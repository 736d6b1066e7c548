//! The metrics of TCP, and how they are computed from the kernel's accounts.

use wirelab_model::metric::{Better, Metric, Side, Unit};
use wirelab_model::missing::Missing;
use wirelab_model::transport::TransportReport;

use crate::window::{Reading, Sides, per_request};
use crate::{About, Window};

/// Name, cost and metrics.
pub const ABOUT: About = About {
    name: "tcp",
    summary: "Round trips, segments, retransmissions and congestion windows of TCP, from the kernel, for any endpoint.",
    cost: "Two requests to the kernel per network namespace, outside the window. In the window, the kernel reports \
           each connection that ends to another process, and nothing else.",
    needs: None,
    by_default: false,
    metrics: &METRICS,
};

const COUNT: usize = 14;

const METRICS: [Metric; COUNT] = [
    client("tcp_client_connections", "TCP connections (client)", Unit::Count, CONNECTIONS),
    client("tcp_client_round_trip_min", "TCP round trip, smallest (client)", Unit::Nanoseconds, SMALLEST),
    client("tcp_client_round_trip", "TCP round trip, smoothed (client)", Unit::Nanoseconds, SMOOTHED),
    client("tcp_client_segments_per_request", "TCP segments sent by the client, per request", Unit::Count, SEGMENTS),
    client("tcp_client_retransmitted", "TCP segments retransmitted by the client", Unit::Count, RETRANSMITTED),
    client("tcp_client_retransmitted_bytes", "TCP payload retransmitted by the client", Unit::Bytes, BYTES),
    wider(client("tcp_client_window", "TCP congestion window, largest (client)", Unit::Bytes, WINDOW)),
    server("tcp_server_connections", "TCP connections (server)", Unit::Count, CONNECTIONS),
    server("tcp_server_round_trip_min", "TCP round trip, smallest (server)", Unit::Nanoseconds, SMALLEST),
    server("tcp_server_round_trip", "TCP round trip, smoothed (server)", Unit::Nanoseconds, SMOOTHED),
    server("tcp_server_segments_per_request", "TCP segments sent by the server, per request", Unit::Count, SEGMENTS),
    server("tcp_server_retransmitted", "TCP segments retransmitted by the server", Unit::Count, RETRANSMITTED),
    server("tcp_server_retransmitted_bytes", "TCP payload retransmitted by the server", Unit::Bytes, BYTES),
    wider(server("tcp_server_window", "TCP congestion window, largest (server)", Unit::Bytes, WINDOW)),
];

const CONNECTIONS: &str = "Connections that were open at any moment of the measured window.";
const SMALLEST: &str = "The smallest round trip of all connections that the kernel remembers (`tcpi_min_rtt`), \
                        possibly from before the window.";
const SMOOTHED: &str = "The smoothed round trip (RFC 6298, section 2; `tcpi_rtt`) at the end of each connection, or at \
                        the end of the window for open ones; the mean over connections.";
const SEGMENTS: &str = "Segments sent in the measured window, acknowledgements and retransmissions included, divided \
                        by requests that succeeded.";
const RETRANSMITTED: &str = "Segments retransmitted in the measured window (`tcpi_total_retrans`), late ones included.";
const BYTES: &str = "Payload of the segments retransmitted in the measured window (`tcpi_bytes_retrans`).";
const WINDOW: &str = "The largest congestion window of all connections, each read at the connection's end or at the \
                      end of the window. The kernel does not remember larger earlier values.";

const VANTAGE: &str = "the kernel's account of each TCP connection, read from outside the endpoint (sock_diag(7))";

const fn client(name: &'static str, title: &'static str, unit: Unit, meaning: &'static str) -> Metric {
    Metric { name, title, unit, side: Side::Client, vantage: VANTAGE, better: Better::Lower, meaning }
}

const fn server(name: &'static str, title: &'static str, unit: Unit, meaning: &'static str) -> Metric {
    Metric { side: Side::Server, ..client(name, title, unit, meaning) }
}

/// Marks a metric as better if higher.
const fn wider(metric: Metric) -> Metric {
    Metric { better: Better::Higher, ..metric }
}

/// The values, in the order of [`METRICS`].
pub(super) fn readings(seen: &Sides<Result<TransportReport, Missing>>, window: &Window) -> [Reading; COUNT] {
    let [client, server] = [of_side(&seen.client, Side::Client, window), of_side(&seen.server, Side::Server, window)];
    let mut both = client.into_iter().chain(server);
    std::array::from_fn(|_| both.next().expect("both sides have half of the metrics"))
}

fn of_side(seen: &Result<TransportReport, Missing>, side: Side, window: &Window) -> [Reading; COUNT / 2] {
    let of = |value: fn(&TransportReport) -> Option<u64>| -> Reading {
        let report = seen.as_ref().map_err(Clone::clone)?;
        if report.connections == 0 {
            return Err(Missing::NoTcpConnection { side });
        }
        Ok(value(report).ok_or(Missing::NoSample)? as f64)
    };
    [
        of(|report| Some(report.connections)),
        of(|report| report.round_trip_min_ns),
        of(|report| report.round_trip_ns),
        per_request(&of(|report| report.packets_sent), window),
        of(|report| report.packets_lost),
        of(|report| report.bytes_lost),
        of(|report| report.congestion_window),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { ns: 1, requests: 10, bytes: 0 };

    #[test]
    fn values_are_in_the_order_of_their_metrics() {
        let report = |connections| TransportReport {
            connections,
            round_trip_min_ns: Some(1),
            round_trip_ns: Some(2),
            packets_sent: Some(30),
            packets_lost: Some(4),
            bytes_lost: Some(5),
            congestion_window: Some(6),
            ..TransportReport::default()
        };
        let seen = Sides { client: Ok(report(7)), server: Ok(report(8)) };
        let readings = readings(&seen, &WINDOW);
        assert_eq!(METRICS[3].name, "tcp_client_segments_per_request");
        assert_eq!(readings[..7], [7.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(Ok));
        assert_eq!(METRICS[7].name, "tcp_server_connections");
        assert_eq!(readings[7], Ok(8.0));
    }

    #[test]
    fn a_side_without_connections_gives_a_reason() {
        let seen = Sides { client: Ok(TransportReport::default()), server: Err(Missing::ProcessesHidden) };
        let readings = readings(&seen, &WINDOW);
        assert_eq!(readings[0], Err(Missing::NoTcpConnection { side: Side::Client }));
        assert_eq!(readings[13], Err(Missing::ProcessesHidden));
    }
}
