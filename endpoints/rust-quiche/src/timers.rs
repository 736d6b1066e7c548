//! The timers of many connections and delayed responses. Only the next one matters.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Times of checks. An outdated entry stays: a superfluous check is cheaper than
/// its removal.
#[derive(Debug)]
pub struct Timers<T>(BinaryHeap<Reverse<(Instant, T)>>);

impl<T: Ord> Default for Timers<T> {
    fn default() -> Self {
        Self(BinaryHeap::new())
    }
}

impl<T: Ord> Timers<T> {
    /// Adds an entry.
    pub fn add(&mut self, at: Instant, what: T) {
        self.0.push(Reverse((at, what)));
    }

    /// When the next entry is due.
    pub fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes an entry that is due.
    pub fn take(&mut self, now: Instant) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.0.pop().map(|Reverse((_, what))| what)
    }
}
