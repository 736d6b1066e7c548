//! When a load is over: the page has fired `load`, every request is answered, and the network has been quiet for a while.

use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How long the network has to be quiet. Pages load things after `load`, and the largest element may be painted after it.
pub const QUIET: Duration = Duration::from_millis(500);

/// What of a load is still going on.
#[derive(Debug)]
pub struct Quiet {
    /// Whether the page has fired `load`.
    pub loaded: bool,
    open: HashSet<String>,
    last: Instant,
    deadline: Instant,
}

impl Quiet {
    /// Nothing has happened yet.
    pub fn new(deadline: Instant) -> Self {
        Self { loaded: false, open: HashSet::new(), last: Instant::now(), deadline }
    }

    /// A request began.
    pub fn asked(&mut self, request: &str) {
        self.open.insert(request.to_owned());
        self.stirred();
    }

    /// A request has its response's header, or has failed. Bodies may go on: a stream of events never ends.
    pub fn answered(&mut self, request: &str) {
        self.open.remove(request);
        self.stirred();
    }

    /// Something was sent or received.
    pub fn stirred(&mut self) {
        self.last = Instant::now();
    }

    /// When waiting ends whatever happens.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the load is over, once every event that came is taken in.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until()
    }

    /// Until when to wait for another event; if none comes, the load is over.
    pub fn until(&self) -> Instant {
        if self.loaded && self.open.is_empty() { (self.last + QUIET).min(self.deadline) } else { self.deadline }
    }
}
