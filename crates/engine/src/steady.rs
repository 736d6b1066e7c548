//! The end of a warm-up: response times are steady.
//!
//! Only the second half of the warm-up so far counts, so that a transient never ends a warm-up before as much time has
//! passed after it (the rule of Hoad, Robinson and Davies 2010, "Automating warm-up length estimation", for a
//! truncation point). The logarithms of response times are averaged in 20 batches of consecutive requests, which
//! removes most of their autocorrelation (Schmeiser 1982, "Batch size effects in the analysis of simulation output").
//! The shift between the first ten batches and the last ten has the interval of Hodges and Lehmann (1963, "Estimates of
//! location based on rank tests"). A look shows steady response times if this interval lies within a margin
//! (equivalence, Schuirmann 1987) and no shift is significant. Two such looks, one after the other, end the warm-up.
//! Without evidence it goes on: steady state is shown, not assumed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use wirelab_contract::event::{Steadiness, WarmedUp};

use crate::record::Record;

/// The time of the first look at response times. A constant response time before a jump looks steady, so that a shorter
/// warm-up would miss the first steps of a process.
pub const FIRST_LOOK: Duration = Duration::from_millis(500);

/// Factor between the times of two looks. Each look is a chance to end too early.
const BETWEEN_LOOKS: f64 = 1.25;

/// Consecutive looks that must show steady response times.
const LOOKS: u32 = 2;

/// Batches in each of the two compared groups.
const GROUP: usize = 10;

/// The ends of the interval are the differences of this rank from either side, of 100: a confidence of 91 %, from the
/// distribution of the rank-sum test for 10 and 10 values. That is equivalence at a level of 4.5 %.
const RANK: usize = 28;

/// Largest shift of a steady response time.
const MARGIN: f64 = 0.1;

/// A significant shift up to this share is too small to matter.
const NEGLIGIBLE: f64 = 0.02;

/// The number of kept batches at which pairs are joined.
const MOST_BATCHES: usize = 400;

/// Consecutive requests.
#[derive(Debug, Clone, Copy)]
struct Batch {
    /// Mean of the logarithms of response times.
    mean: f64,
    /// End of the last request, since the begin of the warm-up.
    end_ns: u64,
}

/// The response times of a warm-up so far.
#[derive(Debug)]
struct Series {
    batches: Vec<Batch>,
    /// Requests in each batch.
    size: u32,
    /// Sum and number of the requests of the next batch.
    open: (f64, u32),
    /// Requests so far, failed ones included.
    requests: u64,
    /// End of the last request.
    last_ns: u64,
    next_look_ns: u64,
    /// Number of latest looks, one after the other, that showed steady response times.
    steady_looks: u32,
}

impl Default for Series {
    fn default() -> Self {
        let next_look_ns = FIRST_LOOK.as_nanos() as u64;
        Self { batches: Vec::new(), size: 1, open: (0.0, 0), requests: 0, last_ns: 0, next_look_ns, steady_looks: 0 }
    }
}

impl Series {
    /// Adds a request that ended at `end_ns`; its response time, if it succeeded. Returns true if the warm-up may end.
    fn add(&mut self, end_ns: u64, response_ns: Option<u64>) -> bool {
        self.requests += 1;
        self.last_ns = self.last_ns.max(end_ns);
        if let Some(response_ns) = response_ns {
            self.open = (self.open.0 + (response_ns.max(1) as f64).ln(), self.open.1 + 1);
            if self.open.1 == self.size {
                // Threads may report requests in another order than that of their ends.
                self.batches.push(Batch { mean: self.open.0 / f64::from(self.size), end_ns: self.last_ns });
                self.open = (0.0, 0);
                if self.batches.len() == MOST_BATCHES {
                    self.join();
                }
            }
        }
        if end_ns < self.next_look_ns {
            return false;
        }
        self.next_look_ns = (end_ns as f64 * BETWEEN_LOOKS) as u64;
        self.conclude(end_ns) == Steadiness::Steady
    }

    /// What the latest looks show, with one at `now_ns`.
    fn conclude(&mut self, now_ns: u64) -> Steadiness {
        match self.look(now_ns) {
            Steadiness::Steady => {
                self.steady_looks += 1;
                if self.steady_looks < LOOKS { Steadiness::CannotTell } else { Steadiness::Steady }
            }
            other => {
                self.steady_looks = 0;
                other
            }
        }
    }

    /// Joins each two batches, so that the number of batches is bounded.
    fn join(&mut self) {
        let joined = |pair: &[Batch]| {
            let mean = pair.iter().map(|batch| batch.mean).sum::<f64>() / pair.len() as f64;
            Batch { mean, end_ns: pair[pair.len() - 1].end_ns }
        };
        self.batches = self.batches.chunks(2).map(joined).collect();
        self.size *= 2;
    }

    /// What the second half of the warm-up shows at `now_ns`.
    fn look(&self, now_ns: u64) -> Steadiness {
        let begun = self.batches.partition_point(|batch| batch.end_ns <= now_ns / 2);
        let half = &self.batches[begun..];
        let each = half.len() / (2 * GROUP);
        if each == 0 {
            return Steadiness::CannotTell;
        }
        // The latest batches, if their number is not a multiple.
        let half = &half[half.len() - each * 2 * GROUP..];
        let mean = |batches: &[Batch]| batches.iter().map(|batch| batch.mean).sum::<f64>() / each as f64;
        let groups: Vec<f64> = half.chunks(each).map(mean).collect();
        let (first, last) = groups.split_at(GROUP);
        let mut shifts: Vec<f64> = first.iter().flat_map(|from| last.iter().map(move |to| to - from)).collect();
        shifts.sort_unstable_by(f64::total_cmp);
        let [low, high] = [shifts[RANK - 1], shifts[shifts.len() - RANK]];
        let shift = (shifts[shifts.len() / 2 - 1] + shifts[shifts.len() / 2]) / 2.0;
        let is_significant = (low > 0.0 || high < 0.0) && shift.abs() > NEGLIGIBLE.ln_1p();
        if is_significant {
            Steadiness::Changing
        } else if high.max(-low) < MARGIN.ln_1p() {
            Steadiness::Steady
        } else {
            Steadiness::CannotTell
        }
    }
}

/// Decides for all threads of a client when the warm-up may end.
#[derive(Debug, Default)]
pub struct Judge {
    begun: OnceLock<Instant>,
    is_steady: AtomicBool,
    series: Mutex<Series>,
}

impl Judge {
    /// The first thread begins its warm-up.
    pub fn begin(&self, at: Instant) {
        self.begun.get_or_init(|| at);
    }

    /// Adds a request that ended.
    pub fn add(&self, record: &Record, is_failed: bool) {
        let Some(begun) = self.begun.get() else { return };
        let ns = |from: Instant| record.end.saturating_duration_since(from).as_nanos() as u64;
        let response_ns = (!is_failed).then(|| ns(record.intended));
        if self.series().add(ns(*begun), response_ns) {
            self.is_steady.store(true, Ordering::Relaxed);
        }
    }

    /// Whether no further request of the warm-up is needed.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.is_steady.load(Ordering::Relaxed)
    }

    /// The outcome after the last request.
    #[must_use]
    pub fn outcome(&self) -> WarmedUp {
        let mut series = self.series();
        let last_ns = series.last_ns;
        let steadiness = if self.is_steady() { Steadiness::Steady } else { series.conclude(last_ns) };
        WarmedUp { took_ns: series.last_ns, requests: series.requests, steadiness }
    }

    fn series(&self) -> MutexGuard<'_, Series> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "steady_tests.rs"]
mod tests;
