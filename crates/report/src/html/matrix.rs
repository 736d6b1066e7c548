//! The overview of a study with many groups: a verdict per series and group.

use crate::Input;
use crate::html::MANY;
use crate::layout::Layout;
use crate::numbers::change;
use crate::words::{self, Tone};

/// Groups as rows, series as columns.
pub(super) struct Matrix {
    pub header: Vec<String>,
    pub rows: Vec<MatrixRow>,
}

pub(super) struct MatrixRow {
    pub title: String,
    /// The anchor of the group's table.
    pub id: String,
    pub cells: Vec<MatrixCell>,
}

pub(super) struct MatrixCell {
    pub class: &'static str,
    pub symbol: &'static str,
    pub shown: String,
    /// The verdict in words, for the tooltip.
    pub words: String,
}

/// The matrix; `None` if few groups need no overview.
pub(super) fn matrix(input: &Input, layout: &Layout) -> Option<Matrix> {
    if layout.groups.len() <= MANY {
        return None;
    }
    let rows = layout.groups.iter().enumerate().map(|(number, group)| MatrixRow {
        title: group.title(),
        id: format!("group-{number}"),
        cells: (0..layout.series.len())
            .map(|series| {
                let row = group.rows.iter().find(|row| row.series == series && !row.twin);
                row.map_or_else(|| plain("not in the study"), |row| cell(input, row.cell))
            })
            .collect(),
    });
    Some(Matrix { header: layout.series.iter().map(|series| series.title.clone()).collect(), rows: rows.collect() })
}

fn cell(input: &Input, cell: usize) -> MatrixCell {
    let metric = input.first_metric();
    let Some(compared) = input.compared(cell, metric) else {
        return plain("baseline");
    };
    MatrixCell {
        class: Tone::of(&compared.verdict, input.metric(metric)).class(),
        symbol: words::symbol(&compared.verdict),
        shown: compared.ratio.map_or_else(|| words::no_ratio(input, compared).to_owned(), change),
        words: words::short(input, compared).0,
    }
}

fn plain(text: &str) -> MatrixCell {
    MatrixCell { class: "plain", symbol: "", shown: text.to_owned(), words: text.to_owned() }
}
