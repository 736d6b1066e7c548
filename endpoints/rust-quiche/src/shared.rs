//! A connection of quiche, shared between the loop that drives it and whoever reads its statistics.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quiche::Connection;
use wirelab_endpoint::program::{Meter, Reading};

/// A connection. Nothing else wants its lock while requests go on.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Connection>>);

impl Shared {
    /// A connection to share.
    pub fn new(connection: Connection) -> Self {
        Self(Arc::new(Mutex::new(connection)))
    }

    /// The connection, locked.
    pub fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Meter for Shared {
    fn read(&self) -> Reading {
        let connection = self.lock();
        let path = connection.path_stats().find(|path| path.active);
        let stats = connection.stats();
        // quiche has no smallest round trip before the first sample, and then an initial guess as the smoothed one.
        let sampled = path.as_ref().and_then(|path| path.min_rtt);
        let nanos = |time: Duration| Some(time.as_nanos() as u64).filter(|ns| *ns > 0);
        Reading {
            round_trip_min: sampled.and_then(nanos),
            round_trip: path.as_ref().filter(|_| sampled.is_some()).and_then(|path| nanos(path.rtt)),
            sent: Some(stats.sent as u64),
            lost: Some(stats.lost as u64),
            bytes_lost: Some(stats.lost_bytes),
            congestion_events: None,
            window: path.map(|path| path.cwnd as u64).filter(|window| *window > 0),
        }
    }
}
