//! Failed and unsupported trials by cell, with blame and reason.

use indexmap::IndexMap;
use wirelab_model::outcome::Outcome;

use crate::Input;

/// Trials of one cell with the same outcome and reason.
pub(crate) struct Failure {
    /// The number of the cell.
    pub cell: usize,
    /// The number of these trials.
    pub trials: usize,
    /// The number of all trials of the cell.
    pub of: usize,
    /// `failed` or `unsupported`.
    pub outcome: &'static str,
    /// The party to blame, or `endpoint` for unsupported trials.
    pub blame: String,
    /// The reason. For reasons that differ only in numbers: the first, with a hint that others exist.
    pub reason: String,
    /// Whether wirelab skipped these trials after earlier failures.
    pub is_not_run: bool,
}

/// A group of trials of one outcome: its size, its first reason, and whether other reasons have other numbers.
struct Alike {
    trials: usize,
    first: String,
    others: bool,
    is_not_run: bool,
}

/// Failed and unsupported trials by cell and reason, the most frequent first.
pub(crate) fn failures(input: &Input) -> Vec<Failure> {
    let mut list = Vec::new();
    for cell in 0..input.manifest.plan.cells.len() {
        let of_cell = || input.trials.iter().filter(|record| record.trial.cell == cell);
        let mut ways: IndexMap<(&'static str, String, String), Alike> = IndexMap::new();
        for record in of_cell() {
            let (outcome, blame, reason) = match &record.outcome {
                Outcome::Ok => continue,
                Outcome::Failed { blame, reason } => ("failed", blame.to_string(), reason),
                Outcome::Unsupported { reason } => ("unsupported", "endpoint".to_owned(), reason),
            };
            let (text, is_not_run) = (reason.to_string(), reason.is_not_run());
            let way = (outcome, blame, without_numbers(&text));
            let new = || Alike { trials: 0, first: text.clone(), others: false, is_not_run };
            let alike = ways.entry(way).or_insert_with(new);
            alike.trials += 1;
            alike.others |= alike.first != text;
        }
        ways.sort_by(|_, a, _, b| b.trials.cmp(&a.trials));
        list.extend(ways.into_iter().map(|((outcome, blame, _), Alike { trials, first, others, is_not_run })| {
            Failure {
                cell,
                trials,
                of: of_cell().count(),
                outcome,
                blame,
                reason: if others { format!("{first}, and similar reasons with other numbers") } else { first },
                is_not_run,
            }
        }));
    }
    list
}

/// A text without numbers (ports, times, identifiers): texts with equal results fit in one line of the report.
fn without_numbers(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_ascii_hexdigit()).collect()
}

/// The failures of one cell: `2 of 10 trials failed (server: connection reset)`; `None` without any.
pub(crate) fn of_cell(failures: &[Failure], cell: usize) -> Option<String> {
    let words: Vec<_> = failures
        .iter()
        .filter(|failure| failure.cell == cell)
        .map(|f| format!("{} of {} trials {} ({}: {})", f.trials, f.of, f.outcome, f.blame, f.reason))
        .collect();
    if words.is_empty() { None } else { Some(words.join("; ")) }
}
