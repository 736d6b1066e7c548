//! The distribution of requests over servers in each window of a timeline, and the times to balance.

use wirelab_model::metric::Unit;
use wirelab_model::outcome::Outcome;
use wirelab_model::timeline::{Lifetimes, Part, TimelineRecord};
use wirelab_stats::quantile;
use wirelab_stats::timeline::{bounds, per_server};

use crate::Input;
use crate::layout::sentence;
use crate::numbers::{quantity, significant};

/// A table for a window, or for the actions.
pub(crate) struct Shares {
    pub title: String,
    pub header: Vec<String>,
    /// A row for each cell.
    pub rows: Vec<Vec<String>>,
    /// How to read the table.
    pub note: &'static str,
}

const NOTE: &str = "Medians over trials. A server's requests are its own count of answers in the window while it was reachable. The \
    servers of a trial are ordered by this count, because chance decides which server gets the most. The deviation is the population \
    standard deviation over servers. Jain's index is 100 % if all servers have the same count, and 1 / servers if one server has all.";

const BALANCED: &str = "From the action to the moment after which Jain's index of every half second stays at 90 % or more until the next \
    action; medians over trials. No number: in some trial the servers were not balanced before the next action.";

/// A table for each window of the study, in order, and one for the actions; empty without a timeline.
pub(crate) fn shares(input: &Input) -> Vec<Shares> {
    let Some(timeline) = &input.manifest.study.timeline else { return Vec::new() };
    let mut tables: Vec<_> = timeline.windows.iter().map(|(name, part)| window(input, name, part)).collect();
    if !tables.is_empty() {
        tables.push(actions(input, timeline.actions.iter().map(|action| action.name.as_str()).collect()));
    }
    tables
}

/// The tables of a text report: the first window, and the actions.
pub(crate) fn main(input: &Input) -> Vec<Shares> {
    let mut tables = shares(input);
    let last = tables.len().saturating_sub(1);
    if last > 1 {
        tables.drain(1..last);
    }
    tables
}

/// The cells of the run without A/A twins.
fn cells<'a>(input: &Input<'a>) -> impl Iterator<Item = (usize, String)> + use<'a> {
    let cells = input.manifest.plan.cells.iter().enumerate();
    cells.filter(|(_, cell)| cell.twin_of.is_none()).map(|(number, cell)| (number, sentence(&cell.levels)))
}

/// The timelines of the successful trials of a cell.
pub(crate) fn played<'a>(input: &Input<'a>, cell: usize) -> Vec<&'a TimelineRecord> {
    let of_cell = input.trials.iter().filter(|record| record.trial.cell == cell && record.outcome == Outcome::Ok);
    of_cell.filter_map(|record| record.timeline.as_ref()).collect()
}

fn window(input: &Input, name: &str, part: &Part) -> Shares {
    let mut rows = Vec::new();
    let mut most = 0;
    for (number, label) in cells(input) {
        let window_ns = Lifetimes::of(&input.manifest.plan.cells[number].job).window_ns;
        let trials = played(input, number);
        let counts: Vec<_> =
            trials.iter().map(|played| ranked(per_server(played, bounds(played, part, window_ns)))).collect();
        let servers = counts.iter().map(Vec::len).max().unwrap_or_default();
        let median = |rank: usize| {
            quantile::median(&counts.iter().filter_map(|counts| counts.get(rank).copied()).collect::<Vec<_>>())
        };
        let medians: Vec<_> = (0..servers).map(median).collect();
        most = most.max(servers);
        rows.push((number, label, medians));
    }
    let value = |number: usize, metric: &str, unit: Unit| {
        let estimate = input.estimate(number, &format!("{metric}@{name}"));
        estimate.map_or_else(|| "–".to_owned(), |estimate| quantity(estimate.median, unit))
    };
    let row = |(number, label, medians): (usize, String, Vec<Option<f64>>)| {
        let mut row = vec![label];
        row.extend((0..most).map(|rank| {
            let median = medians.get(rank).copied().flatten();
            median.map_or_else(|| "–".to_owned(), |count| format!("{count:.0}"))
        }));
        let deviation = input.estimate(number, &format!("server_deviation@{name}"));
        row.push(deviation.map_or_else(|| "–".to_owned(), |estimate| significant(estimate.median)));
        row.push(value(number, "server_fairness", Unit::Share));
        row.push(value(number, "rate", Unit::PerSecond));
        row.push(value(number, "failed", Unit::Count));
        row
    };
    let mut header = vec!["cell".to_owned()];
    header.extend((1..=most).map(|rank| format!("requests, {}", ordinal(rank))));
    header.extend(["deviation", "Jain's index", "requests per second", "lost"].map(str::to_owned));
    let title = format!("Requests of each server, {name}");
    Shares { title, header, rows: rows.into_iter().map(row).collect(), note: NOTE }
}

/// The counts of the reachable servers, the largest first.
fn ranked(counts: Vec<Option<u64>>) -> Vec<f64> {
    let mut counts: Vec<_> = counts.into_iter().flatten().map(|count| count as f64).collect();
    counts.sort_by(|a, b| b.total_cmp(a));
    counts
}

fn ordinal(rank: usize) -> String {
    let end = match (rank % 10, rank % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{rank}{end}")
}

fn actions(input: &Input, actions: Vec<&str>) -> Shares {
    let rows = cells(input).map(|(number, label)| {
        let times = actions.iter().map(|action| match input.estimate(number, &format!("balanced@{action}")) {
            Some(estimate) => quantity(estimate.median, Unit::Nanoseconds),
            None => "–".to_owned(),
        });
        [label].into_iter().chain(times).collect()
    });
    let header = ["cell"].into_iter().chain(actions.iter().copied()).map(str::to_owned).collect();
    Shares { title: "Time to balance after each action".to_owned(), header, rows: rows.collect(), note: BALANCED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reachable_servers_are_ordered_by_their_counts() {
        assert_eq!(ranked(vec![Some(3), None, Some(0), Some(12)]), [12.0, 3.0, 0.0]);
        assert_eq!([1, 2, 3, 4, 11, 12, 21].map(ordinal), ["1st", "2nd", "3rd", "4th", "11th", "12th", "21st"]);
    }
}
