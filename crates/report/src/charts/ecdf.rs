//! Empirical distribution functions of the pooled response times.

use crate::charts::axis::Axis;
use crate::charts::canvas::{Align, Canvas, Paint, draw};
use crate::charts::frame::{WIDTH, tick_count};
use crate::charts::{Chart, Facet, series_legend};
use crate::layout::{Group, Layout};
use crate::numbers::thousands;
use crate::{Input, Pooled};
use wirelab_model::metric::Unit;

const LEFT: f64 = 56.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 228.0;
const HEIGHT: f64 = 270.0;

/// The distribution functions; `None` if no cell has response times.
pub(crate) fn chart(input: &Input, layout: &Layout) -> Option<Chart> {
    let mut missing = Vec::new();
    let mut requests = 0;
    let facets: Vec<_> = layout
        .groups
        .iter()
        .filter_map(|group| {
            let curves = curves(input, layout, group, &mut missing);
            requests += curves.iter().map(|curve| curve.pooled.requests).sum::<u64>();
            (!curves.is_empty()).then(|| Facet { title: group.title(), svg: facet(group, &curves) })
        })
        .collect();
    if facets.is_empty() {
        return None;
    }
    let note = if missing.is_empty() { String::new() } else { format!(" Not measured: {}.", missing.join("; ")) };
    Some(Chart {
        id: "ecdf".to_owned(),
        title: format!(
            "Response-time distribution ({} {}, pooled over trials)",
            thousands(requests),
            if requests == 1 { "request" } else { "requests" }
        ),
        caption: format!(
            "The share of requests answered within the time on the horizontal axis (log scale). A curve further left is faster; a long flat end is a long tail. Requests are pooled over all trials of a cell, so the curves show the shape of the distribution only. Intervals and verdicts come from trials.{note}"
        ),
        legend: series_legend(layout),
        facets,
        without_outliers: Vec::new(),
    })
}

/// The distribution of a cell.
struct Curve {
    cell: String,
    series: usize,
    pooled: Pooled,
}

/// The curves of a group, without A/A twins, which would hide the baseline.
fn curves(input: &Input, layout: &Layout, group: &Group, missing: &mut Vec<String>) -> Vec<Curve> {
    let mut curves = Vec::new();
    for row in group.rows.iter().filter(|row| !row.twin) {
        let cell = input.manifest.plan.cells[row.cell].label();
        match (input.pooled)(row.cell) {
            Ok(pooled) => curves.push(Curve { cell, series: row.series, pooled }),
            Err(why) => missing.push(format!("{} at {} ({why})", layout.row_title(*row), group.title())),
        }
    }
    curves
}

fn facet(group: &Group, curves: &[Curve]) -> String {
    let times = curves.iter().flat_map(|curve| &curve.pooled.quantiles).map(|(_, ns)| *ns);
    let x = Axis::log(times, LEFT, RIGHT);
    let y = Axis::exact(0.0, 1.0, BOTTOM, TOP);
    draw(WIDTH, HEIGHT, &format!("Distribution of response times at {}", group.title()), |canvas| {
        for quarter in 0..=4 {
            let share = f64::from(quarter) / 4.0;
            canvas.line((LEFT, y.at(share)), (RIGHT, y.at(share)), Paint::Grid, 1.0);
            canvas.text(&format!("{} %", quarter * 25), (LEFT - 6.0, y.at(share)), Align::Right, Paint::Muted);
        }
        for (value, label) in x.labelled(tick_count(RIGHT - LEFT, 6), Unit::Nanoseconds) {
            canvas.line((x.at(value), TOP), (x.at(value), BOTTOM), Paint::Grid, 1.0);
            canvas.tick(&label, (x.at(value), BOTTOM + 12.0));
        }
        canvas.text(
            "response time (log scale)",
            (f64::midpoint(LEFT, RIGHT), HEIGHT - 10.0),
            Align::Middle,
            Paint::Ink,
        );
        canvas.upright("share of requests", (10.0, f64::midpoint(TOP, BOTTOM)), Paint::Ink);
        for curve in curves {
            line(canvas, &x, &y, curve);
        }
    })
}

fn line(canvas: &mut Canvas, x: &Axis, y: &Axis, Curve { cell, series, pooled }: &Curve) {
    let (cell, series) = (cell, *series);
    let points = pooled.quantiles.iter().map(|(share, ns)| (x.at(*ns), y.at(*share)));
    canvas.path(points, Paint::Series(series), 1.5);
    // Three markers at places that depend on the series distinguish curves where they cross.
    for third in 0..3_usize {
        let place = (pooled.quantiles.len() * (2 * third + 1) / 6 + series * 3) % pooled.quantiles.len();
        let (share, ns) = pooled.quantiles[place];
        let at = (x.at(ns), y.at(share));
        canvas.marker(at, 3.5, series);
        let facts = [
            ("cell", cell.clone()),
            ("share of requests", share.to_string()),
            ("response time (ns)", ns.to_string()),
            ("n (requests)", pooled.requests.to_string()),
            ("n (trials)", pooled.trials.to_string()),
        ];
        canvas.tip(at, at, &facts);
    }
}
