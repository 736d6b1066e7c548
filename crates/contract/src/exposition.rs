//! Live counters of an endpoint for a monitoring system (Prometheus), enabled by the spec's `exposition`.

use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where an endpoint exports its counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exposition {
    /// Path of a Unix socket to listen at, in an existing folder. The endpoint answers each connection at once with one
    /// JSON object (`exposed.schema.json`) and closes it. At its end the endpoint removes the socket and writes the
    /// last object to a file of the same path with `.last` appended. The path may be longer than a socket address can
    /// be.
    pub socket: PathBuf,
    /// Labels to export with the numbers, unchanged.
    pub labels: IndexMap<String, String>,
}

impl Exposition {
    /// The file of the last counters.
    #[must_use]
    pub fn last(&self) -> PathBuf {
        self.socket.with_added_extension("last")
    }
}

/// The counters of an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exposed {
    /// The labels of the spec.
    pub labels: IndexMap<String, String>,
    /// Server: requests answered since `ready`. Client: requests that succeeded in the measured window.
    pub requests: u64,
    /// Client: requests that failed in the measured window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// Open connections; absent if the endpoint does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Client: response times, from the intended start, of requests that succeeded in the measured window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Times>,
}

/// Histogram of times with fixed bounds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// For each bound, the number of times up to this bound and above the previous one; at the end, the number of times
    /// above all bounds. The bounds are 1, 1.5, 2, 3, 5 and 7 times the powers of ten from 10 µs to 1 s, and 10 s.
    pub counts: Vec<u64>,
    /// Sum of the times in nanoseconds.
    pub sum_ns: u64,
}

/// Number of bounds.
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

/// Index in [`Times::counts`] of a time.
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
    fn the_file_of_the_last_counters_is_beside_the_socket() {
        let exposition = Exposition { socket: "/run/metrics/0-client0.sock".into(), labels: IndexMap::new() };
        assert_eq!(exposition.last().to_str(), Some("/run/metrics/0-client0.sock.last"));
    }
}
