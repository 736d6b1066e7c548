//! Imports a table of measurements in the form of a run (study, plan, trials), so that the same statistics and
//! reports apply. The import adds nothing that a table lacks (links, endpoints, a machine, trial order).
//! [`wirelab_model::table::Table`] records the source of each part.

mod cells;
mod columns;
mod mapping;
mod published;
mod sheet;
mod unit;

use std::collections::HashSet;

use indexmap::{IndexMap, IndexSet};
use serde_json::json;
use wirelab_model::environment::Environment;
use wirelab_model::journal::TrialRecord;
use wirelab_model::manifest::{FORMAT, Manifest};
use wirelab_model::metric::{Metric, Side};
use wirelab_model::plan::{Comparison, Plan};
use wirelab_model::study::{Factor, Study};
use wirelab_model::table::{Design, Table, Taken};
use wirelab_model::units::Share;

use crate::error::StudyError;
use crate::locate::steps;
use crate::selectors;
use crate::words::{nearest, one_of};

pub use mapping::{ColumnsMapping, CompareMapping, Mapping, MetricMapping};
pub use published::{PUBLISHED, Published};

/// A table in the form of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Study and plan, without machine information.
    pub manifest: Manifest,
    /// The observations.
    pub records: Vec<TrialRecord>,
    /// The declarations of its metrics.
    pub metrics: Vec<Metric>,
    /// Source of each part.
    pub table: Table,
}

/// Reads a table. `file` is its name, for messages and the report. `source` is the text and name of the mapping file,
/// if the whole mapping comes from a file.
///
/// # Errors
/// With file, line and column, if the text is not a table, if the mapping names unknown columns or levels, or if the
/// table has nothing to compare.
pub fn read(text: &str, file: &str, mapping: &Mapping, source: Option<(&str, &str)>) -> Result<Measured, StudyError> {
    measured(text, file, mapping).map_err(|error| match source {
        Some((text, file)) if error.is_unplaced() => error.located(text, file),
        // A mapping from the command line has no position to report.
        _ if error.is_unplaced() => error.when(file),
        _ => error,
    })
}

fn measured(text: &str, file: &str, mapping: &Mapping) -> Result<Measured, StudyError> {
    let sheet = sheet::Sheet::read(text, file)?;
    let mut columns = columns::columns(&sheet, mapping)?;
    let by: Vec<_> = columns.by.iter().map(|column| &sheet.names()[*column]).collect();
    if by.contains(&&columns.factor) {
        let message =
            format!("`{}` is both the compared factor and a column of `by`; rename one of them", columns.factor);
        return Err(StudyError::new(message).at(steps!["compare", "factor"]));
    }
    let mut found = cells::cells(&sheet, &columns)?;
    let baseline = baseline(mapping, &columns.factor, &found.levels)?;
    let design = if columns.block.is_some() { Design::Blocks } else { Design::Independent };
    let comparisons = comparisons(&mut found, &columns.factor, &baseline, mapping.compare.twin.as_deref(), design)?;
    let guessed = mapping.compare.baseline.is_none();
    let first = if guessed { ", the first level" } else { "" };
    columns.taken.push(Taken { what: "baseline".to_owned(), from: format!("`{baseline}`{first}"), guessed });
    if let Some(twin) = &mapping.compare.twin {
        let from = format!("`{twin}`, which is `{baseline}` measured once more");
        columns.taken.push(Taken { what: "A/A pair".to_owned(), from, guessed: false });
    }
    let metrics: Vec<_> = columns.measures.iter().map(|measure| declared(measure, file)).collect();
    let study = study(mapping, file, &columns.factor, baseline, &found, &metrics)?;
    let plan = Plan {
        cells: found.cells,
        comparisons,
        seed: study.seed,
        min_blocks: 0,
        max_blocks: 0,
        budget: None,
        precision: 0.0,
    };
    let manifest = Manifest {
        format: FORMAT,
        created: String::new(),
        study,
        preset: None,
        set: Vec::new(),
        lab: String::new(),
        may_load: false,
        observers: Vec::new(),
        plan,
        planted: None,
        references: None,
        endpoints: IndexMap::new(),
        environment: Environment::default(),
        warnings: Vec::new(),
    };
    let table = Table {
        file: file.to_owned(),
        rows: sheet.rows().len() as u32,
        observations: found.observations,
        design,
        taken: columns.taken,
        left_out: found.left_out,
    };
    Ok(Measured { manifest, records: found.records, metrics, table })
}

/// The level that the others are compared with.
fn baseline(mapping: &Mapping, factor: &str, levels: &IndexSet<String>) -> Result<String, StudyError> {
    let known: Vec<_> = levels.iter().collect();
    for (key, named) in [("baseline", &mapping.compare.baseline), ("twin", &mapping.compare.twin)] {
        if let Some(level) = named.as_ref().filter(|level| !levels.contains(*level)) {
            let message = format!("the {key} `{level}` is not a level of `{factor}`, which has {}", one_of(&known));
            let meant = nearest(level, levels.iter().map(String::as_str));
            return Err(StudyError::new(message).meant(meant).at(steps!["compare", key]));
        }
    }
    if levels.len() < 2 {
        let message = format!("`{factor}` has only the level {}; nothing can be compared", one_of(&known));
        return Err(StudyError::new(message).at(steps!["compare", "factor"]));
    }
    let baseline = mapping.compare.baseline.clone().or_else(|| levels.first().cloned()).unwrap_or_default();
    if mapping.compare.twin.as_ref() == Some(&baseline) {
        let message =
            format!("`{baseline}` cannot be its own twin; name the level under which it was measured once more");
        return Err(StudyError::new(message).at(steps!["compare", "twin"]));
    }
    Ok(baseline)
}

/// Comparisons of every cell with the baseline cell of equal other levels, then the A/A pairs. Twin cells get the
/// baseline's levels.
fn comparisons(
    found: &mut cells::Cells,
    factor: &str,
    baseline: &str,
    twin: Option<&str>,
    design: Design,
) -> Result<Vec<Comparison>, StudyError> {
    let cells = &mut found.cells;
    let (mut compared, mut pairs, mut alone) = (Vec::new(), Vec::new(), 0);
    for number in 0..cells.len() {
        let level = &cells[number].levels[factor];
        if level == baseline {
            continue;
        }
        let mut levels = cells[number].levels.clone();
        levels.insert(factor.to_owned(), baseline.to_owned());
        let Some(with) = cells.iter().position(|cell| cell.levels == levels && cell.twin_of.is_none()) else {
            found
                .left_out
                .push(format!("`{}` has no comparison: the table lacks its `{baseline}`.", cells[number].label()));
            continue;
        };
        let aa = Some(level.as_str()) == twin;
        if aa {
            (cells[number].levels, cells[number].twin_of) = (levels, Some(with));
        }
        let comparison = Comparison { cell: number, baseline: with, aa };
        if aa {
            pairs.push(comparison)
        } else {
            compared.push(comparison)
        }
        if design == Design::Blocks {
            let blocks = |cell: usize| {
                let of_cell = found.records.iter().filter(move |record| record.trial.cell == cell);
                of_cell.map(|record| record.trial.block).collect::<HashSet<_>>()
            };
            alone += blocks(number).symmetric_difference(&blocks(with)).count();
        }
    }
    if alone > 0 {
        found.left_out.push(format!(
            "{alone} observations without a counterpart in their block: cells are compared within blocks."
        ));
    }
    if compared.is_empty() && pairs.is_empty() {
        let message = format!("no group has both `{baseline}` and another level of `{factor}`; check `by`");
        return Err(StudyError::new(message).at(steps!["compare", "baseline"]));
    }
    compared.extend(pairs);
    Ok(compared)
}

/// The declaration of a metric. Metric names are `'static`, so those of a table are leaked.
fn declared(measure: &columns::Measure, file: &str) -> Metric {
    let kept = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    Metric {
        name: kept(&measure.name),
        title: kept(&measure.title),
        unit: measure.unit,
        side: Side::Unknown,
        vantage: kept(&format!("the table {file}")),
        better: measure.better,
        meaning: kept(&measure.meaning),
    }
}

fn study(
    mapping: &Mapping,
    file: &str,
    factor: &str,
    baseline: String,
    found: &cells::Cells,
    metrics: &[Metric],
) -> Result<Study, StudyError> {
    let known: Vec<_> = metrics.iter().map(|metric| metric.name).collect();
    let compared: Vec<String> =
        mapping.compare.metrics.clone().unwrap_or_else(|| known.iter().map(|name| (*name).to_owned()).collect());
    let named = compared.iter().enumerate().map(|(number, name)| (name, steps!["compare", "metrics", number].to_vec()));
    let of_claims = mapping.claims.iter().enumerate().flat_map(|(claim, claims)| {
        let tests = claims.tests.iter().enumerate();
        tests.map(move |(test, tests)| (&tests.metric, steps!["claims", claim, "tests", test, "metric"].to_vec()))
    });
    for (name, place) in named.chain(of_claims) {
        if !known.contains(&name.as_str()) {
            let message = format!("the table has no metric `{name}`, only {}", one_of(&known));
            return Err(StudyError::new(message).meant(nearest(name, known.iter().copied())).at(place));
        }
    }
    let margin = mapping.compare.margin.unwrap_or(Share(0.05));
    if compared.is_empty() || !(margin.0 > 0.0 && margin.0 < 1.0) {
        let message = "at least one metric has to be compared, with a margin above 0 % and below 100 %";
        return Err(StudyError::new(message).at(steps!["compare"]));
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    let name = name.strip_suffix(".csv").unwrap_or(name);
    let written = json!({
        "name": name,
        "title": mapping.title.as_deref().unwrap_or(name),
        "question": mapping.question.clone().unwrap_or_else(|| format!("Do the levels of `{factor}` differ?")),
        "limits": mapping.limits,
        "source": mapping.source,
        "seed": mapping.seed.unwrap_or(1),
        "compare": { "factor": factor, "baseline": baseline, "metrics": compared, "margin": margin },
    });
    let mut study: Study = serde_json::from_value(written).expect("a study needs no more than these keys");
    let is_level = |level: &&String| mapping.compare.twin.as_ref() != Some(*level);
    let own: IndexSet<_> = found.levels.iter().filter(is_level).cloned().collect();
    for (name, levels) in found.others.iter().chain([(&factor.to_owned(), &own)]) {
        let levels = levels.iter().map(|level| level.clone().into()).collect();
        study.factors.insert(name.clone(), Factor::Values(levels));
    }
    study.claims.clone_from(&mapping.claims);
    selectors::check(&study)?;
    Ok(study)
}

/// Whether a field marks a missing number.
fn is_gap(field: &str) -> bool {
    field.is_empty() || ["na", "n/a", "nan", "null", "none", "-"].contains(&field.to_lowercase().as_str())
}
