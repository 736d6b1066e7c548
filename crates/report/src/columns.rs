//! The metrics of the summary table, found by their properties.

use wirelab_model::metric::{Metric, Side, Unit};

use crate::Input;
use crate::layout::Layout;
use crate::numbers::Scale;

/// A column of the summary.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    pub metric: &'a Metric,
    /// The heading in one or two short lines, without the unit.
    pub heading: (&'static str, &'static str),
    pub scale: Scale,
}

/// A predicate for a metric of the summary, with the two lines of its heading.
type Role = (fn(&Metric) -> bool, &'static str, &'static str);

const ROLES: [Role; 8] = [
    (|m| m.name == "response_median", "median", ""),
    (|m| m.name == "response_p90", "P90", ""),
    (|m| m.name == "response_p99", "P99", ""),
    (is_throughput, "goodput", ""),
    (|m| is_cpu_per_request(m, Side::Client), "CPU/req", "client"),
    (|m| is_cpu_per_request(m, Side::Server), "CPU/req", "server"),
    (|m| is_peak_memory(m, Side::Client), "memory", "client"),
    (|m| is_peak_memory(m, Side::Server), "memory", "server"),
];

/// Payload moved per time.
pub(crate) fn is_throughput(metric: &Metric) -> bool {
    metric.unit == Unit::BitsPerSecond
}

/// Processor time, user and system together, for one request on one side.
pub(crate) fn is_cpu_per_request(metric: &Metric, side: Side) -> bool {
    metric.side == side && matches!(metric.name, "cpu_client_per_request" | "cpu_server_per_request")
}

/// The largest resident memory on one side.
pub(crate) fn is_peak_memory(metric: &Metric, side: Side) -> bool {
    metric.side == side && matches!(metric.name, "memory_client_peak" | "memory_server_peak")
}

/// Whether the metric is a waiting time, so that `faster` and `slower` are the right words.
pub(crate) fn is_waiting(metric: &Metric) -> bool {
    metric.unit == Unit::Nanoseconds
        && !metric.name.contains("cpu")
        && metric.better == wirelab_model::metric::Better::Lower
}

/// The first accepted metric that was measured, else the first with a reason why it was not measured.
pub(crate) fn find<'a>(input: &Input<'a>, accepts: impl Fn(&Metric) -> bool) -> Option<&'a Metric> {
    let measured = |metric: &Metric| input.analysis.cells.iter().any(|cell| cell.estimates.contains_key(metric.name));
    let found = input.metrics.iter().copied().find(|metric| accepts(metric) && measured(metric));
    found.or_else(|| {
        input.metrics.iter().copied().find(|metric| {
            accepts(metric) && input.analysis.cells.iter().any(|cell| cell.not_measured.contains_key(metric.name))
        })
    })
}

/// The columns of the summary: the metrics of [`ROLES`] that the run knows, after the first metric if it has no role.
pub(crate) fn summary<'a>(input: &Input<'a>) -> Vec<Column<'a>> {
    let mut columns: Vec<Column> = Vec::new();
    let first = input.metric(input.first_metric());
    if let Some(metric) = first.filter(|metric| !ROLES.iter().any(|(accepts, ..)| accepts(metric))) {
        columns.push(Column { metric, heading: (metric.title, ""), scale: column_scale(input, &[metric]) });
    }
    for (accepts, first, second) in ROLES {
        if let Some(metric) = find(input, accepts) {
            columns.push(Column { metric, heading: (first, second), scale: column_scale(input, &[metric]) });
        }
    }
    share_scales(input, &mut columns);
    columns
}

/// Gives comparable columns the same unit: the latencies, and each pair of client and server.
fn share_scales(input: &Input, columns: &mut [Column]) {
    let family = |column: &Column| (column.metric.unit, is_waiting(column.metric), column.heading.1.is_empty());
    for index in 0..columns.len() {
        let own = family(&columns[index]);
        let members: Vec<_> =
            columns.iter().filter(|column| family(column) == own).map(|column| column.metric).collect();
        columns[index].scale = column_scale(input, &members);
    }
}

/// The scale for the medians of metrics over all cells.
fn column_scale(input: &Input, metrics: &[&Metric]) -> Scale {
    let unit = metrics.first().map_or(Unit::Count, |metric| metric.unit);
    let medians = input
        .analysis
        .cells
        .iter()
        .flat_map(|cell| metrics.iter().filter_map(|metric| cell.estimates.get(metric.name)))
        .map(|estimate| estimate.median);
    Scale::of(unit, medians)
}

/// Every metric that the run measured or has a reason for, in the order of declaration.
pub(crate) fn known<'a>(input: &Input<'a>) -> Vec<&'a Metric> {
    input.metrics.iter().copied().filter(|metric| find(input, |other| other.name == metric.name).is_some()).collect()
}

/// The scale of one metric over the cells of a group.
pub(crate) fn group_scale(input: &Input, layout: &Layout, group: usize, metric: &Metric) -> Scale {
    let rows = &layout.groups[group].rows;
    Scale::of(metric.unit, rows.iter().filter_map(|row| input.estimate(row.cell, metric.name)).map(|e| e.median))
}
