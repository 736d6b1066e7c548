//! Planted trials of a run: when one is due, and how it is executed.

use std::collections::{BTreeMap, HashSet};
use std::fs;

use wirelab_lab::PreparedLab;
use wirelab_model::journal::{Entry, TrialRecord};
use wirelab_model::metric::Value;
use wirelab_model::plan::Trial;
use wirelab_model::planted::{Calibration, PlantedRecord, Planting};
use wirelab_model::units::{Share, Span};
use wirelab_plan::{PlantedTrial, planted_trials, with_work};

use super::Session;
use crate::error::RunError;
use crate::progress::Phase;
use crate::run::Run;
use crate::spec::Files;
use crate::store::journal::timestamp;

/// The metric whose size is planted.
const METRIC: &str = "response_median";

impl Run {
    /// The planted trials of a block that the journal lacks, in the order of their positions. None if the planted
    /// trials of earlier blocks took more than their share of the time, give or take one trial.
    ///
    /// Before the first calibration they come after all trials of the block, which calibrate them.
    pub(super) fn due(&self, block: u32) -> Vec<PlantedTrial> {
        let Some(planting @ Planting::Effects { time, .. }) = &self.manifest.planted else { return Vec::new() };
        if self.is_spent(*time, &self.planted.iter().map(|planted| &planted.record).collect::<Vec<_>>(), block) {
            return Vec::new();
        }
        let recorded: HashSet<u32> = self.planted.iter().map(|planted| planted.record.trial.number).collect();
        let mut due = planted_trials(&self.manifest.plan, planting, block);
        due.retain(|planted| !recorded.contains(&planted.trial.number));
        if self.calibration.is_none() {
            due.iter_mut().for_each(|planted| planted.before = self.manifest.plan.cells.len() as u32);
        }
        due
    }

    /// Whether trials beside the plan took more than their share of the time in earlier blocks, give or take one trial.
    pub(super) fn is_spent(&self, share: Share, beside: &[&TrialRecord], block: u32) -> bool {
        let took = |record: &TrialRecord| record.took_ns as f64;
        let earlier: Vec<f64> = beside.iter().filter(|r| r.trial.block < block).map(|record| took(record)).collect();
        let ordinary: f64 = self.trials.iter().filter(|record| record.trial.block < block).map(took).sum();
        let spent: f64 = earlier.iter().sum();
        let one = spent / (earlier.len().max(1)) as f64;
        spent > share.0 * (spent + ordinary) + one
    }

    /// The calibration from the first block in which both halves of the A/A pair of this cell have a response time.
    fn calibrate(&self, cell: usize) -> Option<Calibration> {
        let pair = self.manifest.plan.comparisons.iter().find(|pair| pair.aa && pair.baseline == cell)?;
        let response = |record: &TrialRecord| record.values.get(METRIC).and_then(Value::number);
        let of = |cell: usize| -> BTreeMap<u32, f64> {
            let records = self.trials.iter().filter(|record| record.trial.cell == cell);
            records.filter_map(|record| Some((record.trial.block, response(record)?))).collect()
        };
        let others = of(pair.cell);
        let (block, (one, other)) =
            of(cell).into_iter().find_map(|(block, one)| Some((block, (one, *others.get(&block)?))))?;
        let response_ns = ((one + other) / 2.0).round() as u64;
        (response_ns > 0).then(|| Calibration { block, at: timestamp(), response_ns })
    }
}

impl Session<'_> {
    /// Executes a planted trial and journals it. It is skipped as long as no baseline trial succeeded. `false`: it was
    /// interrupted and left no record.
    pub(super) fn plant(
        &mut self,
        lab: &mut dyn PreparedLab,
        files: &Files,
        planted: &PlantedTrial,
    ) -> Result<bool, RunError> {
        let calibration = match &self.run.calibration {
            Some(calibration) => calibration.clone(),
            None => {
                let Some(calibration) = self.run.calibrate(planted.trial.cell) else { return Ok(true) };
                self.append(Entry::Calibrated(calibration.clone()))?;
                calibration
            }
        };
        let work_ns = calibration.work_ns(planted.size);
        let plan = with_work(&self.run.manifest.plan, planted.trial.cell, planted.size, Span(work_ns));
        let trial = Trial { cell: plan.cells.len() - 1, ..planted.trial };
        self.report(Phase::Planting, Some(&planted.trial));
        let Some(mut record) = self.trial(lab, files, &plan, &trial)? else { return Ok(false) };
        record.trial = planted.trial;
        self.remove_results(&mut record)?;
        self.append(Entry::Planted(PlantedRecord { size: planted.size, work_ns, record })).map(|()| true)
    }

    /// Removes the results file of a trial beside the plan. The journal has all that a report needs, and the folder of
    /// samples stays that of the plan.
    pub(super) fn remove_results(&self, record: &mut TrialRecord) -> Result<(), RunError> {
        let Some(results) = record.results.take() else { return Ok(()) };
        let path = self.run.folder.path().join(results);
        fs::remove_file(&path).map_err(RunError::io("cannot remove", &path))
    }
}
