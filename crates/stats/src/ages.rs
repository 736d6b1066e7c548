//! Response times against the age of connections and of the server's process.
//!
//! A connection that was opened before the window is as old as the window, apart from a constant: the test of the
//! [steady state](crate::stationarity) sees its changes. Connections that were opened within the window have ages of
//! their own. Each trial keeps the median response time by fifth of their lives, in requests; over the trials of a
//! cell, the fifths are compared like those of the window.
//!
//! In the same way a server that each trial starts is as old as the window. A server that outlives trials is older in
//! each of them; its test is the [trend](crate::trend) over the trials, after Mann and Kendall.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wirelab_model::journal::{Lives, TrialRecord};
use wirelab_model::plan::{Cell, Course, Plan, Target};
use wirelab_model::sample::Sample;
use wirelab_model::spec::{ConnectionPolicy, Recording};

use crate::analysis::CellAnalysis;
use crate::compare::{ALPHA, MIN_BLOCKS};
use crate::holm::holm;
use crate::quantile;
use crate::stationarity::{self, MIN_REQUESTS, PARTS, Stationarity};
use crate::trend::trend;
use crate::trials::Trials;

/// Whether response times change with the ages of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ages {
    /// With the age of connections.
    pub connections: ByAge,
    /// With the age of the server's process.
    pub server: ByAge,
}

/// The result for one kind of age.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by_age", rename_all = "snake_case")]
pub enum ByAge {
    /// No change beyond chance and the margin.
    Stationary,
    /// A fifth of the lives of connections differs beyond chance and the margin.
    Changes {
        /// The slowest fifth, 0 for the first.
        slowest: usize,
        /// The fastest fifth.
        fastest: usize,
        /// Median over trials of the time in the slowest fifth divided by that in the fastest.
        ratio: f64,
    },
    /// Response times have a trend over the trials beyond chance and the margin.
    Trend {
        /// Change from the first trial to the last, as a share of the median.
        change: f64,
    },
    /// Fewer than ten trials have enough requests.
    TooShort,
    /// The samples do not support a test.
    NotTested {
        /// The reason.
        why: NotTested,
    },
}

/// The reason why response times are not tested against an age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotTested {
    /// Each request has a connection of its own.
    OneRequestEach,
    /// No connection was opened within the window.
    AsOldAsWindow,
    /// Each trial starts its server.
    StartedByTrial,
    /// A timeline changes the conditions on purpose.
    Timeline,
    /// The trials recorded histograms, which have no times of single requests.
    Histograms,
    /// The trials recorded page loads.
    Pages,
    /// The client is a program of the user.
    OwnClient,
    /// An older version recorded the trials.
    NotRecorded,
}

/// The lives of connections in a trial. Within a life age and time run in parallel, so that the trend of the window is
/// taken out of the response times first.
#[must_use]
pub fn lives(samples: &[Sample]) -> Lives {
    let mut by_connection: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        by_connection.entry(sample.connection).or_default().push(sample);
    }
    let slope = slope(samples);
    let (mut connections, mut parts) = (0, <[Vec<u64>; PARTS]>::default());
    for requests in by_connection.values_mut() {
        requests.sort_by_key(|sample| sample.start_ns);
        let Some(ready_ns) = requests.first().and_then(|first| opened_ns(first)) else { continue };
        // Earlier requests also waited for the connection.
        requests.retain(|sample| sample.start_ns >= ready_ns);
        if requests.is_empty() {
            continue;
        }
        connections += 1;
        for (number, sample) in requests.iter().enumerate().filter(|(_, sample)| sample.is_ok()) {
            let trend = (slope * sample.start_ns as f64).exp();
            parts[number * PARTS / requests.len()].push((sample.response_ns() as f64 / trend) as u64);
        }
    }
    let profile = match parts.iter().all(|part| part.len() >= MIN_REQUESTS) {
        true => parts.iter_mut().map(|part| median(part)).collect(),
        false => Vec::new(),
    };
    Lives { connections, profile }
}

/// Change of the logarithm of response times per nanosecond: between the medians of the first and the second half of
/// the requests, half of their time apart; 0 for too few.
fn slope(samples: &[Sample]) -> f64 {
    let mut all: Vec<_> =
        samples.iter().filter(|sample| sample.is_ok()).map(|s| (s.start_ns, s.response_ns())).collect();
    all.sort_unstable();
    let median = |half: &[(u64, u64)]| {
        let logs: Vec<f64> = half.iter().map(|(_, took_ns)| (*took_ns.max(&1) as f64).ln()).collect();
        quantile::median(&logs)
    };
    let (first, second) = all.split_at(all.len() / 2);
    match (median(first), median(second), all.first(), all.last()) {
        (Some(before), Some(after), Some((from, _)), Some((to, _))) if to > from => {
            (after - before) / ((to - from) as f64 / 2.0)
        }
        _ => 0.0,
    }
}

/// When the connection was ready that a request opened; `None` if it opened none.
fn opened_ns(sample: &Sample) -> Option<u64> {
    sample.handshake_ns.max(sample.connected_ns)
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    quantile::nearest_rank(values, 0.5).unwrap_or_default()
}

/// The results of all cells. Holm's correction covers the tested cells of each kind; differences up to `margin` (a
/// share) are negligible.
pub(crate) fn of_cells(plan: &Plan, trials: &Trials<'_>, cells: &[CellAnalysis], margin: f64) -> Vec<Ages> {
    let connections = of_connections(plan, trials, margin);
    let servers = of_servers(plan, cells, margin);
    connections.into_iter().zip(servers).map(|(connections, server)| Ages { connections, server }).collect()
}

fn of_connections(plan: &Plan, trials: &Trials<'_>, margin: f64) -> Vec<ByAge> {
    let reasons = plan.cells.iter().enumerate().map(|(cell, of)| untestable_connections(of, trials.ok(cell)));
    let reasons: Vec<_> = reasons.collect();
    let profile = |record: &TrialRecord| record.lives.as_ref()?.profile.as_slice().try_into().ok();
    let profiles: Vec<Vec<[u64; PARTS]>> = reasons
        .iter()
        .enumerate()
        .map(|(cell, why)| if why.is_some() { Vec::new() } else { trials.ok(cell).filter_map(profile).collect() })
        .collect();
    let found = stationarity::of_cells(&profiles, margin);
    reasons
        .into_iter()
        .zip(found)
        .map(|(why, found)| match (why, found) {
            (Some(why), _) => ByAge::NotTested { why },
            (None, Stationarity::Stationary) => ByAge::Stationary,
            (None, Stationarity::Changes { slowest, fastest, ratio }) => ByAge::Changes { slowest, fastest, ratio },
            (None, Stationarity::TooShort) => ByAge::TooShort,
        })
        .collect()
}

fn untestable_connections<'a>(cell: &Cell, records: impl Iterator<Item = &'a TrialRecord>) -> Option<NotTested> {
    let load = &cell.job.load;
    if let Some(why) = untestable(cell) {
        return Some(why);
    }
    if load.connections == ConnectionPolicy::PerRequest {
        return Some(NotTested::OneRequestEach);
    }
    let mut recorded = records.filter_map(|record| record.lives.as_ref()).peekable();
    match recorded.peek() {
        None => Some(NotTested::NotRecorded),
        Some(_) => recorded.all(|lives| lives.connections == 0).then_some(NotTested::AsOldAsWindow),
    }
}

/// Why the trials of a cell have no times of requests under constant conditions.
fn untestable(cell: &Cell) -> Option<NotTested> {
    match (&cell.job.course, cell.job.load.recording) {
        (Course::Timeline(_), _) => Some(NotTested::Timeline),
        (Course::Steady, Recording::Histograms) => Some(NotTested::Histograms),
        (Course::Steady, Recording::Loads) => Some(NotTested::Pages),
        (Course::Steady, Recording::Totals) => Some(NotTested::OwnClient),
        (Course::Steady, Recording::Samples) => None,
    }
}

fn of_servers(plan: &Plan, cells: &[CellAnalysis], margin: f64) -> Vec<ByAge> {
    let mut found: Vec<ByAge> = plan.cells.iter().map(untested_server).collect();
    let trends: Vec<_> = cells
        .iter()
        .enumerate()
        .filter(|(number, _)| found[*number] == ByAge::TooShort)
        .filter_map(|(number, cell)| {
            let estimate = cell.estimates.get("response_median")?;
            let points: Vec<_> = estimate.values.iter().map(|(trial, value)| (f64::from(*trial), *value)).collect();
            let length = points.last()?.0 - points.first()?.0;
            let trend = trend(&points).filter(|_| points.len() >= MIN_BLOCKS as usize)?;
            Some((number, trend.p, trend.slope * length / estimate.median))
        })
        .collect();
    let corrected = holm(&trends.iter().map(|(_, p, _)| *p).collect::<Vec<_>>());
    for ((number, _, change), p) in trends.into_iter().zip(corrected) {
        found[number] = if p <= ALPHA && change.abs() > margin { ByAge::Trend { change } } else { ByAge::Stationary };
    }
    found
}

/// The result for the server of a cell before any test.
fn untested_server(cell: &Cell) -> ByAge {
    let why = match (&cell.job.target, untestable(cell)) {
        (_, Some(NotTested::Timeline)) => NotTested::Timeline,
        (Target::Servers(_), _) => NotTested::StartedByTrial,
        (Target::Site(_), Some(NotTested::Pages)) => NotTested::Pages,
        // A trend over trials needs their medians only.
        (Target::Site(_), _) => return ByAge::TooShort,
    };
    ByAge::NotTested { why }
}

#[cfg(test)]
#[path = "ages_tests.rs"]
mod tests;
