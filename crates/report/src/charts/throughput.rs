//! Goodput: over payload sizes if the study varies them, otherwise as bars.

use crate::Input;
use crate::charts::canvas::Paint;
use crate::charts::{Chart, bars, by_size};
use crate::columns::{find, is_throughput};
use crate::layout::Layout;
use crate::words::phrase;

/// The goodput chart; `None` if goodput was not measured.
pub(crate) fn chart(input: &Input, layout: &Layout) -> Option<Chart> {
    let metric = find(input, is_throughput)?;
    let title = format!("{}: payload per second", metric.title);
    if let Some(chart) = by_size::of_metric(input, layout, metric, "throughput", title.clone()) {
        return Some(chart);
    }
    let facets = bars::facets(input, layout, &[(metric, Paint::First)], &phrase(metric.title));
    (!facets.is_empty()).then(|| Chart {
        id: "throughput".to_owned(),
        title,
        caption: "Bars are medians over trials; lines are their intervals. Longer is better. Each facet has its own axis from 0.".to_owned(),
        legend: Vec::new(),
        facets,
        without_outliers: Vec::new(),
    })
}
