//! Cells with trials that failed or were refused: who is to blame, and why.

use indexmap::IndexMap;
use wirelab_model::outcome::{Outcome, without_numbers};

use crate::Input;

/// Trials of one cell that ended in the same way.
pub(crate) struct Failure {
    /// The number of the cell.
    pub cell: usize,
    /// How many trials.
    pub trials: usize,
    /// Of how many.
    pub of: usize,
    /// `failed` or `unsupported`.
    pub outcome: &'static str,
    /// Who has to look into it: the party that is to blame, or the endpoint that refused.
    pub blame: String,
    /// In whose words why; of several that differ in numbers only the first, and that there are more.
    pub reason: String,
}

/// The trials of a cell that ended in one way: how many, the first reason, and whether another one has other numbers.
struct Alike<'a> {
    trials: usize,
    first: &'a str,
    others: bool,
}

/// Every way in which trials did not end well, by cell, the most frequent first.
pub(crate) fn failures(input: &Input) -> Vec<Failure> {
    let mut list = Vec::new();
    for cell in 0..input.manifest.plan.cells.len() {
        let of_cell = || input.trials.iter().filter(|record| record.trial.cell == cell);
        let mut ways: IndexMap<(&'static str, String, String), Alike<'_>> = IndexMap::new();
        for record in of_cell() {
            let (outcome, blame, reason) = match &record.outcome {
                Outcome::Ok => continue,
                Outcome::Failed { blame, reason } => ("failed", blame.to_string(), reason),
                Outcome::Unsupported { reason } => ("unsupported", "endpoint".to_owned(), reason),
            };
            let way = (outcome, blame, without_numbers(reason));
            let alike = ways.entry(way).or_insert(Alike { trials: 0, first: reason, others: false });
            alike.trials += 1;
            alike.others |= alike.first != reason;
        }
        ways.sort_by(|_, a, _, b| b.trials.cmp(&a.trials));
        list.extend(ways.into_iter().map(|((outcome, blame, _), Alike { trials, first, others })| Failure {
            cell,
            trials,
            of: of_cell().count(),
            outcome,
            blame,
            reason: if others { format!("{first}, and others with other numbers") } else { first.to_owned() },
        }));
    }
    list
}

/// How one cell fared, where not every trial ended well: `2 of 10 trials failed (server: connection reset)`.
pub(crate) fn of_cell(failures: &[Failure], cell: usize) -> Option<String> {
    let words: Vec<_> = failures
        .iter()
        .filter(|failure| failure.cell == cell)
        .map(|f| format!("{} of {} trials {} ({}: {})", f.trials, f.of, f.outcome, f.blame, f.reason))
        .collect();
    if words.is_empty() { None } else { Some(words.join("; ")) }
}
