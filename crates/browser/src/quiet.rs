//! Decides when a load is over: the page has fired `load`, every request has a response, and the network is quiet for a
//! while.

use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The length of the quiet period. Pages load resources after `load`, and may paint the largest element after it.
pub const QUIET: Duration = Duration::from_millis(500);

/// The progress of a load.
#[derive(Debug)]
pub struct Quiet {
    /// Whether the page has fired `load`.
    pub loaded: bool,
    open: HashSet<String>,
    last: Instant,
    deadline: Instant,
}

impl Quiet {
    /// The progress at the start.
    pub fn new(deadline: Instant) -> Self {
        Self { loaded: false, open: HashSet::new(), last: Instant::now(), deadline }
    }

    /// A request was sent.
    pub fn asked(&mut self, request: &str) {
        self.open.insert(request.to_owned());
        self.stirred();
    }

    /// A request has its response's header, or has failed. Bodies do not count: a stream of events never ends.
    pub fn answered(&mut self, request: &str) {
        self.open.remove(request);
        self.stirred();
    }

    /// Something was sent or received.
    pub fn stirred(&mut self) {
        self.last = Instant::now();
    }

    /// The end of the load in any case.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the load is over, provided that all events have been read.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until()
    }

    /// How long to wait for another event; if none comes, the load is over.
    pub fn until(&self) -> Instant {
        if self.loaded && self.open.is_empty() { (self.last + QUIET).min(self.deadline) } else { self.deadline }
    }
}
