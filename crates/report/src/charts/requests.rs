//! Box plots of single requests: the figures of a study.

use wirelab_model::metric::Unit;

use crate::Input;
use crate::charts::axis::Axis;
use crate::charts::canvas::{Align, Canvas, Paint};
use crate::charts::frame::{Frame, ROW, tick_count};
use crate::charts::{Chart, Facet, Key, canvas};
use crate::figures::{Boxed, Drawn, NOTE, Plot, extent, figures};
use crate::numbers::{Scale, quantity};

/// Values that differ by more than this factor get a logarithmic axis.
const LINEAR: f64 = 8.0;

/// The largest number of drawn outliers of a box; of more, a sample that is evenly spread over the ranks.
const MOST: usize = 200;

/// Room for the total time beside the axis.
const MARGIN: f64 = 62.0;

/// A chart for each figure of the study.
pub(crate) fn charts(input: &Input) -> Vec<Chart> {
    figures(input).into_iter().enumerate().filter_map(|(number, figure)| chart(number, figure)).collect()
}

fn chart(number: usize, figure: Drawn) -> Option<Chart> {
    let facets =
        |outliers: bool| -> Vec<Facet> { figure.plots.iter().filter_map(|plot| facet(plot, outliers)).collect() };
    let with = facets(true);
    if with.is_empty() {
        return None;
    }
    let boxes = figure.plots.iter().flat_map(|plot| &plot.rows).filter_map(|row| row.requests.as_ref().ok());
    let outliers: u64 = boxes.map(Boxed::outlying).sum();
    Some(Chart {
        id: format!("figure-{}", number + 1),
        title: figure.title,
        caption: format!(
            "{NOTE} The number at the right is the total time. Each facet has its own axis, which may not start at 0."
        ),
        legend: vec![Key {
            svg: canvas::draw(22.0, 14.0, "outlier", |c| c.ring((11.0, 7.0), 3.0, Paint::Worse)),
            text: format!("outlier ({outliers} in all; kept in every estimate)"),
        }],
        facets: with,
        without_outliers: if outliers > 0 { facets(false) } else { Vec::new() },
    })
}

fn facet(plot: &Plot, outliers: bool) -> Option<Facet> {
    let (low, high) = extent(plot.rows.iter(), outliers)?;
    let labels: Vec<_> = plot.rows.iter().map(|row| row.label.clone()).collect();
    let frame = Frame::new(&labels, MARGIN);
    let log = low > 0.0 && high / low > LINEAR;
    let make = if log { Axis::log } else { Axis::linear };
    let axis = make(&mut [low, high].into_iter(), frame.left, frame.right);
    let (ticks, unit) = if log {
        (axis.labelled(tick_count(frame.right - frame.left, 6), Unit::Nanoseconds), "log scale")
    } else {
        let scale = Scale::of(Unit::Nanoseconds, [low, high]);
        (axis.ticks(tick_count(frame.right - frame.left, 5), scale), scale.name)
    };
    let ticks: Vec<_> = ticks.into_iter().map(|(value, label)| (axis.at(value), label)).collect();
    let name = format!("response times of requests at {}", plot.title);
    let svg = frame.draw(&name, &labels, &ticks, &format!("response time ({unit})"), |canvas| {
        for (number, row) in plot.rows.iter().enumerate() {
            match &row.requests {
                Ok(found) => {
                    let y = frame.row(number);
                    one(canvas, &axis, y, found, outliers);
                    let (low, high) = found.extent(outliers);
                    let half = ROW * 0.28;
                    canvas.tip((axis.at(low), y - half), (axis.at(high), y + half), &facts(&row.label, found));
                }
                Err(_) => frame.missing(canvas, number, "no response"),
            }
            if let Some(total) = row.total {
                let text = quantity(total, Unit::Nanoseconds);
                canvas.text(&text, (frame.right + 6.0, frame.row(number)), Align::Left, Paint::Muted);
            }
        }
    });
    Some(Facet { title: plot.title.clone(), svg })
}

/// The exact numbers of a box, in nanoseconds.
fn facts(label: &str, found: &Boxed) -> [(&'static str, String); 10] {
    let [first, median, third] = found.quartiles;
    [
        ("box", label.to_owned()),
        ("first quartile (ns)", first.to_string()),
        ("median (ns)", median.to_string()),
        ("third quartile (ns)", third.to_string()),
        ("whisker low (ns)", found.whiskers.0.to_string()),
        ("whisker high (ns)", found.whiskers.1.to_string()),
        ("least (ns)", found.range.0.to_string()),
        ("greatest (ns)", found.range.1.to_string()),
        ("outliers", found.outlying().to_string()),
        ("n (requests)", found.count.to_string()),
    ]
}

fn one(canvas: &mut Canvas, axis: &Axis, y: f64, found: &Boxed, outliers: bool) {
    let half = ROW * 0.28;
    let [q1, median, q3] = found.quartiles.map(|value| axis.at(value));
    let (low, high) = (axis.at(found.whiskers.0), axis.at(found.whiskers.1));
    canvas.line((low, y), (q1, y), Paint::Ink, 1.0);
    canvas.line((q3, y), (high, y), Paint::Ink, 1.0);
    for end in [low, high] {
        canvas.line((end, y - half / 2.0), (end, y + half / 2.0), Paint::Ink, 1.0);
    }
    canvas.rect((q1, y - half), (q3, y + half), Paint::Box);
    canvas.outline((q1, y - half), (q3, y + half), Paint::Ink);
    canvas.line((median, y - half), (median, y + half), Paint::Ink, 2.5);
    if outliers {
        let step = found.outliers.len().div_ceil(MOST).max(1);
        // The largest outlier is always drawn, because the axis ends there.
        for (value, _) in found.outliers.iter().rev().step_by(step) {
            canvas.ring((axis.at(*value as f64), y), 3.0, Paint::Worse);
        }
    }
}
