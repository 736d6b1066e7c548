//! The loop over blocks, which studies, probes and page loads share: one rule for giving up, and one for stopping.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::{info, info_span};
use wirelab_model::journal::StopReason;
use wirelab_model::outcome::Outcome;
use wirelab_model::plan::Trial;

use crate::blocks::given_up::given_up;
use crate::pace::Pace;

/// Work that consists of blocks, with one trial of every cell in each block.
pub trait Blocks {
    /// Why the work cannot continue.
    type Error;

    /// Begins a block; returns the trials to perform, in their order.
    ///
    /// # Errors
    /// If the work cannot continue.
    fn begin(&mut self, block: u32) -> Result<Vec<Trial>, Self::Error>;

    /// Label of a cell.
    fn label(&self, cell: usize) -> String;

    /// Outcomes of earlier trials that predict the next trial of this cell, the newest first.
    fn outcomes(&self, cell: usize) -> Vec<&Outcome>;

    /// Shows the progress, before and after each trial.
    fn show(&mut self, trial: &Trial);

    /// The pace that spares servers of other owners. A trial begins when its interval has ended, and the next interval
    /// begins after the trial.
    fn pace(&mut self) -> Option<&mut Pace> {
        None
    }

    /// Performs a trial. `false`: it was interrupted and left no result.
    ///
    /// # Errors
    /// If the work cannot continue.
    fn perform(&mut self, trial: &Trial) -> Result<bool, Self::Error>;

    /// Records the outcome of a trial that is not performed, because its cell is given up.
    ///
    /// # Errors
    /// If the work cannot continue.
    fn give_up(&mut self, trial: &Trial, outcome: Outcome) -> Result<(), Self::Error>;

    /// Ends a block. Returns the reason why no further block starts, if any.
    ///
    /// # Errors
    /// If the work cannot continue.
    fn end(&mut self, _block: u32) -> Result<Option<StopReason>, Self::Error> {
        Ok(None)
    }
}

/// Performs these blocks. A cell is given up after `give_up_after` trials in a row that failed in the same way.
///
/// # Errors
/// If the work cannot continue.
pub fn each_block<B: Blocks>(
    work: &mut B,
    numbers: Range<u32>,
    give_up_after: Option<u32>,
    stop: &AtomicBool,
) -> Result<StopReason, B::Error> {
    for number in numbers {
        let _span = info_span!("block", number).entered();
        for trial in work.begin(number)? {
            if stop.load(Ordering::Relaxed) {
                return Ok(StopReason::Interrupted);
            }
            let _span = info_span!("trial", number = trial.number, cell = work.label(trial.cell)).entered();
            work.show(&trial);
            match give_up_after.and_then(|after| given_up(&work.outcomes(trial.cell), after)) {
                Some(outcome) => {
                    info!("trial not run, because its cell is given up");
                    work.give_up(&trial, outcome)?;
                }
                None => {
                    if let Some(pace) = work.pace() {
                        pace.wait(stop);
                        if stop.load(Ordering::Relaxed) {
                            return Ok(StopReason::Interrupted);
                        }
                    }
                    info!("trial started");
                    if !work.perform(&trial)? {
                        return Ok(StopReason::Interrupted);
                    }
                    if let Some(pace) = work.pace() {
                        pace.rest();
                    }
                }
            }
            work.show(&trial);
        }
        if let Some(reason) = work.end(number)? {
            return Ok(reason);
        }
    }
    Ok(StopReason::MaxBlocks)
}

#[cfg(test)]
mod tests {
    use wirelab_model::outcome::Blame;

    use super::*;

    /// Two cells: the first always succeeds, the second always fails.
    #[derive(Default)]
    struct Work {
        performed: Vec<(usize, Outcome)>,
        given_up: Vec<u32>,
        stops_at: Option<u32>,
    }

    impl Blocks for Work {
        type Error = String;

        fn begin(&mut self, block: u32) -> Result<Vec<Trial>, String> {
            let trial =
                |cell: usize| Trial { number: 2 * block + cell as u32, block, position: cell as u32, cell, seed: 1 };
            Ok(vec![trial(0), trial(1)])
        }

        fn label(&self, cell: usize) -> String {
            format!("cell {cell}")
        }

        fn outcomes(&self, cell: usize) -> Vec<&Outcome> {
            self.performed.iter().rev().filter(|(of, _)| *of == cell).map(|(_, outcome)| outcome).collect()
        }

        fn show(&mut self, _: &Trial) {}

        fn perform(&mut self, trial: &Trial) -> Result<bool, String> {
            let outcome = [Outcome::Ok, Outcome::failed(Blame::Server, "refused")][trial.cell].clone();
            self.performed.push((trial.cell, outcome));
            Ok(self.stops_at != Some(trial.number))
        }

        fn give_up(&mut self, trial: &Trial, _: Outcome) -> Result<(), String> {
            self.given_up.push(trial.number);
            Ok(())
        }
    }

    #[test]
    fn a_cell_is_given_up_and_the_others_go_on() {
        let mut work = Work::default();
        let reason = each_block(&mut work, 0..4, Some(2), &AtomicBool::new(false));
        assert_eq!((reason, work.given_up), (Ok(StopReason::MaxBlocks), vec![5, 7]));
        assert_eq!(work.performed.iter().filter(|(cell, _)| *cell == 0).count(), 4);
    }

    #[test]
    fn an_interrupted_trial_and_the_flag_end_the_work() {
        let mut work = Work { stops_at: Some(2), ..Work::default() };
        assert_eq!(each_block(&mut work, 0..4, None, &AtomicBool::new(false)), Ok(StopReason::Interrupted));
        assert_eq!(work.performed.len(), 3);
        assert_eq!(each_block(&mut work, 0..4, None, &AtomicBool::new(true)), Ok(StopReason::Interrupted));
        assert_eq!(work.performed.len(), 3);
    }
}
