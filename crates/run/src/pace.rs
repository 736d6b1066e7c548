//! Minimum interval between requests to a server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Keeps a minimum interval between two requests.
pub struct Pace {
    interval: Duration,
    next: Instant,
}

impl Pace {
    /// Permits the first request at once.
    pub fn new(interval: Duration) -> Self {
        Self { interval, next: Instant::now() }
    }

    /// Starts the interval after a request.
    pub fn rest(&mut self) {
        self.next = Instant::now() + self.interval;
    }

    /// Waits for the end of the interval, in steps short enough for Ctrl-C.
    pub fn wait(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}
