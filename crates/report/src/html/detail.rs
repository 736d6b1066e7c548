//! The details behind the summary: every comparison, every metric, and the effective settings.

use indexmap::{IndexMap, IndexSet};
use serde_json::Value;
use wirelab_model::metric::{Metric, Side};
use wirelab_model::outcome::Outcome;

use crate::Input;
use crate::columns::{group_scale, known};
use crate::html::method::Fact;
use crate::layout::{Layout, Row};
use crate::numbers::{p_value, percent_interval, plain_interval, significant};
use crate::words::{self, Tone};

/// A comparison with all its numbers.
pub(super) struct ComparisonRow {
    pub cell: String,
    pub baseline: String,
    pub metric: String,
    pub blocks: u32,
    pub ratio: String,
    pub sort: String,
    pub p: String,
    pub p_holm: String,
    pub noise: String,
    pub class: &'static str,
    pub symbol: &'static str,
    pub verdict: String,
}

/// Every comparison of the run, A/A pairs included.
pub(super) fn comparisons(input: &Input) -> Vec<ComparisonRow> {
    let label = |cell: usize| {
        input.manifest.plan.cells.get(cell).map_or_else(|| format!("cell {cell}"), wirelab_model::plan::Cell::label)
    };
    let p = |p: Option<f64>, aa: bool| match p {
        Some(p) => p_value(p),
        None if aa => "A/A".to_owned(),
        None => "none".to_owned(),
    };
    let rows = input.analysis.comparisons.iter().map(|compared| {
        let metric = input.metric(&compared.metric);
        let reason = match compared.verdict {
            wirelab_stats::analysis::Verdict::CannotTell { why } => format!(": {}", words::why(input, compared, why)),
            _ => String::new(),
        };
        ComparisonRow {
            cell: label(compared.cell),
            baseline: label(compared.baseline),
            metric: metric.map_or_else(|| compared.metric.clone(), |metric| metric.title.to_owned()),
            blocks: compared.blocks,
            ratio: match (compared.ratio, &compared.interval) {
                (Some(ratio), Some(interval)) => format!("{} {}", significant(ratio), plain_interval(interval)),
                (Some(ratio), None) => format!("{}, no interval", significant(ratio)),
                (None, _) => words::no_ratio(input, compared).to_owned(),
            },
            sort: compared.ratio.map_or_else(String::new, |ratio| ratio.to_string()),
            p: p(compared.p, false),
            p_holm: p(compared.p_holm, compared.aa),
            noise: compared.noise_floor.map_or_else(|| "not measured".to_owned(), |noise| percent_interval(&noise)),
            class: if compared.aa { "plain" } else { Tone::of(&compared.verdict, metric).class() },
            symbol: words::symbol(&compared.verdict),
            verdict: format!("{}{reason}", words::direction(&compared.verdict, metric)),
        }
    });
    rows.collect()
}

/// Every metric of a group.
pub(super) struct MetricTable {
    pub title: String,
    pub header: Vec<String>,
    pub rows: Vec<MetricRow>,
    /// Titles of metrics that were 0 in every trial; rows of zeros would bury the others.
    pub zero: Vec<&'static str>,
    /// Titles of metrics that no cell has, by their common reason.
    pub missing: IndexMap<String, Vec<&'static str>>,
}

pub(super) struct MetricRow {
    pub metric: &'static str,
    pub side: &'static str,
    pub unit: &'static str,
    /// The numbers with their quartiles, or `not measured` with the reason.
    pub numbers: Vec<(String, String)>,
}

/// A table per group with every metric of the run.
pub(super) fn metric_tables(input: &Input, layout: &Layout) -> Vec<MetricTable> {
    let known = known(input);
    let tables = layout.groups.iter().enumerate().map(|(number, group)| {
        let mut table = MetricTable {
            title: group.title(),
            header: group.rows.iter().map(|row| layout.row_title(*row)).collect(),
            rows: Vec::new(),
            zero: Vec::new(),
            missing: IndexMap::new(),
        };
        for metric in &known {
            match alike(input, &group.rows, metric) {
                Some(Alike::Zero) => table.zero.push(metric.title),
                Some(Alike::Missing(reason)) => table.missing.entry(reason).or_default().push(metric.title),
                None => table.rows.push(metric_row(input, layout, number, metric)),
            }
        }
        table
    });
    tables.collect()
}

/// The common state of all cells of a group in a metric.
enum Alike {
    Zero,
    Missing(String),
}

fn alike(input: &Input, rows: &[Row], metric: &Metric) -> Option<Alike> {
    // A missing value is not zero.
    let all = |row: &Row, values: usize| input.cell(row.cell).is_some_and(|cell| values == cell.ok as usize);
    let zero = |row: &Row| {
        let estimate = input.estimate(row.cell, metric.name);
        estimate.is_some_and(|estimate| estimate.range == (0.0, 0.0) && all(row, estimate.values.len()))
    };
    if rows.iter().all(zero) {
        return Some(Alike::Zero);
    }
    let missing =
        |row: &Row| input.estimate(row.cell, metric.name).is_none().then(|| input.why_missing(row.cell, metric.name));
    let reason = missing(rows.first()?)?;
    rows.iter().all(|row| missing(row).as_ref() == Some(&reason)).then_some(Alike::Missing(reason))
}

fn metric_row(input: &Input, layout: &Layout, group: usize, metric: &Metric) -> MetricRow {
    let scale = group_scale(input, layout, group, metric);
    let numbers = layout.groups[group].rows.iter().map(|row| match input.estimate(row.cell, metric.name) {
        Some(estimate) => (
            scale.number(estimate.median),
            format!("{} – {}", scale.number(estimate.quartiles.0), scale.number(estimate.quartiles.1)),
        ),
        None => ("not measured".to_owned(), input.why_missing(row.cell, metric.name)),
    });
    MetricRow { metric: metric.title, side: side(metric.side), unit: scale.name, numbers: numbers.collect() }
}

const fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
        Side::Link => "link",
        Side::Unknown => "unknown",
    }
}

/// Metric definitions; metrics with the same definition, such as those of client and server, share an entry.
pub(super) fn definitions(input: &Input) -> Vec<Fact> {
    let mut titles: IndexMap<(&str, &str), Vec<&str>> = IndexMap::new();
    for metric in known(input) {
        titles.entry((metric.meaning, metric.vantage)).or_default().push(metric.title);
    }
    let facts = titles.into_iter().map(|((meaning, vantage), titles)| Fact {
        name: titles.join("; "),
        value: format!("{meaning} Seen from {vantage}."),
    });
    facts.collect()
}

/// The effective settings and the negotiated values that endpoints reported, by series.
pub(super) struct Force {
    pub header: Vec<String>,
    pub rows: Vec<(String, Vec<String>)>,
}

/// `None` if no endpoint reported anything.
pub(super) fn force(input: &Input, layout: &Layout) -> Option<Force> {
    let series_of: IndexMap<usize, usize> =
        layout.groups.iter().flat_map(|group| &group.rows).map(|row| (row.cell, row.series)).collect();
    let mut facts: IndexMap<String, Vec<IndexSet<String>>> = IndexMap::new();
    for record in input.trials.iter().filter(|record| record.outcome == Outcome::Ok) {
        let Some(series) = series_of.get(&record.trial.cell) else { continue };
        for (side, configured) in [("server", &record.server), ("client", &record.client)] {
            for (name, value) in configured {
                let text = match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let row = facts
                    .entry(format!("{side}: {name}"))
                    .or_insert_with(|| vec![IndexSet::new(); layout.series.len()]);
                row[*series].insert(text);
            }
        }
    }
    let rows: Vec<_> = facts.into_iter().map(|(name, cells)| (name, cells.into_iter().map(joined).collect())).collect();
    let header = layout.series.iter().map(|series| series.title.clone()).collect();
    (!rows.is_empty()).then_some(Force { header, rows })
}

/// The distinct values of a fact over the trials of a series: up to four by name, more as a count.
fn joined(values: IndexSet<String>) -> String {
    const NAMED: usize = 4;
    match values.len() {
        0 => "not reported".to_owned(),
        count if count <= NAMED => values.into_iter().collect::<Vec<_>>().join(", "),
        count => format!("{count} different values"),
    }
}
