//! The distance that is kept between what a server is sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Keeps it: at least the interval lies between what was sent last and what is sent next.
pub struct Pace {
    interval: Duration,
    next: Instant,
}

impl Pace {
    /// The first may be sent at once.
    pub fn new(interval: Duration) -> Self {
        Self { interval, next: Instant::now() }
    }

    /// Something was sent: the next has to wait.
    pub fn rest(&mut self) {
        self.next = Instant::now() + self.interval;
    }

    /// Waits for the next turn, in steps short enough for Ctrl-C.
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
