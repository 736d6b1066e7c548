//! The heat map of winners: a tile per condition. It is an HTML table rather than a drawing, so that tiles are text,
//! screen readers find the headings, and the map scrolls within its box.

use crate::Input;
use crate::contests::Field;
use crate::grid::Axis;
use crate::layout::{Layout, level_title};
use crate::tally::tallies;
use crate::tile::{Mark, Tile};
use crate::words::{phrase, upper_first};

/// A grid of one metric.
pub(super) struct HeatMap {
    pub id: String,
    pub title: String,
    /// One line of headings per factor of the columns, the outermost first.
    pub header: Vec<HeadLine>,
    pub rows: Vec<TileRow>,
    /// The number of blocks that a winner needs.
    pub blocks_needed: u32,
    /// The record of each level.
    pub tallies: Vec<String>,
    /// Every tile in a sentence.
    pub sentences: Vec<String>,
}

pub(super) struct HeadLine {
    /// The factors of the rows; empty except in the last line.
    pub corner: Vec<String>,
    /// The width of the empty corner of the other lines, in columns.
    pub corner_span: usize,
    pub heads: Vec<Head>,
}

/// A heading over columns or before rows.
pub(super) struct Head {
    pub factor: String,
    pub level: String,
    pub span: usize,
    /// Whether a level of the outermost factor begins here.
    pub edge: bool,
}

pub(super) struct TileRow {
    /// The headings that begin in this row.
    pub heads: Vec<Head>,
    pub edge: bool,
    pub tiles: Vec<TileView>,
}

pub(super) struct TileView {
    /// CSS classes: verdict, hue of the winner, size of its lead.
    pub class: String,
    pub symbol: &'static str,
    pub name: String,
    pub size: String,
    pub note: String,
    /// The tile as a sentence, for the tooltip.
    pub title: String,
}

/// A grid for every compared metric; empty if the study varies fewer than two other factors.
pub(super) fn maps(input: &Input, layout: &Layout) -> Vec<HeatMap> {
    let metrics = input.manifest.study.compare.metrics.iter();
    metrics.filter_map(|metric| Field::of(input, layout, metric).map(|field| map(metric, &field))).collect()
}

/// The hues of the levels, for the legend: number and title.
pub(super) fn hues(layout: &Layout) -> Vec<(usize, String)> {
    layout.series.iter().enumerate().map(|(number, series)| (number % HUES, series.title.clone())).collect()
}

/// The number of distinct hues.
const HUES: usize = crate::charts::SERIES;

fn map(metric: &str, field: &Field) -> HeatMap {
    let title = field.metric.map_or_else(|| metric.to_owned(), |metric| upper_first(&phrase(metric.title)));
    let (rows, columns) = (&field.grid.rows, &field.grid.columns);
    let begins =
        |axis: &Axis, number: usize| number > 0 && axis.factors.len() > 1 && number.is_multiple_of(axis.span(0));
    let tile_rows = field.grid.tiles.iter().enumerate().map(|(number, tiles)| TileRow {
        heads: (0..rows.factors.len()).filter_map(|depth| head(rows, depth, number)).collect(),
        edge: begins(rows, number),
        tiles: tiles
            .iter()
            .enumerate()
            .map(|(column, contest)| {
                let mut view = view(field, *contest);
                if begins(columns, column) {
                    view.class.push_str(" edge");
                }
                view
            })
            .collect(),
    });
    HeatMap {
        id: format!("winners-{metric}"),
        title,
        header: (0..columns.factors.len()).map(|depth| head_line(rows, columns, depth)).collect(),
        rows: tile_rows.collect(),
        blocks_needed: field.contests.first().map_or(0, |contest| contest.blocks_needed),
        tallies: tallies(field),
        sentences: field.contests.iter().map(|contest| field.sentence(contest)).collect(),
    }
}

fn head_line(rows: &Axis, columns: &Axis, depth: usize) -> HeadLine {
    let last = depth + 1 == columns.factors.len();
    HeadLine {
        corner: if last { rows.factors.iter().map(|(factor, _)| factor.clone()).collect() } else { Vec::new() },
        corner_span: rows.factors.len(),
        heads: (0..columns.len()).filter_map(|number| head(columns, depth, number)).collect(),
    }
}

/// The heading of the factor at a depth, if one begins at this row or column.
fn head(axis: &Axis, depth: usize, number: usize) -> Option<Head> {
    let span = axis.span(depth);
    let (factor, levels) = &axis.factors[depth];
    number.is_multiple_of(span).then(|| Head {
        factor: factor.clone(),
        level: level_title(factor, &levels[number / span % levels.len()]),
        span,
        edge: number > 0 && axis.factors.len() > 1 && number.is_multiple_of(axis.span(0)),
    })
}

fn view(field: &Field, contest: Option<usize>) -> TileView {
    let Some(contest) = contest.map(|number| field.contests[number]) else {
        return TileView {
            class: "absent".to_owned(),
            symbol: "",
            name: "not in the study".to_owned(),
            size: String::new(),
            note: String::new(),
            title: String::new(),
        };
    };
    let tile = field.tile(contest);
    let title = field.sentence(contest);
    TileView {
        class: class(&tile),
        symbol: tile.mark.symbol(),
        name: tile.name,
        size: tile.size,
        note: tile.note,
        title,
    }
}

fn class(tile: &Tile) -> String {
    let mark = match tile.mark {
        Mark::Sure => "sure",
        Mark::Noise => "noise",
        Mark::Tied => "tied",
        Mark::Unknown => "open",
        Mark::Nothing => "absent",
    };
    match tile.series {
        Some(series) => format!("{mark} h{} t{}", series % HUES, tile.step),
        None => mark.to_owned(),
    }
}
