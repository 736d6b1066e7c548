//! Failures as outcomes of a comparison: a failed request or trial is not a fast one.
//!
//! Two rules prevent failures from improving the result of a cell. First, comparisons rank every failed request and
//! every failed trial as worse than all completed ones, as a composite endpoint of clinical trials ranks deaths
//! (Finkelstein and Schoenfeld 1999, "Combining mortality and longitudinal measures in clinical trials"). Second, a
//! cell that fails more often than the other by more than [`FAILURE_MARGIN`] gets no favourable verdict in any metric,
//! because the remaining requests are a selection.

use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::{Better, Value};
use wirelab_model::outcome::{Blame, Outcome};

use crate::analysis::{CannotTell, Interval, Verdict};
use crate::trials::Trials;

/// Difference of failure shares above which the cell that fails more gets no favourable verdict.
pub const FAILURE_MARGIN: f64 = 0.01;

/// Represents infinity for metrics with lower as better. It is finite, so that ratios and differences of medians stay
/// defined.
pub(crate) const INFINITE: f64 = 1e200;

/// Whether a number computed from medians involves no [`INFINITE`] median.
pub(crate) fn is_bounded(number: f64) -> bool {
    number == 0.0 || (1e-100..1e100).contains(&number.abs())
}

/// The same for both ends of an interval.
pub(crate) fn is_bounded_interval(interval: &Interval) -> bool {
    is_bounded(interval.low) && is_bounded(interval.high)
}

/// The rank of a failed trial: worse than every completed one.
pub(crate) const fn worst(better: Better) -> f64 {
    match better {
        Better::Lower => INFINITE,
        Better::Higher => 0.0,
    }
}

/// Whether a trial failed through one of the cell's own endpoints. A failure of the lab, of an observer or of wirelab
/// says nothing about the cell.
pub(crate) fn is_failure_of_cell(record: &TrialRecord) -> bool {
    match &record.outcome {
        Outcome::Failed { blame, .. } => {
            matches!(blame, Blame::Server | Blame::Client | Blame::Sidecar | Blame::ControlPlane)
        }
        Outcome::Ok | Outcome::Unsupported { .. } => false,
    }
}

/// Share of failed requests over the trials of a cell, 0 to 1; a failed trial counts as 1. `None` if no trial reports
/// it.
pub(crate) fn failure_share(trials: &Trials<'_>, cell: usize) -> Option<f64> {
    let of_trial = |record: &TrialRecord| match record.outcome {
        Outcome::Ok => record.values.get("error_share").and_then(Value::number),
        _ => is_failure_of_cell(record).then_some(1.0),
    };
    let shares: Vec<f64> = trials.of_cell(cell).filter_map(of_trial).collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// The verdict on the first of two cells against the second, withheld if it favours the cell that fails more.
pub(crate) fn withhold(verdict: Verdict, cells: [usize; 2], metric: &str, trials: &Trials<'_>) -> Verdict {
    let [Some(own), Some(others)] = cells.map(|cell| failure_share(trials, cell)) else { return verdict };
    let is_misleading = match (verdict, trials.better(metric)) {
        (Verdict::Less, Better::Lower) | (Verdict::More, Better::Higher) => own > others + FAILURE_MARGIN,
        (Verdict::Less | Verdict::More, _) => others > own + FAILURE_MARGIN,
        (Verdict::Equivalent, _) => (own - others).abs() > FAILURE_MARGIN,
        (Verdict::CannotTell { .. }, _) => false,
    };
    if is_misleading { Verdict::CannotTell { why: CannotTell::UnequalFailures } } else { verdict }
}
