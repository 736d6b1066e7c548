//! The values of a trial with a timeline: of each window that the study names, of each action, and of the course of the whole.
//!
//! Their metrics are called by the windows and actions of the study: `requests@NAME`.

use wirelab_model::metric::{Better, Metric, Side, Unit, Value, Values};
use wirelab_model::sample::Sample;
use wirelab_model::timeline::{Answered, Interval, Part, ServerRecord, Timeline, TimelineRecord};

use crate::quantile::nearest_rank;

const SAMPLES: &str = "the clients' own records, on one clock";
const SERVERS: &str = "the servers' own counts, asked every 100 ms";

/// What every window has: the name without that of the window, the title, the meaning.
const OF_WINDOWS: [(&str, &str, Unit, Side, Better, &str); 12] = [
    ("requests", "Requests", Unit::Count, Side::Client, Better::Higher, "Requests that were answered in the window."),
    (
        "rate",
        "Requests per second",
        Unit::PerSecond,
        Side::Client,
        Better::Higher,
        "Requests that were answered in the window, divided by its length.",
    ),
    ("failed", "Lost requests", Unit::Count, Side::Client, Better::Lower, "Requests that failed in the window."),
    (
        "response_p50",
        "Response time P50",
        Unit::Nanoseconds,
        Side::Client,
        Better::Lower,
        "The median response time of the requests that were answered in the window, of all clients together.",
    ),
    (
        "response_p95",
        "Response time P95",
        Unit::Nanoseconds,
        Side::Client,
        Better::Lower,
        "The response time that 95 in 100 requests answered in the window did not exceed (nearest rank), of all clients together.",
    ),
    (
        "response_p99",
        "Response time P99",
        Unit::Nanoseconds,
        Side::Client,
        Better::Lower,
        "The response time that 99 in 100 requests answered in the window did not exceed (nearest rank), of all clients together.",
    ),
    (
        "server_deviation",
        "Deviation over servers",
        Unit::Count,
        Side::Server,
        Better::Lower,
        "The population standard deviation of the numbers of requests that each server reachable in the window answered in it.",
    ),
    (
        "server_fairness",
        "Fairness over servers",
        Unit::Share,
        Side::Server,
        Better::Higher,
        "Jain's index: the square of the sum of the servers' requests in the window, divided by the sum of their squares and by the number of \
         servers: 100 % where all have the same, 1 / servers where one has all (Jain, Chiu and Hawe 1984).",
    ),
    (
        "server_largest",
        "Largest share of a server",
        Unit::Share,
        Side::Server,
        Better::Lower,
        "The share of the window's requests that the server with the most of them answered.",
    ),
    (
        "server_smallest",
        "Smallest share of a server",
        Unit::Share,
        Side::Server,
        Better::Higher,
        "The share of the window's requests that the server with the fewest of them answered.",
    ),
    (
        "server_newest",
        "Share of the newest server",
        Unit::Share,
        Side::Server,
        Better::Higher,
        "The share of the window's requests that the server answered that came last.",
    ),
    (
        "server_drained",
        "Share of servers that had left",
        Unit::Share,
        Side::Server,
        Better::Lower,
        "The share of the requests answered in the window by servers that were not to be reached any more when it began: over connections that \
         were open before. The other shares are among the servers that could be reached.",
    ),
];

/// The metric of each action.
const BALANCED: &str = "balanced";

/// How long the servers are looked at together, and the index from which on they are balanced: of three, chance alone makes it smaller
/// in one of 250 spans with a hundred requests. One of three that gets nothing makes it 0.67.
const SPAN_NS: u64 = 500_000_000;
const EVEN: f64 = 0.9;

/// Intervals of the window's course.
const INTERVALS: u64 = 60;

/// The metrics of a timeline. Their names live as long as the process, which knows few studies.
#[must_use]
pub fn metrics(timeline: &Timeline) -> Vec<&'static Metric> {
    let kept = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let windows = timeline.windows.iter().flat_map(|(window, part)| {
        let when = format!(" The window `{window}` is {}.", words(part));
        OF_WINDOWS.map(|(name, title, unit, side, better, meaning)| Metric {
            name: kept(format!("{name}@{window}")),
            title: kept(format!("{title} ({window})")),
            unit,
            side,
            vantage: if side == Side::Server { SERVERS } else { SAMPLES },
            better,
            meaning: kept(format!("{meaning}{when}")),
        })
    });
    let actions = timeline.actions.iter().map(|action| Metric {
        name: kept(format!("{BALANCED}@{}", action.name)),
        title: kept(format!("Time to balance ({})", action.name)),
        unit: Unit::Nanoseconds,
        side: Side::Server,
        vantage: SERVERS,
        better: Better::Lower,
        meaning: kept(format!(
            "From the action `{}` to the moment from which on, until the next action, Jain's index of the servers' requests in any \
             half second is at least 90 %.",
            action.name
        )),
    });
    windows.chain(actions).map(|metric| &*Box::leak(Box::new(metric))).collect()
}

/// A window in words.
fn words(part: &Part) -> String {
    let place = |action: &Option<String>, otherwise: &str| match action {
        Some(action) => format!("the action `{action}`"),
        None => format!("the {otherwise} of the measured window"),
    };
    format!("from {} to {}", place(&part.from, "begin"), place(&part.to, "end"))
}

/// The values of every metric in [`metrics`], in its order. `window_ns` is the planned length of the measured window.
#[must_use]
pub fn values(timeline: &Timeline, played: &TimelineRecord, samples: &[Sample], window_ns: u64) -> Values {
    let mut values = Values::new();
    for (name, part) in &timeline.windows {
        let bounds = bounds(played, part, window_ns);
        let clients = of_clients(samples, bounds);
        for ((metric, ..), value) in OF_WINDOWS.iter().zip(clients.into_iter().chain(of_servers(played, bounds))) {
            values.insert(format!("{metric}@{name}"), value);
        }
    }
    let ends = played.actions.iter().skip(1).map(|action| action.began_ns).chain([window_ns]);
    for (action, end) in played.actions.iter().zip(ends) {
        values.insert(format!("{BALANCED}@{}", action.name), balanced(played, action.began_ns, end));
    }
    values
}

/// Where a window began and ended.
#[must_use]
pub fn bounds(played: &TimelineRecord, part: &Part, window_ns: u64) -> (u64, u64) {
    let place = |name: &Option<String>, otherwise| {
        let action = played.actions.iter().find(|action| Some(&action.name) == name.as_ref());
        action.map_or(otherwise, |action| action.began_ns)
    };
    (place(&part.from, 0), place(&part.to, window_ns))
}

fn of_clients(samples: &[Sample], (from, to): (u64, u64)) -> [Value; 6] {
    let within = samples.iter().filter(|sample| (from..to).contains(&sample.last_byte_ns));
    let (ok, failed): (Vec<_>, Vec<_>) = within.partition(|sample| sample.is_ok());
    let mut times: Vec<_> = ok.iter().map(|sample| sample.response_ns()).collect();
    times.sort_unstable();
    let seconds = to.saturating_sub(from) as f64 / 1e9;
    let percentile = |q, needed| match percentile(&times, q, needed) {
        Some(ns) => Value::Measured(ns as f64),
        None => Value::missing(format!("{} requests were answered in the window; it needs {needed}", times.len())),
    };
    [
        Value::Measured(times.len() as f64),
        Value::finite(times.len() as f64 / seconds, "the window has no length"),
        Value::Measured(failed.len() as f64),
        percentile(0.5, 1),
        percentile(0.95, 20),
        percentile(0.99, 100),
    ]
}

/// A percentile where there are enough values for it.
fn percentile(sorted: &[u64], q: f64, needed: usize) -> Option<u64> {
    nearest_rank(sorted, q).filter(|_| sorted.len() >= needed)
}

/// What each server answered between two moments, as far as it could be reached there; absent: it could not.
#[must_use]
pub fn per_server(played: &TimelineRecord, bounds: (u64, u64)) -> Vec<Option<u64>> {
    let answered = answered(played, bounds).into_iter();
    answered.map(|(server, count)| is_reachable(server, bounds).then_some(count)).collect()
}

fn is_reachable(server: &ServerRecord, (from, to): (u64, u64)) -> bool {
    server.from_ns.is_some_and(|began| began < to) && server.until_ns.is_none_or(|ended| ended > from)
}

/// What each server answered between two moments.
fn answered(played: &TimelineRecord, (from, to): (u64, u64)) -> Vec<(&ServerRecord, u64)> {
    // What is asked for at an action is asked after it began.
    let at = |moment: u64| {
        let answered = &played.answered;
        answered.iter().find(|answered| answered.at_ns >= moment).or(answered.last())
    };
    let (begin, end) = (at(from), at(to));
    let said = |moment: Option<&Answered>, number: usize| moment?.requests.get(number).copied();
    let of_server =
        |(number, server)| (server, said(end, number).zip(said(begin, number)).map_or(0, |(end, begin)| end - begin));
    played.servers.iter().enumerate().map(of_server).collect()
}

fn of_servers(played: &TimelineRecord, bounds: (u64, u64)) -> [Value; 6] {
    let answered = answered(played, bounds);
    let reachable = |(server, _): &&(&ServerRecord, u64)| is_reachable(server, bounds);
    let counts: Vec<f64> = answered.iter().filter(reachable).map(|(_, count)| *count as f64).collect();
    let everybody: f64 = answered.iter().map(|(_, count)| *count as f64).sum();
    let all: f64 = counts.iter().sum();
    let drained = match everybody {
        0.0 => Value::missing("no server answered a request in the window"),
        _ => Value::Measured((everybody - all) / everybody),
    };
    if all == 0.0 {
        let nothing = || Value::missing("no server that could be reached answered a request in the window");
        return [nothing(), nothing(), nothing(), nothing(), nothing(), drained];
    }
    let mean = all / counts.len() as f64;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64;
    let (least, most) = counts.iter().fold((f64::INFINITY, 0.0_f64), |(l, m), count| (l.min(*count), m.max(*count)));
    let newest = counts.last().copied().unwrap_or_default();
    let [deviation, fairness, largest, smallest, newest] =
        [variance.sqrt(), jain(&counts), most / all, least / all, newest / all].map(Value::Measured);
    [deviation, fairness, largest, smallest, newest, drained]
}

/// Jain's index of fairness; of nothing at all there is none, which is not fair.
#[must_use]
pub fn jain(counts: &[f64]) -> f64 {
    let squares: f64 = counts.iter().map(|count| count * count).sum();
    if squares == 0.0 { 0.0 } else { counts.iter().sum::<f64>().powi(2) / (squares * counts.len() as f64) }
}

/// How long after a moment the servers are balanced, and stay so until another.
fn balanced(played: &TimelineRecord, from: u64, to: u64) -> Value {
    let there = played.servers.iter().map(|server| {
        server.from_ns.is_some_and(|began| began <= from) && server.until_ns.is_none_or(|ended| ended > from)
    });
    let there: Vec<bool> = there.collect();
    let readings: Vec<_> = played.answered.iter().filter(|answered| (from..=to).contains(&answered.at_ns)).collect();
    let even = |begin: &Answered, end: &Answered| {
        let counts = begin.requests.iter().zip(&end.requests).zip(&there).filter(|(_, there)| **there);
        let counts: Vec<_> = counts.map(|((before, after), _)| (after - before) as f64).collect();
        jain(&counts) >= EVEN
    };
    // Each reading with the first one that is a span later.
    let spans: Vec<_> = readings
        .iter()
        .filter_map(|begin| {
            let end = readings.iter().find(|end| end.at_ns >= begin.at_ns + SPAN_NS)?;
            Some((begin.at_ns, even(begin, end)))
        })
        .collect();
    if spans.is_empty() {
        return Value::missing("the next action, or the end, came within half a second");
    }
    match spans.iter().rev().take_while(|(_, is_even)| *is_even).last() {
        Some((at, _)) => Value::Measured((at - from) as f64),
        None => Value::missing("the servers were not balanced before the next action, or the end"),
    }
}

/// The requests of the window by when they ended, in equal intervals.
#[must_use]
pub fn intervals(samples: &[Sample], window_ns: u64) -> Vec<Interval> {
    let length = (window_ns / INTERVALS).max(1);
    let mut times: Vec<(Vec<u64>, u64)> = vec![(Vec::new(), 0); INTERVALS as usize];
    for sample in samples {
        let Some((ok, failed)) = times.get_mut((sample.last_byte_ns / length) as usize) else { continue };
        if sample.is_ok() { ok.push(sample.response_ns()) } else { *failed += 1 }
    }
    let interval = |(number, (mut ok, failed)): (u64, (Vec<u64>, u64))| {
        ok.sort_unstable();
        let percentiles = [(0.5, 1), (0.95, 20), (0.99, 100)].map(|(q, needed)| percentile(&ok, q, needed));
        Interval { until_ns: (number + 1) * length, requests: ok.len() as u64, failed, percentiles }
    };
    (0..).zip(times).map(interval).collect()
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
