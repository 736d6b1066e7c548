//! `wirelab compare`: two runs, cell by cell.

use std::path::{Path, PathBuf};

use wirelab_model::metric::Metric;
use wirelab_model::requirement::{Limit, Statement};
use wirelab_report::{Sides, between_html, between_json, between_terminal, failed_changes};
use wirelab_run::Run;
use wirelab_stats::between::{OfRun, Wanted, between, pairs};

use crate::args::{CompareArgs, CompareFormat, FailOn};
use crate::commands::report::has_ended;
use crate::commands::studies;
use crate::failure::{Failure, Result};
use crate::output::{print, print_document, width};
use crate::place::run_folder;

/// Compares two runs.
pub fn compare(args: &CompareArgs) -> Result {
    let folders = [folder(&args.first)?, folder(&args.second)?];
    let failed = with_sides(&folders, args, |sides| {
        match if args.json { CompareFormat::Json } else { args.format } {
            CompareFormat::Terminal => print(&between_terminal(sides, width()))?,
            CompareFormat::Json => print_document(&between_json(sides))?,
            CompareFormat::Html => print_document(&between_html(sides))?,
        }
        Ok(failed_changes(sides, args.fail_on.contains(&FailOn::Inconclusive)))
    })?;
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::unmet(format!("the second run does not meet what is required of it.\n{}", failed.join("\n"))))
}

/// The comparison of two run folders as a page, with the metrics that both studies compare.
pub fn page(folders: [PathBuf; 2]) -> Result<String> {
    let [first, second] = folders.clone();
    let format = CompareFormat::Html;
    let args =
        CompareArgs { first, second, metrics: Vec::new(), margin: None, fail_on: Vec::new(), format, json: false };
    with_sides(&folders, &args, |sides| Ok(between_html(sides)))
}

/// Compares the runs of two folders.
fn with_sides<T>(folders: &[PathBuf; 2], args: &CompareArgs, then: impl FnOnce(&Sides) -> Result<T>) -> Result<T> {
    if is_same(folders) {
        return Err(Failure::input(format!(
            "both runs are {}; name two runs (`wirelab history` lists those of a folder)",
            folders[0].display()
        )));
    }
    let [first, second] = folders.each_ref().map(|folder| Run::open(folder).map_err(Failure::input));
    let runs = [first?, second?];
    let known = known_metrics(&runs);
    let require = require(&args.fail_on, &known)?;
    let metrics = metrics(args, &runs, &known, &require)?;
    let plans = runs.each_ref().map(|run| &run.manifest().plan);
    if pairs(plans).0.is_empty() {
        let [one, other] = plans.map(|plan| plan.cells.first().map_or_else(String::new, |cell| cell.label()));
        return Err(Failure::input(format!(
            "the runs have no cell in common: no cell of the second has the settings or the levels of a cell of the \
             first, such as `{one}` and `{other}`"
        )));
    }
    let [one, other] = &runs;
    let margin = args.margin.unwrap_or(other.manifest().study.compare.margin).0;
    let wanted = Wanted { metrics: &metrics, margin, require: &require, seed: other.manifest().plan.seed };
    let of_run = |run| OfRun { plan: &Run::manifest(run).plan, records: run.trials() };
    let between = between([of_run(one), of_run(other)], &wanted, &known);
    let names = folders.each_ref().map(|folder| name(folder));
    then(&Sides {
        names: [&names[0], &names[1]],
        manifests: [one.manifest(), other.manifest()],
        ended: [has_ended(one), has_ended(other)],
        between: &between,
        metrics: &known,
        margin,
    })
}

fn folder(named: &Path) -> Result<PathBuf> {
    run_folder(Some(named), Path::new("wirelab-runs"))
}

fn is_same([first, second]: &[PathBuf; 2]) -> bool {
    first == second || first.canonicalize().ok().is_some_and(|first| second.canonicalize().ok() == Some(first))
}

/// The name of a run: the last part of its path.
pub fn name(folder: &Path) -> String {
    let whole = folder.canonicalize();
    let folder = whole.as_deref().unwrap_or(folder);
    folder.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The declarations of the metrics of both runs.
fn known_metrics(runs: &[Run; 2]) -> Vec<&'static Metric> {
    let mut known: Vec<&'static Metric> = Vec::new();
    for metric in runs.iter().flat_map(|run| studies::metrics(&run.manifest().study)) {
        if known.iter().all(|other| other.name != metric.name) {
            known.push(metric);
        }
    }
    known
}

/// The relative requirements of `--fail-on`.
fn require(fail_on: &[FailOn], known: &[&Metric]) -> Result<Vec<Statement>> {
    let mut require = Vec::new();
    for one in fail_on {
        let that = match one {
            FailOn::Violated(that) => that,
            FailOn::Inconclusive => continue,
            FailOn::Claims => {
                return Err(Failure::input("--fail-on claims: claims belong to one run; use `wirelab report`"));
            }
        };
        wirelab_plan::known_statement(that, known).map_err(|error| Failure::input(format!("--fail-on: {error}")))?;
        if !matches!(that.limit, Limit::NoWorse { .. }) {
            return Err(Failure::input(format!(
                "--fail-on: `{that}` is about one run, and is chosen before its data are known: give it to `wirelab run`. \
                 Two runs are compared by `worse`, such as 'p99 5 % worse'"
            )));
        }
        require.push(that.clone());
    }
    Ok(require)
}

/// The metrics to compare: the wanted ones, or the metrics of both studies; then those of requirements.
fn metrics(args: &CompareArgs, runs: &[Run; 2], known: &[&Metric], require: &[Statement]) -> Result<Vec<String>> {
    let [first, second] = runs.each_ref().map(|run| &run.manifest().study.compare.metrics);
    let mut metrics = match args.metrics.as_slice() {
        [] => second.iter().filter(|metric| first.contains(metric)).cloned().collect(),
        wanted => wanted.iter().map(|name| Ok(find(name, known)?.name.to_owned())).collect::<Result<Vec<_>>>()?,
    };
    metrics.extend(require.iter().map(|that| that.metric.clone()));
    let mut seen = std::collections::HashSet::new();
    metrics.retain(|metric| seen.insert(metric.clone()));
    if metrics.is_empty() {
        return Err(Failure::input("the studies of the runs compare no common metric; name one with --metric"));
    }
    Ok(metrics)
}

/// The declaration of a metric, by its name or short name.
pub fn find<'a>(name: &str, known: &[&'a Metric]) -> Result<&'a Metric> {
    let short = Statement::short_names();
    let full = short.iter().find(|(short, _)| *short == name).map_or(name, |(_, full)| full);
    known.iter().copied().find(|metric| metric.name == full).ok_or_else(|| {
        let names = known.iter().map(|metric| metric.name).chain(short.iter().map(|(short, _)| *short));
        let meant = wirelab_model::nearest::did_you_mean(name, names);
        Failure::input(format!("--metric {name}: no metric has this name{meant}; docs/reference/metrics.md lists all"))
    })
}
