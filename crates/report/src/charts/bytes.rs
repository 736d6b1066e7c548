//! The bytes of a page over time: for each version a line from the first request to the last byte.

use wirelab_model::metric::Unit;
use wirelab_model::page::PageLoad;

use crate::Input;
use crate::charts::axis::Axis;
use crate::charts::canvas::{Align, Paint, draw};
use crate::charts::frame::{WIDTH, tick_count};
use crate::charts::{Chart, Facet, series_legend};
use crate::layout::{Group, Layout};
use crate::numbers::Scale;

const LEFT: f64 = 56.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 228.0;
const HEIGHT: f64 = 270.0;

/// Moments in nanoseconds since the first request, with the bytes received by then. Between two moments the line is
/// straight.
type Arrival = Vec<(f64, f64)>;

/// A drawing for each group of cells whose client loads pages; `None` without such a group.
pub(crate) fn chart(input: &Input, layout: &Layout) -> Option<Chart> {
    let mut missing = Vec::new();
    let facets: Vec<_> = layout
        .groups
        .iter()
        .filter_map(|group| {
            let lines = lines(input, layout, group, &mut missing);
            (!lines.is_empty()).then(|| Facet { title: group.title(), svg: facet(group, &lines) })
        })
        .collect();
    if facets.is_empty() {
        return None;
    }
    let note = match missing.len() {
        0 => String::new(),
        _ => format!(
            " Not measured, because the browser does not report the size of every response: {}.",
            missing.join("; ")
        ),
    };
    Some(Chart {
        id: "bytes".to_owned(),
        title: "Bytes received over time in a typical load".to_owned(),
        caption: format!(
            "Bytes of headers and bodies received since the first request, as transferred. An earlier rise means earlier content; a steep line uses the link fully; a flat line is waiting. Browsers report the start and the end of each response. Its bytes are drawn as a constant rate in between, or from the request on if the start is missing. The loads are those of the waterfalls: examples, not evidence.{note}"
        ),
        legend: series_legend(layout),
        facets,
        without_outliers: Vec::new(),
    })
}

/// The load of a cell.
struct Line {
    cell: String,
    series: usize,
    arrival: Arrival,
}

/// The lines of a group, without A/A twins, which would hide the baseline.
fn lines(input: &Input, layout: &Layout, group: &Group, missing: &mut Vec<String>) -> Vec<Line> {
    let mut lines = Vec::new();
    for row in group.rows.iter().filter(|row| !row.twin) {
        let Some(load) = (input.typical_load)(row.cell) else { continue };
        match arrival(&load) {
            Some(arrival) => {
                let cell = input.manifest.plan.cells[row.cell].label();
                lines.push(Line { cell, series: row.series, arrival });
            }
            None => missing.push(format!("{} at {}", layout.row_title(*row), group.title())),
        }
    }
    lines
}

/// `None` if the size of a response is unknown.
fn arrival(load: &PageLoad) -> Option<Arrival> {
    let mut responses = Vec::new();
    for resource in load.resources.iter().filter(|resource| resource.status.is_some()) {
        let end = resource.end_ns?;
        let begin = resource.response_ns.or(resource.request_ns).unwrap_or(resource.start_ns).min(end);
        responses.push((begin as f64, end as f64, resource.received? as f64));
    }
    let mut moments: Vec<f64> = responses.iter().flat_map(|(begin, end, _)| [*begin, *end]).chain([0.0]).collect();
    moments.sort_by(f64::total_cmp);
    moments.dedup();
    let share = |at: f64, begin: f64, end: f64| {
        if end > begin { ((at - begin) / (end - begin)).clamp(0.0, 1.0) } else { f64::from(at >= end) }
    };
    let come = |at: f64| responses.iter().map(|(begin, end, bytes)| share(at, *begin, *end) * bytes).sum();
    (!responses.is_empty()).then(|| moments.into_iter().map(|at| (at, come(at))).collect())
}

fn facet(group: &Group, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.arrival);
    let x = Axis::from_zero(points().map(|(at, _)| *at), LEFT, RIGHT);
    let y = Axis::from_zero(points().map(|(_, bytes)| *bytes), BOTTOM, TOP);
    let times = Scale::of(Unit::Nanoseconds, points().map(|(at, _)| *at));
    let bytes = Scale::of(Unit::Bytes, points().map(|(_, bytes)| *bytes));
    draw(WIDTH, HEIGHT, &format!("Bytes received over time at {}", group.title()), |canvas| {
        for (value, label) in y.ticks(5, bytes) {
            canvas.line((LEFT, y.at(value)), (RIGHT, y.at(value)), Paint::Grid, 1.0);
            canvas.text(&label, (LEFT - 6.0, y.at(value)), Align::Right, Paint::Muted);
        }
        for (value, label) in x.ticks(tick_count(RIGHT - LEFT, 5), times) {
            canvas.line((x.at(value), TOP), (x.at(value), BOTTOM), Paint::Grid, 1.0);
            canvas.tick(&label, (x.at(value), BOTTOM + 12.0));
        }
        let words = format!("time since the first request ({})", times.name);
        canvas.text(&words, (f64::midpoint(LEFT, RIGHT), HEIGHT - 10.0), Align::Middle, Paint::Ink);
        canvas.upright(&format!("received ({})", bytes.name), (10.0, f64::midpoint(TOP, BOTTOM)), Paint::Ink);
        for Line { cell, series, arrival } in lines {
            canvas.path(arrival.iter().map(|(at, bytes)| (x.at(*at), y.at(*bytes))), Paint::Series(*series), 1.5);
            // The marker is at the end of the load, which distinguishes lines that end at the same height.
            if let Some((at, bytes)) = arrival.last() {
                let end = (x.at(*at), y.at(*bytes));
                canvas.marker(end, 3.5, *series);
                let facts = [("cell", cell.clone()), ("complete (ns)", at.to_string()), ("bytes", bytes.to_string())];
                canvas.tip(end, end, &facts);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use wirelab_model::outcome::Outcome;
    use wirelab_model::page::PageResource;

    use super::*;

    fn load(responses: &[(u64, u64, Option<u64>)]) -> PageLoad {
        let resource = |(response_ns, end_ns, received): &(u64, u64, Option<u64>)| PageResource {
            status: Some(200),
            response_ns: Some(*response_ns),
            end_ns: Some(*end_ns),
            received: *received,
            ..PageResource::default()
        };
        let resources = responses.iter().map(resource).collect();
        PageLoad { outcome: Outcome::Ok, values: Default::default(), warnings: Vec::new(), resources }
    }

    #[test]
    fn responses_at_the_same_time_add_up() {
        let found = arrival(&load(&[(10, 30, Some(200)), (20, 40, Some(100)), (40, 40, Some(7))])).unwrap();
        assert_eq!(found, [(0.0, 0.0), (10.0, 0.0), (20.0, 100.0), (30.0, 250.0), (40.0, 307.0)]);
    }

    #[test]
    fn unknown_bytes_are_not_guessed() {
        assert_eq!(arrival(&load(&[(10, 30, Some(200)), (20, 40, None)])), None);
        assert_eq!(arrival(&load(&[])), None);
    }

    #[test]
    fn requests_without_a_response_have_no_bytes() {
        let mut load = load(&[(10, 30, Some(200)), (20, 40, None)]);
        load.resources[1].status = None;
        assert_eq!(arrival(&load).unwrap().last(), Some(&(30.0, 200.0)));
    }
}
