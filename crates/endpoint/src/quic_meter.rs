//! Transport statistics of a quinn connection.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// A connection without quinn's runtime, which its account reads, too.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<quinn_proto::Connection>>);

impl Shared {
    pub fn new(connection: quinn_proto::Connection) -> Self {
        Self(Arc::new(Mutex::new(connection)))
    }

    pub fn lock(&self) -> MutexGuard<'_, quinn_proto::Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a QUIC connection")
    }
}

impl Meter for Shared {
    fn read(&self) -> Reading {
        reading(&self.lock().stats())
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
