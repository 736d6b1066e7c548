//! Whose limit it is: the client's share of the response time, from null references, and verdicts that it explains.
//!
//! The same client against a server that answers at once shows what the client costs by itself, with the same protocol,
//! payload and load. Costs of client and server add up, so a difference that two cells share with their null references
//! is the client's. `docs/statistics.md` has the method and its limits.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use wirelab_model::journal::{LinkCheck, TrialRecord};
use wirelab_model::metric::{Better, Value};
use wirelab_model::outcome::Outcome;
use wirelab_model::path::PathRecord;
use wirelab_model::placement::Distance;
use wirelab_model::plan::Plan;
use wirelab_model::reference::{CellReference, NotReferenced, References};

use crate::analysis::{Analysis, CannotTell, Interval, Verdict};
use crate::bootstrap::{Bootstrap, Distribution, MIN_VALUES};
use crate::contest::{outcome, standing};
use crate::failures::is_bounded;
use crate::quantile;

/// The metric whose shares a report shows.
pub const METRIC: &str = "response_median";

/// Metrics that the costs of client and server add up to. The inverse of a rate adds up: the time per request or bit.
const METRICS: [&str; 10] = [
    METRIC,
    "response_p90",
    "response_p99",
    "response_p999",
    "response_mean",
    "response_min",
    "service_median",
    "first_byte_median",
    "request_rate",
    "goodput",
];

/// A path whose round trip takes less than this share of the response time counts as a wire: the round trips in its
/// null references are then a small part of the client's share.
const NEGLIGIBLE_TRIP: f64 = 0.05;

/// Number of resampled differences without which there is no interval: a resample may lack all trials of a reference.
const LEAST_RESAMPLES: f64 = 0.9;

/// The shares of a cell's response time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// Median over the reference trials, in the unit of the metric.
    pub reference: Option<f64>,
    /// Reference trials with a value.
    pub trials: u32,
    /// The client's share: the median of the null references divided by that of the cell, without the network's share.
    pub client: Share,
    /// The server's share: the rest.
    pub server: Share,
    /// The network's share: one round trip of the link, divided by the median of the cell. It is a lower bound, because
    /// a response may take several round trips.
    pub network: Share,
}

/// A share of the response time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    Measured {
        /// The share; above 1 if the null server is slower than the server of the cell.
        share: f64,
        /// Its 95 % interval, resampling blocks; absent for a share of the network, and if too many resamples lack a
        /// reference trial.
        interval: Option<Interval>,
    },
    /// Not measured.
    Missing(WhyNot),
}

/// The reason for a missing share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum WhyNot {
    /// The cell has no null reference.
    NotReferenced(NotReferenced),
    /// Too few reference trials succeeded.
    TooFewTrials {
        /// Their number.
        trials: u32,
        /// The number that an interval needs.
        needed: u32,
    },
    /// The cell has too few values itself.
    NoValues,
    /// Client and server share a kernel without a link between them.
    NoLink,
    /// No measurement of the link has a round trip.
    LinkNotMeasured,
    /// The null reference contains the round trips of the link, whose number is unknown.
    RoundTrips,
}

/// The values of cells and of their references.
struct Source<'a> {
    plan: &'a Plan,
    references: &'a References,
    records: &'a [TrialRecord],
    referred: &'a [TrialRecord],
    links: &'a [LinkCheck],
}

/// Adds the shares of all cells to an analysis. Withholds its verdicts about servers and protocols that the client's
/// share may explain. Nothing changes for a run of a version without null references.
pub fn attribute(
    analysis: &mut Analysis,
    plan: &Plan,
    references: Option<&References>,
    [records, referred]: [&[TrialRecord]; 2],
    links: &[LinkCheck],
) {
    let Some(references) = references else { return };
    let source = Source { plan, references, records, referred, links };
    let mut bootstrap = Bootstrap::new(plan.seed);
    analysis.shares = (0..plan.cells.len()).map(|cell| source.shares(cell, &mut bootstrap)).collect();
    for compared in &mut analysis.comparisons {
        let cells = [compared.cell, compared.baseline];
        if source.explains(compared.verdict, cells, &compared.metric, &mut bootstrap) {
            compared.verdict = Verdict::CannotTell { why: CannotTell::ClientBound };
        }
    }
    for contest in &mut analysis.contests {
        let Some(leader) = contest.leader else { continue };
        let better = if is_rate(&contest.metric) { Better::Higher } else { Better::Lower };
        for rival in &mut contest.rivals {
            if source.explains(rival.verdict, [leader, rival.cell], &contest.metric, &mut bootstrap) {
                rival.verdict = Verdict::CannotTell { why: CannotTell::ClientBound };
                rival.standing = standing(rival.verdict, better);
            }
        }
        contest.outcome = outcome(&contest.rivals);
    }
}

fn is_rate(metric: &str) -> bool {
    ["request_rate", "goodput"].contains(&metric)
}

impl Source<'_> {
    /// The values of a cell's successful trials by block, in units that add up.
    fn of_cell(&self, cell: usize, metric: &str) -> BTreeMap<u32, f64> {
        values(self.records.iter().filter(|record| record.trial.cell == cell), metric)
    }

    /// The same for its null reference.
    fn of_reference(&self, cell: usize, metric: &str) -> Result<BTreeMap<u32, f64>, WhyNot> {
        match self.references.cells.get(cell) {
            Some(CellReference::Shared(first)) => {
                Ok(values(self.referred.iter().filter(|record| record.trial.cell == *first), metric))
            }
            Some(CellReference::Nothing(why)) => Err(WhyNot::NotReferenced(why.clone())),
            None => Err(WhyNot::NotReferenced(NotReferenced::SwitchedOff)),
        }
    }

    /// Whether packets of a cell take longer than over a wire: its link has a delay, or its hosts are that far apart.
    /// `None` if this is unknown.
    fn has_delay(&self, cell: usize) -> Option<bool> {
        let link = self.plan.cells.get(cell).and_then(|cell| cell.job.topology.link.as_ref());
        if let Some(link) = link {
            return Some(!link.is_wire());
        }
        match self.network(cell, &self.of_cell(cell, METRIC)) {
            Share::Measured { share, .. } => Some(share >= NEGLIGIBLE_TRIP),
            Share::Missing(WhyNot::NoLink) => Some(false),
            Share::Missing(_) => None,
        }
    }

    fn shares(&self, cell: usize, bootstrap: &mut Bootstrap) -> Shares {
        let own = self.of_cell(cell, METRIC);
        let network = self.network(cell, &own);
        let found = self.of_reference(cell, METRIC);
        let referred = found.clone().unwrap_or_default();
        let trials = referred.len() as u32;
        let mut of = |effect: fn(&[f64]) -> f64| match &found {
            Err(why) => Share::Missing(why.clone()),
            Ok(_) if referred.len() < MIN_VALUES => {
                Share::Missing(WhyNot::TooFewTrials { trials, needed: MIN_VALUES as u32 })
            }
            Ok(_) => measured([&referred, &own], effect, bootstrap),
        };
        let server = of(|medians| 1.0 - medians[0] / medians[1]);
        let client = match (self.has_delay(cell), &server) {
            (Some(true) | None, Share::Measured { .. }) => Share::Missing(WhyNot::RoundTrips),
            _ => of(|medians| medians[0] / medians[1]),
        };
        let reference = quantile::median(&referred.values().copied().collect::<Vec<_>>());
        Shares { reference, trials, client, server, network }
    }

    /// A round trip of the cell's link or path, as a share of the response time.
    fn network(&self, cell: usize, own: &BTreeMap<u32, f64>) -> Share {
        let Some(topology) = self.plan.cells.get(cell).map(|cell| &cell.job.topology) else {
            return Share::Missing(WhyNot::NoLink);
        };
        let on_link =
            self.links.iter().flat_map(|check| &check.links).filter(|measured| Some(measured.link) == topology.link);
        let on_link = on_link.filter_map(|measured| Some(measured.reading.round_trip_ns? as f64));
        let is_here = |path: &&PathRecord| path.placement.split(", ").any(|name| name == topology.placement);
        let mut on_path = self.links.iter().flat_map(|check| &check.paths).filter(is_here).peekable();
        if topology.link.is_none() && on_path.peek().is_none() {
            // Nodes of a cluster are apart, and the lab does not measure their paths.
            let is_far = Distance::of(&topology.placement).is_some_and(|distance| distance > Distance::SameNode);
            return Share::Missing(if is_far { WhyNot::LinkNotMeasured } else { WhyNot::NoLink });
        }
        let on_path = on_path.filter_map(|path| Some(path.reading.value()?.round_trip.median_ns as f64));
        let trips: Vec<f64> = on_link.chain(on_path).collect();
        let own: Vec<f64> = own.values().copied().collect();
        match (quantile::median(&trips), quantile::median(&own)) {
            (Some(trip), Some(response)) if response > 0.0 => {
                Share::Measured { share: trip / response, interval: None }
            }
            (None, _) => Share::Missing(WhyNot::LinkNotMeasured),
            _ => Share::Missing(WhyNot::NoValues),
        }
    }

    /// Whether a verdict on the first of two cells is about their servers or protocols, and the client's share may
    /// explain it: without the null references, the difference is not in the same direction beyond chance.
    fn explains(&self, verdict: Verdict, cells: [usize; 2], metric: &str, bootstrap: &mut Bootstrap) -> bool {
        let sign = match verdict {
            // A lower rate is a longer time.
            Verdict::Less => -1.0,
            Verdict::More => 1.0,
            Verdict::Equivalent | Verdict::CannotTell { .. } => return false,
        } * if is_rate(metric) { -1.0 } else { 1.0 };
        if !METRICS.contains(&metric) || !self.concerns(cells) {
            return false;
        }
        let [Ok(one), Ok(other)] = cells.map(|cell| self.of_reference(cell, metric)) else { return false };
        if one.len().min(other.len()) < MIN_VALUES {
            return false;
        }
        let [cell, baseline] = cells.map(|cell| self.of_cell(cell, metric));
        // The costs of the servers, from which the difference follows.
        let difference = |m: &[f64]| (m[0] - m[2]) - (m[1] - m[3]);
        let all = [&cell, &baseline, &one, &other];
        let remaining = resampled(&all, bootstrap, difference).map(|remaining| remaining.interval(0.95));
        remaining.is_none_or(|interval| if sign > 0.0 { interval.low <= 0.0 } else { interval.high >= 0.0 })
    }

    /// Whether two cells differ in their server or protocol, with the same client, without a link that delays
    /// packets, and with references of their own. Cells that share a reference have the same cost of the client, which
    /// their difference lacks. The references of a link with a delay contain round trips, which belong to the protocol.
    fn concerns(&self, cells: [usize; 2]) -> bool {
        let [Some(one), Some(other)] = cells.map(|cell| self.plan.cells.get(cell)) else { return false };
        let shared = cells.map(|cell| self.references.cells.get(cell));
        let differs = one.job.protocol != other.job.protocol || one.job.target != other.job.target;
        let is_delayed = cells.iter().any(|cell| self.has_delay(*cell) == Some(true));
        differs && one.job.client == other.job.client && !is_delayed && shared[0] != shared[1]
    }
}

/// A share of two medians with its interval.
fn measured(values: [&BTreeMap<u32, f64>; 2], effect: fn(&[f64]) -> f64, bootstrap: &mut Bootstrap) -> Share {
    let medians = values.map(|values| quantile::median(&values.values().copied().collect::<Vec<_>>()));
    let [Some(reference), Some(own)] = medians else { return Share::Missing(WhyNot::NoValues) };
    let share = effect(&[reference, own]);
    if !share.is_finite() {
        return Share::Missing(WhyNot::NoValues);
    }
    let interval = resampled(&values, bootstrap, effect).map(|distribution| distribution.interval(0.95));
    Share::Measured { share, interval }
}

/// The distribution of an effect of medians over resamples of the blocks.
fn resampled(
    lists: &[&BTreeMap<u32, f64>],
    bootstrap: &mut Bootstrap,
    effect: impl Fn(&[f64]) -> f64,
) -> Option<Distribution> {
    let blocks: BTreeSet<u32> = lists.iter().flat_map(|list| list.keys().copied()).collect();
    let place: BTreeMap<u32, usize> = blocks.iter().enumerate().map(|(place, block)| (*block, place)).collect();
    let placed = |list: &&BTreeMap<u32, f64>| list.iter().map(|(block, value)| (place[block], *value)).collect();
    let lists: Vec<Vec<(usize, f64)>> = lists.iter().map(placed).collect();
    let (mut effects, mut all) = (Vec::new(), 0_u32);
    bootstrap.medians(blocks.len(), &lists, |medians| {
        all += 1;
        effects.extend(Some(effect(medians)).filter(|effect| effect.is_finite()));
    });
    (effects.len() as f64 >= LEAST_RESAMPLES * f64::from(all)).then(|| Distribution::of(effects)).flatten()
}

/// The finite values of a metric in successful trials by block, in units that add up.
fn values<'a>(records: impl Iterator<Item = &'a TrialRecord>, metric: &str) -> BTreeMap<u32, f64> {
    let value = |record: &TrialRecord| {
        let number = record.values.get(metric).and_then(Value::number).filter(|_| record.outcome == Outcome::Ok)?;
        let number = if is_rate(metric) { 1.0 / number } else { number };
        Some((record.trial.block, number)).filter(|(_, number)| number.is_finite() && is_bounded(*number))
    };
    records.filter_map(value).collect()
}

#[cfg(test)]
#[path = "client_share_tests.rs"]
mod tests;
