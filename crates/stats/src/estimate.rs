//! The results of a single cell.

use indexmap::IndexMap;
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::{Metric, Value};
use wirelab_model::outcome::Outcome;

use crate::analysis::{CellAnalysis, Estimate};
use crate::bootstrap::Bootstrap;
use crate::failures::failure_share;
use crate::quantile;
use crate::stationarity::Stationarity;
use crate::trials::Trials;

/// Outcomes of a cell's trials, and the estimates of all their metrics, declared metrics first.
pub fn cell(cell: usize, trials: &Trials<'_>, metrics: &[&Metric], bootstrap: &mut Bootstrap) -> CellAnalysis {
    let mut analysis = CellAnalysis {
        ok: 0,
        failed: 0,
        unsupported: 0,
        failure_share: failure_share(trials, cell),
        stationarity: Stationarity::TooShort,
        ages: None,
        reason: None,
        estimates: IndexMap::new(),
        not_measured: IndexMap::new(),
    };
    let mut reasons = Vec::new();
    for record in trials.of_cell(cell) {
        match &record.outcome {
            Outcome::Ok => analysis.ok += 1,
            Outcome::Failed { blame, reason } => {
                analysis.failed += 1;
                reasons.push(format!("{blame}: {reason}"));
            }
            Outcome::Unsupported { reason } => {
                analysis.unsupported += 1;
                reasons.push(reason.to_string());
            }
        }
    }
    analysis.reason = most_frequent(reasons);
    for metric in names(cell, trials, metrics) {
        let values = trials.measured(cell, metric);
        if let Some(estimate) = estimate(values, bootstrap) {
            analysis.estimates.insert(metric.to_owned(), estimate);
        } else if let Some(reason) = why_not_measured(cell, trials, metric) {
            analysis.not_measured.insert(metric.to_owned(), reason);
        }
    }
    analysis
}

/// The metrics of the cell's trials, in the order of declaration.
fn names<'a>(cell: usize, trials: &Trials<'a>, metrics: &[&Metric]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for record in trials.ok(cell) {
        for name in record.values.keys() {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    let place = |name: &&str| metrics.iter().position(|metric| metric.name == *name).unwrap_or(usize::MAX);
    names.sort_by_key(place);
    names
}

fn why_not_measured(cell: usize, trials: &Trials<'_>, metric: &str) -> Option<String> {
    let reasons = trials.ok(cell).filter_map(|record| record.values.get(metric)?.reason());
    let reason = most_frequent(reasons)?;
    let is_infinite = |record: &&TrialRecord| matches!(record.values.get(metric), Some(Value::Infinite { .. }));
    let infinite = trials.ok(cell).filter(is_infinite).count();
    if infinite > 0 {
        return Some(format!("infinite in {infinite} of {} trials: {reason}", trials.ok(cell).count()));
    }
    Some(match trials.measured_in(cell, metric) {
        (0, _) => reason,
        (some, all) => {
            format!("omitted: available in {some} of {all} trials; reporting it would bias the result ({reason})")
        }
    })
}

/// The estimate from trial numbers with values; `None` without values.
pub fn estimate(mut values: Vec<(u32, f64)>, bootstrap: &mut Bootstrap) -> Option<Estimate> {
    values.sort_by_key(|(number, _)| *number);
    let plain: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let sorted = quantile::sorted(&plain);
    let at = |q| quantile::interpolated(&sorted, q);
    let (first, third) = (at(0.25)?, at(0.75)?);
    let fence = 1.5 * (third - first);
    let outside = |value: f64| value < first - fence || value > third + fence;
    Some(Estimate {
        median: at(0.5)?,
        interval: bootstrap.distribution(&[&plain], |medians| medians[0]).map(|d| d.interval(0.95)),
        quartiles: (first, third),
        range: (at(0.0)?, at(1.0)?),
        outliers: values.iter().filter(|(_, value)| outside(*value)).map(|(number, _)| *number).collect(),
        values,
    })
}

/// The most frequent text; among equally frequent texts the first.
pub fn most_frequent(texts: impl IntoIterator<Item = String>) -> Option<String> {
    let mut counts: IndexMap<String, u32> = IndexMap::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_is_marked_and_stays_in_the_estimate() {
        let values: Vec<_> = (0..9).map(|i| (i, f64::from(10 + i))).chain([(9, 100.0)]).collect();
        let estimate = estimate(values, &mut Bootstrap::new(1)).unwrap();
        assert_eq!(estimate.outliers, [9]);
        assert_eq!((estimate.median, estimate.range, estimate.values.len()), (14.5, (10.0, 100.0), 10));
        assert_eq!(estimate.quartiles, (12.25, 16.75));
        let interval = estimate.interval.unwrap();
        assert!(interval.low >= 10.0 && interval.low < 14.5 && interval.high > 14.5, "{interval:?}");
    }

    #[test]
    fn two_trials_give_a_median_without_an_interval() {
        let estimate = estimate(vec![(1, 3.0), (0, 1.0)], &mut Bootstrap::new(1)).unwrap();
        assert_eq!((estimate.median, estimate.interval, estimate.values), (2.0, None, vec![(0, 1.0), (1, 3.0)]));
    }

    #[test]
    fn the_most_frequent_reason_is_named_and_of_equals_the_first() {
        let of = |texts: &[&str]| most_frequent(texts.iter().map(|text| (*text).to_owned()));
        assert_eq!(of(&["a", "b", "b"]).as_deref(), Some("b"));
        assert_eq!(of(&["a", "b"]).as_deref(), Some("a"));
        assert_eq!(of(&[]), None);
    }
}
