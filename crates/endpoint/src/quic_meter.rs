//! Transport statistics of a quinn connection.

use quinn::ConnectionStats;

use crate::transport_accounts::Meter;
use crate::transport_reading::Reading;

/// A quinn connection as the source of its statistics.
#[derive(Debug)]
pub(crate) struct QuinnMeter(pub quinn::Connection);

impl Meter for QuinnMeter {
    fn read(&self) -> Reading {
        reading(&self.0.stats())
    }
}

/// The statistics of a connection.
pub(crate) fn reading(stats: &ConnectionStats) -> Reading {
    // Before the first acknowledgement quinn reports the initial guess of 333 ms (RFC 9002, section 6.2.2).
    let sampled = stats.frame_rx.acks > 0;
    let nanos = |time: std::time::Duration| sampled.then_some(time.as_nanos() as u64).filter(|ns| *ns > 0);
    let path = &stats.path;
    Reading {
        round_trip_min: nanos(path.min_rtt),
        round_trip: nanos(path.rtt),
        sent: Some(path.sent_packets),
        lost: Some(path.lost_packets),
        bytes_lost: Some(path.lost_bytes),
        congestion_events: Some(path.congestion_events),
        window: Some(path.cwnd).filter(|window| *window > 0),
        payload: Some(path.current_mtu.into()),
    }
}
