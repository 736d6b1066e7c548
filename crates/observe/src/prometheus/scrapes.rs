//! How often Prometheus has come, for who wants to be seen once more before it goes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a wait looks up, whether the user wants to stop.
const SLICE: Duration = Duration::from_millis(100);

/// Counts scrapes.
#[derive(Debug, Default)]
pub(super) struct Scrapes {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    /// Scrapes whose numbers were read.
    begun: u64,
    /// The latest of those that were answered to the last byte.
    answered: u64,
}

impl Scrapes {
    /// Numbers are about to be read for a scrape; its number.
    pub(super) fn begin(&self) -> u64 {
        let mut counts = self.counts();
        counts.begun += 1;
        counts.begun
    }

    /// That scrape was answered to the last byte.
    pub(super) fn answered(&self, number: u64) {
        let mut counts = self.counts();
        counts.answered = counts.answered.max(number);
        self.changed.notify_all();
    }

    /// Waits for a scrape that begins after this call, if there ever was one.
    pub(super) fn await_next(&self, patience: Duration, stop: &AtomicBool) {
        let deadline = Instant::now() + patience;
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
    fn nobody_is_waited_for_who_never_came_and_nobody_for_ever() {
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
            // However the two threads run, one of these begins after the wait did.
            while !waiting.is_finished() {
                scrapes.answered(scrapes.begin());
                std::thread::yield_now();
            }
        });
        assert!(scrapes.counts().answered > early);
    }
}
