//! Counts scrapes, so that a run can wait for one more before it ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a wait checks `stop`.
const SLICE: Duration = Duration::from_millis(100);

/// Counts scrapes.
#[derive(Debug, Default)]
pub(super) struct Scrapes {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    /// Scrapes that have read numbers.
    begun: u64,
    /// The number of the latest scrape that was answered completely.
    answered: u64,
}

impl Scrapes {
    /// Called before a scrape reads numbers; returns the scrape's number.
    pub(super) fn begin(&self) -> u64 {
        let mut counts = self.counts();
        counts.begun += 1;
        counts.begun
    }

    /// Called after a scrape was answered completely.
    pub(super) fn answered(&self, number: u64) {
        let mut counts = self.counts();
        counts.answered = counts.answered.max(number);
        self.changed.notify_all();
    }

    /// Waits for a scrape that begins after this call; returns at once if no scrape ever began.
    pub(super) fn await_next(&self, timeout: Duration, stop: &AtomicBool) {
        let deadline = Instant::now() + timeout;
        let mut counts = self.counts();
        let before = counts.begun;
        while before > 0 && counts.answered <= before && Instant::now() < deadline && !stop.load(Ordering::Relaxed) {
            counts = self.changed.wait_timeout(counts, SLICE).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn without_any_scrape_the_wait_ends_at_once_and_otherwise_by_timeout_or_stop() {
        let (scrapes, go_on) = (Scrapes::default(), AtomicBool::new(false));
        scrapes.await_next(HOUR, &go_on);
        scrapes.answered(scrapes.begin());
        scrapes.await_next(Duration::from_millis(1), &go_on);
        scrapes.await_next(HOUR, &AtomicBool::new(true));
    }

    #[test]
    fn only_a_scrape_that_began_afterwards_ends_the_wait() {
        let (scrapes, go_on) = (Scrapes::default(), AtomicBool::new(false));
        let early = scrapes.begin();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| scrapes.await_next(HOUR, &go_on));
            scrapes.answered(early);
            // In every order of the two threads, one of these scrapes begins after the wait.
            while !waiting.is_finished() {
                scrapes.answered(scrapes.begin());
                std::thread::yield_now();
            }
        });
        assert!(scrapes.counts().answered > early);
    }
}
