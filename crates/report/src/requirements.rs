//! The requirements of a study with their verdicts, in sentences.

use wirelab_model::requirement::Statement;
use wirelab_stats::analysis::{CannotTell, RequirementResult, RequirementVerdict, Requiring};
use wirelab_stats::compare::MIN_BLOCKS;

use crate::Input;
use crate::numbers::{NBSP, change_with, quantity};
use crate::summary::Sentence;
use crate::words::{NOT_ENDED, Tone, title, upper_first};

/// A sentence names at most this many cells; JSON has all.
const SHOWN: usize = 6;

/// The result of a requirement without a test.
pub(crate) const NO_CELL: &str = "This plan has no cell for it.";

/// One sentence per requirement.
pub(crate) fn sentences(input: &Input) -> Vec<Sentence> {
    let sentence = |result: &RequirementResult| {
        let (tone, symbol, word) = words(result.verdict);
        Sentence { tone, symbol, text: format!("Requirement {word}: {}", text(input, result)) }
    };
    input.analysis.requirements.iter().map(sentence).collect()
}

/// The requirements that make the run fail, a sentence each.
#[must_use]
pub fn failed_requirements(input: &Input) -> Vec<String> {
    let failed = input.analysis.requirements.iter().filter(|result| result.fails());
    failed.map(|result| one_line(input, result)).collect()
}

/// The requirements that are not met or inconclusive, a sentence each.
#[must_use]
pub fn unmet_requirements(input: &Input) -> Vec<String> {
    let unmet = input.analysis.requirements.iter().filter(|result| result.verdict != RequirementVerdict::Met);
    unmet.map(|result| one_line(input, result)).collect()
}

/// The verdict, the requirement and the cells that decide it, in one line.
pub(crate) fn one_line(input: &Input, result: &RequirementResult) -> String {
    format!("{}: {}", words(result.verdict).2, text(input, result)).replace(NBSP, " ")
}

const fn words(verdict: RequirementVerdict) -> (Tone, &'static str, &'static str) {
    match verdict {
        RequirementVerdict::Met => (Tone::Better, "✓", "met"),
        RequirementVerdict::NotMet => (Tone::Worse, "✗", "not met"),
        RequirementVerdict::CannotTell { .. } => (Tone::Unknown, "?", "inconclusive"),
    }
}

/// `P99 response time at most 50 ms (2 of 3 cells): protocol=h1 61.2 ms [60.1 ms, 62.3 ms].`
fn text(input: &Input, result: &RequirementResult) -> String {
    let that = statement(input, &result.that);
    let all = result.tests.len();
    if all == 0 {
        return format!("{that}. {NO_CELL}");
    }
    // The cells that decide: those with the verdict of the whole.
    let is_same = |test: &&Requiring| words(test.verdict).2 == words(result.verdict).2;
    let decisive: Vec<_> = result.tests.iter().filter(is_same).collect();
    let mut cells: Vec<_> = decisive.iter().take(SHOWN).map(|test| cell(input, result, test)).collect();
    if decisive.len() > SHOWN {
        cells.push(format!("and {} more", decisive.len() - SHOWN));
    }
    let count = if all > 1 { format!(" ({} of {all} cells)", decisive.len()) } else { String::new() };
    format!("{that}{count}: {}.", cells.join("; "))
}

/// The requirement with the metric's title.
pub(crate) fn statement(input: &Input, that: &Statement) -> String {
    upper_first(&format!("{} {}", title(input, &that.metric), that.limit))
}

/// The label of a cell.
pub(crate) fn label(input: &Input, cell: usize) -> String {
    input.manifest.plan.cells.get(cell).map_or_else(String::new, |cell| cell.label())
}

/// A cell with its size, and the reason of an inconclusive result.
pub(crate) fn cell(input: &Input, result: &RequirementResult, test: &Requiring) -> String {
    let size = size(input, &result.that.metric, test);
    let against = test.baseline.map_or_else(String::new, |baseline| format!(" against {}", label(input, baseline)));
    let why = match test.verdict {
        RequirementVerdict::CannotTell { why } => format!(" ({})", reason(input, test, &result.that.metric, why)),
        RequirementVerdict::Met | RequirementVerdict::NotMet => String::new(),
    };
    format!("{} {size}{against}{why}", label(input, test.cell))
}

/// The measured size with its interval.
fn size(input: &Input, metric: &str, test: &Requiring) -> String {
    let Some(size) = test.size else {
        return if test.blocks == 0 { "has no value" } else { "fails" }.to_owned();
    };
    if test.baseline.is_some() {
        return change_with(size, test.interval.as_ref());
    }
    let show =
        |value: f64| input.metric(metric).map_or_else(|| value.to_string(), |metric| quantity(value, metric.unit));
    test.interval.map_or_else(
        || show(size),
        |interval| format!("{} [{}, {}]", show(size), show(interval.low), show(interval.high)),
    )
}

fn reason(input: &Input, test: &Requiring, metric: &str, why: CannotTell) -> String {
    match why {
        CannotTell::TooFewBlocks => format!("{} of {MIN_BLOCKS} {}", test.blocks, input.design().counted()),
        CannotTell::TooNoisy => test.blocks_to_decide.map_or_else(
            || "too close to the limit for this noise".to_owned(),
            |blocks| format!("too close to the limit for this noise; about {blocks} blocks would decide"),
        ),
        CannotTell::Correction => "not significant after the correction for the number of cells".to_owned(),
        CannotTell::NoiseFloor => "the A/A pair differs by as much".to_owned(),
        CannotTell::NotEnded => NOT_ENDED.to_owned(),
        CannotTell::UnequalFailures => "it fails more often, so its successful requests are a selection".to_owned(),
        CannotTell::ClientBound => "the client's own time may explain it".to_owned(),
        CannotTell::NoValues => {
            let empty = [Some(test.cell), test.baseline].into_iter().flatten();
            let empty = empty.into_iter().find(|cell| input.estimate(*cell, metric).is_none());
            empty.map_or_else(|| "no data".to_owned(), |cell| input.why_missing(cell, metric))
        }
    }
}
