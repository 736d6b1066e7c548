//! The result of the loads: a spread for each metric, and everything as JSON.

use std::fmt;

use indexmap::IndexMap;
use serde_json::{Value as Json, json};
use wirelab_browser::{Browser, METRICS};
use wirelab_model::metric::Value;
use wirelab_model::outcome::Outcome;
use wirelab_stats::quantile;

use super::filmstrip;
use super::loads::Cell;

/// The values of a metric over the samples of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// Why a metric has no spread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotMeasured {
    /// No load gave a sample.
    NoSample,
    /// The samples do not have the metric, for this reason.
    InSamples(String),
}

impl fmt::Display for NotMeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSample => "no load gave a sample",
            Self::InSamples(reason) => reason,
        })
    }
}

impl Spread {
    fn of(numbers: &[f64]) -> Option<Self> {
        let sorted = quantile::sorted(numbers);
        Some(Self { median: quantile::median(&sorted)?, min: *sorted.first()?, max: *sorted.last()? })
    }
}

/// The spread of a metric, or the reason why it is missing.
pub fn spread(cell: &Cell, metric: &str) -> Result<Spread, NotMeasured> {
    let samples = || cell.loads.iter().filter(|load| load.outcome == Outcome::Ok);
    let values: Vec<&Value> = samples().filter_map(|load| load.values.get(metric)).collect();
    let numbers: Vec<f64> = values.iter().filter_map(|value| value.number()).collect();
    Spread::of(&numbers).ok_or_else(|| {
        let reason = values.iter().find_map(|value| value.reason());
        reason.map_or(NotMeasured::NoSample, NotMeasured::InSamples)
    })
}

/// The spread of the number of connections to a host; `None` if no sample has it.
pub fn connections(cell: &Cell, host: &str) -> Option<Spread> {
    let samples = cell.loads.iter().filter(|load| load.outcome == Outcome::Ok);
    let numbers: Vec<f64> = samples.filter_map(|load| load.hosts.get(host)?.connections).map(f64::from).collect();
    Spread::of(&numbers)
}

/// The whole result as JSON.
pub fn json(
    cells: &[Cell],
    versions: &IndexMap<Browser, String>,
    missing: &IndexMap<&str, String>,
    written: &[&str],
) -> Json {
    let cell = |(number, cell): (usize, &Cell)| {
        let summary: serde_json::Map<String, Json> =
            METRICS.iter().map(|metric| (metric.name.to_owned(), summary(cell, metric.name))).collect();
        let setup = &cell.setup;
        json!({
            "url": cell.page.url.as_str(),
            "browser": setup.browser,
            "version": versions.get(&setup.browser),
            "protocol": setup.protocol,
            "samples": cell.samples(),
            "summary": summary,
            "loads": cell.loads,
            "film": filmstrip::json(number, cell),
        })
    };
    let viewport = cells.first().map(|cell| cell.page.viewport);
    json!({
        "viewport": viewport.map(|viewport| json!({ "width": viewport.width, "height": viewport.height })),
        "not_installed": missing,
        "written_meanwhile": written,
        "cells": cells.iter().enumerate().map(cell).collect::<Vec<_>>(),
    })
}

fn summary(cell: &Cell, metric: &str) -> Json {
    match spread(cell, metric) {
        Ok(Spread { median, min, max }) => json!({ "median": median, "min": min, "max": max }),
        Err(reason) => json!({ "not_measured": reason.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_middle_and_both_ends_in_whatever_order() {
        let spread = Spread { median: 3.0, min: 1.0, max: 10.0 };
        assert_eq!(Spread::of(&[10.0, 1.0, 3.0]), Some(spread));
        assert_eq!(Spread::of(&[]), None);
    }
}
