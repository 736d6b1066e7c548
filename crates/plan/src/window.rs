//! Whether measured windows hold enough requests.

use std::fmt;

use wirelab_model::plan::{Job, Load, Plan, Work};
use wirelab_model::spec::{ConnectionPolicy, Extent, Resumption, Schedule};
use wirelab_model::study::Study;

/// Percentiles in names of metrics, with the number of requests that they need.
const PERCENTILES: [(&str, u64); 3] = [("_p999", 1000), ("_p99", 100), ("_p90", 10)];

/// A percentile that some cells cannot measure, because their windows hold too few requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortWindow {
    pub metric: String,
    /// Requests that it needs in each trial.
    pub needed: u64,
    /// Label of the cell with the fewest requests.
    pub cell: String,
    /// Upper bound of the number of requests in each of its trials.
    pub most: u64,
    /// Number of cells with too few requests.
    pub cells: usize,
    /// Number of all cells.
    pub of: usize,
}

impl fmt::Display for ShortWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { metric, needed, cell, most, cells, of } = self;
        write!(
            f,
            "`{metric}` needs {needed} requests in each trial, and {cells} of {of} cells have fewer: `{cell}` has at most \
             {most}. It will not be measured there. Raise `duration`, `requests`, `rate` or `workers`."
        )
    }
}

/// The percentiles among the compared and required metrics that some cells cannot measure.
///
/// The number of requests is bounded from above: by `requests`, by the rate of an open loop, or by the round trips of
/// an emulated link. A closed loop without such a link has no bound here.
#[must_use]
pub fn short_windows(study: &Study, plan: &Plan) -> Vec<ShortWindow> {
    let required = study.require.iter().map(|requirement| &requirement.that.metric);
    let mut metrics: Vec<&String> = study.compare.metrics.iter().chain(required).collect();
    metrics.sort();
    metrics.dedup();
    let cells: Vec<_> = plan.cells.iter().filter(|cell| cell.twin_of.is_none()).collect();
    let short = |metric: &String| {
        let (_, needed) = PERCENTILES.into_iter().find(|(name, _)| metric.ends_with(name))?;
        let few = cells.iter().filter_map(|cell| Some((most_requests(&cell.job)?, cell)));
        let few: Vec<_> = few.filter(|(most, _)| *most < needed).collect();
        let (most, cell) = few.iter().min_by_key(|(most, _)| *most)?;
        let (cell, most) = (cell.label(), *most);
        Some(ShortWindow { metric: metric.clone(), needed, cell, most, cells: few.len(), of: cells.len() })
    };
    metrics.into_iter().filter_map(short).collect()
}

/// An upper bound of the requests in a measured window, if one is known.
fn most_requests(job: &Job) -> Option<u64> {
    if !matches!(job.work, Work::Requests(_)) {
        return None;
    }
    let nanos = match job.load.extent {
        Extent::Requests(requests) => return Some(requests),
        Extent::DurationNs(nanos) => nanos,
    };
    match job.load.schedule {
        Schedule::Open { rate_per_s, .. } => Some((rate_per_s * nanos as f64 / 1e9).ceil() as u64),
        Schedule::Closed { workers, .. } => {
            let round_trip = job.topology.link.as_ref()?.round_trip.nanos();
            let each = nanos.checked_div(round_trip * fewest_round_trips(&job.load))? + 1;
            Some(each * u64::from(workers))
        }
    }
}

/// A request takes a round trip, and a new connection another one, except for 0-RTT.
const fn fewest_round_trips(load: &Load) -> u64 {
    match (&load.connections, &load.resumption) {
        (ConnectionPolicy::PerRequest, Resumption::None | Resumption::Resume) => 2,
        (ConnectionPolicy::PerRequest, Resumption::ZeroRtt) | (ConnectionPolicy::Persistent { .. }, _) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse, plan};

    fn of(workload: &str) -> Vec<ShortWindow> {
        let text = format!(
            "name = \"s\"\ntitle = \"t\"\nquestion = \"q\"\nlab = \"netns\"\n[workload]\n{workload}\n[factors]\n\
             protocol = [\"h1\", \"h2\"]\n[compare]\nfactor = \"protocol\"\nbaseline = \"h1\"\n\
             metrics = [\"response_median\", \"response_p90\", \"response_p99\"]\n"
        );
        let study = parse(&text, "s.toml").unwrap();
        let (plan, _) = plan(&study).unwrap();
        short_windows(&study, &plan)
    }

    #[test]
    fn a_window_of_few_round_trips_cannot_have_a_p99() {
        // 200 ms hold at most 200 / 50 + 1 requests of 50 ms.
        let short = of("duration = \"200 ms\"\nplacement = \"home\"\nround_trip = \"50 ms\"\nconnections = 1");
        let found: Vec<_> = short.iter().map(|one| (one.metric.as_str(), one.most, one.cells, one.of)).collect();
        assert_eq!(found, [("response_p90", 5, 2, 2), ("response_p99", 5, 2, 2)]);
        assert!(short[0].to_string().contains("Raise `duration`"));
    }

    #[test]
    fn requests_and_rates_bound_the_number_and_an_unknown_speed_does_not() {
        let needs = |workload: &str| of(workload).into_iter().map(|one| (one.metric, one.most)).collect::<Vec<_>>();
        assert_eq!(needs("requests = 99"), [("response_p99".to_owned(), 99)]);
        assert_eq!(needs("rate = \"50/s\"\nduration = \"1 s\""), [("response_p99".to_owned(), 50)]);
        assert!(needs("requests = 100").is_empty() && needs("duration = \"10 ms\"").is_empty());
    }
}
