//! The summary tables: one per group of levels, a row per cell.

use indexmap::IndexSet;
use wirelab_stats::analysis::Interval;

use crate::Input;
use crate::columns::summary;
use crate::failures::{self, Failure};
use crate::layout::{Layout, Row};
use crate::numbers::{plain_interval, significant};
use crate::steady;
use crate::words::{self, Tone};

/// A table of one group.
pub(super) struct ResultTable {
    pub title: String,
    pub header: Vec<Heading>,
    pub rows: Vec<ResultRow>,
    /// Reasons for missing numbers; cells refer to them by number, from 1.
    pub notes: Vec<String>,
    /// The anchor of the table and prefix of the anchors of its notes.
    pub id: String,
}

pub(super) struct Heading {
    pub words: String,
    pub unit: &'static str,
    pub meaning: String,
}

pub(super) struct ResultRow {
    pub label: String,
    pub title: String,
    pub twin: bool,
    pub numbers: Vec<Number>,
    pub class: &'static str,
    pub symbol: &'static str,
    pub verdict: String,
    /// The change with its interval.
    pub size: String,
    /// The ratio and the noise floor.
    pub ground: Vec<String>,
    pub failure: Option<String>,
}

/// A number of a table, or the note with the reason for its absence.
pub(super) struct Number {
    pub shown: String,
    pub interval: String,
    pub sort: String,
    /// The number of trials with a value, if others have none.
    pub partly: Option<String>,
    pub note: Option<usize>,
}

/// The tables, in the order of the study.
pub(super) fn tables(input: &Input, layout: &Layout, failures: &[Failure]) -> Vec<ResultTable> {
    (0..layout.groups.len()).map(|group| table(input, layout, group, failures)).collect()
}

fn table(input: &Input, layout: &Layout, group: usize, failures: &[Failure]) -> ResultTable {
    let columns = summary(input);
    let header = columns
        .iter()
        .map(|column| Heading {
            words: format!("{} {}", column.heading.0, column.heading.1).trim().to_owned(),
            unit: column.scale.name,
            meaning: format!("{}: {} Seen from {}.", column.metric.title, column.metric.meaning, column.metric.vantage),
        })
        .collect();
    let mut notes = IndexSet::new();
    let mut rows = Vec::new();
    for row in &layout.groups[group].rows {
        let numbers = columns
            .iter()
            .map(|column| match input.estimate(row.cell, column.metric.name) {
                Some(estimate) => Number {
                    shown: steady::marked(input, row.cell, column.metric, column.scale.number(estimate.median)),
                    interval: estimate.interval.map_or_else(
                        || "no interval".to_owned(),
                        |interval| {
                            format!("{} – {}", column.scale.number(interval.low), column.scale.number(interval.high))
                        },
                    ),
                    sort: estimate.median.to_string(),
                    partly: input.partly(row.cell, column.metric.name).map(partly_words),
                    note: None,
                },
                None => {
                    let (note, _) = notes.insert_full(input.why_missing(row.cell, column.metric.name));
                    Number {
                        shown: "not measured".to_owned(),
                        interval: String::new(),
                        sort: String::new(),
                        partly: None,
                        note: Some(note + 1),
                    }
                }
            })
            .collect();
        rows.push(ResultRow {
            label: input.manifest.plan.cells[row.cell].label(),
            title: layout.row_title(*row),
            twin: row.twin,
            numbers,
            failure: failures::of_cell(failures, row.cell),
            ..verdict(input, layout, group, *row)
        });
    }
    ResultTable {
        title: layout.groups[group].title(),
        header,
        rows,
        notes: notes.into_iter().collect(),
        id: format!("group-{group}"),
    }
}

/// The comparison of a row.
fn verdict(input: &Input, layout: &Layout, group: usize, row: Row) -> ResultRow {
    let empty = ResultRow {
        label: String::new(),
        title: String::new(),
        twin: row.twin,
        numbers: Vec::new(),
        class: "plain",
        symbol: "",
        verdict: String::new(),
        size: String::new(),
        ground: Vec::new(),
        failure: None,
    };
    let metric = input.first_metric();
    let Some(compared) = input.compared(row.cell, metric) else {
        let noise = row.twin.then(|| noise_floor(words::noise_floor(input, layout, group, metric)));
        return ResultRow {
            verdict: if row.twin { "baseline (A/A)" } else { "baseline" }.to_owned(),
            ground: noise.into_iter().collect(),
            ..empty
        };
    };
    let caution = if words::within_noise(compared) { "; within the noise floor" } else { "" };
    let ratio = compared.ratio.map(|ratio| match &compared.interval {
        Some(interval) => format!("ratio {} {}", significant(ratio), plain_interval(interval)),
        None => format!("ratio {}", significant(ratio)),
    });
    let (word, size) = words::short(input, compared);
    ResultRow {
        class: Tone::of(&compared.verdict, input.metric(metric)).class(),
        symbol: words::symbol(&compared.verdict),
        verdict: format!("{word}{caution}"),
        size,
        ground: ratio.into_iter().chain([noise_floor(compared.noise_floor)]).collect(),
        ..empty
    }
}

fn partly_words((some, all): (usize, usize)) -> String {
    format!("{some} of {all} trials")
}

fn noise_floor(noise: Option<Interval>) -> String {
    format!("noise floor {}", words::noise_words(noise))
}
