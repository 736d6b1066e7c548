//! The stopping rule.

use wirelab_model::journal::{StopReason, TrialRecord};
use wirelab_model::plan::{Comparison, Plan};
use wirelab_model::study::Study;

use crate::analysis::Interval;
use crate::bootstrap::Bootstrap;
use crate::metrics::METRICS;
use crate::trials::Trials;

/// Returns a reason to stop if the study is precise enough: the minimum of blocks is complete, and in the first metric
/// the 95 % interval of every comparison reaches at most `precision` (a share of the ratio) to either side.
///
/// Sequential intervals of fixed width after Chow and Robbins (1965), "On the asymptotic theory of fixed-width
/// sequential confidence intervals". The rule uses only the width of intervals, never their position or a P value.
/// Stopping at significance would give every study several chances of a false verdict, whereas the width has no
/// direction. Simulation checks the error rate (`docs/statistics.md`).
///
/// A/A pairs decide only if a study has no other comparison. A comparison without a ratio (a side without values, a
/// baseline of 0) is skipped; if no comparison has a ratio, the study is not precise.
#[must_use]
pub fn enough(study: &Study, plan: &Plan, trials: &[TrialRecord]) -> Option<StopReason> {
    let metric = study.compare.metrics.first()?;
    let trials = Trials::of(plan, trials, &METRICS.iter().collect::<Vec<_>>());
    if trials.complete_blocks() < plan.min_blocks {
        return None;
    }
    let mut bootstrap = Bootstrap::new(study.seed);
    let mut any = false;
    for comparison in deciding(&plan.comparisons) {
        let values = trials.paired(&[comparison.cell, comparison.baseline], metric);
        let (Some(cell), Some(baseline)) =
            (crate::quantile::median(&values[0]), crate::quantile::median(&values[1]).filter(|m| *m != 0.0))
        else {
            continue;
        };
        let interval = bootstrap.distribution(&[&values[0], &values[1]], |m| m[0] / m[1])?.interval(0.95);
        if !is_precise(cell / baseline, interval, plan.precision) {
            return None;
        }
        any = true;
    }
    any.then_some(StopReason::Precise)
}

/// The comparisons that decide.
fn deciding(comparisons: &[Comparison]) -> impl Iterator<Item = &Comparison> {
    let only_aa = comparisons.iter().all(|comparison| comparison.aa);
    comparisons.iter().filter(move |comparison| only_aa || !comparison.aa)
}

/// Whether neither end of the interval is farther from the ratio than the share `precision` of it.
#[must_use]
pub fn is_precise(ratio: f64, interval: Interval, precision: f64) -> bool {
    let reach = (interval.high - ratio).max(ratio - interval.low);
    reach <= precision * ratio.abs()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::{plan, records, study};

    const LEVELS: [f64; 4] = [1000.0, 1200.0, 8000.0, 8000.0];

    fn asked(records: &[TrialRecord], plan: &Plan) -> Option<StopReason> {
        enough(&study(&json!({})), plan, records)
    }

    #[test]
    fn narrow_intervals_are_enough_once_the_minimum_of_blocks_is_complete() {
        assert_eq!(asked(&records(9, LEVELS), &plan()), None);
        assert_eq!(asked(&records(10, LEVELS), &plan()), Some(StopReason::Precise));
        let strict = Plan { precision: 0.001, ..plan() };
        assert_eq!(asked(&records(10, LEVELS), &strict), None);
    }

    #[test]
    fn a_block_that_lacks_a_trial_is_not_complete() {
        let mut records = records(10, LEVELS);
        records.pop();
        assert_eq!(asked(&records, &plan()), None);
    }

    #[test]
    fn one_wide_interval_goes_on_unless_it_is_that_of_an_aa_pair() {
        let widened = |cell| {
            let mut records = records(10, LEVELS);
            for record in records.iter_mut().filter(|record| record.trial.cell == cell) {
                let value = 1000.0 * (1.0 + f64::from(record.trial.block % 4));
                record.values.insert("response_median".to_owned(), wirelab_model::metric::Value::Measured(value));
            }
            records
        };
        assert_eq!(asked(&widened(1), &plan()), None);
        assert_eq!(asked(&widened(4), &plan()), Some(StopReason::Precise));
        let only_aa = Plan { comparisons: plan().comparisons.split_off(2), ..plan() };
        assert_eq!(asked(&widened(4), &only_aa), None);
        assert_eq!(asked(&records(10, LEVELS), &only_aa), Some(StopReason::Precise));
    }

    #[test]
    fn a_cell_without_values_holds_nothing_up_and_no_values_at_all_are_not_precise() {
        let mut records = records(10, LEVELS);
        records.iter_mut().filter(|record| record.trial.cell == 1).for_each(|record| record.values.clear());
        assert_eq!(asked(&records, &plan()), Some(StopReason::Precise));
        records.iter_mut().for_each(|record| record.values.clear());
        assert_eq!(asked(&records, &plan()), None);
    }
}
