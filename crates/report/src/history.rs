//! A metric over the runs of a folder.

use std::fmt::Write as _;

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use serde::Serialize;
use serde_json::json;
use wirelab_model::metric::Metric;
use wirelab_stats::change_points::{ChangePoint, FEWEST};
use wirelab_stats::history::Level;

use crate::csv::written;
use crate::numbers::{NBSP, Scale, change, p_value};
use crate::terminal::{trimmed, wrapped};
use crate::words::{phrase, upper_first};

/// What change points are, and what they cannot tell.
pub(crate) const NOTE: &str = "Change points are those of Pettitt's test at the level of 5 %. The runs were not interleaved: a \
                               change of the machine looks like a change of the server.";

/// The version of the form of the JSON. It grows if a key is removed or changes its meaning.
const SCHEMA_VERSION: u32 = 1;

/// A metric over runs in the order of time.
#[derive(Debug, Clone, Copy)]
pub struct History<'a> {
    /// The study of the runs.
    pub study: &'a str,
    pub metric: &'a Metric,
    /// The runs in the order of time.
    pub runs: &'a [HistoryRun],
    /// One per cell.
    pub series: &'a [Series],
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryRun {
    /// The name of its folder.
    pub run: String,
    /// When it was created, RFC 3339.
    pub created: String,
    /// Facts about the machine or wirelab that differ from the run before, by name.
    pub changed: Vec<String>,
}

/// A cell over runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    pub label: String,
    /// Its value in each run; `None` if the run lacks the cell or the value.
    pub levels: Vec<Option<Level>>,
    /// The settings that differ from the last run with this cell, for each run.
    pub changed: Vec<Vec<String>>,
    /// The change points.
    pub changes: Vec<ChangePoint>,
}

impl Series {
    /// The change point at a run.
    pub(crate) fn change_at(&self, run: usize) -> Option<&ChangePoint> {
        self.changes.iter().find(|point| point.at == run)
    }

    /// The differences from the run before: facts of the machine, and settings.
    pub(crate) fn differs<'a>(&'a self, run: usize, facts: &'a HistoryRun) -> impl Iterator<Item = &'a str> {
        facts.changed.iter().chain(&self.changed[run]).map(String::as_str)
    }
}

/// The history as text of at most `width` columns, apart from tables.
#[must_use]
pub fn history_terminal(history: &History, width: usize) -> String {
    let mut out = String::new();
    let title = upper_first(&phrase(history.metric.title));
    let runs = history.runs.len();
    let _ = writeln!(out, "{title} of {} over {runs} {}", history.study, if runs == 1 { "run" } else { "runs" });
    for series in history.series {
        let _ = writeln!(out, "\n{}", if series.label.is_empty() { "All cells" } else { &series.label });
        out.push_str(&table(history, series));
    }
    let most = history.series.iter().map(|series| series.levels.iter().flatten().count()).max().unwrap_or(0);
    let note = if most < FEWEST {
        format!("A change point needs at least {FEWEST} runs with a value.")
    } else {
        NOTE.to_owned()
    };
    let _ = writeln!(out, "\n{}", wrapped(&note, width));
    out.replace(NBSP, " ")
}

fn table(history: &History, series: &Series) -> String {
    let scale = Scale::of(history.metric.unit, series.levels.iter().flatten().map(|level| level.median));
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled).force_no_tty();
    table.set_header(["run", "created", "median", "95 % interval", "", ""]);
    for (number, run) in history.runs.iter().enumerate() {
        let level = series.levels[number];
        let median =
            level.map_or_else(|| "–".to_owned(), |level| format!("{} {}", scale.number(level.median), scale.name));
        let interval = level.and_then(|level| level.interval);
        let interval =
            interval.map_or_else(String::new, |[low, high]| format!("[{}, {}]", scale.number(low), scale.number(high)));
        let change = series.change_at(number).map_or_else(String::new, |point| {
            let mark = if point.after > point.before { "▲" } else { "▼" };
            format!("{mark} {} from here on (P {})", change(point.after / point.before), p_value(point.p))
        });
        let differs: Vec<_> = series.differs(number, run).collect();
        let differs = if differs.is_empty() { String::new() } else { format!("other {}", differs.join(", ")) };
        // The seconds of a time stamp are enough.
        let created: String = run.created.chars().take(19).collect();
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(&run.run),
            Cell::new(created),
            number(median.trim_end().to_owned()),
            number(interval),
            Cell::new(change),
            Cell::new(differs),
        ]);
    }
    trimmed(&table)
}

/// The history as JSON.
///
/// # Panics
/// Never: every part has string keys and finite numbers.
#[must_use]
pub fn history_json(history: &History) -> String {
    let metric = history.metric;
    let document = json!({
        "schema_version": SCHEMA_VERSION,
        "study": history.study,
        "metric": { "name": metric.name, "title": metric.title, "unit": metric.unit, "better": metric.better },
        "runs": history.runs,
        "series": history.series,
    });
    let mut text = serde_json::to_string_pretty(&document).expect("every part has string keys");
    text.push('\n');
    text
}

/// The history as CSV: one row for each cell and run, numbers in the base unit of the metric.
#[must_use]
pub fn history_csv(history: &History) -> String {
    const HEADER: [&str; 13] = [
        "study",
        "cell",
        "metric",
        "run",
        "created",
        "median",
        "interval_low",
        "interval_high",
        "trials",
        "change_before",
        "change_after",
        "change_p",
        "differs",
    ];
    let mut rows = vec![HEADER.map(str::to_owned).to_vec()];
    let number = |number: Option<f64>| number.map_or_else(String::new, |number| number.to_string());
    for series in history.series {
        for (place, run) in history.runs.iter().enumerate() {
            let level = series.levels[place];
            let interval = level.and_then(|level| level.interval);
            let point = series.change_at(place);
            rows.push(vec![
                history.study.to_owned(),
                series.label.clone(),
                history.metric.name.to_owned(),
                run.run.clone(),
                run.created.clone(),
                number(level.map(|level| level.median)),
                number(interval.map(|[low, _]| low)),
                number(interval.map(|[_, high]| high)),
                level.map_or_else(String::new, |level| level.trials.to_string()),
                number(point.map(|point| point.before)),
                number(point.map(|point| point.after)),
                number(point.map(|point| point.p)),
                series.differs(place, run).collect::<Vec<_>>().join(" "),
            ]);
        }
    }
    written(rows)
}
