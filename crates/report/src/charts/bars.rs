//! Horizontal bars from 0, one or two per cell, with intervals.

use wirelab_model::metric::Metric;

use crate::Input;
use crate::charts::axis::Axis;
use crate::charts::canvas::{Align, Paint};
use crate::charts::frame::{Frame, ROW, tick_count};
use crate::charts::{Facet, facts};
use crate::layout::Layout;
use crate::numbers::Scale;

/// The metrics of each row with their paints.
pub(crate) type Pair<'a> = [(&'a Metric, Paint)];

/// The facets of a bar chart, one per group with at least one value.
pub(crate) fn facets(input: &Input, layout: &Layout, metrics: &Pair, axis_title: &str) -> Vec<Facet> {
    (0..layout.groups.len()).filter_map(|group| facet(input, layout, group, metrics, axis_title)).collect()
}

fn facet(input: &Input, layout: &Layout, number: usize, metrics: &Pair, axis_title: &str) -> Option<Facet> {
    let group = &layout.groups[number];
    let labels: Vec<_> = group.rows.iter().map(|row| layout.row_title(*row)).collect();
    let frame = Frame::new(&labels, 48.0);
    let estimates = || {
        group.rows.iter().flat_map(|row| metrics.iter().filter_map(|(metric, _)| input.estimate(row.cell, metric.name)))
    };
    let high = estimates().map(|estimate| estimate.interval.map_or(estimate.median, |interval| interval.high));
    estimates().next()?;
    let axis = Axis::from_zero(high, frame.left, frame.right);
    let scale = Scale::of(metrics.first()?.0.unit, estimates().map(|estimate| estimate.median));
    let ticks = axis.ticks(tick_count(frame.right - frame.left, 5), scale);
    let ticks: Vec<_> = ticks.into_iter().map(|(value, label)| (axis.at(value), label)).collect();
    let title = format!("{axis_title} ({})", scale.name).replace(" ()", "");
    let name = format!("{axis_title} at {}", group.title());
    let svg = frame.draw(&name, &labels, &ticks, &title, |canvas| {
        let height = if metrics.len() > 1 { 11.0 } else { 15.0 };
        for (row, of) in group.rows.iter().enumerate() {
            if metrics.iter().all(|(metric, _)| input.estimate(of.cell, metric.name).is_none()) {
                frame.missing(canvas, row, "not measured");
                continue;
            }
            let top = frame.row(row) - height * metrics.len() as f64 / 2.0;
            debug_assert!(height * metrics.len() as f64 <= ROW);
            for (index, (metric, paint)) in metrics.iter().enumerate() {
                let y = top + (index as f64 + 0.5) * height;
                let Some(estimate) = input.estimate(of.cell, metric.name) else {
                    canvas.text("not measured", (frame.left + 6.0, y), Align::Left, Paint::Muted);
                    continue;
                };
                let end = axis.at(estimate.median);
                canvas.rect((frame.left, y - height / 2.0 + 0.5), (end, y + height / 2.0 - 0.5), *paint);
                let mut beyond = end;
                if let Some(interval) = estimate.interval {
                    let (low, high) = (axis.at(interval.low), axis.at(interval.high));
                    canvas.line((low, y), (high, y), Paint::Ink, 1.0);
                    canvas.line((low, y - 2.5), (low, y + 2.5), Paint::Ink, 1.0);
                    canvas.line((high, y - 2.5), (high, y + 2.5), Paint::Ink, 1.0);
                    beyond = high;
                }
                canvas.text(&scale.number(estimate.median), (beyond + 4.0, y), Align::Left, Paint::Ink);
                let cell = input.manifest.plan.cells[of.cell].label();
                let area = ((frame.left, y - height / 2.0), (beyond, y + height / 2.0));
                canvas.tip(area.0, area.1, &facts(&cell, metric, estimate));
            }
        }
    });
    Some(Facet { title: group.title(), svg })
}
