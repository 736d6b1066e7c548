//! Charts as SVG, one module each. The title of a chart names the quantity; the caption explains how to read it.

mod axis;
mod bars;
mod blocks;
mod boxes;
mod by_size;
mod bytes;
mod canvas;
mod cpu;
mod ecdf;
mod filmstrip;
mod forest;
mod frame;
mod memory;
mod overview;
mod percentiles;
mod requests;
mod stepped;
mod throughput;
mod timeline;
mod waterfall;
mod window;

pub(crate) use axis::Axis;
pub(crate) use canvas::{Align, Canvas, Paint, SERIES, draw};
pub(crate) use forest::{Mark, legend as forest_legend, symbol, tone_paint};
pub(crate) use frame::{WIDTH, tick_count};
pub(crate) use overview::chart as overview;
pub(crate) use stepped::{Line, Names, Point, drawing};

use wirelab_model::metric::Metric;
use wirelab_stats::analysis::Estimate;

use crate::Input;
use crate::layout::Layout;

/// A chart: one drawing per facet.
pub(crate) struct Chart {
    /// The anchor in the page.
    pub id: String,
    pub title: String,
    /// How to read the chart.
    pub caption: String,
    /// The meaning of shapes and colours.
    pub legend: Vec<Key>,
    pub facets: Vec<Facet>,
    /// The same drawings without outliers; empty if no drawing has outliers.
    pub without_outliers: Vec<Facet>,
}

/// A drawing of a chart, for one combination of levels.
pub(crate) struct Facet {
    /// The levels.
    pub title: String,
    /// The SVG element.
    pub svg: String,
}

/// An entry of a legend.
pub(crate) struct Key {
    /// A small SVG element.
    pub svg: String,
    pub text: String,
}

/// The charts that answer the study's question, in the order of the page.
pub(crate) fn main(input: &Input, layout: &Layout) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    let metrics = &input.manifest.study.compare.metrics;
    charts.extend(metrics.iter().take(1).filter_map(|metric| forest::chart(input, layout, metric)));
    charts.extend(timeline::charts(input));
    charts.extend(requests::charts(input));
    charts.extend(boxes::chart(input, layout));
    charts.extend(blocks::chart(input, layout));
    charts.extend(window::chart(input, layout));
    charts.extend(waterfall::charts(input, layout).into_iter().take(1));
    charts.extend(bytes::chart(input, layout));
    charts.extend(filmstrip::charts(input, layout).into_iter().take(1));
    charts.extend(by_size::chart(input, layout));
    charts.extend(ecdf::chart(input, layout));
    charts.extend(percentiles::chart(input, layout));
    charts.extend(throughput::chart(input, layout));
    charts.extend(cpu::chart(input, layout));
    charts.extend(memory::chart(input, layout));
    charts
}

/// The verdicts in further metrics, and the loads of further pages.
pub(crate) fn more(input: &Input, layout: &Layout) -> Vec<Chart> {
    let metrics = input.manifest.study.compare.metrics.iter().skip(1);
    let mut charts: Vec<Chart> = metrics.filter_map(|metric| forest::chart(input, layout, metric)).collect();
    charts.extend(waterfall::charts(input, layout).into_iter().skip(1));
    charts.extend(filmstrip::charts(input, layout).into_iter().skip(1));
    charts
}

/// The legend of the series: colour, shape of the marker, dash of the line.
fn series_legend(layout: &Layout) -> Vec<Key> {
    layout
        .series
        .iter()
        .enumerate()
        .map(|(number, series)| Key {
            svg: canvas::draw(34.0, 14.0, &series.title, |canvas| {
                canvas.line((1.0, 7.0), (33.0, 7.0), canvas::Paint::Series(number), 2.0);
                canvas.marker((17.0, 7.0), 4.0, number);
            }),
            text: series.title.clone(),
        })
        .collect()
}

/// The exact numbers of an estimate, in the base unit of its metric.
fn facts(cell: &str, metric: &Metric, estimate: &Estimate) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("cell", cell.to_owned()),
        ("metric", metric.name.to_owned()),
        ("unit", crate::csv::token(metric.unit)),
        ("median", estimate.median.to_string()),
    ];
    if let Some(interval) = estimate.interval {
        facts.push(("interval low", interval.low.to_string()));
        facts.push(("interval high", interval.high.to_string()));
    }
    facts.push(("first quartile", estimate.quartiles.0.to_string()));
    facts.push(("third quartile", estimate.quartiles.1.to_string()));
    facts.push(("least", estimate.range.0.to_string()));
    facts.push(("greatest", estimate.range.1.to_string()));
    facts.push(("n (trials)", estimate.values.len().to_string()));
    facts
}

/// A legend's entry for a filled area.
fn swatch(paint: canvas::Paint, text: &str) -> Key {
    Key {
        svg: canvas::draw(22.0, 14.0, text, |canvas| canvas.rect((1.0, 2.0), (21.0, 12.0), paint)),
        text: text.to_owned(),
    }
}
