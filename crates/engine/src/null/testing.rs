//! Content for the tests of machines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Answer, Body, Content};
use crate::payload::Payload;

/// Echoes and patterns, with the number of answered requests.
#[derive(Debug, Default)]
pub struct Counted(pub AtomicU64);

pub fn content() -> Arc<Counted> {
    Arc::default()
}

impl Content for Counted {
    fn answer(&self, method: &str, path: &str) -> Answer {
        let body = match (method, path.strip_prefix("/bytes/")) {
            ("POST", None) if path == "/echo" => Body::Echo,
            ("GET", Some(size)) => Body::Known(Payload::Pattern(size.parse().unwrap())),
            ("GET", None) => return Answer::empty(404),
            _ => return Answer::empty(405),
        };
        Answer { body, ..Answer::empty(200) }
    }

    fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
