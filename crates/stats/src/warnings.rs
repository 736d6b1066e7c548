//! The warnings of trials and analysis, merged over the trials of a cell.

use indexmap::IndexMap;
use wirelab_model::event::Steadiness;
use wirelab_model::plan::{Cell, Job, Plan};
use wirelab_model::spec::{Resumption, Schedule};
use wirelab_model::study::Study;
use wirelab_model::table::Design;
use wirelab_model::warning::Warning;

use crate::analysis::{CellAnalysis, Compared};
use crate::compare::{ALPHA, MIN_BLOCKS};
use crate::estimate::most_frequent;
use crate::holm::holm;
use crate::packet_sizes::packet_sizes;
use crate::parity::parity;
use crate::quantile;
use crate::serial::serial;
use crate::stationarity::Stationarity;
use crate::trend::trend;
use crate::trials::Trials;

/// Share of its processor time above which a client counts as the bottleneck.
const CLIENT_BOUND: f64 = 0.9;

/// Share of the machine's processor time above which stolen time gives a warning.
const STOLEN: f64 = 0.02;

/// Schedule lag above which the schedule of an open loop counts as missed: in nanoseconds, and as a share of the median
/// response time.
const LAG_NS: f64 = 1e6;
const LAG_SHARE: f64 = 0.1;

/// Share of time in stalls above which a closed loop gives a warning.
const STALLED: f64 = 0.05;

/// Every warning; warnings on the whole study come first.
pub fn warnings(
    study: &Study,
    plan: &Plan,
    trials: &Trials<'_>,
    cells: &[CellAnalysis],
    comparisons: &[Compared],
) -> Vec<Warning> {
    let mut all = Vec::new();
    all.extend(too_few_blocks(comparisons, trials));
    all.extend(aa_differs(plan, comparisons));
    all.extend(parity(study, plan, trials));
    all.extend(packet_sizes(study, plan, cells));
    all.extend(drift(plan, cells));
    all.extend(not_stationary(plan, cells));
    all.extend(own_client(plan));
    all.extend(not_warmed_up(plan, trials));
    all.extend(stolen(cells));
    let of_trials = OfTrials::gather(plan, trials);
    for (number, cell) in cells.iter().enumerate() {
        let label = plan.cells[number].label();
        all.extend(trials_failed(&label, cell));
        all.extend(requests_failed(&label, cell, &of_trials));
        all.extend(client_bound(&label, &plan.cells[number].job, cell, &of_trials));
        all.extend(stalls(&label, &plan.cells[number].job.load.schedule, cell));
        all.extend(schedule_lag(&label, &plan.cells[number].job.load.schedule, cell));
        all.extend(resumption_missed(&label, plan.cells[number].job.load.resumption, cell));
    }
    all.extend(of_trials.rest());
    all
}

/// Warnings about a table without blocks: compared metrics whose values depend on the order of the rows, under Holm's
/// correction.
pub fn of_rows(study: &Study, plan: &Plan, trials: &Trials<'_>) -> Vec<Warning> {
    if trials.design() == Design::Blocks {
        return Vec::new();
    }
    let values = |metric: &String| -> Vec<Vec<f64>> {
        let of_cell = |cell| trials.measured(cell, metric).into_iter().map(|(_, value)| value).collect();
        (0..plan.cells.len()).map(of_cell).collect()
    };
    let found: Vec<_> = study
        .compare
        .metrics
        .iter()
        .filter_map(|metric| Some((metric, serial(&values(metric), study.seed)?)))
        .collect();
    let corrected = holm(&found.iter().map(|(_, serial)| serial.p).collect::<Vec<_>>());
    let significant = found.into_iter().zip(corrected).filter(|(_, p)| *p <= ALPHA);
    let warning = |metric: &String, correlation| Warning::RowsDepend { metric: metric.clone(), correlation };
    significant.map(|((metric, serial), _)| warning(metric, serial.correlation)).collect()
}

fn too_few_blocks(comparisons: &[Compared], trials: &Trials<'_>) -> Option<Warning> {
    let primary = comparisons.iter().filter(|compared| !compared.aa && !compared.exploratory);
    let needed = primary.map(|compared| compared.blocks_needed).max().unwrap_or(MIN_BLOCKS);
    let blocks = trials.complete_blocks();
    (blocks < needed).then_some(Warning::TooFewBlocks { blocks, needed })
}

/// A/A pairs that differ significantly in a compared metric, under Bonferroni's correction over all pairs; each pair
/// once.
fn aa_differs(plan: &Plan, comparisons: &[Compared]) -> Vec<Warning> {
    let pairs = comparisons.iter().filter(|compared| compared.aa).count() as f64;
    let mut ratios: IndexMap<usize, f64> = IndexMap::new();
    for compared in comparisons.iter().filter(|compared| compared.aa) {
        let significant = compared.p.is_some_and(|p| p * pairs <= ALPHA);
        let apart = compared.interval.is_some_and(|interval| interval.low > 1.0 || interval.high < 1.0);
        if let Some(ratio) = compared.ratio.filter(|_| significant && apart) {
            ratios.entry(compared.baseline).or_insert(ratio);
        }
    }
    let warning = |(cell, ratio): (usize, f64)| Warning::AaDiffers { cell: plan.cells[cell].label(), ratio };
    ratios.into_iter().map(warning).collect()
}

/// Cells with a trend of the median response time over trials, under Holm's correction over the cells.
fn drift(plan: &Plan, cells: &[CellAnalysis]) -> Vec<Warning> {
    const METRIC: &str = "response_median";
    let trends: Vec<_> = cells
        .iter()
        .enumerate()
        .filter_map(|(number, cell)| {
            let estimate = cell.estimates.get(METRIC)?;
            let points: Vec<_> = estimate.values.iter().map(|(trial, value)| (f64::from(*trial), *value)).collect();
            let length = points.last()?.0 - points.first()?.0;
            let trend = trend(&points)?;
            Some((number, trend.p, trend.slope * length / estimate.median))
        })
        .collect();
    let corrected = holm(&trends.iter().map(|(_, p, _)| *p).collect::<Vec<_>>());
    let significant = trends.iter().zip(corrected).filter(|(_, p)| *p <= ALPHA);
    let warning =
        |number: usize, change| Warning::Drift { cell: plan.cells[number].label(), metric: METRIC.to_owned(), change };
    significant
        .filter(|((_, _, change), _)| change.is_finite())
        .map(|((n, _, change), _)| warning(*n, *change))
        .collect()
}

/// Cells whose response times change within the measured window.
fn not_stationary(plan: &Plan, cells: &[CellAnalysis]) -> Vec<Warning> {
    let of_cell = |(number, cell): (usize, &CellAnalysis)| match cell.stationarity {
        Stationarity::Changes { slowest, fastest, ratio } => {
            let (slowest, fastest) = (slowest as u32, fastest as u32);
            Some(Warning::NotStationary { cell: plan.cells[number].label(), slowest, fastest, ratio })
        }
        Stationarity::Stationary | Stationarity::TooShort => None,
    };
    cells.iter().enumerate().filter_map(of_cell).collect()
}

/// Cells whose warm-ups reached their longest time before response times were steady.
fn not_warmed_up(plan: &Plan, trials: &Trials<'_>) -> Vec<Warning> {
    let of_cell = |(number, cell): (usize, &Cell)| {
        let ends: Vec<_> = trials.ok(number).filter_map(|record| Some(record.warmed_up?.steadiness)).collect();
        let count = |wanted| ends.iter().filter(|end| **end == wanted).count() as u32;
        let [changing, cannot_tell] = [Steadiness::Changing, Steadiness::CannotTell].map(count);
        let of = ends.len() as u32;
        (changing + cannot_tell > 0).then(|| Warning::NotWarmedUp { cell: cell.label(), changing, cannot_tell, of })
    };
    plan.cells.iter().enumerate().filter_map(of_cell).collect()
}

/// Processor time that the hypervisor took.
fn own_client(plan: &Plan) -> Option<Warning> {
    let own = plan.cells.iter().filter(|cell| cell.job.own_client.is_some());
    let cells: Vec<_> = own.map(Cell::label).collect();
    (!cells.is_empty()).then_some(Warning::OwnClient { cells })
}

fn stolen(cells: &[CellAnalysis]) -> Option<Warning> {
    let estimates = cells.iter().filter_map(|cell| cell.estimates.get("machine_stolen_share"));
    let shares: Vec<f64> = estimates.flat_map(|estimate| &estimate.values).map(|(_, share)| *share).collect();
    let trials = shares.iter().filter(|share| **share > STOLEN).count() as u32;
    let largest = shares.iter().copied().fold(0.0, f64::max);
    (trials > 0).then_some(Warning::Stolen { trials, of: shares.len() as u32, largest })
}

fn trials_failed(label: &str, cell: &CellAnalysis) -> Option<Warning> {
    let of = cell.ok + cell.failed + cell.unsupported;
    let reason = cell.reason.clone().unwrap_or_default();
    (cell.failed > 0).then(|| Warning::TrialsFailed { cell: label.to_owned(), failed: cell.failed, of, reason })
}

fn requests_failed(label: &str, cell: &CellAnalysis, of_trials: &OfTrials) -> Option<Warning> {
    let estimate = cell.estimates.get("error_share")?;
    let share = estimate.values.iter().map(|(_, share)| share).sum::<f64>() / estimate.values.len() as f64;
    let kinds = of_trials.kinds.get(label).cloned().unwrap_or_default();
    let kind = most_frequent(kinds).unwrap_or_else(|| "unknown".to_owned());
    (share > 0.0).then(|| Warning::RequestsFailed { cell: label.to_owned(), share, kind })
}

/// The metric counts processors: a client of four threads, or four clients, can use 400 %. The warning states the share
/// of this maximum.
fn client_bound(label: &str, job: &Job, cell: &CellAnalysis, of_trials: &OfTrials) -> Option<Warning> {
    let processors = cell.estimates.get("cpu_client_share").map(|estimate| estimate.median);
    let threads = f64::from(job.load.threads.unwrap_or(1).max(1)) * f64::from(job.load.clients.max(1));
    let estimated = processors.map(|processors| processors / threads);
    let share = estimated.or_else(|| quantile::median(of_trials.client_shares.get(label)?))?;
    (share > CLIENT_BOUND).then(|| Warning::ClientBound { cell: label.to_owned(), share })
}

/// Whether a load spent so much of its time in stalls that its percentiles mislead. An open loop counts delayed
/// requests.
#[must_use]
pub fn hides_stalls(schedule: &Schedule, stalled_share: f64) -> bool {
    matches!(schedule, Schedule::Closed { .. }) && stalled_share > STALLED
}

fn stalls(label: &str, schedule: &Schedule, cell: &CellAnalysis) -> Option<Warning> {
    let share = cell.estimates.get("stalled_share")?.median;
    hides_stalls(schedule, share).then(|| Warning::Stalls { cell: Some(label.to_owned()), share })
}

fn schedule_lag(label: &str, schedule: &Schedule, cell: &CellAnalysis) -> Option<Warning> {
    let p99_ns = cell.estimates.get("lag_p99")?.median;
    let response = cell.estimates.get("response_median").map(|estimate| estimate.median);
    let open = matches!(schedule, Schedule::Open { .. });
    let late = p99_ns > LAG_NS || response.is_some_and(|response| p99_ns > LAG_SHARE * response);
    (open && late).then(|| Warning::ScheduleLag { cell: label.to_owned(), p99_ns })
}

fn resumption_missed(label: &str, wanted: Resumption, cell: &CellAnalysis) -> Option<Warning> {
    let (metric, wanted) = match wanted {
        Resumption::None => return None,
        Resumption::Resume => ("resumed_share", "resumed"),
        Resumption::ZeroRtt => ("early_share", "early_accepted"),
    };
    let values = &cell.estimates.get(metric)?.values;
    let share = values.iter().map(|(_, share)| share).sum::<f64>() / values.len() as f64;
    let (cell, wanted) = (label.to_owned(), wanted.to_owned());
    (share < 1.0).then_some(Warning::ResumptionMissed { cell, wanted, share })
}

/// The warnings of single trials, grouped by their subject.
#[derive(Default)]
struct OfTrials {
    /// Most frequent kind of failed request of each trial, by cell label.
    kinds: IndexMap<String, Vec<String>>,
    /// The client's share of its processor time, by cell label.
    client_shares: IndexMap<String, Vec<f64>>,
    /// The largest share of a processor that the link emulator used, by cell label.
    emulator: IndexMap<String, f64>,
    /// Drops by cell label and counter.
    drops: IndexMap<(String, String), u64>,
    /// The smallest ratio between clients, by cell label and quantity.
    uneven: IndexMap<(String, String), f64>,
    /// The largest distance between starts of clients, by cell label.
    apart: IndexMap<String, f64>,
    /// Warnings without a number to merge, each once.
    others: Vec<Warning>,
}

impl OfTrials {
    fn gather(plan: &Plan, trials: &Trials<'_>) -> Self {
        let mut gathered = Self::default();
        for cell in 0..plan.cells.len() {
            for warning in trials.of_cell(cell).flat_map(|record| &record.warnings) {
                gathered.add(warning);
            }
        }
        gathered
    }

    fn add(&mut self, warning: &Warning) {
        match warning {
            Warning::RequestsFailed { cell, kind, .. } => {
                self.kinds.entry(cell.clone()).or_default().push(kind.clone());
            }
            Warning::ClientBound { cell, share } => self.client_shares.entry(cell.clone()).or_default().push(*share),
            Warning::EmulatorBusy { cell, share } => {
                let greatest = self.emulator.entry(cell.clone()).or_default();
                *greatest = greatest.max(*share);
            }
            Warning::Drops { cell, counter, count } => {
                *self.drops.entry((cell.clone(), counter.clone())).or_default() += count;
            }
            Warning::ClientsUneven { cell, what, share } => {
                let smallest = self.uneven.entry((cell.clone(), what.clone())).or_insert(1.0);
                *smallest = smallest.min(*share);
            }
            Warning::ClientsApart { cell, share } => {
                let largest = self.apart.entry(cell.clone()).or_default();
                *largest = largest.max(*share);
            }
            // The analysis computes these for the cell as a whole.
            Warning::ResumptionMissed { .. } | Warning::ScheduleLag { .. } | Warning::TrialsFailed { .. } => {}
            other if self.others.contains(other) => {}
            other => self.others.push(other.clone()),
        }
    }

    fn rest(self) -> impl Iterator<Item = Warning> {
        let drops = self.drops.into_iter().map(|((cell, counter), count)| Warning::Drops { cell, counter, count });
        let emulator = self.emulator.into_iter().map(|(cell, share)| Warning::EmulatorBusy { cell, share });
        let uneven = self.uneven.into_iter().map(|((cell, what), share)| Warning::ClientsUneven { cell, what, share });
        let apart = self.apart.into_iter().map(|(cell, share)| Warning::ClientsApart { cell, share });
        drops.chain(emulator).chain(uneven).chain(apart).chain(self.others)
    }
}

#[cfg(test)]
#[path = "warnings_tests.rs"]
mod tests;
