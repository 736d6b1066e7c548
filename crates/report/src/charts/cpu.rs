//! Processor time per request of client and server.

use wirelab_model::metric::Side;

use crate::Input;
use crate::charts::canvas::Paint;
use crate::charts::{Chart, bars, swatch};
use crate::columns::{find, is_cpu_per_request};
use crate::layout::Layout;

/// The chart of processor time; absent if neither side was measured.
pub(crate) fn chart(input: &Input, layout: &Layout) -> Option<Chart> {
    let sides = [(Side::Client, Paint::First), (Side::Server, Paint::Second)];
    let metrics: Vec<_> = sides
        .into_iter()
        .filter_map(|(side, paint)| {
            find(input, |metric| is_cpu_per_request(metric, side)).map(|metric| (metric, paint))
        })
        .collect();
    let facets = bars::facets(input, layout, &metrics, "CPU time per request");
    (!facets.is_empty()).then(|| Chart {
        id: "cpu".to_owned(),
        title: "What a request costs: CPU time of client and server".to_owned(),
        caption: "User and system time from the kernel's account of each process in the measured window, divided by the requests that succeeded. Bars are medians over trials, lines their intervals; shorter is better. Each facet has an axis of its own, from 0.".to_owned(),
        legend: vec![swatch(Paint::First, "client (upper bar)"), swatch(Paint::Second, "server (lower bar)")],
        facets,
        without_outliers: Vec::new(),
    })
}
