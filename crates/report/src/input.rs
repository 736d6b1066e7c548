//! What a report is made of.

use wirelab_model::film::Developed;
use wirelab_model::journal::{LinkCheck, StopReason, TrialRecord};
use wirelab_model::manifest::Manifest;
use wirelab_model::metric::Metric;
use wirelab_model::page::PageLoad;
use wirelab_model::table::{Design, Table};
use wirelab_stats::analysis::{Analysis, CellAnalysis, Compared, Estimate};

/// Everything that a report is a function of. All of it comes from the run folder.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// `manifest.json`.
    pub manifest: &'a Manifest,
    /// Where the numbers come from, if wirelab did not measure them: then the manifest has a study and a plan, and nothing else in it
    /// means anything.
    pub table: Option<&'a Table>,
    /// The trials of the journal, in its order.
    pub trials: &'a [TrialRecord],
    /// What the lab's links were measured to do, in the order of the journal.
    pub links: &'a [LinkCheck],
    /// Why no further block started; absent while the run can go on, or where it was killed.
    pub stopped: Option<StopReason>,
    /// What the statistics say of them.
    pub analysis: &'a Analysis,
    /// The declarations of every metric that the run may have measured.
    pub metrics: &'a [&'a Metric],
    /// The pooled response times of a cell by its number, or the reason why there are none.
    pub pooled: &'a dyn Fn(usize) -> Result<Pooled, String>,
    /// A typical load of a cell by its number; absent where its client loads no pages, or no load of it succeeded.
    pub typical_load: &'a dyn Fn(usize) -> Option<PageLoad>,
    /// The film of a typical load of a cell by its number, with its pictures (JPEG); absent where no load was filmed.
    pub typical_film: &'a dyn Fn(usize) -> Option<Developed>,
}

impl<'a> Input<'a> {
    /// What is known of a cell; absent only if the analysis is of another run.
    pub(crate) fn cell(&self, cell: usize) -> Option<&'a CellAnalysis> {
        self.analysis.cells.get(cell)
    }

    /// The estimate of a metric in a cell.
    pub(crate) fn estimate(&self, cell: usize, metric: &str) -> Option<&'a Estimate> {
        self.cell(cell)?.estimates.get(metric)
    }

    /// Where only some of a cell's successful trials have a value of a metric: how many, and of how many.
    pub(crate) fn partly(&self, cell: usize, metric: &str) -> Option<(usize, usize)> {
        let ok = self.cell(cell)?.ok as usize;
        let measured = self.estimate(cell, metric)?.values.len();
        (measured < ok).then_some((measured, ok))
    }

    /// Why a metric has no estimate in a cell.
    pub(crate) fn why_missing(&self, cell: usize, metric: &str) -> String {
        let Some(analysis) = self.cell(cell) else {
            return "the analysis does not have this cell".to_owned();
        };
        if let Some(reason) = analysis.not_measured.get(metric) {
            return reason.clone();
        }
        match &analysis.reason {
            Some(reason) if analysis.ok == 0 => reason.clone(),
            _ if analysis.ok == 0 => "no trial of this cell ended well".to_owned(),
            _ => "no observer of this run measures it".to_owned(),
        }
    }

    /// The comparison of a cell with its baseline; not that of an A/A pair.
    pub(crate) fn compared(&self, cell: usize, metric: &str) -> Option<&'a Compared> {
        self.analysis
            .comparisons
            .iter()
            .find(|compared| compared.cell == cell && compared.metric == metric && !compared.aa)
    }

    /// Which observations belong together.
    pub(crate) fn design(&self) -> Design {
        self.table.map_or(Design::Blocks, |table| table.design)
    }

    /// Blocks that a verdict needs in this study, or observations where there are no blocks.
    pub(crate) fn blocks_needed(&self) -> u32 {
        let family = self.manifest.plan.comparisons.iter().filter(|comparison| !comparison.aa).count();
        wirelab_stats::compare::needed(self.design(), family)
    }

    /// The declaration of a metric.
    pub(crate) fn metric(&self, name: &str) -> Option<&'a Metric> {
        self.metrics.iter().copied().find(|metric| metric.name == name)
    }

    /// The metric that decides when the study stops; verdicts are about it first.
    pub(crate) fn first_metric(&self) -> &'a str {
        self.manifest.study.compare.metrics.first().map_or("response_median", String::as_str)
    }
}

/// The response times of all successful requests of all successful trials of a cell, as quantiles. Requests of different
/// trials are pooled, so this shows the shape of a distribution; intervals and verdicts never come from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Pooled {
    /// Trials that it was pooled from.
    pub trials: u32,
    /// Requests that it was pooled from.
    pub requests: u64,
    /// Pairs of a share from 0 to 1 and the nanoseconds within which that share of the requests was answered; both ascending.
    pub quantiles: Vec<(f64, f64)>,
    /// The values in nanoseconds with their counts, ascending.
    pub counts: Vec<(u64, u64)>,
}

/// Points of a curve: enough for one per pixel where the curve is steep.
const POINTS: usize = 160;

impl Pooled {
    /// From every value. The order of the values does not matter; absent if there are none.
    #[must_use]
    pub fn from_values(trials: u32, mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        Self::from_counts(trials, values.into_iter().map(|value| (value, 1)))
    }

    /// From values with their counts, in ascending order, as a histogram gives them; absent if all counts are 0.
    #[must_use]
    pub fn from_counts(trials: u32, counts: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let mut cumulative = Vec::new();
        let mut requests = 0_u64;
        let mut kept: Vec<(u64, u64)> = Vec::new();
        for (value, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            requests += count;
            cumulative.push((requests, value));
            match kept.last_mut() {
                Some((last, sum)) if *last == value => *sum += count,
                _ => kept.push((value, count)),
            }
        }
        let first = cumulative.first()?.1;
        let mut quantiles = vec![(0.0, first as f64)];
        let mut from = 0;
        for point in 1..=POINTS {
            // The inverse of the empirical distribution function: the smallest value that at least this share does not exceed.
            let share = point as f64 / POINTS as f64;
            let rank = ((share * requests as f64).ceil() as u64).clamp(1, requests);
            while cumulative[from].0 < rank {
                from += 1;
            }
            quantiles.push((share, cumulative[from].1 as f64));
        }
        Some(Self { trials, requests, quantiles, counts: kept })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pooled_quantiles_begin_at_the_minimum_and_end_at_the_maximum() {
        let pooled = Pooled::from_values(2, (1..=1000).rev().collect()).unwrap();
        assert_eq!(pooled.quantiles.first(), Some(&(0.0, 1.0)));
        assert_eq!(pooled.quantiles.last(), Some(&(1.0, 1000.0)));
        let half = pooled.quantiles.iter().find(|(share, _)| *share == 0.5).unwrap();
        assert_eq!(half.1, 500.0);
        assert_eq!(pooled.requests, 1000);
    }

    #[test]
    fn values_and_counts_give_the_same_quantiles() {
        let values = Pooled::from_values(1, vec![5, 5, 5, 9]).unwrap();
        assert_eq!(Some(values), Pooled::from_counts(1, [(5, 3), (7, 0), (9, 1)]));
        assert_eq!(Pooled::from_values(1, vec![]), None);
    }
}
