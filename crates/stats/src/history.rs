//! A metric over several runs, with change points.

use serde::Serialize;
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::Metric;
use wirelab_model::plan::Plan;

use crate::bootstrap::Bootstrap;
use crate::change_points::{ChangePoint, change_points};
use crate::estimate::estimate;
use crate::trials::Trials;

/// The value of a metric in a cell of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Level {
    /// The median over trials.
    pub median: f64,
    /// The 95 % bootstrap interval of the median; `None` with fewer than five trials.
    pub interval: Option<[f64; 2]>,
    /// The number of trials.
    pub trials: usize,
}

/// The value of a metric in a cell; `None` if a trial lacks it.
#[must_use]
pub fn level(plan: &Plan, records: &[TrialRecord], cell: usize, metric: &Metric) -> Option<Level> {
    let trials = Trials::of(plan, records, &[metric]);
    let found = estimate(trials.measured(cell, metric.name), &mut Bootstrap::new(plan.seed))?;
    Some(Level {
        median: found.median,
        interval: found.interval.map(|interval| [interval.low, interval.high]),
        trials: found.values.len(),
    })
}

/// The change points of a cell over runs. Runs without a value are skipped; `at` is the place among all runs.
#[must_use]
pub fn changes(levels: &[Option<Level>], seed: u64) -> Vec<ChangePoint> {
    let (places, medians): (Vec<usize>, Vec<f64>) =
        levels.iter().enumerate().filter_map(|(place, level)| Some((place, level.as_ref()?.median))).unzip();
    let mut found = change_points(&medians, seed);
    found.iter_mut().for_each(|point| point.at = places[point.at]);
    found
}

#[cfg(test)]
mod tests {
    use wirelab_model::metric::{Better, Side, Unit};

    use super::*;
    use crate::fixture::{plan, records};

    const MEDIAN: Metric = Metric {
        name: "response_median",
        title: "Response time, median",
        unit: Unit::Nanoseconds,
        side: Side::Client,
        vantage: "",
        better: Better::Lower,
        meaning: "",
    };

    #[test]
    fn a_change_is_at_its_run_although_other_runs_have_no_value() {
        let levels: Vec<Option<Level>> = (0..14)
            .map(|run| {
                let size = if run < 7 { 1e6 } else { 1.2e6 } + f64::from(run) * 100.0;
                let records = if run == 3 { Vec::new() } else { records(10, [size; 4]) };
                level(&plan(), &records, 1, &MEDIAN)
            })
            .collect();
        assert_eq!((levels[3], levels[0].unwrap().trials), (None, 10));
        let [low, high] = levels[0].unwrap().interval.unwrap();
        assert!(low <= levels[0].unwrap().median && levels[0].unwrap().median <= high);
        let found = changes(&levels, 1);
        assert_eq!(found.iter().map(|point| point.at).collect::<Vec<_>>(), [7]);
        assert!((found[0].after / found[0].before - 1.2).abs() < 0.01);
    }
}
