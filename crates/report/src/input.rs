//! The input of a report.

use wirelab_model::film::Developed;
use wirelab_model::integrity::Integrity;
use wirelab_model::journal::{LinkCheck, StopReason, TrialRecord};
use wirelab_model::manifest::Manifest;
use wirelab_model::metric::Metric;
use wirelab_model::page::PageLoad;
use wirelab_model::table::{Design, Table};
use wirelab_stats::analysis::{Analysis, CellAnalysis, Compared, Estimate};

use crate::by_request::OfRequest;
use crate::no_requests::NoRequests;

/// The complete input of a report. All of it comes from the run folder, or from an imported table.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// `manifest.json`.
    pub manifest: &'a Manifest,
    /// The source of imported measurements; `None` for a run. With a table, only study and plan of the manifest are
    /// meaningful.
    pub table: Option<&'a Table>,
    /// The trials of the journal, in its order.
    pub trials: &'a [TrialRecord],
    /// The measurements of the lab's links, in the order of the journal.
    pub links: &'a [LinkCheck],
    /// The reason why the run stopped; `None` while it can continue, or after it was killed.
    pub stopped: Option<StopReason>,
    /// The result of checking the run folder's checksums; `None` for a table.
    pub integrity: Option<&'a Integrity>,
    /// The statistics of the trials.
    pub analysis: &'a Analysis,
    /// The declarations of every metric that the run may have measured.
    pub metrics: &'a [&'a Metric],
    /// The pooled response times of a cell by its number, or the reason for their absence.
    pub pooled: &'a dyn Fn(usize) -> Result<Pooled, NoRequests>,
    /// The results of each request in a cell by its number; empty unless it has several requests of the user.
    pub by_request: &'a dyn Fn(usize) -> Vec<OfRequest>,
    /// A typical load of a cell by its number; `None` if its client loads no pages, or no load succeeded.
    pub typical_load: &'a dyn Fn(usize) -> Option<PageLoad>,
    /// The film of a typical load of a cell by its number, with its pictures (JPEG); `None` if no load was filmed.
    pub typical_film: &'a dyn Fn(usize) -> Option<Developed>,
}

impl<'a> Input<'a> {
    /// The analysis of a cell; `None` only if the analysis belongs to another run.
    pub(crate) fn cell(&self, cell: usize) -> Option<&'a CellAnalysis> {
        self.analysis.cells.get(cell)
    }

    /// The estimate of a metric in a cell.
    pub(crate) fn estimate(&self, cell: usize, metric: &str) -> Option<&'a Estimate> {
        self.cell(cell)?.estimates.get(metric)
    }

    /// The numbers of trials with a value and of successful trials, if they differ.
    pub(crate) fn partly(&self, cell: usize, metric: &str) -> Option<(usize, usize)> {
        let ok = self.cell(cell)?.ok as usize;
        let measured = self.estimate(cell, metric)?.values.len();
        (measured < ok).then_some((measured, ok))
    }

    /// The reason why a metric has no estimate in a cell.
    pub(crate) fn why_missing(&self, cell: usize, metric: &str) -> String {
        let Some(analysis) = self.cell(cell) else {
            return "the analysis lacks this cell".to_owned();
        };
        if let Some(reason) = analysis.not_measured.get(metric) {
            return reason.clone();
        }
        match &analysis.reason {
            Some(reason) if analysis.ok == 0 => reason.clone(),
            _ if analysis.ok == 0 => "no trial of this cell succeeded".to_owned(),
            _ => "no observer of this run measures it".to_owned(),
        }
    }

    /// The comparison of a cell with its baseline; A/A pairs are excluded.
    pub(crate) fn compared(&self, cell: usize, metric: &str) -> Option<&'a Compared> {
        self.analysis
            .comparisons
            .iter()
            .find(|compared| compared.cell == cell && compared.metric == metric && !compared.aa)
    }

    /// The design: blocks, or independent observations.
    pub(crate) fn design(&self) -> Design {
        self.table.map_or(Design::Blocks, |table| table.design)
    }

    /// The number of blocks that a verdict needs in this study, or of observations without blocks.
    pub(crate) fn blocks_needed(&self) -> u32 {
        let needed = self.analysis.comparisons.iter().filter(|compared| !compared.aa && !compared.exploratory);
        needed.map(|compared| compared.blocks_needed).max().unwrap_or(wirelab_stats::compare::MIN_BLOCKS)
    }

    /// The declaration of a metric.
    pub(crate) fn metric(&self, name: &str) -> Option<&'a Metric> {
        self.metrics.iter().copied().find(|metric| metric.name == name)
    }

    /// The first metric: it decides when the study stops, and the verdicts refer to it.
    pub(crate) fn first_metric(&self) -> &'a str {
        self.manifest.study.compare.metrics.first().map_or("response_median", String::as_str)
    }
}

/// The response times of all successful requests of all successful trials of a cell. Pooled requests show the shape of
/// a distribution; intervals and verdicts come from trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Pooled {
    /// The number of trials.
    pub trials: u32,
    /// The number of requests.
    pub requests: u64,
    /// Pairs of a share (0 to 1) of the requests and the nanoseconds within which it was answered; both ascending.
    pub quantiles: Vec<(f64, f64)>,
    /// The values in nanoseconds with their counts, ascending.
    pub counts: Vec<(u64, u64)>,
}

/// The number of points of a curve, which gives about one per pixel in steep parts.
const POINTS: usize = 160;

impl Pooled {
    /// From values in any order; `None` without values.
    #[must_use]
    pub fn from_values(trials: u32, mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        Self::from_counts(trials, values.into_iter().map(|value| (value, 1)))
    }

    /// From ascending values with their counts, as in a histogram; `None` if all counts are 0.
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
            // The inverse of the empirical distribution function: the smallest value that bounds at least this share.
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
