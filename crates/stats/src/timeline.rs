//! The values of a trial with a timeline: of each named window, of each action, and of the whole course.
//!
//! Metrics have the names of the study's windows and actions: `requests@NAME`.

use wirelab_model::metric::{Better, Computed, Metric, Side, Unit, Value, Values};
use wirelab_model::missing::Missing;
use wirelab_model::sample::Sample;
use wirelab_model::timeline::{Answered, Interval, Part, ServerRecord, Timeline, TimelineRecord};

use crate::quantile::nearest_rank;
use crate::summary::too_few;

const SAMPLES: &str = "the clients' own records, on one clock";
const SERVERS: &str = "the servers' own counts, read every 100 ms";

/// Computes a metric from the facts of a window.
type Compute = fn(&Seen) -> Value;

/// The metrics of every window, their names without the window.
static OF_WINDOWS: [Computed<Compute>; 12] = [
    metric(
        "requests",
        "Requests",
        Unit::Count,
        Side::Client,
        Better::Higher,
        "Requests that were answered in the window.",
        |seen| Value::Measured(seen.times.len() as f64),
    ),
    metric(
        "rate",
        "Requests per second",
        Unit::PerSecond,
        Side::Client,
        Better::Higher,
        "Requests that were answered in the window, divided by its length.",
        |seen| Value::finite(seen.times.len() as f64 / seen.seconds, Missing::EmptyWindow),
    ),
    metric(
        "failed",
        "Lost requests",
        Unit::Count,
        Side::Client,
        Better::Lower,
        "Requests that failed in the window.",
        |seen| Value::Measured(seen.failed as f64),
    ),
    metric(
        "response_p50",
        "Response time P50",
        Unit::Nanoseconds,
        Side::Client,
        Better::Lower,
        "The median response time of the requests answered in the window, over all clients.",
        |seen| seen.percentile(0.5, 1),
    ),
    metric(
        "response_p95",
        "Response time P95",
        Unit::Nanoseconds,
        Side::Client,
        Better::Lower,
        "The response time that 95 in 100 requests answered in the window did not exceed (nearest rank), over all \
         clients.",
        |seen| seen.percentile(0.95, 20),
    ),
    metric(
        "response_p99",
        "Response time P99",
        Unit::Nanoseconds,
        Side::Client,
        Better::Lower,
        "The response time that 99 in 100 requests answered in the window did not exceed (nearest rank), over all \
         clients.",
        |seen| seen.percentile(0.99, 100),
    ),
    metric(
        "server_deviation",
        "Deviation over servers",
        Unit::Count,
        Side::Server,
        Better::Lower,
        "The population standard deviation of requests over the servers that were reachable in the window.",
        |seen| seen.servers(deviation),
    ),
    metric(
        "server_fairness",
        "Fairness over servers",
        Unit::Share,
        Side::Server,
        Better::Higher,
        "Jain's index: the square of the sum of the servers' requests in the window, divided by the sum of their \
         squares and by the number of servers. It is 100 % if all servers have the same number, and 1 / servers if \
         one server has all (Jain, Chiu and Hawe 1984).",
        |seen| seen.servers(jain),
    ),
    metric(
        "server_largest",
        "Largest share of a server",
        Unit::Share,
        Side::Server,
        Better::Lower,
        "The largest share of the window's requests that one server answered.",
        |seen| seen.servers(|counts| share(counts, counts.iter().copied().reduce(f64::max))),
    ),
    metric(
        "server_smallest",
        "Smallest share of a server",
        Unit::Share,
        Side::Server,
        Better::Higher,
        "The smallest share of the window's requests that one server answered.",
        |seen| seen.servers(|counts| share(counts, counts.iter().copied().reduce(f64::min))),
    ),
    metric(
        "server_newest",
        "Share of the newest server",
        Unit::Share,
        Side::Server,
        Better::Higher,
        "The share of the window's requests that the newest server answered.",
        |seen| seen.servers(|counts| share(counts, counts.last().copied())),
    ),
    metric(
        "server_drained",
        "Share of servers that had left",
        Unit::Share,
        Side::Server,
        Better::Lower,
        "The share of the window's requests answered by servers that were unreachable for new connections when it \
         began, over older connections. The other shares cover reachable servers only.",
        Seen::drained,
    ),
];

const fn metric(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    side: Side,
    better: Better,
    meaning: &'static str,
    compute: Compute,
) -> Computed<Compute> {
    let vantage = if matches!(side, Side::Server) { SERVERS } else { SAMPLES };
    Computed { metric: Metric { name, title, unit, side, vantage, better, meaning }, compute }
}

/// The metric of each action.
const BALANCED: &str = "balanced";

/// The span of a reading in nanoseconds, and the smallest index of balanced servers. With three servers and a hundred
/// requests, chance alone gives a smaller index in one of 250 spans. One idle server of three gives 0.67.
const SPAN_NS: u64 = 500_000_000;
const EVEN: f64 = 0.9;

/// The number of intervals of the window's course.
const INTERVALS: u64 = 60;

/// The metrics of a timeline. Their names are leaked; a process reads few studies.
#[must_use]
pub fn metrics(timeline: &Timeline) -> Vec<&'static Metric> {
    let kept = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let windows = timeline.windows.iter().flat_map(|(window, part)| {
        let when = format!(" The window `{window}` is {}.", words(part));
        OF_WINDOWS.each_ref().map(|Computed { metric, .. }| Metric {
            name: kept(format!("{}@{window}", metric.name)),
            title: kept(format!("{} ({window})", metric.title)),
            meaning: kept(format!("{}{when}", metric.meaning)),
            ..*metric
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
            "From the action `{}` to the moment after which Jain's index of the servers' requests in every half second stays at 90 % \
             or more until the next action.",
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
    format!("from {} to {}", place(&part.from, "start"), place(&part.to, "end"))
}

/// The values of every metric in [`metrics`], in its order. `window_ns` is the planned length of the measured window.
#[must_use]
pub fn values(timeline: &Timeline, played: &TimelineRecord, samples: &[Sample], window_ns: u64) -> Values {
    let mut values = Values::new();
    for (name, part) in &timeline.windows {
        let seen = Seen::new(played, samples, bounds(played, part, window_ns));
        for row in &OF_WINDOWS {
            values.insert(format!("{}@{name}", row.metric.name), (row.compute)(&seen));
        }
    }
    let ends = played.actions.iter().skip(1).map(|action| action.began_ns).chain([window_ns]);
    for (action, end) in played.actions.iter().zip(ends) {
        values.insert(format!("{BALANCED}@{}", action.name), balanced(played, action.began_ns, end));
    }
    values
}

/// The start and the end of a window in nanoseconds since the start of the measured window.
#[must_use]
pub fn bounds(played: &TimelineRecord, part: &Part, window_ns: u64) -> (u64, u64) {
    let place = |name: &Option<String>, otherwise| {
        let action = played.actions.iter().find(|action| Some(&action.name) == name.as_ref());
        action.map_or(otherwise, |action| action.began_ns)
    };
    (place(&part.from, 0), place(&part.to, window_ns))
}

/// The requests of a window.
struct Seen {
    seconds: f64,
    /// Response times of the requests that were answered, ascending.
    times: Vec<u64>,
    failed: usize,
    /// Requests by server that was reachable in the window.
    reachable: Vec<f64>,
    /// Requests of servers that had left.
    drained: f64,
}

impl Seen {
    fn new(played: &TimelineRecord, samples: &[Sample], bounds: (u64, u64)) -> Self {
        let (from, to) = bounds;
        let within = samples.iter().filter(|sample| (from..to).contains(&sample.last_byte_ns));
        let (ok, failed): (Vec<_>, Vec<_>) = within.partition(|sample| sample.is_ok());
        let mut times: Vec<_> = ok.iter().map(|sample| sample.response_ns()).collect();
        times.sort_unstable();
        let answered = answered(played, bounds);
        let (there, left): (Vec<_>, Vec<_>) = answered.iter().partition(|(server, _)| is_reachable(server, bounds));
        Self {
            seconds: to.saturating_sub(from) as f64 / 1e9,
            times,
            failed: failed.len(),
            reachable: there.iter().map(|(_, count)| *count as f64).collect(),
            drained: left.iter().map(|(_, count)| *count as f64).sum(),
        }
    }

    fn percentile(&self, q: f64, needed: usize) -> Value {
        match percentile(&self.times, q, needed) {
            Some(ns) => Value::Measured(ns as f64),
            None => Value::missing(too_few(self.times.len() as u64, q, needed as u64)),
        }
    }

    /// A function of the requests by reachable server, if there were any requests.
    fn servers(&self, of: fn(&[f64]) -> f64) -> Value {
        if self.reachable.iter().sum::<f64>() == 0.0 {
            return Value::missing(Missing::NoReachableServerAnswered);
        }
        Value::Measured(of(&self.reachable))
    }

    fn drained(&self) -> Value {
        match self.drained + self.reachable.iter().sum::<f64>() {
            0.0 => Value::missing(Missing::NoServerAnswered),
            total => Value::Measured(self.drained / total),
        }
    }
}

/// A percentile; `None` with too few values.
fn percentile(sorted: &[u64], q: f64, needed: usize) -> Option<u64> {
    nearest_rank(sorted, q).filter(|_| sorted.len() >= needed)
}

/// The requests that each server answered between two moments; `None` for a server that was unreachable.
#[must_use]
pub fn per_server(played: &TimelineRecord, bounds: (u64, u64)) -> Vec<Option<u64>> {
    let answered = answered(played, bounds).into_iter();
    answered.map(|(server, count)| is_reachable(server, bounds).then_some(count)).collect()
}

fn is_reachable(server: &ServerRecord, (from, to): (u64, u64)) -> bool {
    server.from_ns.is_some_and(|began| began < to) && server.until_ns.is_none_or(|ended| ended > from)
}

/// The requests that each server answered between two moments.
fn answered(played: &TimelineRecord, (from, to): (u64, u64)) -> Vec<(&ServerRecord, u64)> {
    // The reading of an action follows its start.
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

/// The population standard deviation.
fn deviation(counts: &[f64]) -> f64 {
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    (counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64).sqrt()
}

/// The share of a server's requests in all.
fn share(counts: &[f64], one: Option<f64>) -> f64 {
    one.unwrap_or_default() / counts.iter().sum::<f64>()
}

/// Jain's index of fairness, from 1/n to 1; 0 without requests.
#[must_use]
pub fn jain(counts: &[f64]) -> f64 {
    let squares: f64 = counts.iter().map(|count| count * count).sum();
    if squares == 0.0 { 0.0 } else { counts.iter().sum::<f64>().powi(2) / (squares * counts.len() as f64) }
}

/// The time from `from` to the moment after which the servers stay balanced until `to`.
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
    // Each reading with the first reading at least a span later.
    let spans: Vec<_> = readings
        .iter()
        .filter_map(|begin| {
            let end = readings.iter().find(|end| end.at_ns >= begin.at_ns + SPAN_NS)?;
            Some((begin.at_ns, even(begin, end)))
        })
        .collect();
    if spans.is_empty() {
        return Value::missing(Missing::NextActionTooSoon);
    }
    match spans.iter().rev().take_while(|(_, is_even)| *is_even).last() {
        Some((at, _)) => Value::Measured((at - from) as f64),
        None => Value::missing(Missing::NotBalanced),
    }
}

/// The requests of the window in equal intervals by the time of their end.
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
