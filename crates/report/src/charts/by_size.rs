//! A metric over payload sizes, one line per series.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use wirelab_model::metric::Metric;
use wirelab_model::units::Size;
use wirelab_stats::analysis::Estimate;

use crate::Input;
use crate::charts::axis::Axis;
use crate::charts::canvas::{Align, Canvas, Paint, draw};
use crate::charts::frame::{LETTER, WIDTH};
use crate::charts::{Chart, Facet, facts, series_legend};
use crate::layout::{Layout, payload, sentence};
use crate::words::{phrase, upper_first};

const RIGHT: f64 = WIDTH - 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 268.0;
const HEIGHT: f64 = 312.0;

/// The estimate of a cell.
struct Point<'a> {
    /// In bytes.
    payload: u64,
    cell: String,
    estimate: &'a Estimate,
}

/// One line: a series, and its points.
type Line<'a> = (usize, Vec<Point<'a>>);

/// The first metric over payload sizes; `None` if no factor is a size.
pub(crate) fn chart(input: &Input, layout: &Layout) -> Option<Chart> {
    let metric = input.metric(input.first_metric())?;
    let title = format!("{} by payload", upper_first(&phrase(metric.title)));
    of_metric(input, layout, metric, "by-size", title)
}

/// Any metric over payload sizes; `None` if no factor is a size.
pub(crate) fn of_metric(input: &Input, layout: &Layout, metric: &Metric, id: &str, title: String) -> Option<Chart> {
    let factor = layout.size_factor.as_ref()?;
    // Facets by all factors but the compared one and the size, in the order of the study.
    let mut facets: IndexMap<String, Vec<Line>> = IndexMap::new();
    for group in &layout.groups {
        let mut levels = group.levels.clone();
        levels.shift_remove(factor);
        let name = if levels.is_empty() { "All sizes".to_owned() } else { sentence(&levels) };
        let lines = facets.entry(name).or_default();
        for row in group.rows.iter().filter(|row| !row.twin) {
            let Some(estimate) = input.estimate(row.cell, metric.name) else { continue };
            let cell = &input.manifest.plan.cells[row.cell];
            let point = Point { payload: payload(cell), cell: cell.label(), estimate };
            match lines.iter_mut().find(|(series, _)| *series == row.series) {
                Some((_, points)) => points.push(point),
                None => lines.push((row.series, vec![point])),
            }
        }
    }
    facets.retain(|_, lines| !lines.is_empty());
    let all = || facets.values().flatten().flat_map(|(_, points)| points);
    if facets.is_empty() {
        return None;
    }
    // One axis for all facets, so that readers can compare them.
    let estimates = || all().map(|point| point.estimate);
    let low = estimates().map(|estimate| estimate.interval.map_or(estimate.median, |interval| interval.low));
    let high = estimates().map(|estimate| estimate.interval.map_or(estimate.median, |interval| interval.high));
    let y = Axis::log(low.chain(high), BOTTOM, TOP);
    let sizes: BTreeSet<u64> = all().map(|point| point.payload).collect();
    // Room for the axis' title, and for the longest label.
    let longest = y.labelled(8, metric.unit).iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
    let left = 26.0 + longest as f64 * LETTER;
    let x = Axis::log(sizes.iter().map(|size| *size as f64), left + 10.0, RIGHT - 10.0);
    let plot = Plot { metric, left, x, y, sizes: &sizes };
    let missing = input.analysis.cells.iter().filter(|cell| !cell.estimates.contains_key(metric.name)).count();
    let note = match missing {
        0 => String::new(),
        1 => " One cell has no value; the tables give the reason.".to_owned(),
        count => format!(" {count} cells have no value; the tables give the reasons."),
    };
    Some(Chart {
        id: id.to_owned(),
        title,
        caption: format!(
            "Points are medians over trials; bars are their intervals. Both axes are logarithmic and shared by all facets. On a straight line of slope 1 the value is proportional to the payload.{note}"
        ),
        legend: series_legend(layout),
        facets: facets
            .iter()
            .map(|(name, lines)| Facet { title: name.clone(), svg: facet(&plot, name, lines) })
            .collect(),
        without_outliers: Vec::new(),
    })
}

/// Scales and data that all facets share.
struct Plot<'a> {
    metric: &'a Metric,
    left: f64,
    x: Axis,
    y: Axis,
    sizes: &'a BTreeSet<u64>,
}

fn facet(plot: &Plot, name: &str, lines: &[Line]) -> String {
    let Plot { metric, left, x, y, sizes } = plot;
    let left = *left;
    draw(WIDTH, HEIGHT, &format!("{} by payload, {name}", metric.title), |canvas| {
        let mut free = f64::NEG_INFINITY;
        for size in *sizes {
            let at = x.at(*size as f64);
            canvas.line((at, TOP), (at, BOTTOM), Paint::Grid, 1.0);
            if at - free > 52.0 {
                canvas.tick(&Size(*size).to_string(), (at, BOTTOM + 12.0));
                free = at;
            }
        }
        for (value, label) in y.labelled(8, metric.unit) {
            canvas.line((left, y.at(value)), (RIGHT, y.at(value)), Paint::Grid, 1.0);
            canvas.text(&label, (left - 6.0, y.at(value)), Align::Right, Paint::Muted);
        }
        canvas.text("payload (log scale)", (f64::midpoint(left, RIGHT), HEIGHT - 10.0), Align::Middle, Paint::Ink);
        let title = format!("{} (log scale)", phrase(metric.title));
        canvas.upright(&title, (9.0, f64::midpoint(TOP, BOTTOM)), Paint::Ink);
        for (number, (series, points)) in lines.iter().enumerate() {
            // Series are slightly shifted, so that one interval does not hide the next.
            let aside = (number as f64 - (lines.len() as f64 - 1.0) / 2.0) * 2.5;
            line(canvas, plot, *series, points, aside);
        }
    })
}

fn line(canvas: &mut Canvas, plot: &Plot, series: usize, points: &[Point], aside: f64) {
    let Plot { metric, x, y, .. } = plot;
    let mut points: Vec<_> = points.iter().collect();
    points.sort_by_key(|point| point.payload);
    let paint = Paint::Series(series);
    let place = |point: &Point| (x.at(point.payload as f64) + aside, y.at(point.estimate.median));
    canvas.path(points.iter().map(|point| place(point)), paint, 1.5);
    for point in points {
        let (across, middle) = place(point);
        let interval = point.estimate.interval.map(|interval| (y.at(interval.low), y.at(interval.high)));
        let (low, high) = interval.unwrap_or((middle, middle));
        canvas.line((across, low), (across, high), paint, 1.5);
        canvas.marker((across, middle), 4.0, series);
        canvas.tip((across, low), (across, high), &facts(&point.cell, metric, point.estimate));
    }
}
