//! What an endpoint tells of itself while it works, for whoever watches (Prometheus): asked for by the spec's `exposition`.

use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where an endpoint is to tell what it has counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exposition {
    /// The path of a Unix socket to listen at, in a folder that exists. Whoever connects is told at once, in one JSON object
    /// (`exposed.schema.json`), and the connection is closed. When the endpoint ends, it removes the socket and leaves what it would have
    /// told in a file of the same path with `.last` appended. The path may be longer than the address of a socket can be.
    pub socket: PathBuf,
    /// To be told with the numbers, unchanged.
    pub labels: IndexMap<String, String>,
}

impl Exposition {
    /// Where what it told last is left.
    #[must_use]
    pub fn last(&self) -> PathBuf {
        self.socket.with_added_extension("last")
    }
}

/// What an endpoint has counted so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exposed {
    /// Those of the spec.
    pub labels: IndexMap<String, String>,
    /// Requests. Server: answered since `ready`. Client: succeeded in the measured window.
    pub requests: u64,
    /// Client: requests that failed in the measured window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// Connections that are open now; absent where the endpoint does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Client: response times of the requests that succeeded in the measured window, since they were meant to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Times>,
}

/// How many times were how long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// For each bound, how many were not longer, but longer than the bound before; and then those that were longer than all. The bounds
    /// are 1, 1.5, 2, 3, 5 and 7 times the powers of ten from 10 µs to 1 s, and 10 s.
    pub counts: Vec<u64>,
    /// Their sum in nanoseconds.
    pub sum_ns: u64,
}

/// How many bounds there are.
pub const BOUNDS: usize = 37;

/// The bounds of [`Times`] in nanoseconds.
pub const BOUNDS_NS: [u64; BOUNDS] = {
    let steps = [10, 15, 20, 30, 50, 70];
    let mut bounds = [0; BOUNDS];
    let (mut at, mut decade) = (0, 1_000);
    while at < BOUNDS {
        bounds[at] = decade * steps[at % steps.len()];
        at += 1;
        if at % steps.len() == 0 {
            decade *= 10;
        }
    }
    bounds
};

/// The place in [`Times::counts`] of a time.
#[must_use]
pub fn place(ns: u64) -> usize {
    BOUNDS_NS.partition_point(|bound| *bound < ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_go_from_ten_microseconds_to_ten_seconds_in_steps_of_at_most_two_thirds() {
        assert_eq!((BOUNDS_NS[0], BOUNDS_NS[6], BOUNDS_NS[BOUNDS - 1]), (10_000, 100_000, 10_000_000_000));
        assert!(BOUNDS_NS.windows(2).all(|pair| pair[0] < pair[1] && pair[1] * 3 <= pair[0] * 5), "{BOUNDS_NS:?}");
    }

    #[test]
    fn a_time_belongs_to_the_first_bound_that_it_does_not_exceed() {
        assert_eq!((place(0), place(10_000), place(10_001), place(u64::MAX)), (0, 0, 1, BOUNDS));
    }

    #[test]
    fn the_last_words_are_beside_the_socket() {
        let exposition = Exposition { socket: "/run/metrics/0-client0.sock".into(), labels: IndexMap::new() };
        assert_eq!(exposition.last().to_str(), Some("/run/metrics/0-client0.sock.last"));
    }
}
