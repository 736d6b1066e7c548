//! The relevant trials by cell and block.

use std::collections::{BTreeMap, BTreeSet};

use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::{Better, Metric, Value};
use wirelab_model::outcome::Outcome;
use wirelab_model::plan::Plan;
use wirelab_model::table::Design;

use crate::failures::{is_failure_of_cell, worst};
use crate::stationarity::PARTS;

/// The last record of every trial. A resumed run repeats a failed or interrupted trial, and the later record counts.
pub struct Trials<'a> {
    by_cell: Vec<BTreeMap<u32, &'a TrialRecord>>,
    design: Design,
    gaps: Gaps,
    /// The metrics with higher values as better.
    higher: BTreeSet<String>,
}

/// The effect of a missing value on the other values of the cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gaps {
    /// In a run the reason for the absence bears on the value, so the cell has no values.
    Invalidate,
    /// In a table the reason is unknown: the other values stand, and the report counts the missing ones.
    Skip,
}

impl<'a> Trials<'a> {
    /// Records by cell and block; records of cells outside the plan are skipped. `metrics` declare the better
    /// direction.
    pub fn of(plan: &Plan, records: &'a [TrialRecord], metrics: &[&Metric]) -> Self {
        let mut by_cell = vec![BTreeMap::new(); plan.cells.len()];
        for record in records {
            if let Some(blocks) = by_cell.get_mut(record.trial.cell) {
                blocks.insert(record.trial.block, record);
            }
        }
        let higher =
            metrics.iter().filter(|metric| metric.better == Better::Higher).map(|metric| metric.name.to_owned());
        Self { by_cell, design: Design::Blocks, gaps: Gaps::Invalidate, higher: higher.collect() }
    }

    /// The same for the observations of a table, which may have gaps and may lack blocks.
    pub fn of_table(plan: &Plan, records: &'a [TrialRecord], metrics: &[&Metric], design: Design) -> Self {
        Self { design, gaps: Gaps::Skip, ..Self::of(plan, records, metrics) }
    }

    /// The design: blocks, or independent observations.
    pub const fn design(&self) -> Design {
        self.design
    }

    /// Blocks in which every cell has a record, whatever its outcome.
    pub fn complete_blocks(&self) -> u32 {
        let Some((first, others)) = self.by_cell.split_first() else { return 0 };
        first.keys().filter(|block| others.iter().all(|cell| cell.contains_key(block))).count() as u32
    }

    /// The records of a cell in the order of blocks.
    pub fn of_cell(&self, cell: usize) -> impl Iterator<Item = &'a TrialRecord> {
        self.by_cell.get(cell).into_iter().flat_map(BTreeMap::values).copied()
    }

    /// The successful records of a cell in the order of blocks.
    pub fn ok(&self, cell: usize) -> impl Iterator<Item = &'a TrialRecord> {
        self.of_cell(cell).filter(|record| record.outcome == Outcome::Ok)
    }

    /// The values of a metric in the successful trials of a cell, with trial numbers. Empty unless all of them have a
    /// value: the reason for a missing value (too few requests for a percentile, no success) often makes a trial slow,
    /// so the rest would be biased.
    pub fn measured(&self, cell: usize, metric: &str) -> Vec<(u32, f64)> {
        self.values(cell, metric, |record| record.trial.number)
    }

    /// The values of a metric in the blocks with a successful trial of the cell, each with its block. Empty if the
    /// metric is not [`measured`](Self::measured).
    pub fn in_blocks(&self, cell: usize, metric: &str) -> Vec<(u32, f64)> {
        self.values(cell, metric, |record| record.trial.block)
    }

    fn values(&self, cell: usize, metric: &str, key: impl Fn(&TrialRecord) -> u32) -> Vec<(u32, f64)> {
        let values = self.ok(cell).map(|record| Some((key(record), number(record, metric)?)));
        match self.gaps {
            Gaps::Invalidate => values.collect::<Option<Vec<_>>>().unwrap_or_default(),
            Gaps::Skip => values.flatten().collect(),
        }
    }

    /// The number of successful trials of a cell with a value of the metric, and the number of all its successful
    /// trials.
    pub fn measured_in(&self, cell: usize, metric: &str) -> (usize, usize) {
        (self.ok(cell).filter(|record| number(record, metric).is_some()).count(), self.ok(cell).count())
    }

    /// The ranks of a metric in the blocks in which all cells have one: a list per cell, in the same order of blocks.
    /// Without blocks: all ranks of each cell.
    ///
    /// A completed trial has its value. A trial that failed through the cell, or whose percentile falls among failed
    /// requests, has the [worst rank](crate::failures). Lists are empty if a cell has no completed trial, or a trial
    /// without a value.
    pub fn paired(&self, cells: &[usize], metric: &str) -> Vec<Vec<f64>> {
        let ranks: Vec<_> = cells.iter().map(|cell| self.ranks(*cell, metric)).collect();
        if self.design == Design::Independent {
            return ranks.into_iter().map(|blocks| blocks.into_values().collect()).collect();
        }
        let mut lists = vec![Vec::new(); cells.len()];
        for block in ranks.first().into_iter().flat_map(BTreeMap::keys) {
            let of_block: Option<Vec<f64>> = ranks.iter().map(|ranks| ranks.get(block).copied()).collect();
            for (list, rank) in lists.iter_mut().zip(of_block.into_iter().flatten()) {
                list.push(rank);
            }
        }
        lists
    }

    /// The ranks of a cell by block; see [`paired`](Self::paired).
    pub fn ranks(&self, cell: usize, metric: &str) -> BTreeMap<u32, f64> {
        let worst = worst(self.better(metric));
        let completed = |record: &TrialRecord| match record.values.get(metric)? {
            Value::Infinite { .. } => Some(worst),
            _ => number(record, metric),
        };
        let is_whole = self.ok(cell).next().is_some() && self.ok(cell).all(|record| completed(record).is_some());
        if self.gaps == Gaps::Invalidate && !is_whole {
            return BTreeMap::new();
        }
        let rank = |record: &TrialRecord| match record.outcome {
            Outcome::Ok => completed(record),
            _ => is_failure_of_cell(record).then_some(worst),
        };
        let records = self.by_cell.get(cell).into_iter().flatten();
        records.filter_map(|(block, record)| Some((*block, rank(record)?))).collect()
    }

    /// The observations of a metric in a cell, by block: the value, or `None` for a trial that failed through the
    /// cell or whose value is infinite. `None` if the cell has no such trial, or a completed one lacks the value.
    pub fn observed(&self, cell: usize, metric: &str) -> Option<BTreeMap<u32, Option<f64>>> {
        let observe = |record: &TrialRecord| match record.outcome {
            Outcome::Ok => match record.values.get(metric) {
                Some(Value::Infinite { .. }) => Some(Ok(None)),
                Some(value) => Some(value.number().filter(|number| number.is_finite()).map(Some).ok_or(())),
                None => Some(Err(())),
            },
            _ => is_failure_of_cell(record).then_some(Ok(None)),
        };
        let records = self.by_cell.get(cell)?.iter();
        let observed: Result<BTreeMap<_, _>, ()> =
            records.filter_map(|(block, record)| Some(observe(record)?.map(|value| (*block, value)))).collect();
        observed.ok().filter(|observed| !observed.is_empty())
    }

    /// The profiles of a cell's trials, if they have one; see [`stationarity`](crate::stationarity).
    pub fn profiles(&self, cell: usize) -> Vec<[u64; PARTS]> {
        self.ok(cell).filter_map(|record| record.profile.as_slice().try_into().ok()).collect()
    }

    /// The better direction of a metric; lower for an unknown metric.
    pub fn better(&self, metric: &str) -> Better {
        if self.higher.contains(metric) { Better::Higher } else { Better::Lower }
    }
}

/// The finite value of a metric in a record.
fn number(record: &TrialRecord, metric: &str) -> Option<f64> {
    record.values.get(metric).and_then(Value::number).filter(|number| number.is_finite())
}
