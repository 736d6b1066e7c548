//! MsQuic's counters of each connection.

use std::fmt;
use std::sync::Arc;

use msquic::Api;
use msquic::ffi::{HQUIC, QUIC_PARAM_CONN_STATISTICS_V2, QUIC_STATISTICS_V2};
use wirelab_endpoint::program::{Meter, Reading};

use crate::connection::Connection;

/// Reads one connection.
pub struct Gauge(pub Arc<Connection>);

impl fmt::Debug for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gauge").finish_non_exhaustive()
    }
}

impl Meter for Gauge {
    fn read(&self) -> Reading {
        // This asks MsQuic's own thread and waits for it; a closed connection has left its last counts.
        self.0.last_reading().unwrap_or_else(|| of(self.0.raw()))
    }
}

/// Asks MsQuic. Nothing is known of a connection that it does not answer for.
pub fn of(connection: HQUIC) -> Reading {
    // SAFETY: the handle is open, and the parameter is of this type.
    match unsafe { Api::get_param_auto::<QUIC_STATISTICS_V2>(connection, QUIC_PARAM_CONN_STATISTICS_V2) } {
        Ok(statistics) => reading(&statistics),
        Err(_) => Reading::default(),
    }
}

fn reading(statistics: &QUIC_STATISTICS_V2) -> Reading {
    // MsQuic's words for "no sample yet"; the smoothed round trip is an initial guess then.
    let sampled = statistics.MinRtt != u32::MAX && statistics.MinRtt > 0;
    let nanos = |microseconds: u32| sampled.then_some(u64::from(microseconds) * 1000);
    Reading {
        round_trip_min: nanos(statistics.MinRtt),
        round_trip: nanos(statistics.Rtt),
        sent: Some(statistics.SendTotalPackets),
        lost: Some(statistics.SendSuspectedLostPackets),
        bytes_lost: None,
        congestion_events: Some(statistics.SendCongestionCount.into()),
        window: Some(u64::from(statistics.SendCongestionWindow)).filter(|window| *window > 0),
        payload: None,
    }
}
