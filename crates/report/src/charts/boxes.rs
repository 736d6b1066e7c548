//! Box plots over trials, with every trial as a point and the noise floor as a band.

use wirelab_stats::analysis::Estimate;

use crate::Input;
use crate::charts::axis::Axis;
use crate::charts::canvas::{Canvas, Paint};
use crate::charts::frame::{Frame, ROW, tick_count};
use crate::charts::{Chart, Facet, Key, canvas, facts, swatch};
use crate::layout::Layout;
use crate::numbers::Scale;
use crate::words::{noise_floor, phrase, upper_first};

/// Values that differ by more than this factor get a logarithmic axis.
const LINEAR: f64 = 3.0;

/// The box plots of the first metric; `None` if it was never measured.
pub(crate) fn chart(input: &Input, layout: &Layout) -> Option<Chart> {
    let metric = input.metric(input.first_metric())?;
    let facets = |outliers| -> Vec<Facet> {
        (0..layout.groups.len()).filter_map(|group| facet(input, layout, group, outliers)).collect()
    };
    let with = facets(true);
    if with.is_empty() {
        return None;
    }
    let any = input.analysis.cells.iter().filter_map(|cell| cell.estimates.get(metric.name));
    let outliers: usize = any.map(|estimate| estimate.outliers.len()).sum();
    let one = if input.table.is_some() { "observation" } else { "trial" };
    let has_noise = input.table.is_none() || input.analysis.comparisons.iter().any(|compared| compared.aa);
    let band = if has_noise { "The band is the baseline's median times the noise floor. " } else { "" };
    let mut legend = vec![
        Key { svg: canvas::draw(22.0, 14.0, one, |c| c.dot((11.0, 7.0), 2.5, Paint::Dot)), text: one.to_owned() },
        Key {
            svg: canvas::draw(22.0, 14.0, "outlier", |c| c.ring((11.0, 7.0), 3.5, Paint::Worse)),
            text: "outlier (kept)".to_owned(),
        },
    ];
    legend.extend(has_noise.then(|| swatch(Paint::Noise, "noise floor (A/A)")));
    Some(Chart {
        id: "boxes".to_owned(),
        title: format!("{} of every {one}", upper_first(&phrase(metric.title))),
        caption: format!(
            "Each point is one {one}. The box reaches from the first to the third quartile; its thick line is the median. Whiskers reach to the last value within 1.5 times the interquartile range (Tukey 1977). {}. {band}Each facet has its own axis, which may not start at 0.",
            match outliers {
                0 => "No value is an outlier".to_owned(),
                1 => "1 outlier, drawn as a ring, stays in every estimate".to_owned(),
                count => format!("{count} outliers, drawn as rings, stay in every estimate"),
            }
        ),
        legend,
        facets: with,
        without_outliers: if outliers > 0 { facets(false) } else { Vec::new() },
    })
}

fn facet(input: &Input, layout: &Layout, number: usize, outliers: bool) -> Option<Facet> {
    let metric = input.metric(input.first_metric())?;
    let group = &layout.groups[number];
    let labels: Vec<_> = group.rows.iter().map(|row| layout.row_title(*row)).collect();
    let frame = Frame::new(&labels, 0.0);
    let estimates: Vec<_> = group.rows.iter().map(|row| input.estimate(row.cell, metric.name)).collect();
    let shown: Vec<f64> =
        estimates.iter().flatten().flat_map(|estimate| values(estimate, outliers)).map(|(_, v)| v).collect();
    if shown.is_empty() {
        return None;
    }
    let lowest = shown.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = shown.iter().copied().fold(0.0, f64::max);
    let log = lowest > 0.0 && highest / lowest > LINEAR;
    let make = if log { Axis::log } else { Axis::linear };
    let axis = make(&mut shown.iter().copied(), frame.left, frame.right);
    let scale = Scale::of(metric.unit, shown.iter().copied());
    let (ticks, unit) = if log {
        (axis.labelled(tick_count(frame.right - frame.left, 6), metric.unit), "log scale".to_owned())
    } else {
        (axis.ticks(tick_count(frame.right - frame.left, 5), scale), scale.name.to_owned())
    };
    let ticks: Vec<_> = ticks.into_iter().map(|(value, label)| (axis.at(value), label)).collect();
    let title = format!("{} ({unit})", phrase(metric.title)).replace(" ()", "");
    let noise = noise_floor(input, layout, number, metric.name);
    let baseline = group.baseline().and_then(|cell| input.estimate(cell, metric.name));
    let name = format!("{} of each trial at {}", metric.title, group.title());
    let svg = frame.draw(&name, &labels, &ticks, &title, |canvas| {
        if let (Some(noise), Some(baseline)) = (noise, baseline) {
            let place = |ratio: f64| axis.at(baseline.median * ratio);
            frame.band(canvas, place(noise.low), place(noise.high), Paint::Noise);
        }
        for (row, estimate) in estimates.iter().enumerate() {
            match estimate {
                Some(estimate) => {
                    one(canvas, &axis, frame.row(row), estimate, outliers);
                    let cell = input.manifest.plan.cells[group.rows[row].cell].label();
                    let (low, high) = (axis.at(estimate.range.0), axis.at(estimate.range.1));
                    let (top, bottom) = (frame.row(row) - ROW * 0.28, frame.row(row) + ROW * 0.28);
                    canvas.tip((low, top), (high, bottom), &facts(&cell, metric, estimate));
                }
                None => frame.missing(canvas, row, "not measured"),
            }
        }
    });
    Some(Facet { title: group.title(), svg })
}

fn values(estimate: &Estimate, outliers: bool) -> impl Iterator<Item = (u32, f64)> {
    estimate.values.iter().copied().filter(move |(trial, _)| outliers || !estimate.outliers.contains(trial))
}

fn one(canvas: &mut Canvas, axis: &Axis, y: f64, estimate: &Estimate, outliers: bool) {
    let within: Vec<f64> = values(estimate, false).map(|(_, value)| value).collect();
    let low = within.iter().copied().fold(estimate.quartiles.0, f64::min);
    let high = within.iter().copied().fold(estimate.quartiles.1, f64::max);
    let half = ROW * 0.28;
    let (q1, q3) = (axis.at(estimate.quartiles.0), axis.at(estimate.quartiles.1));
    canvas.line((axis.at(low), y), (q1, y), Paint::Ink, 1.0);
    canvas.line((q3, y), (axis.at(high), y), Paint::Ink, 1.0);
    canvas.rect((q1, y - half), (q3, y + half), Paint::Box);
    canvas.outline((q1, y - half), (q3, y + half), Paint::Ink);
    for (trial, value) in values(estimate, outliers) {
        // Spread by the trial's number, so that equal values do not hide each other and the drawing is always the same.
        let spread = f64::from((trial.wrapping_mul(2_654_435_761) >> 16) % 100) / 100.0 - 0.5;
        let at = (axis.at(value), y + spread * half * 1.4);
        if estimate.outliers.contains(&trial) {
            canvas.ring(at, 3.0, Paint::Worse);
        } else {
            canvas.dot(at, 1.5, Paint::Dot);
        }
    }
    let median = axis.at(estimate.median);
    canvas.line((median, y - half), (median, y + half), Paint::Ink, 2.5);
}
