//! Reference trials of a run: which are due, and how they are executed.

use std::collections::HashSet;

use wirelab_lab::PreparedLab;
use wirelab_model::journal::Entry;
use wirelab_model::plan::Trial;
use wirelab_plan::{ReferenceTrial, reference_trials, with_null_server};

use super::Session;
use crate::error::RunError;
use crate::progress::Phase;
use crate::run::Run;
use crate::spec::Files;

impl Run {
    /// The reference trials of a block that the journal lacks, in the order of their positions. None if those of
    /// earlier blocks took more than their share of the time, give or take one trial.
    pub(super) fn due_references(&self, block: u32) -> Vec<ReferenceTrial> {
        let Some(references) = &self.manifest.references else { return Vec::new() };
        if self.is_spent(references.time, &self.references.iter().collect::<Vec<_>>(), block) {
            return Vec::new();
        }
        let recorded: HashSet<u32> = self.references.iter().map(|record| record.trial.number).collect();
        let mut due = reference_trials(&self.manifest.plan, references, block);
        due.retain(|reference| !recorded.contains(&reference.trial.number));
        due
    }
}

impl Session<'_> {
    /// Executes a reference trial and journals it. `false`: it was interrupted and left no record.
    pub(super) fn refer(
        &mut self,
        lab: &mut dyn PreparedLab,
        files: &Files,
        reference: &ReferenceTrial,
    ) -> Result<bool, RunError> {
        let Some(plan) = with_null_server(&self.run.manifest.plan, reference.trial.cell) else { return Ok(true) };
        let trial = Trial { cell: plan.cells.len() - 1, ..reference.trial };
        self.report(Phase::Referring, Some(&reference.trial));
        let Some(mut record) = self.trial(lab, files, &plan, &trial)? else { return Ok(false) };
        record.trial = reference.trial;
        self.remove_results(&mut record)?;
        self.append(Entry::Reference(record)).map(|()| true)
    }
}
