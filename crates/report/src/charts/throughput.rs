//! Payload moved per time: over payloads where the study varies them, otherwise as bars.

use crate::Input;
use crate::charts::canvas::Paint;
use crate::charts::{Chart, bars, by_size};
use crate::columns::{find, is_throughput};
use crate::layout::Layout;
use crate::words::phrase;

/// The throughput chart; absent if it was not measured.
pub(crate) fn chart(input: &Input, layout: &Layout) -> Option<Chart> {
    let metric = find(input, is_throughput)?;
    let title = format!("{}: payload moved per second", metric.title);
    if let Some(chart) = by_size::of_metric(input, layout, metric, "throughput", title.clone()) {
        return Some(chart);
    }
    let facets = bars::facets(input, layout, &[(metric, Paint::First)], &phrase(metric.title));
    (!facets.is_empty()).then(|| Chart {
        id: "throughput".to_owned(),
        title,
        caption: "Bars are medians over trials, lines their intervals; longer is better. Each facet has an axis of its own, from 0.".to_owned(),
        legend: Vec::new(),
        facets,
        without_outliers: Vec::new(),
    })
}
