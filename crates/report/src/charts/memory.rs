//! Peak memory of client and server.

use wirelab_model::metric::Side;

use crate::Input;
use crate::charts::canvas::Paint;
use crate::charts::{Chart, bars, swatch};
use crate::columns::{find, is_peak_memory};
use crate::layout::Layout;

/// The chart of memory; `None` if neither side was measured.
pub(crate) fn chart(input: &Input, layout: &Layout) -> Option<Chart> {
    let sides = [(Side::Client, Paint::First), (Side::Server, Paint::Second)];
    let metrics: Vec<_> = sides
        .into_iter()
        .filter_map(|(side, paint)| find(input, |metric| is_peak_memory(metric, side)).map(|metric| (metric, paint)))
        .collect();
    let facets = bars::facets(input, layout, &metrics, "peak memory");
    (!facets.is_empty()).then(|| Chart {
        id: "memory".to_owned(),
        title: "Peak memory of client and server".to_owned(),
        caption: "The largest resident set of each process, including program and libraries. Bars are medians over trials; lines are their intervals. Shorter is better. Each facet has its own axis from 0.".to_owned(),
        legend: vec![swatch(Paint::First, "client (upper bar)"), swatch(Paint::Second, "server (lower bar)")],
        facets,
        without_outliers: Vec::new(),
    })
}
