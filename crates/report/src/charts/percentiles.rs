//! Percentile plots of the pooled response times, as HdrHistogram draws them: each further nine has the same width.

use wirelab_model::metric::Unit;

use crate::charts::axis::Axis;
use crate::charts::canvas::{Align, Canvas, Paint, draw};
use crate::charts::frame::WIDTH;
use crate::charts::{Chart, Facet, series_legend};
use crate::layout::{Group, Layout};
use crate::numbers::Scale;
use crate::{Input, Pooled};

const LEFT: f64 = 56.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 228.0;
const HEIGHT: f64 = 270.0;

/// Labelled percentiles, with the share beyond them as a power of ten.
const TICKS: [(&str, u32); 7] =
    [("0", 0), ("90", 1), ("99", 2), ("99.9", 3), ("99.99", 4), ("99.999", 5), ("99.9999", 6)];

/// A percentile with fewer requests beyond it is mostly chance and is not drawn.
const BEYOND: u64 = 10;

/// The number of points in each power of ten.
const POINTS: u32 = 24;

/// The percentile plots; `None` if no cell has response times.
pub(crate) fn chart(input: &Input, layout: &Layout) -> Option<Chart> {
    let facets: Vec<_> = layout.groups.iter().filter_map(|group| facet(input, group)).collect();
    (!facets.is_empty()).then(|| Chart {
        id: "percentiles".to_owned(),
        title: "Response time by percentile".to_owned(),
        caption: format!(
            "The time within which a percentage of the requests was answered. The axis of percentiles is logarithmic from the slow end, as in HdrHistogram, so that the tail has room. A curve ends where fewer than {BEYOND} requests are slower. Requests are pooled over all trials of a cell: verdicts come from trials. Each facet has its own axis of times."
        ),
        legend: series_legend(layout),
        facets,
        without_outliers: Vec::new(),
    })
}

/// A curve: percentiles as powers of ten of the share beyond them, with times in nanoseconds.
struct Curve {
    cell: usize,
    series: usize,
    pooled: Pooled,
    points: Vec<(f64, f64)>,
}

fn facet(input: &Input, group: &Group) -> Option<Facet> {
    // A/A twins would hide the baseline.
    let rows = group.rows.iter().filter(|row| !row.twin);
    let curves = rows.filter_map(|row| {
        let pooled = (input.pooled)(row.cell).ok()?;
        let points = points(&pooled);
        Some(Curve { cell: row.cell, series: row.series, pooled, points })
    });
    let curves: Vec<Curve> = curves.collect();
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let farthest = points().map(|(nines, _)| *nines).fold(0.0, f64::max);
    points().next()?;
    let x = Axis::exact(0.0, farthest.max(1.0), LEFT, RIGHT);
    let y = Axis::from_zero(points().map(|(_, ns)| *ns), BOTTOM, TOP);
    let scale = Scale::of(Unit::Nanoseconds, points().map(|(_, ns)| *ns));
    let svg = draw(WIDTH, HEIGHT, &format!("Percentiles of response times at {}", group.title()), |canvas| {
        for (value, label) in y.ticks(5, scale) {
            canvas.line((LEFT, y.at(value)), (RIGHT, y.at(value)), Paint::Grid, 1.0);
            canvas.text(&label, (LEFT - 6.0, y.at(value)), Align::Right, Paint::Muted);
        }
        for (label, nines) in TICKS.into_iter().filter(|(_, nines)| f64::from(*nines) <= farthest.max(1.0)) {
            let at = x.at(f64::from(nines));
            canvas.line((at, TOP), (at, BOTTOM), Paint::Grid, 1.0);
            canvas.tick(label, (at, BOTTOM + 12.0));
        }
        let middle = f64::midpoint(LEFT, RIGHT);
        canvas.text("percentile (logarithmic from the slow end)", (middle, HEIGHT - 10.0), Align::Middle, Paint::Ink);
        canvas.upright(&format!("response time ({})", scale.name), (10.0, f64::midpoint(TOP, BOTTOM)), Paint::Ink);
        for curve in &curves {
            line(canvas, &x, &y, curve, &input.manifest.plan.cells[curve.cell].label());
        }
    });
    Some(Facet { title: group.title(), svg })
}

fn line(canvas: &mut Canvas, x: &Axis, y: &Axis, curve: &Curve, cell: &str) {
    let place = |nines: f64, ns: f64| (x.at(nines), y.at(ns));
    canvas.path(curve.points.iter().map(|(nines, ns)| place(*nines, *ns)), Paint::Series(curve.series), 1.5);
    // Markers at round percentiles, with the median.
    let marked = std::iter::once(("50", 2f64.log10())).chain(TICKS.map(|(label, nines)| (label, f64::from(nines))));
    let last = curve.points.last().map_or(0.0, |(nines, _)| *nines);
    for (label, nines) in marked.filter(|(_, nines)| *nines <= last && *nines > 0.0) {
        let ns = at(&curve.pooled, nines);
        let (px, py) = place(nines, ns);
        canvas.marker((px, py), 3.5, curve.series);
        let facts = [
            ("cell", cell.to_owned()),
            ("percentile", label.to_owned()),
            ("response time (ns)", ns.to_string()),
            ("n (requests)", curve.pooled.requests.to_string()),
            ("n (trials)", curve.pooled.trials.to_string()),
        ];
        canvas.tip((px, py), (px, py), &facts);
    }
}

/// Points up to the last percentile with enough requests beyond it.
fn points(pooled: &Pooled) -> Vec<(f64, f64)> {
    let last = (pooled.requests as f64 / BEYOND as f64).log10();
    let steps = (0..).map(|step| f64::from(step) / f64::from(POINTS)).take_while(|nines| *nines <= last);
    steps.map(|nines| (nines, at(pooled, nines))).collect()
}

/// The smallest time within which a share of 1 − 10^−nines of the requests was answered.
fn at(pooled: &Pooled, nines: f64) -> f64 {
    let share = 1.0 - 10f64.powf(-nines);
    // Slightly less, because the product of a share and a count may exceed a whole number by a rounding error.
    let rank = ((share * pooled.requests as f64 - 1e-6).ceil() as u64).max(1);
    let mut counted = 0;
    for (ns, count) in &pooled.counts {
        counted += count;
        if counted >= rank {
            return *ns as f64;
        }
    }
    pooled.counts.last().map_or(0.0, |(ns, _)| *ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_smallest_value_that_bounds_its_share() {
        let pooled = Pooled::from_values(1, (1..=1000).collect()).unwrap();
        assert_eq!([0.0, 1.0, 2.0, 3.0].map(|nines| at(&pooled, nines)), [1.0, 900.0, 990.0, 999.0]);
    }

    #[test]
    fn a_curve_ends_where_ten_requests_are_left() {
        let of = |requests: u64| points(&Pooled::from_values(1, (1..=requests).collect()).unwrap());
        assert_eq!(of(1000).last(), Some(&(2.0, 990.0)));
        assert_eq!(of(9), []);
    }
}
