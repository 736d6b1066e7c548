//! Metrics and values: name, unit, side and vantage point.

use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::missing::Missing;

/// The unit of a metric, which determines the format of its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Nanoseconds,
    Bytes,
    BitsPerSecond,
    /// Events per second.
    PerSecond,
    /// A number without a unit.
    Count,
    /// A share of 1.
    Share,
}

/// The side on which a metric was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The client's process (and its children) or host.
    Client,
    /// The server's process (and its children) or host.
    Server,
    /// The network between client and server, or the machine that they share.
    Link,
    /// Unknown: a number from a table.
    Unknown,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Link => "link",
            Self::Unknown => "unknown side",
        })
    }
}

/// The direction of improvement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better: latency, cost.
    Lower,
    /// More is better: throughput.
    Higher,
}

/// The declaration of a metric, in the place that computes it: observers declare theirs, `stats` declares the metrics
/// from samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// The key in journals and study files, for example `latency_median`.
    pub name: &'static str,
    /// The title in reports.
    pub title: &'static str,
    pub unit: Unit,
    pub side: Side,
    /// The vantage point, for example `the client's own clock` or `the kernel's account of the process`.
    pub vantage: &'static str,
    /// The direction of improvement.
    pub better: Better,
    /// One sentence: the exact quantity, with start and end.
    pub meaning: &'static str,
}

/// A metric with the function that computes it: a row of a table that declares and computes metrics in one place.
#[derive(Debug, Clone, Copy)]
pub struct Computed<F> {
    /// The declaration.
    pub metric: Metric,
    /// The function, from what the table's metrics are computed from.
    pub compute: F,
}

/// The declarations of a table, in its order.
#[must_use]
pub const fn declared<F: Copy, const N: usize>(table: &[Computed<F>; N]) -> [Metric; N] {
    let mut metrics = [table[0].metric; N];
    let mut row = 1;
    while row < N {
        metrics[row] = table[row].metric;
        row += 1;
    }
    metrics
}

/// A measured number, or the reason why it is missing. A missing value is never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// The number in the metric's unit, never NaN or infinite.
    Measured(f64),
    /// Above every number: the percentile falls among failed requests, which rank as slower than every success.
    Infinite {
        /// The share of failures, as a phrase for the report.
        infinite: String,
    },
    /// A missing value, with the reason.
    NotMeasured(Missing),
}

impl Value {
    /// Returns the number if it is finite, otherwise a missing value with the reason.
    #[must_use]
    pub fn finite(number: f64, otherwise: Missing) -> Self {
        if number.is_finite() { Self::Measured(number) } else { Self::missing(otherwise) }
    }

    /// A missing value with the reason.
    #[must_use]
    pub const fn missing(reason: Missing) -> Self {
        Self::NotMeasured(reason)
    }

    /// The number, if measured.
    #[must_use]
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Measured(number) => Some(*number),
            Self::Infinite { .. } | Self::NotMeasured(_) => None,
        }
    }

    /// The text of the reason for a missing number; `None` for a number.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Measured(_) => None,
            Self::Infinite { infinite } => Some(infinite.clone()),
            Self::NotMeasured(reason) => Some(reason.to_string()),
        }
    }
}

/// The values of one trial by metric name, in the order of their declaration.
pub type Values = IndexMap<String, Value>;

/// A number in a unit, formatted for reports: `1.52 ms`, `48.0 KiB`, `940 Mbit/s`, `12.3 %`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity(pub f64, pub Unit);

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, unit) = *self;
        let scaled = |f: &mut fmt::Formatter<'_>, steps: &[(f64, &str)]| {
            let (factor, name) =
                steps.iter().copied().find(|(factor, _)| value.abs() >= *factor).unwrap_or(steps[steps.len() - 1]);
            write!(f, "{} {name}", three_digits(value / factor))
        };
        match unit {
            Unit::Nanoseconds => scaled(f, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]),
            Unit::Bytes => scaled(f, &[(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")]),
            Unit::BitsPerSecond => scaled(f, &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")]),
            Unit::PerSecond => scaled(f, &[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")]),
            Unit::Count => write!(f, "{}", three_digits(value)),
            Unit::Share => write!(f, "{} %", three_digits(value * 100.0)),
        }
    }
}

/// Formats three significant digits without an exponent.
fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = if magnitude == 0.0 || magnitude >= 99.95 {
        0
    } else if magnitude >= 9.995 {
        1
    } else if magnitude >= 0.9995 {
        2
    } else {
        3
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_with_three_digits_and_a_fitting_unit() {
        for (value, unit, expected) in [
            (1_523_000.0, Unit::Nanoseconds, "1.52 ms"),
            (940e6, Unit::BitsPerSecond, "940 Mbit/s"),
            (49_152.0, Unit::Bytes, "48.0 KiB"),
            (0.123, Unit::Share, "12.3 %"),
            (0.0, Unit::Count, "0"),
        ] {
            assert_eq!(Quantity(value, unit).to_string(), expected);
        }
    }

    #[test]
    fn a_value_that_was_not_measured_keeps_its_reason_in_json() {
        let json = serde_json::to_string(&Value::finite(f64::NAN, Missing::NoSuccess)).unwrap();
        assert_eq!(json, r#"{"not_measured":"no request succeeded","code":"no-success"}"#);
        assert_eq!(serde_json::from_str::<Value>("1.5").unwrap(), Value::Measured(1.5));
    }
}
