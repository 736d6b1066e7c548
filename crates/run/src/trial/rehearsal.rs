//! The start of a cell's servers before the run, without clients: a program that never listens is found once, and not
//! in every trial.

use std::fs;

use wirelab_lab::PreparedLab;
use wirelab_model::plan::{Cell, Trial};

use crate::error::RunError;
use crate::trial::context::{Facts, TrialContext};
use crate::trial::endpoint_handle::TrialAbort;
use crate::trial::life::cell;
use crate::trial::names::server_log;

impl TrialContext<'_> {
    /// Starts the servers of a trial and ends them. The logs stay if they do not start.
    pub(crate) fn rehearse(&self, lab: &mut dyn PreparedLab, trial: &Trial) -> Result<(), TrialAbort> {
        let cell: &Cell = cell(self.plan, trial)?;
        let servers = {
            let mut arena = lab.open(trial, &cell.job)?;
            let inputs = self.trial_inputs(arena.as_mut(), trial, cell, &[])?;
            let mut facts = Facts::default();
            let mut serving = self.start_servers(arena.as_mut(), &inputs, &mut facts)?;
            self.end_servers(&mut serving, &mut facts)?;
            inputs.lifetimes.servers
        };
        for number in 0..servers {
            let log = self.folder.log(trial, &server_log(number));
            fs::remove_file(&log).map_err(RunError::io("cannot remove", &log))?;
        }
        Ok(())
    }
}
