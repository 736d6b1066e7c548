//! Cells that are given up after repeated identical failures: a pair of endpoints that hangs costs a few time-outs,
//! not one in every block.

use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::reason::Reason;

/// The outcome of a cell's next trial without running it, if its last `after` outcomes (the newest first) are the same
/// failure; `None`: run it. The outcome has the same kind and blame.
pub(crate) fn given_up(outcomes: &[&Outcome], after: u32) -> Option<Outcome> {
    let mut last = outcomes.iter();
    let newest = *last.next()?;
    // A cell that was given up stays given up.
    if newest.reason()?.is_not_run() {
        return Some(newest.clone());
    }
    let earlier = (after as usize).saturating_sub(1);
    if last.take(earlier).filter(|outcome| are_alike(outcome, newest)).count() < earlier {
        return None;
    }
    let not_run = |reason: &Reason| Reason::NotRun { after, cause: Box::new(reason.clone()) };
    match newest {
        Outcome::Failed { blame: blame @ (Blame::Server | Blame::Client), reason } => {
            Some(Outcome::failed(*blame, not_run(reason)))
        }
        Outcome::Unsupported { reason } => Some(Outcome::Unsupported { reason: not_run(reason) }),
        // Faults of lab or machine predict nothing about the next trial.
        Outcome::Ok | Outcome::Failed { .. } => None,
    }
}

/// Whether two trials failed in the same way.
fn are_alike(one: &Outcome, other: &Outcome) -> bool {
    match (one, other) {
        (Outcome::Failed { blame, reason }, Outcome::Failed { blame: other, reason: of_other }) => {
            blame == other && reason.is_like(of_other)
        }
        (Outcome::Unsupported { reason }, Outcome::Unsupported { reason: of_other }) => reason.is_like(of_other),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use wirelab_lab::LabError;
    use wirelab_model::outcome::ErrorKind;
    use wirelab_model::reason::{Attempt, ExitStatus, Party};

    use super::*;

    /// The rule for a cell, from the outcomes of several cells, the oldest first.
    fn given_up(outcomes: &[(usize, Outcome)], cell: usize, after: u32) -> Option<Outcome> {
        let of_cell = outcomes.iter().rev().filter(|(of, _)| *of == cell).map(|(_, outcome)| outcome);
        super::given_up(&of_cell.collect::<Vec<_>>(), after)
    }

    fn error(kind: ErrorKind, message: &str) -> Reason {
        Reason::EndpointError {
            party: Box::new(Party::Client { name: "a".to_owned(), number: None }),
            attempt: Attempt::Measuring,
            kind,
            message: message.to_owned(),
            exit: ExitStatus::Code(1),
            last_words: String::new(),
        }
    }

    fn hung(port: u16) -> (usize, Outcome) {
        (1, Outcome::failed(Blame::Client, error(ErrorKind::Timeout, &format!("at 127.0.0.1:{port}"))))
    }

    #[test]
    fn a_cell_is_given_up_after_enough_identical_failures_in_a_row() {
        let other = (2, Outcome::Ok);
        let twice = [hung(1), other.clone(), hung(22)];
        assert_eq!((given_up(&twice, 1, 3), given_up(&twice, 2, 1), given_up(&twice, 3, 1)), (None, None, None));
        let outcome = given_up(&twice, 1, 2).unwrap();
        let Outcome::Failed { blame: Blame::Client, reason } = &outcome else { panic!("{outcome:?}") };
        let cause = "the client `a` reported `timeout` while measuring: at 127.0.0.1:22";
        assert_eq!(reason.to_string(), format!("not run, because 2 trials in a row ended like this: {cause}"));
        // Later records repeat the reason, instead of quoting it again.
        assert_eq!(given_up(&[hung(1), hung(2), (1, outcome.clone())], 1, 2), Some(outcome));
    }

    #[test]
    fn other_failures_successes_and_faults_of_the_lab_reset_the_count() {
        let reset = (1, Outcome::failed(Blame::Client, error(ErrorKind::Reset, "at 127.0.0.1:1")));
        let server = (1, Outcome::failed(Blame::Server, error(ErrorKind::Timeout, "at 127.0.0.1:1")));
        let no_namespace = Reason::from(LabError::network("no namespace"));
        let lab = (1, Outcome::failed(Blame::Lab, no_namespace));
        for between in [reset, server, (1, Outcome::Ok), lab.clone()] {
            assert_eq!(given_up(&[hung(1), between, hung(2)], 1, 2), None);
        }
        assert_eq!(given_up(&[lab.clone(), lab], 1, 2), None);
        let refused = (1, Outcome::Unsupported { reason: "no `gso`".into() });
        let outcome = given_up(&[refused.clone(), refused], 1, 2).unwrap();
        assert!(matches!(outcome, Outcome::Unsupported { .. }), "{outcome:?}");
    }
}
