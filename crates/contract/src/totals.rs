//! Totals in place of records: what is known of the requests of a program that is no endpoint.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The results file of a client whose spec says `"recording": "totals"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Requests that succeeded.
    pub requests: u64,
    /// The values that the program printed, times in nanoseconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub printed: BTreeMap<Printed, u64>,
}

impl Totals {
    /// Requests that failed; `None` if the program does not print their number.
    #[must_use]
    pub fn failed(&self) -> Option<u64> {
        self.printed.get(&Printed::Failed).copied()
    }
}

/// A value that a program can print. The name of a time is that of its metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Printed {
    /// Requests that succeeded.
    Requests,
    /// Requests that failed.
    Failed,
    /// The mean response time.
    ResponseMean,
    /// The smallest response time.
    ResponseMin,
    /// The median response time.
    ResponseMedian,
    /// The 90th percentile of the response time.
    ResponseP90,
    /// The 99th percentile of the response time.
    ResponseP99,
    /// The 99.9th percentile of the response time.
    ResponseP999,
    /// The largest response time.
    ResponseMax,
}

impl Printed {
    /// Whether it is a percentile of the response time.
    #[must_use]
    pub const fn is_percentile(self) -> bool {
        matches!(self, Self::ResponseMedian | Self::ResponseP90 | Self::ResponseP99 | Self::ResponseP999)
    }

    /// The name of the metric that a time is a value of; `None` for a count.
    #[must_use]
    pub const fn time(self) -> Option<&'static str> {
        match self {
            Self::Requests | Self::Failed => None,
            Self::ResponseMean => Some("response_mean"),
            Self::ResponseMin => Some("response_min"),
            Self::ResponseMedian => Some("response_median"),
            Self::ResponseP90 => Some("response_p90"),
            Self::ResponseP99 => Some("response_p99"),
            Self::ResponseP999 => Some("response_p999"),
            Self::ResponseMax => Some("response_max"),
        }
    }
}

/// The units of printed times, with their nanoseconds.
const UNITS: [(&str, f64); 6] = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("secs", 1e9)];

/// The nanoseconds of a unit of time.
#[must_use]
pub fn nanoseconds_of(unit: &str) -> Option<f64> {
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ns)| *ns)
}
