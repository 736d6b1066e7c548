//! Samples to values, values to estimates, comparisons, verdicts and warnings. Pure: no input or output, no clock;
//! randomness comes from a seed. This crate knows no protocol. The methods, their sources and their limits are in
//! `docs/statistics.md`.

mod additive;
pub mod ages;
pub mod analysis;
pub mod anytime;
pub mod between;
pub mod binomial;
pub mod bootstrap;
pub mod brunner_munzel;
pub mod change_points;
mod claims;
pub mod client_share;
mod clients;
pub mod compare;
pub mod contest;
pub mod correlation;
mod effect;
mod estimate;
mod exact;
pub mod failures;
mod family;
#[cfg(test)]
mod fixture;
mod histogram_error;
pub mod history;
pub mod holm;
mod interaction;
pub mod link_drift;
mod merge;
pub mod metrics;
mod packet_sizes;
mod pages;
mod pairs;
mod parity;
pub mod planted;
pub mod quantile;
pub mod ranks;
mod requirements;
pub mod sensitivity;
pub mod serial;
pub mod simulation;
pub mod stationarity;
mod stop;
mod summary;
pub mod timeline;
mod totals;
mod transport;
pub mod trend;
mod trials;
mod warnings;
pub mod wilcoxon;

use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::Metric;
use wirelab_model::plan::Plan;
use wirelab_model::study::Study;
use wirelab_model::table::Design;

use analysis::{ClaimResult, Contest, PairTable, RequirementResult};

pub use analysis::{Analysis, Moment};
pub use clients::{CLIENTS_METRICS, clients, uneven};
pub use histogram_error::HistogramError;
pub use merge::merge_histograms;
pub use metrics::METRICS;
pub use pages::{PAGE_METRICS, pages};
pub use stop::{enough, is_precise};
pub use summary::{response_counts, summarise, summarise_histograms};
pub use totals::summarise_totals;
pub use transport::{TRANSPORT_METRICS, transport};
pub use warnings::hides_stalls;

/// Analyses a run. The same study, plan and records always give the same analysis.
///
/// `records` are the journal's, in order; the last record of a repeated trial counts. `metrics` are the declarations,
/// in the order of the estimates. Before the planned end (`moment`) only comparisons with the baseline have verdicts,
/// by tests that hold at any time.
#[must_use]
pub fn analyse(study: &Study, plan: &Plan, records: &[TrialRecord], metrics: &[&Metric], moment: Moment) -> Analysis {
    let trials = trials::Trials::of(plan, records, metrics);
    let mut bootstrap = bootstrap::Bootstrap::new(study.seed);
    let mut cells: Vec<_> =
        (0..plan.cells.len()).map(|cell| estimate::cell(cell, &trials, metrics, &mut bootstrap)).collect();
    let profiles: Vec<_> = (0..plan.cells.len()).map(|cell| trials.profiles(cell)).collect();
    for (cell, found) in cells.iter_mut().zip(stationarity::of_cells(&profiles, study.compare.margin.0)) {
        cell.stationarity = found;
    }
    let ages = ages::of_cells(plan, &trials, &cells, study.compare.margin.0);
    cells.iter_mut().zip(ages).for_each(|(cell, ages)| cell.ages = Some(ages));
    let comparisons = compare::compare(study, plan, &trials, moment, &mut bootstrap);
    let mut contests = contest::contests(study, plan, &trials, &mut bootstrap);
    let mut pairs = pairs::pairs(study, plan, &trials, &mut bootstrap);
    let mut claims = claims::claims(study, plan, &trials, &mut bootstrap);
    let mut requirements = requirements::requirements(study, plan, &trials, &mut bootstrap);
    if moment == Moment::Underway {
        contests.iter_mut().for_each(Contest::withhold);
        pairs.iter_mut().for_each(PairTable::withhold);
        claims.iter_mut().for_each(ClaimResult::withhold);
        requirements.iter_mut().for_each(RequirementResult::withhold);
    }
    let warnings = warnings::warnings(study, plan, &trials, &cells, &comparisons);
    Analysis {
        moment,
        complete_blocks: trials.complete_blocks(),
        requirements,
        cells,
        comparisons,
        contests,
        pairs,
        claims,
        planted: None,
        shares: Vec::new(),
        warnings,
    }
}

/// Analyses an imported table. A table has no trials, so its only warnings are about the order of rows; the report
/// explains these limits.
#[must_use]
pub fn analyse_table(
    study: &Study,
    plan: &Plan,
    records: &[TrialRecord],
    metrics: &[&Metric],
    design: Design,
) -> Analysis {
    let trials = trials::Trials::of_table(plan, records, metrics, design);
    let mut bootstrap = bootstrap::Bootstrap::new(study.seed);
    Analysis {
        moment: Moment::Complete,
        complete_blocks: trials.complete_blocks(),
        requirements: Vec::new(),
        cells: (0..plan.cells.len()).map(|cell| estimate::cell(cell, &trials, metrics, &mut bootstrap)).collect(),
        comparisons: compare::compare(study, plan, &trials, Moment::Complete, &mut bootstrap),
        contests: contest::contests(study, plan, &trials, &mut bootstrap),
        pairs: Vec::new(),
        claims: claims::claims(study, plan, &trials, &mut bootstrap),
        planted: None,
        shares: Vec::new(),
        warnings: warnings::of_rows(study, plan, &trials),
    }
}
