//! Cells that are given up after repeated identical failures: a pair of endpoints that hangs costs a few time-outs,
//! not one in every block.

use wirelab_model::journal::TrialRecord;
use wirelab_model::outcome::{Blame, NOT_RUN, Outcome, without_numbers};

/// The outcome of a cell's next trial without running it, if its last `after` records failed in the same way; `None`:
/// run it. The outcome has the same kind and blame.
pub(crate) fn given_up(records: &[TrialRecord], cell: usize, after: u32) -> Option<Outcome> {
    let after = after as usize;
    let mut last = records.iter().rev().filter(|record| record.trial.cell == cell).map(|record| &record.outcome);
    let newest = last.next()?;
    // A cell that was given up stays given up.
    if reason_of(newest)?.starts_with(NOT_RUN) {
        return Some(newest.clone());
    }
    let way = way(newest)?;
    if last.take(after - 1).filter(|outcome| self::way(outcome).as_ref() == Some(&way)).count() + 1 < after {
        return None;
    }
    let why = |reason: &str| format!("{NOT_RUN} {after} trials in a row ended like this: {reason}");
    Some(match newest {
        Outcome::Ok => return None,
        Outcome::Failed { blame, reason } => Outcome::failed(*blame, why(reason)),
        Outcome::Unsupported { reason } => Outcome::Unsupported { reason: why(reason) },
    })
}

fn reason_of(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Ok => None,
        Outcome::Failed { reason, .. } | Outcome::Unsupported { reason } => Some(reason),
    }
}

/// Key that is equal for two trials that failed in the same way. `None` for successes, and for failures that neither
/// server nor client caused: faults of lab or machine predict nothing about the next trial.
fn way(outcome: &Outcome) -> Option<(Option<Blame>, String)> {
    let blame = match outcome {
        Outcome::Failed { blame: blame @ (Blame::Server | Blame::Client), .. } => Some(*blame),
        Outcome::Unsupported { .. } => None,
        Outcome::Ok | Outcome::Failed { .. } => return None,
    };
    Some((blame, without_numbers(reason_of(outcome)?)))
}

#[cfg(test)]
mod tests {
    use wirelab_model::plan::Trial;

    use super::*;

    fn records(outcomes: &[(usize, Outcome)]) -> Vec<TrialRecord> {
        let record = |(number, (cell, outcome)): (usize, &(usize, Outcome))| TrialRecord {
            trial: Trial { number: number as u32, block: 0, position: 0, cell: *cell, seed: 1 },
            at: String::new(),
            took_ns: 1,
            outcome: outcome.clone(),
            window_ns: 0,
            values: Default::default(),
            results: None,
            server: Default::default(),
            client: Default::default(),
            timeline: None,
            clients: Vec::new(),
            profile: Vec::new(),
            warnings: Vec::new(),
        };
        outcomes.iter().enumerate().map(record).collect()
    }

    fn hung(port: u16) -> (usize, Outcome) {
        (1, Outcome::failed(Blame::Client, format!("timeout at 127.0.0.1:{port}")))
    }

    #[test]
    fn a_cell_is_given_up_after_enough_identical_failures_in_a_row() {
        let other = (2, Outcome::Ok);
        let twice = records(&[hung(1), other.clone(), hung(22)]);
        assert_eq!((given_up(&twice, 1, 3), given_up(&twice, 2, 1), given_up(&twice, 3, 1)), (None, None, None));
        let outcome = given_up(&twice, 1, 2).unwrap();
        let Outcome::Failed { blame: Blame::Client, reason } = &outcome else { panic!("{outcome:?}") };
        assert_eq!(reason, "not run, because 2 trials in a row ended like this: timeout at 127.0.0.1:22");
        // Later records repeat the reason, instead of quoting it again.
        assert_eq!(given_up(&records(&[hung(1), hung(2), (1, outcome.clone())]), 1, 2), Some(outcome));
    }

    #[test]
    fn other_failures_successes_and_faults_of_the_lab_reset_the_count() {
        let reset = (1, Outcome::failed(Blame::Client, "reset"));
        let server = (1, Outcome::failed(Blame::Server, "timeout at 127.0.0.1:1"));
        let lab = (1, Outcome::failed(Blame::Lab, "no namespace"));
        for between in [reset, server, (1, Outcome::Ok), lab.clone()] {
            assert_eq!(given_up(&records(&[hung(1), between, hung(2)]), 1, 2), None);
        }
        assert_eq!(given_up(&records(&[lab.clone(), lab]), 1, 2), None);
        let refused = (1, Outcome::Unsupported { reason: "no `gso`".to_owned() });
        let outcome = given_up(&records(&[refused.clone(), refused]), 1, 2).unwrap();
        assert!(matches!(outcome, Outcome::Unsupported { .. }), "{outcome:?}");
    }
}
