//! Builds the plan: all combinations of levels, A/A twins, and comparisons.

use std::collections::HashMap;

use indexmap::IndexMap;
use wirelab_model::plan::{Cell, Comparison, Plan};
use wirelab_model::settings::{Exchange, Settings};
use wirelab_model::study::Study;
use wirelab_model::warning::Warning;

use crate::check;
use crate::error::StudyError;
use crate::exclude::Selection;
use crate::factor::{self, overlaid};
use crate::job::job_among;
use crate::locate::steps;
use crate::own::with_requests;
use crate::{sample_size, timeline};

/// The plan of a study whose lab has no defaults of its own; see [`plan_in`].
///
/// # Errors
/// As [`plan_in`].
pub fn plan(study: &Study) -> Result<(Plan, Vec<Warning>), StudyError> {
    plan_in(study, &Settings::default())
}

/// Makes the plan of a study with preset and command line applied ([`resolve`](crate::resolve())).
///
/// - Cells: the full factorial of the factors in file order; the last factor changes fastest. Cells that match
///   `exclude` are omitted. The defaults of the lab and the settings of the workload, of the levels and of `adjust`
///   apply in this order.
/// - A/A twins: every baseline cell occurs a second time, after all other cells. Each combination of the other
///   factors thus has a pair of identical cells, whose difference is noise.
/// - Comparisons: every cell with the baseline cell of equal other levels, then the A/A pairs.
/// - Blocks: the minimum is raised to the number that significance needs, up to the maximum
///   ([`blocks_for_significance`](crate::blocks_for_significance)).
///
/// # Errors
/// If the study is invalid (as [`parse`](crate::parse()) checks), if a combination of levels contradicts itself, or
/// if no cell or no baseline cell is left.
pub fn plan_in(study: &Study, defaults: &Settings) -> Result<(Plan, Vec<Warning>), StudyError> {
    check::resolved(study)?;
    let mut cells = cells(study, defaults.overlaid(&study.workload))?;
    if cells.is_empty() {
        return Err(StudyError::new("the exclusions leave no cell").at_key(steps!["exclude"]));
    }
    let (mut comparisons, twins) = comparisons(study, &cells);
    if twins.is_empty() {
        let message = format!("the exclusions leave no cell of the baseline `{}`", study.compare.baseline);
        return Err(StudyError::new(message).at_key(steps!["exclude"]));
    }
    let compared = comparisons.len() as u32;
    for original in twins {
        comparisons.push(Comparison { cell: cells.len(), baseline: original, aa: true });
        cells.push(Cell { twin_of: Some(original), ..cells[original].clone() });
    }
    let primary = study.compare.metrics.iter().filter(|metric| study.compare.is_primary(metric)).count() as u32;
    let hypotheses = compared * primary;
    let (min_blocks, max_blocks) = sample_size::blocks(study.blocks.min, study.blocks.max, hypotheses);
    let raised = (min_blocks > study.blocks.min).then_some(Warning::BlocksRaised {
        from: study.blocks.min,
        to: min_blocks,
        comparisons: hypotheses,
    });
    let warnings = raised.into_iter().chain(different_sizes(study, &cells, &comparisons)).collect();
    let plan = Plan {
        cells,
        comparisons,
        seed: study.seed,
        min_blocks,
        max_blocks,
        budget: study.blocks.budget,
        precision: study.blocks.precision.0,
    };
    Ok((plan, warnings))
}

/// Levels by factor, level numbers in factor order, and settings.
type Combination = (IndexMap<String, String>, Vec<usize>, Settings);

/// All combinations of levels that are not excluded. Their settings start from those of the workload.
fn cells(study: &Study, workload: Settings) -> Result<Vec<Cell>, StudyError> {
    let mut combinations: Vec<Combination> = vec![(IndexMap::new(), Vec::new(), workload)];
    for (name, factor) in &study.factors {
        let levels = factor::levels(name, factor).map_err(|error| error.at(steps!["factors", name]))?;
        let mut longer = Vec::with_capacity(combinations.len() * levels.len());
        for (names, numbers, settings) in combinations {
            for (number, (level, set)) in levels.iter().enumerate() {
                let (mut names, mut numbers) = (names.clone(), numbers.clone());
                names.insert(name.clone(), level.clone());
                numbers.push(number);
                longer.push((names, numbers, overlaid(&settings, set)));
            }
        }
        combinations = longer;
    }
    let exclusions = Selection::of(study, &study.exclude);
    let adjustments = Selection::of(study, study.adjust.iter().map(|adjustment| &adjustment.cells));
    let mut cells = Vec::with_capacity(combinations.len());
    for (levels, numbers, settings) in combinations {
        // Exclude before making the job: an excluded combination may be invalid.
        if exclusions.matching(&numbers).next().is_some() {
            continue;
        }
        let adjusted = adjustments.matching(&numbers).map(|number| &study.adjust[number].set);
        let settings = adjusted.fold(settings, |settings, set| overlaid(&settings, set));
        let job = job_among(&settings, &study.placements)
            .and_then(|job| with_requests(job, &settings, &study.requests))
            .and_then(|job| timeline::with_timeline(job, study.timeline.as_ref()))
            .map_err(|error| {
                let names: Vec<_> = levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
                error.when(&format!("the cell `{}` cannot be run", names.join(" ")))
            })?;
        cells.push(Cell { levels, twin_of: None, job });
    }
    Ok(cells)
}

/// The comparisons of the study in cell order, and the indices of the baseline cells. Each baseline cell gets a twin.
fn comparisons(study: &Study, cells: &[Cell]) -> (Vec<Comparison>, Vec<usize>) {
    let factor = &study.compare.factor;
    let others = |cell: &'_ Cell| -> Vec<String> {
        cell.levels.iter().filter(|(name, _)| *name != factor).map(|(_, level)| level.clone()).collect()
    };
    let is_baseline = |cell: &Cell| cell.levels.get(factor) == Some(&study.compare.baseline);
    let (baselines, rest): (Vec<_>, Vec<_>) = cells.iter().enumerate().partition(|(_, cell)| is_baseline(cell));
    let by_levels: HashMap<_, _> = baselines.iter().map(|(number, cell)| (others(cell), *number)).collect();
    let compare = |(cell, levels): (usize, &Cell)| {
        let baseline = *by_levels.get(&others(levels))?;
        Some(Comparison { cell, baseline, aa: false })
    };
    (rest.into_iter().filter_map(compare).collect(), baselines.into_iter().map(|(number, _)| number).collect())
}

/// Warns if compared cells move different numbers of bytes and no level says so: by default HTTP fetches documents
/// and raw transports echo, which is not a fair pair.
fn different_sizes(study: &Study, cells: &[Cell], comparisons: &[Comparison]) -> Option<Warning> {
    let wanted = study.factors.get(&study.compare.factor).map(|factor| factor::keys_of(&study.compare.factor, factor));
    if wanted.is_some_and(|keys| keys.contains_key("payload") || keys.contains_key("exchange")) {
        return None;
    }
    let sizes = |number: usize| cells[number].job.work.body_sizes();
    // Heron calls have different sizes by protocol but are the same call of the same service.
    let calls = |number: usize| cells[number].job.requests().is_some_and(|one| one.exchange == Exchange::Heron);
    let is_unfair = |c: &&Comparison| sizes(c.cell) != sizes(c.baseline) && !(calls(c.cell) && calls(c.baseline));
    let differs = comparisons.iter().find(is_unfair)?;
    let values = [differs.baseline, differs.cell].map(|number| {
        let [request, response] = sizes(number);
        (cells[number].label(), format!("{request} up, {response} down"))
    });
    Some(Warning::Parity { what: "exchange".to_owned(), values: values.into() })
}
