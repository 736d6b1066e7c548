//! Published numbers beside the measured ones.

use serde_json::Value;

use crate::Input;
use crate::layout::sentence;
use crate::numbers::{plain_interval, quantity, significant};

/// A published number and a measured one.
pub(crate) struct Pair {
    /// The levels.
    pub cell: String,
    /// The metric's title.
    pub metric: String,
    /// The published number.
    pub published: String,
    /// The measured number with its interval, or the reason for its absence.
    pub measured: String,
    /// Measured divided by published; `–` if a number is missing.
    pub ratio: String,
    /// The publication and its wording.
    pub note: String,
    /// Whether the run has such a cell.
    pub is_here: bool,
}

/// Every published number of the study with each of its cells.
pub(crate) fn pairs(input: &Input) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for published in &input.manifest.study.published {
        let metric = input.metric(&published.metric);
        let show = |value: f64| metric.map_or_else(|| significant(value), |metric| quantity(value, metric.unit));
        let cells = input.manifest.plan.cells.iter().enumerate();
        let matching: Vec<_> =
            cells.filter(|(_, cell)| cell.twin_of.is_none() && published.cell.matches(cell)).collect();
        let pair = |cell: String, measured: String, ratio: String| Pair {
            is_here: !matching.is_empty(),
            cell,
            metric: metric.map_or_else(|| published.metric.clone(), |metric| metric.title.to_owned()),
            published: show(published.value),
            measured,
            ratio,
            note: published.note.clone(),
        };
        if matching.is_empty() {
            let levels = published.cell.0.iter().map(|(factor, level)| (factor.clone(), words(level))).collect();
            pairs.push(pair(sentence(&levels), "not measured: this run has no such cell".to_owned(), "–".to_owned()));
        }
        for (number, cell) in &matching {
            let label = sentence(&cell.levels);
            pairs.push(match input.estimate(*number, &published.metric) {
                Some(estimate) => {
                    let interval = estimate.interval.as_ref().map_or_else(
                        || "no interval".to_owned(),
                        |interval| format!("[{}, {}]", show(interval.low), show(interval.high)),
                    );
                    let ratio = match (published.value > 0.0, &estimate.interval) {
                        (false, _) => "–".to_owned(),
                        (true, None) => significant(estimate.median / published.value),
                        (true, Some(interval)) => {
                            let mut scaled = *interval;
                            scaled.low /= published.value;
                            scaled.high /= published.value;
                            format!("{} {}", significant(estimate.median / published.value), plain_interval(&scaled))
                        }
                    };
                    pair(label, format!("{} {interval}", show(estimate.median)), ratio)
                }
                None => {
                    let why = input.why_missing(*number, &published.metric);
                    pair(label, format!("not measured: {why}"), "–".to_owned())
                }
            });
        }
    }
    pairs
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(words).collect::<Vec<_>>().join(" or "),
        other => other.to_string(),
    }
}
