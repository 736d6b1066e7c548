//! The requests of each interval of a load, read while the load runs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wirelab_contract::histogram::Histograms;

use crate::record::{Counters, Record};

/// The requests of one thread, by the interval in which they ended. Intervals have equal lengths and follow each other
/// from the beginning of the window.
#[derive(Debug)]
pub struct Intervals {
    length: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The beginning of the window.
    zero: Option<Instant>,
    /// Number of intervals that were taken.
    taken: u64,
    /// The others that had requests.
    open: BTreeMap<u64, Counters>,
}

impl Intervals {
    /// Intervals of this length, which must not be 0.
    #[must_use]
    pub fn new(length: Duration) -> Self {
        Self { length, state: Mutex::default() }
    }

    /// The window began.
    pub fn begin(&self, zero: Instant) {
        *self.state() = State { zero: Some(zero), ..State::default() };
    }

    /// Counts a request that ended. If its interval was taken already, it counts for the next one: none is lost.
    pub fn add(&self, record: &Record) {
        let mut state = self.state();
        let Some(zero) = state.zero else { return };
        let number = number(record.end.saturating_duration_since(zero), self.length).max(state.taken);
        state.open.entry(number).or_default().count(record);
    }

    /// Adds the requests of all intervals below `until` to `all`, each of them once.
    fn take(&self, until: u64, all: &mut BTreeMap<u64, Counters>) {
        let mut state = self.state();
        let later = state.open.split_off(&until);
        let past = std::mem::replace(&mut state.open, later);
        state.taken = state.taken.max(until);
        drop(state);
        for (number, counters) in past {
            all.entry(number).or_default().merge(&counters);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An interval of a load, with the requests that ended in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// From the beginning of the window, in nanoseconds.
    pub from_ns: u64,
    /// Its length in nanoseconds. The last one of a load may be shorter.
    pub length_ns: u64,
    /// Its requests.
    pub histograms: Histograms,
}

/// Reads the intervals of all threads of a load, in order, empty ones included.
#[derive(Debug)]
pub struct IntervalReader {
    length: Duration,
    next: u64,
}

impl IntervalReader {
    /// Begins with the first interval of this length, which must not be 0.
    #[must_use]
    pub const fn new(length: Duration) -> Self {
        Self { length, next: 0 }
    }

    /// The intervals that have passed and were not read yet, after this time of the window.
    pub fn passed<'a>(&mut self, elapsed: Duration, threads: impl IntoIterator<Item = &'a Intervals>) -> Vec<Interval> {
        let until = number(elapsed, self.length).max(self.next);
        let mut all = BTreeMap::new();
        threads.into_iter().for_each(|thread| thread.take(until, &mut all));
        self.read(until, all)
    }

    /// The intervals that were not read yet, after the window of this length.
    pub fn rest<'a>(&mut self, window: Duration, threads: impl IntoIterator<Item = &'a Intervals>) -> Vec<Interval> {
        let mut all = BTreeMap::new();
        threads.into_iter().for_each(|thread| thread.take(u64::MAX, &mut all));
        // The last interval has the window's last nanosecond, and the requests that ended with the window.
        let last = number(window.saturating_sub(Duration::from_nanos(1)), self.length);
        let last = if all.is_empty() { last } else { last.max(self.next) };
        for counters in all.split_off(&(last + 1)).into_values() {
            all.entry(last).or_default().merge(&counters);
        }
        let mut rest = self.read((last + 1).max(self.next), all);
        if let Some(last) = rest.last_mut() {
            let window_ns = window.as_nanos() as u64;
            last.length_ns = window_ns.saturating_sub(last.from_ns).clamp(1, last.length_ns);
        }
        rest
    }

    fn read(&mut self, until: u64, mut all: BTreeMap<u64, Counters>) -> Vec<Interval> {
        let length_ns = self.length.as_nanos() as u64;
        let numbers = std::mem::replace(&mut self.next, until)..until;
        let interval = |number: u64| Interval {
            from_ns: number * length_ns,
            length_ns,
            histograms: all.remove(&number).unwrap_or_default().finish(),
        };
        numbers.map(interval).collect()
    }
}

/// The number of the interval at this time.
fn number(elapsed: Duration, length: Duration) -> u64 {
    (elapsed.as_nanos() / length.as_nanos().max(1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn request(zero: Instant, end_ms: u64) -> Record {
        let end = zero + Duration::from_millis(end_ms);
        Record { end, ..Record::begin(zero, zero) }
    }

    fn counts(intervals: &[Interval]) -> Vec<(u64, u64, u64)> {
        let ms = |ns: u64| ns / 1_000_000;
        intervals.iter().map(|one| (ms(one.from_ns), ms(one.length_ns), one.histograms.requests)).collect()
    }

    #[test]
    fn each_request_counts_in_the_interval_of_its_end_and_intervals_without_one_are_read_too() {
        let zero = Instant::now();
        let threads = [Intervals::new(SECOND), Intervals::new(SECOND)];
        threads[0].add(&request(zero, 1)); // of the warm-up
        threads.iter().for_each(|thread| thread.begin(zero));
        let mut reader = IntervalReader::new(SECOND);
        for (thread, end_ms) in [(0, 10), (1, 999), (0, 1000), (1, 3100)] {
            threads[thread].add(&request(zero, end_ms));
        }
        assert_eq!(counts(&reader.passed(SECOND / 2, &threads)), []);
        assert_eq!(counts(&reader.passed(2 * SECOND, &threads)), [(0, 1000, 2), (1000, 1000, 1)]);
        // Recorded late: it counts for the first interval that was not read.
        threads[1].add(&request(zero, 1999));
        let rest = reader.rest(Duration::from_millis(3250), &threads);
        assert_eq!(counts(&rest), [(2000, 1000, 1), (3000, 250, 1)]);
    }

    #[test]
    fn a_window_that_ends_with_an_interval_has_no_empty_one_after_it() {
        let zero = Instant::now();
        let threads = [Intervals::new(SECOND)];
        threads[0].begin(zero);
        threads[0].add(&request(zero, 2000));
        let mut reader = IntervalReader::new(SECOND);
        assert_eq!(counts(&reader.rest(2 * SECOND, &threads)), [(0, 1000, 0), (1000, 1000, 1)]);
        assert_eq!(counts(&reader.rest(2 * SECOND, &threads)), []);
    }
}
