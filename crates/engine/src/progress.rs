//! Counters of a client's thread, which other threads read while it works.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use wirelab_contract::exposition::{self, BOUNDS, Times};
use wirelab_contract::spec::{ClientSpec, Extent, Schedule};

use crate::accounts::Accounts;
use crate::intervals::Intervals;
use crate::schedule::Share;
use crate::steady::Judge;

/// Counters of one thread, which other threads may read at any time.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Progress {
    /// Requests completed in the measured window, failed ones included.
    pub requests: AtomicU64,
    /// Requests that failed.
    pub failed: AtomicU64,
    /// Response times of successful requests, if `exposition` is set.
    pub response: Option<Box<Spread>>,
    /// The requests by the interval of their end, if they are read while the load runs.
    pub intervals: Option<Intervals>,
    /// Decides when the warm-up ends, for all threads, if it lasts until response times are steady.
    pub judge: Option<Arc<Judge>>,
    /// Statistics of the connections, if the transport has them.
    pub accounts: OnceLock<Accounts>,
}

/// A histogram of response times.
#[derive(Debug)]
pub struct Spread {
    counts: [AtomicU64; BOUNDS + 1],
    sum_ns: AtomicU64,
}

impl Default for Spread {
    fn default() -> Self {
        Self { counts: std::array::from_fn(|_| AtomicU64::new(0)), sum_ns: AtomicU64::new(0) }
    }
}

impl Spread {
    /// Adds a response time.
    pub fn add(&self, time: Duration) {
        let ns = time.as_nanos() as u64;
        self.counts[exposition::place(ns)].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Adds the counts so far to `times`.
    pub fn add_to(&self, times: &mut Times) {
        times.counts.resize(self.counts.len(), 0);
        for (sum, count) in times.counts.iter_mut().zip(&self.counts) {
            *sum += count.load(Ordering::Relaxed);
        }
        times.sum_ns += self.sum_ns.load(Ordering::Relaxed);
    }
}

/// Time-outs.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Time-out of a connection.
    pub connect: Duration,
    /// Time-out of a request, including the time to connect.
    pub request: Duration,
}

impl Timeouts {
    /// The time-outs of a spec.
    #[must_use]
    pub const fn of(spec: &ClientSpec) -> Self {
        Self {
            connect: Duration::from_nanos(spec.timeouts.connect_ns),
            request: Duration::from_nanos(spec.timeouts.request_ns),
        }
    }

    /// The time-out of a connection that a request opens: the shorter of the two.
    #[must_use]
    pub fn opening(self) -> Duration {
        self.connect.min(self.request)
    }
}

/// Expected number of recorded requests of a thread, for the allocation of memory.
#[must_use]
pub fn expected_requests(spec: &ClientSpec, share: Share) -> u64 {
    match (spec.extent, spec.schedule) {
        (Extent::Requests(count), _) => share.part(count),
        (Extent::DurationNs(ns), Schedule::Open { rate_per_s, .. }) => {
            let all = match spec.ramp.as_slice() {
                [] => rate_per_s * ns as f64 / 1e9,
                stages => stages.iter().map(|stage| stage.arrivals()).sum(),
            };
            (all / f64::from(share.of) * 1.1) as u64
        }
        // An estimate for a fast protocol on one core.
        (Extent::DurationNs(ns), Schedule::Closed { .. }) => ns / 20_000,
    }
}
