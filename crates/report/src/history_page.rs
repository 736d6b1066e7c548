//! The history of a metric as one self-contained HTML page.

use askama::Template;

use crate::charts::{Facet, Line, Names, Point, drawing};
use crate::history::{History, NOTE, Series, history_terminal};
use crate::words::{phrase, upper_first};

/// Columns of the tables as text.
const WIDTH: usize = 120;

#[derive(Template)]
#[template(path = "history.html")]
struct Page<'a> {
    style: &'static str,
    script: &'static str,
    title: String,
    note: &'static str,
    facets: &'a [Facet],
    tables: String,
}

/// The history as a page: a chart for each cell with the change points marked, and the tables as text.
///
/// # Panics
/// Never: writing to memory cannot fail.
#[must_use]
pub fn history_html(history: &History) -> String {
    let facets: Vec<_> = history.series.iter().filter_map(|series| facet(history, series)).collect();
    let page = Page {
        style: include_str!("../templates/report.css"),
        script: include_str!("../templates/report.js"),
        title: format!("{} of {}", upper_first(&phrase(history.metric.title)), history.study),
        note: NOTE,
        facets: &facets,
        tables: history_terminal(history, WIDTH),
    };
    page.render().expect("writing to memory cannot fail")
}

fn facet(history: &History, series: &Series) -> Option<Facet> {
    let metric = history.metric;
    let title = if series.label.is_empty() { "All cells" } else { &series.label };
    let values = phrase(metric.title);
    let names = Names { drawing: format!("{} by run, {title}", metric.title), steps: "run", values: &values };
    let points = (0..history.runs.len()).filter_map(|run| point(history, series, run)).collect();
    let marks: Vec<_> = series.changes.iter().map(|change| change.at as u32 + 1).collect();
    let svg = drawing(&names, metric.unit, &[Line { series: 0, points }], &marks)?;
    Some(Facet { title: title.to_owned(), svg })
}

/// The level of a run with its facts; `None` without a value.
fn point(history: &History, series: &Series, run: usize) -> Option<Point> {
    let level = series.levels[run]?;
    let facts = &history.runs[run];
    let mut known = vec![
        ("cell", series.label.clone()),
        ("run", facts.run.clone()),
        ("created", facts.created.clone()),
        ("metric", history.metric.name.to_owned()),
        ("unit", crate::csv::token(history.metric.unit)),
        ("median", level.median.to_string()),
    ];
    if let Some([low, high]) = level.interval {
        known.extend([("interval low", low.to_string()), ("interval high", high.to_string())]);
    }
    known.push(("n (trials)", level.trials.to_string()));
    if let Some(change) = series.change_at(run) {
        known.push(("change point, P", change.p.to_string()));
    }
    let differs: Vec<_> = series.differs(run, facts).collect();
    if !differs.is_empty() {
        known.push(("other than before", differs.join(", ")));
    }
    let [low, high] = level.interval.unwrap_or([level.median; 2]);
    Some(Point { step: run as u32 + 1, value: level.median, spread: (low, high), facts: known })
}
