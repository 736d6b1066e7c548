//! The comparison of two runs for a terminal.

use std::fmt::Write as _;

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use indexmap::IndexSet;
use wirelab_model::metric::Unit;
use wirelab_stats::analysis::{RequirementVerdict, Verdict};
use wirelab_stats::between::{Change, Floors};

use super::{CAVEAT, Sides, of_metric, reason, required};
use crate::numbers::{NBSP, change, change_with, quantity, share};
use crate::terminal::{trimmed, wrapped};
use crate::words::{direction, symbol, upper_first};

/// Differences of settings and conditions are cut after this many characters; JSON has them whole.
const LONGEST: usize = 60;

/// The comparison of two runs as text of at most `width` columns.
#[must_use]
pub fn between_terminal(sides: &Sides, width: usize) -> String {
    let mut out = String::new();
    let item = |out: &mut String, mark: &str, text: &str| {
        for (number, line) in wrapped(text, width.saturating_sub(3)).lines().enumerate() {
            let _ = writeln!(out, " {} {line}", if number == 0 { mark } else { " " });
        }
    };
    let [first, second] = sides.names;
    let _ = writeln!(out, "First   {first}, {}", sides.manifests[0].created);
    let _ = writeln!(out, "Second  {second}, {}\n", sides.manifests[1].created);
    for result in &sides.between.requirements {
        let mark = match result.verdict {
            RequirementVerdict::Met => "✓",
            RequirementVerdict::NotMet => "✗",
            RequirementVerdict::CannotTell { .. } => "?",
        };
        item(&mut out, mark, &format!("Requirement {}", lower(&required(sides, result))));
    }
    item(&mut out, "!", CAVEAT);
    for (name, ended) in sides.names.iter().zip(sides.ended) {
        if !ended {
            item(&mut out, "!", &format!("{name} has not reached its planned end; its values may change."));
        }
    }
    let metrics: IndexSet<_> = sides.between.changes.iter().map(|change| change.metric.as_str()).collect();
    for metric in metrics {
        let _ = writeln!(out, "\n{}", upper_first(&sides.title(metric)));
        out.push_str(&table(sides, metric));
        for floors in sides.between.floors.iter().filter(|floors| floors.metric == metric) {
            item(&mut out, "·", &noise(sides, floors));
        }
    }
    for (side, word) in ["first", "second"].into_iter().enumerate() {
        let cells = &sides.manifests[side].plan.cells;
        let alone: Vec<_> = sides.between.alone[side].iter().map(|cell| cells[*cell].label()).collect();
        if !alone.is_empty() {
            let _ = writeln!(out, "\nOnly in the {word} run");
            alone.iter().for_each(|label| item(&mut out, "·", label));
        }
    }
    let of_settings = sides.between.pairs.iter().enumerate().flat_map(|(pair, one)| {
        one.settings.iter().map(move |difference| (format!("{}: {}", sides.label(pair), difference.field), difference))
    });
    let conditions = sides.conditions();
    let of_conditions = conditions.iter().map(|difference| (difference.field.clone(), difference));
    for (heading, found) in [
        ("Settings that differ in cells with equal levels", of_settings.collect::<Vec<_>>()),
        ("Conditions that differ", of_conditions.collect()),
    ] {
        if found.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{heading}");
        for (field, difference) in found {
            let [first, second] = difference.values.each_ref().map(|value| short(value.as_deref()));
            item(&mut out, "·", &format!("{field}: {first} → {second}"));
        }
    }
    out.replace(NBSP, " ")
}

/// A sentence after its first word.
fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

fn short(value: Option<&str>) -> String {
    match value {
        None => "absent".to_owned(),
        Some(value) if value.chars().count() > LONGEST => {
            format!("{}…", value.chars().take(LONGEST).collect::<String>())
        }
        Some(value) => value.to_owned(),
    }
}

fn table(sides: &Sides, metric: &str) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled).force_no_tty();
    table.set_header(["", "cell", "first", "second", "change", "verdict"]);
    let unit = sides.metric(metric).map_or(Unit::Count, |metric| metric.unit);
    for one in of_metric(sides, metric) {
        let median = |side: usize| match one.medians[side] {
            Some(median) => quantity(median, unit),
            None if one.trials[side] == 0 => "no values".to_owned(),
            None => "infinite".to_owned(),
        };
        let size = one.ratio.map_or_else(|| "–".to_owned(), |ratio| change_with(ratio, one.interval.as_ref()));
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(symbol(&one.verdict)),
            Cell::new(sides.label(one.pair)),
            number(median(0)),
            number(median(1)),
            number(size),
            Cell::new(words(sides, one)),
        ]);
    }
    trimmed(&table)
}

fn words(sides: &Sides, one: &Change) -> String {
    match one.verdict {
        Verdict::Equivalent => format!("equivalent within ±{}", share(sides.margin)),
        Verdict::CannotTell { why } => {
            format!("{}, {}", direction(&one.verdict, sides.metric(&one.metric)), reason(why))
        }
        Verdict::Less | Verdict::More => direction(&one.verdict, sides.metric(&one.metric)).to_owned(),
    }
}

/// `A/A pair of protocol=h1: +0.3 % [−1.0, +1.2] in the first run, −0.2 % [−0.9, +0.8] in the second.`
fn noise(sides: &Sides, floors: &Floors) -> String {
    let of = |side: usize| match (floors.ratios[side], &floors.intervals[side]) {
        (Some(ratio), Some(interval)) => change_with(ratio, Some(interval)),
        (Some(ratio), None) => change(ratio),
        (None, _) => "no values".to_owned(),
    };
    let drifted = if floors.drifted {
        ". The two differ: something disturbed one of the runs; trust no small change"
    } else {
        ""
    };
    format!("A/A pair of {}: {} in the first run, {} in the second{drifted}.", sides.label(floors.pair), of(0), of(1))
}
