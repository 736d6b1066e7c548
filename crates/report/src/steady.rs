//! The label of every percentile: whether the measured window shows one state.

use wirelab_model::metric::Metric;
use wirelab_model::plan::Course;
use wirelab_model::spec::Recording;
use wirelab_model::warning::ordinal;
use wirelab_stats::stationarity::Stationarity;

use crate::Input;

/// The mark of a percentile whose window is not stationary.
const MARK: &str = "~";

/// The number of cells that a list names.
const NAMED: usize = 3;

/// The label of a cell's percentiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Stationary,
    Changes,
    TooShort,
    /// The trials recorded histograms, which have no times of single requests.
    NotTested,
}

/// The label of a cell in tables for programs; empty where no label applies.
pub(crate) fn token(input: &Input, cell: usize) -> &'static str {
    match label(input, cell) {
        Some(Label::Stationary) => "stationary",
        Some(Label::Changes) => "changes",
        Some(Label::TooShort) => "too_short",
        Some(Label::NotTested) => "not_tested",
        None => "",
    }
}

/// A number of a table, with a mark if it is a percentile of response times that mixes two states.
pub(crate) fn marked(input: &Input, cell: usize, metric: &Metric, number: String) -> String {
    let is_percentile = metric.name.starts_with("response_p") || metric.name == "response_median";
    if is_percentile && label(input, cell) == Some(Label::Changes) { number + MARK } else { number }
}

/// One sentence about all cells; `None` if no label applies to any.
pub(crate) fn sentence(input: &Input) -> Option<String> {
    let cells = &input.manifest.plan.cells;
    let labelled: Vec<_> = (0..cells.len()).filter_map(|cell| Some((cell, label(input, cell)?))).collect();
    let with = |wanted: Label| -> Vec<usize> {
        labelled.iter().filter(|(_, label)| *label == wanted).map(|(cell, _)| *cell).collect()
    };
    let all = labelled.len();
    if all == 0 {
        return None;
    }
    let [stationary, changing] = [Label::Stationary, Label::Changes].map(with);
    if stationary.is_empty() && changing.is_empty() && with(Label::NotTested).is_empty() {
        return Some("Steady state: the trials are too few or too short to tell.".to_owned());
    }
    let mut text =
        format!("Steady state: response times are stationary within the window in {} of {all} cells", stationary.len());
    for (label, words) in [
        (Label::Changes, "the percentiles marked ~ mix two states, in"),
        (Label::TooShort, "the trials are too few or too short to tell in"),
        (Label::NotTested, "not tested with histograms in"),
    ] {
        let found = with(label);
        if !found.is_empty() {
            text += &format!("; {words} {}", named(input, &found));
        }
    }
    Some(text + ".")
}

/// The label of a cell; `None` for a table, which has no windows, a timeline, which changes conditions on purpose, and
/// page loads.
fn label(input: &Input, cell: usize) -> Option<Label> {
    let job = &input.manifest.plan.cells[cell].job;
    if input.table.is_some() || job.course != Course::Steady {
        return None;
    }
    match (job.load.recording, input.cell(cell)?.stationarity) {
        (Recording::Loads | Recording::Totals, _) => None,
        (Recording::Histograms, _) => Some(Label::NotTested),
        (Recording::Samples, Stationarity::Stationary) => Some(Label::Stationary),
        (Recording::Samples, Stationarity::Changes { .. }) => Some(Label::Changes),
        (Recording::Samples, Stationarity::TooShort) => Some(Label::TooShort),
    }
}

/// The first cells by their labels, each with its change if it has one, and the number of the others.
fn named(input: &Input, numbers: &[usize]) -> String {
    let name = |cell: &usize| {
        let label = input.manifest.plan.cells[*cell].label();
        change(input, *cell).map_or_else(|| format!("`{label}`"), |change| format!("`{label}` ({change})"))
    };
    let names: Vec<_> = numbers.iter().take(NAMED).map(name).collect();
    let more = numbers.len() - names.len();
    let names = names.join(", ");
    if more == 0 { names } else { format!("{names} and {more} more") }
}

/// Where in the window, and by how much, the response times of a cell change.
fn change(input: &Input, cell: usize) -> Option<String> {
    match input.cell(cell)?.stationarity {
        Stationarity::Changes { slowest, fastest, ratio } => {
            let [slowest, fastest] = [slowest, fastest].map(|part| ordinal(part as u32));
            Some(format!("the {slowest} fifth of the window takes {ratio:.2} times as long as the {fastest}"))
        }
        Stationarity::Stationary | Stationarity::TooShort => None,
    }
}
