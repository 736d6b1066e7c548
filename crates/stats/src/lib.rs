//! Samples to values, values to estimates, comparisons, verdicts and warnings. Pure: no input or output, no clock; randomness comes
//! from a seed. This crate knows no protocol. The methods, their sources and their limits are in `docs/statistics.md`.

mod additive;
pub mod analysis;
pub mod bootstrap;
mod claims;
mod clients;
pub mod compare;
pub mod contest;
pub mod correlation;
mod effect;
mod estimate;
pub mod failures;
#[cfg(test)]
mod fixture;
pub mod holm;
mod interaction;
mod merge;
pub mod metrics;
mod pages;
mod pairs;
mod parity;
pub mod quantile;
pub mod rank_sum;
pub mod ranks;
pub mod simulation;
pub mod stationarity;
mod stop;
mod summary;
pub mod timeline;
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

pub use analysis::Analysis;
pub use clients::{CLIENTS_METRICS, clients, uneven};
pub use merge::merge_histograms;
pub use metrics::METRICS;
pub use pages::{PAGE_METRICS, pages};
pub use stop::{enough, is_precise};
pub use summary::{response_counts, summarise, summarise_histograms};
pub use transport::{TRANSPORT_METRICS, transport};

/// Analyses a run. The same study, plan and records always give the same analysis.
///
/// `records` are the journal's, in order; the last record of a repeated trial counts. `metrics` are the declarations, in the order of
/// the estimates.
#[must_use]
pub fn analyse(study: &Study, plan: &Plan, records: &[TrialRecord], metrics: &[&Metric]) -> Analysis {
    let trials = trials::Trials::of(plan, records, metrics);
    let mut bootstrap = bootstrap::Bootstrap::new(study.seed);
    let mut cells: Vec<_> =
        (0..plan.cells.len()).map(|cell| estimate::cell(cell, &trials, metrics, &mut bootstrap)).collect();
    let profiles: Vec<_> = (0..plan.cells.len()).map(|cell| trials.profiles(cell)).collect();
    for (cell, found) in cells.iter_mut().zip(stationarity::of_cells(&profiles, study.compare.margin.0)) {
        cell.stationarity = found;
    }
    let comparisons = compare::compare(study, plan, &trials, &mut bootstrap);
    let contests = contest::contests(study, plan, &trials, &mut bootstrap);
    let pairs = pairs::pairs(study, plan, &trials, &mut bootstrap);
    let claims = claims::claims(study, plan, &trials, &mut bootstrap);
    let warnings = warnings::warnings(study, plan, &trials, &cells, &comparisons);
    Analysis { complete_blocks: trials.complete_blocks(), cells, comparisons, contests, pairs, claims, warnings }
}

/// Analyses an imported table. A table has no trials and no order, so the analysis has no warnings; the report explains these limits.
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
        complete_blocks: trials.complete_blocks(),
        cells: (0..plan.cells.len()).map(|cell| estimate::cell(cell, &trials, metrics, &mut bootstrap)).collect(),
        comparisons: compare::compare(study, plan, &trials, &mut bootstrap),
        contests: contest::contests(study, plan, &trials, &mut bootstrap),
        pairs: Vec::new(),
        claims: claims::claims(study, plan, &trials, &mut bootstrap),
        warnings: Vec::new(),
    }
}
