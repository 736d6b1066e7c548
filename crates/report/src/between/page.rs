//! The comparison of two runs as one self-contained HTML page.

use askama::Template;
use indexmap::IndexSet;
use wirelab_model::metric::Unit;
use wirelab_stats::between::Change;

use super::{CAVEAT, Sides, between_terminal, of_metric};
use crate::charts::{
    Align, Axis, Canvas, Facet, Key, Mark, Paint, WIDTH, draw, forest_legend, symbol, tick_count, tone_paint,
};
use crate::columns::is_waiting;
use crate::numbers::{Scale, change_with, share};
use crate::words::{Tone, direction, upper_first};

/// Columns of the tables as text.
const COLUMNS: usize = 120;

const ROW: f64 = 40.0;
const TOP: f64 = 4.0;
const BOTTOM: f64 = 42.0;
const SIDE: f64 = 8.0;

#[derive(Template)]
#[template(path = "between.html")]
struct Page<'a> {
    style: &'static str,
    script: &'static str,
    title: String,
    caveat: &'static str,
    legend: &'a [Key],
    facets: &'a [Facet],
    tables: String,
}

/// The comparison as a page: a forest plot for each metric, and the tables as text.
///
/// # Panics
/// Never: writing to memory cannot fail.
#[must_use]
pub fn between_html(sides: &Sides) -> String {
    let metrics: IndexSet<_> = sides.between.changes.iter().map(|change| change.metric.as_str()).collect();
    let facets: Vec<_> = metrics.iter().map(|metric| facet(sides, metric)).collect();
    let all_wait = metrics.iter().all(|metric| sides.metric(metric).is_some_and(is_waiting));
    let [first, second] = sides.names;
    let page = Page {
        style: include_str!("../../templates/report.css"),
        script: include_str!("../../templates/report.js"),
        title: format!("{first} and {second}"),
        caveat: CAVEAT,
        legend: &forest_legend(all_wait, &share(sides.margin), false),
        facets: &facets,
        tables: between_terminal(sides, COLUMNS),
    };
    page.render().expect("writing to memory cannot fail")
}

/// The forest plot of a metric.
fn facet(sides: &Sides, metric: &str) -> Facet {
    let changes = of_metric(sides, metric);
    let title = upper_first(&sides.title(metric));
    let ends = changes.iter().flat_map(|one| {
        let interval = one.interval.iter().flat_map(|interval| [interval.low, interval.high]);
        interval.chain(one.ratio).filter(|ratio| *ratio > 0.0)
    });
    let margin = 1.0 + sides.margin;
    let axis = Axis::log(ends.chain([0.8, 1.0 / margin, margin, 1.25]), SIDE, WIDTH - SIDE);
    let bottom = TOP + changes.len() as f64 * ROW;
    let svg = draw(WIDTH, bottom + BOTTOM, &format!("Changes of {}", sides.title(metric)), |canvas| {
        let mut ticks = Vec::new();
        for (value, label) in axis.ticks(tick_count(WIDTH - 2.0 * SIDE, 4), Scale::of(Unit::Count, [1.0])) {
            ticks.push(axis.at(value));
            canvas.tick(&label, (axis.at(value), bottom + 13.0));
        }
        let middle = (WIDTH / 2.0, bottom + 30.0);
        canvas.text("second run / first run (log scale)", middle, Align::Middle, Paint::Ink);
        for (number, one) in changes.into_iter().enumerate() {
            let top = TOP + number as f64 * ROW;
            let (from, to) = (top + 18.0, top + ROW - 4.0);
            canvas.rect((axis.at(1.0 / margin), from), (axis.at(margin), to), Paint::Margin);
            for x in &ticks {
                canvas.line((*x, from), (*x, to), Paint::Grid, 1.0);
            }
            canvas.line((axis.at(1.0), from), (axis.at(1.0), to), Paint::Zero, 1.5);
            row(canvas, sides, &axis, top, one);
        }
    });
    Facet { title, svg }
}

/// The text of a change, and below it its interval with the mark of its verdict.
fn row(canvas: &mut Canvas, sides: &Sides, axis: &Axis, top: f64, one: &Change) {
    let (text, y) = (top + 9.0, top + 26.0);
    canvas.text(sides.label(one.pair), (SIDE, text), Align::Left, Paint::Ink);
    let Some(ratio) = one.ratio else {
        canvas.text("not measured", (WIDTH - SIDE, text), Align::Right, Paint::Muted);
        return;
    };
    let metric = sides.metric(&one.metric);
    let paint = tone_paint(Tone::of(&one.verdict, metric));
    let (low, high) = one.interval.map_or((ratio, ratio), |interval| (interval.low, interval.high));
    canvas.line((axis.at(low), y), (axis.at(high), y), paint, 2.0);
    let words = change_with(ratio, one.interval.as_ref());
    canvas.text(&words, (WIDTH - SIDE, text), Align::Right, Paint::Ink);
    symbol(canvas, (axis.at(ratio), y), Mark::of(&one.verdict, paint));
    let mut facts =
        vec![("cell", sides.label(one.pair).to_owned()), ("metric", one.metric.clone()), ("ratio", ratio.to_string())];
    if one.interval.is_some() {
        facts.extend([("interval low", low.to_string()), ("interval high", high.to_string())]);
    }
    facts.extend(one.p_holm.map(|p| ("p (Holm)", p.to_string())));
    facts.push(("n (trials, first run)", one.trials[0].to_string()));
    facts.push(("n (trials, second run)", one.trials[1].to_string()));
    facts.push(("verdict", direction(&one.verdict, metric).to_owned()));
    canvas.tip((axis.at(low), y), (axis.at(high), y), &facts);
}
