//! The measured window of trials with a timeline: requests of each server and response times over time, with the
//! actions marked.

use wirelab_model::metric::Unit;
use wirelab_model::timeline::{Interval, Lifetimes, ServerRecord, TimelineRecord};
use wirelab_stats::quantile;

use crate::Input;
use crate::charts::axis::Axis;
use crate::charts::canvas::{Align, Canvas, Paint, draw};
use crate::charts::frame::{WIDTH, tick_count};
use crate::charts::{Chart, Facet, Key};
use crate::layout::sentence;
use crate::numbers::Scale;
use crate::shares::played;

const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 190.0;
const HEIGHT: f64 = 232.0;

/// The number of points of a server's line. Each is the mean rate since the previous point.
const POINTS: u64 = 60;

/// The drawn percentiles.
const PERCENTILES: [&str; 3] = ["P50", "P95", "P99"];

/// A line through the window: nanoseconds since its start, and a value or a gap.
type Line = Vec<(f64, Option<f64>)>;

/// One chart of servers and one of response times; empty without a timeline.
pub(crate) fn charts(input: &Input) -> Vec<Chart> {
    let cells = input.manifest.plan.cells.iter().enumerate().filter(|(_, cell)| cell.twin_of.is_none());
    let (mut servers, mut times) = (Vec::new(), Vec::new());
    let mut most = 0;
    for (number, cell) in cells {
        let trials = played(input, number);
        let Some(first) = trials.first() else { continue };
        let (title, window_ns) = (sentence(&cell.levels), Lifetimes::of(&cell.job).window_ns);
        // Chance decides which server gets a connection, so servers of different trials do not correspond.
        let rates = rates(first, window_ns);
        most = most.max(rates.len());
        let moments = Moments { cell: cell.label(), actions: actions(&[*first]), trials: 1, window_ns };
        let svg = facet(&title, &rates, &moments, Unit::PerSecond);
        servers.push(Facet { title: title.clone(), svg });
        let percentiles = percentiles(&trials);
        let moments = Moments { actions: actions(&trials), trials: trials.len(), ..moments };
        let svg = facet(&title, &percentiles, &moments, Unit::Nanoseconds);
        times.push(Facet { title, svg });
    }
    let lines = "Vertical lines mark the actions of the timeline at their actual times.";
    let chart = |id: &str, title: &str, caption: String, names: Vec<String>, facets: Vec<Facet>| Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        caption,
        legend: legend(names),
        facets,
        without_outliers: Vec::new(),
    };
    if servers.is_empty() {
        return Vec::new();
    }
    vec![
        chart(
            "servers-over-time",
            "Requests per second of each server over the measured window",
            format!(
                "By the servers' own counts in the first successful trial of each cell. Chance decides which server gets a \
                 connection, so trials cannot be averaged. {lines}"
            ),
            (1..=most).map(|server| format!("server {server}")).collect(),
            servers,
        ),
        chart(
            "responses-over-time",
            "Response times over the measured window",
            format!(
                "For each sixtieth of the window, the requests of all clients that ended in it; medians over trials, log scale. {lines}"
            ),
            PERCENTILES.map(str::to_owned).into(),
            times,
        ),
    ]
}

fn legend(names: Vec<String>) -> Vec<Key> {
    let key = |(number, text): (usize, String)| Key {
        svg: draw(34.0, 14.0, &text, |canvas| {
            canvas.line((1.0, 7.0), (33.0, 7.0), Paint::Series(number), 2.0);
            canvas.marker((17.0, 7.0), 4.0, number);
        }),
        text,
    };
    names.into_iter().enumerate().map(key).collect()
}

/// What all lines of a drawing share.
struct Moments {
    cell: String,
    /// Each action with its time in nanoseconds since the start of the window.
    actions: Vec<(String, f64)>,
    /// The number of trials that a value is the median of.
    trials: usize,
    window_ns: u64,
}

/// Each action with the median of its times.
fn actions(trials: &[&TimelineRecord]) -> Vec<(String, f64)> {
    let Some(first) = trials.first() else { return Vec::new() };
    let median = |place: usize| {
        let began = trials.iter().filter_map(|played| Some(played.actions.get(place)?.began_ns as f64));
        quantile::median(&began.collect::<Vec<_>>())
    };
    let named = first.actions.iter().enumerate();
    named.filter_map(|(place, action)| Some((action.name.clone(), median(place)?))).collect()
}

/// A line for each server.
fn rates(played: &TimelineRecord, window_ns: u64) -> Vec<Line> {
    let step = window_ns as f64 / POINTS as f64;
    let rate = |server: usize, from: Option<u64>, point: u64| {
        let (begin, end) = ((point - 1) as f64 * step, point as f64 * step);
        (end >= from? as f64).then_some(())?;
        Some((answered(played, server, end)? - answered(played, server, begin)?) / (step / 1e9))
    };
    let servers = played.servers.iter().enumerate();
    let line = |(server, times): (usize, &ServerRecord)| -> Line {
        (1..=POINTS).map(|point| (point as f64 * step, rate(server, times.from_ns, point))).collect()
    };
    servers.map(line).collect()
}

/// The number of requests that a server had answered at a moment, linearly interpolated between two readings.
fn answered(played: &TimelineRecord, server: usize, at: f64) -> Option<f64> {
    let place = played.answered.partition_point(|answered| (answered.at_ns as f64) < at);
    let count = |place: usize| {
        let answered = played.answered.get(place)?;
        Some((answered.at_ns as f64, *answered.requests.get(server)? as f64))
    };
    match (place.checked_sub(1).and_then(count), count(place)) {
        (Some((begin, before)), Some((end, after))) => Some(before + (after - before) * (at - begin) / (end - begin)),
        (Some((_, only)), None) | (None, Some((_, only))) => Some(only),
        (None, None) => None,
    }
}

/// A line for each percentile.
fn percentiles(trials: &[&TimelineRecord]) -> Vec<Line> {
    let Some(first) = trials.first() else { return Vec::new() };
    let line = |percentile: usize| -> Line {
        let point = |(place, interval): (usize, &Interval)| {
            let values = trials.iter().filter_map(|played| played.intervals.get(place)?.percentiles[percentile]);
            let values: Vec<_> = values.map(|ns| ns as f64).collect();
            (interval.until_ns as f64, quantile::median(&values))
        };
        first.intervals.iter().enumerate().map(point).collect()
    };
    (0..PERCENTILES.len()).map(line).collect()
}

fn facet(title: &str, lines: &[Line], moments: &Moments, unit: Unit) -> String {
    let Moments { actions, window_ns, .. } = moments;
    let values = || lines.iter().flatten().filter_map(|(_, value)| *value);
    let is_time = unit == Unit::Nanoseconds;
    let x = Axis::exact(0.0, *window_ns as f64, LEFT, RIGHT);
    let y = if is_time { Axis::log(values(), BOTTOM, TOP) } else { Axis::from_zero(values(), BOTTOM, TOP) };
    let ticks = if is_time { y.labelled(5, unit) } else { y.ticks(5, Scale::of(unit, values())) };
    let scale = Scale::of(Unit::Nanoseconds, [*window_ns as f64]);
    let (what, name) = if is_time {
        ("response time".to_owned(), format!("Response times over time at {title}"))
    } else {
        let per = Scale::of(unit, values()).name;
        (format!("requests ({per})"), format!("Requests of each server over time at {title}"))
    };
    draw(WIDTH, HEIGHT, &name, |canvas| {
        for (value, label) in ticks {
            canvas.line((LEFT, y.at(value)), (RIGHT, y.at(value)), Paint::Grid, 1.0);
            canvas.text(&label, (LEFT - 6.0, y.at(value)), Align::Right, Paint::Muted);
        }
        for (value, label) in x.ticks(tick_count(RIGHT - LEFT, 4), scale) {
            canvas.tick(&label, (x.at(value), BOTTOM + 12.0));
        }
        for (name, at) in actions {
            canvas.line((x.at(*at), TOP), (x.at(*at), BOTTOM), Paint::Zero, 1.0);
            canvas.text(name, (x.at(*at), TOP - 10.0), Align::Middle, Paint::Ink);
        }
        let middle = f64::midpoint(LEFT, RIGHT);
        canvas.text(&format!("time ({})", scale.name), (middle, HEIGHT - 10.0), Align::Middle, Paint::Ink);
        canvas.upright(&what, (10.0, f64::midpoint(TOP, BOTTOM)), Paint::Ink);
        for (series, line) in lines.iter().enumerate() {
            curve(canvas, &x, &y, series, line);
        }
        tips(canvas, &x, lines, moments, unit);
    })
}

/// For each moment one area over the whole height, with the values of all lines.
fn tips(canvas: &mut Canvas, x: &Axis, lines: &[Line], moments: &Moments, unit: Unit) {
    let name = |line: usize| match unit {
        Unit::Nanoseconds => format!("{} (ns)", PERCENTILES[line]),
        _ => format!("server {} (requests/s)", line + 1),
    };
    let names: Vec<_> = (0..lines.len()).map(name).collect();
    let mut from = LEFT;
    for point in 0..lines.iter().map(Vec::len).max().unwrap_or(0) {
        let Some((at, _)) = lines.iter().find_map(|line| line.get(point)) else { continue };
        let mut facts = vec![("cell", moments.cell.clone()), ("until (ns)", at.to_string())];
        for (line, name) in lines.iter().zip(&names) {
            facts.extend(line.get(point).and_then(|(_, value)| *value).map(|value| (name.as_str(), value.to_string())));
        }
        facts.push(("n (trials)", moments.trials.to_string()));
        canvas.exact_tip((from, TOP), (x.at(*at), BOTTOM), &facts);
        from = x.at(*at);
    }
}

/// A line with gaps for missing values, and one marker.
fn curve(canvas: &mut Canvas, x: &Axis, y: &Axis, series: usize, line: &Line) {
    for piece in line.split(|(_, value)| value.is_none()) {
        let points = piece.iter().filter_map(|(at, value)| Some((x.at(*at), y.at((*value)?))));
        canvas.path(points, Paint::Series(series), 1.5);
    }
    let known: Vec<_> = line.iter().filter_map(|(at, value)| Some((*at, (*value)?))).collect();
    // The marker's place depends on the series, which distinguishes lines that overlap.
    let place = (known.len() / 8 + series * known.len() / 5) % known.len().max(1);
    if let Some((at, value)) = known.get(place) {
        canvas.marker((x.at(*at), y.at(*value)), 3.5, series);
    }
}

#[cfg(test)]
mod tests {
    use wirelab_model::timeline::Answered;

    use super::*;

    fn played(servers: [Option<u64>; 2]) -> TimelineRecord {
        TimelineRecord {
            servers: servers.map(|from_ns| ServerRecord { from_ns, until_ns: None }).into(),
            answered: [(0, 0), (600, 60), (1200, 300)]
                .map(|(at_ns, count)| Answered { at_ns, requests: vec![count, 0] })
                .into(),
            ..TimelineRecord::default()
        }
    }

    #[test]
    fn counts_between_two_answers_are_interpolated_and_rates_are_their_slope() {
        let played = played([Some(0), Some(600)]);
        for (at, count) in [(0.0, 0.0), (300.0, 30.0), (600.0, 60.0), (900.0, 180.0), (1200.0, 300.0), (1500.0, 300.0)]
        {
            assert_eq!(answered(&played, 0, at), Some(count), "at {at}");
        }
        // Sixty points of 20 ns: a request in each 10 ns, then four.
        let lines = rates(&played, 1200);
        assert_eq!((lines.len(), lines[0].len()), (2, 60));
        assert_eq!((lines[0][0], lines[0][59]), ((20.0, Some(1e8)), (1200.0, Some(4e8))));
    }

    #[test]
    fn a_server_has_no_line_before_it_can_be_reached() {
        let lines = rates(&played([Some(0), Some(600)]), 1200);
        let known: Vec<_> = lines[1].iter().filter(|(_, rate)| rate.is_some()).map(|(at, _)| *at).collect();
        assert_eq!((known[0], known.len()), (600.0, 31));
        assert_eq!(rates(&played([Some(0), None]), 1200)[1].iter().filter(|(_, rate)| rate.is_some()).count(), 0);
    }
}
