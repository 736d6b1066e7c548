//! `wirelab history`: a metric over the runs of a folder.

use std::path::Path;

use indexmap::{IndexMap, IndexSet};
use serde_json::Value;
use wirelab_model::difference::differences;
use wirelab_model::environment::Environment;
use wirelab_model::metric::Metric;
use wirelab_model::nearest::did_you_mean;
use wirelab_model::plan::Cell;
use wirelab_model::selector::Selector;
use wirelab_report::{History, HistoryRun, Series, history_csv, history_html, history_json, history_terminal};
use wirelab_run::Run;
use wirelab_stats::history::{changes, level};

use crate::args::{HistoryArgs, HistoryFormat};
use crate::commands::{compare, studies};
use crate::failure::{Failure, Result};
use crate::output::{print, print_document, width};
use crate::stderr;

/// Facts about the machine that explain a change of a metric. Others, such as the load, differ in every run.
const FACTS: [&str; 9] =
    ["wirelab", "kernel", "system", "cpu", "cores", "governor", "hypervisor", "memory", "clock_source"];

/// Prints the history of a metric.
pub fn history(args: &HistoryArgs) -> Result {
    with_history(args, |history| match if args.json { HistoryFormat::Json } else { args.format } {
        HistoryFormat::Terminal => print(&history_terminal(history, width())),
        HistoryFormat::Csv => print_document(&history_csv(history)),
        HistoryFormat::Json => print_document(&history_json(history)),
        HistoryFormat::Html => print_document(&history_html(history)),
    })?
}

/// The history of a metric over the runs of a study as a page, for all cells.
pub fn page(folder: &Path, study: &str, metric: Option<&str>) -> Result<String> {
    let args = HistoryArgs {
        folder: folder.to_owned(),
        metric: metric.map(str::to_owned),
        cells: Vec::new(),
        study: Some(study.to_owned()),
        format: HistoryFormat::Html,
        json: false,
    };
    with_history(&args, history_html)
}

fn with_history<T>(args: &HistoryArgs, then: impl FnOnce(&History) -> T) -> Result<T> {
    let all = runs(&args.folder)?;
    let study = study(args, &all)?;
    let runs: Vec<_> = all.into_iter().filter(|(_, run)| run.manifest().study.name == study).collect();
    let newest = &runs.last().expect("the study is that of a run").1.manifest().study;
    let known = studies::metrics(newest);
    let metric = match &args.metric {
        Some(name) => compare::find(name, &known)?,
        None => compare::find(newest.compare.metrics.first().map_or("response_median", String::as_str), &known)?,
    };
    let series = series(&runs, metric, &selector(&args.cells)?);
    if series.is_empty() {
        let labels: IndexSet<_> = cells(&runs).map(Cell::label).collect();
        return Err(Failure::input(format!(
            "no cell has the levels of --cell; the cells are: {}",
            labels.into_iter().collect::<Vec<_>>().join("; ")
        )));
    }
    if series.iter().all(|one| one.levels.iter().all(Option::is_none)) {
        return Err(Failure::input(format!("no run of `{study}` has measured `{}` in every trial", metric.name)));
    }
    let runs = described(&runs);
    Ok(then(&History { study: &study, metric, runs: &runs, series: &series }))
}

/// The runs of a folder in the order of time, with their names. A folder that is damaged is named and skipped.
fn runs(folder: &Path) -> Result<Vec<(String, Run)>> {
    let entries = std::fs::read_dir(folder).map_err(|error| {
        Failure::input(format!(
            "no runs below {}: {error}. Name the folder that contains run folders, or start with `wirelab run quick`",
            folder.display()
        ))
    })?;
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.join("manifest.json").is_file()) {
        match Run::open(&path) {
            Ok(run) => found.push((compare::name(&path), run)),
            Err(error) => stderr::write_line(format_args!("! skipped {}: {error}", path.display())),
        }
    }
    // RFC 3339 in UTC sorts as text; the names tell runs of the same moment apart.
    found.sort_by(|(one_name, one), (other_name, other)| {
        (&one.manifest().created, one_name).cmp(&(&other.manifest().created, other_name))
    });
    if found.is_empty() {
        return Err(Failure::input(format!("no run below {}; start with `wirelab run quick`", folder.display())));
    }
    Ok(found)
}

/// The study whose runs are shown.
fn study(args: &HistoryArgs, runs: &[(String, Run)]) -> Result<String> {
    let names: IndexSet<&str> = runs.iter().map(|(_, run)| run.manifest().study.name.as_str()).collect();
    match &args.study {
        None => Ok(runs.last().map(|(_, run)| run.manifest().study.name.clone()).unwrap_or_default()),
        Some(name) if names.contains(name.as_str()) => Ok(name.clone()),
        Some(name) => {
            let meant = did_you_mean(name, names.iter().copied());
            let names: Vec<_> = names.into_iter().collect();
            Err(Failure::input(format!("no run of the study `{name}`{meant}; there are runs of {}", names.join(", "))))
        }
    }
}

/// The levels of `--cell`; several of one factor are alternatives.
fn selector(cells: &[String]) -> Result<Selector> {
    let mut levels: IndexMap<String, Vec<Value>> = IndexMap::new();
    for cell in cells {
        let (factor, level) = cell.split_once('=').ok_or_else(|| {
            Failure::input(format!("--cell {cell} is not of the form FACTOR=LEVEL, such as protocol=h2"))
        })?;
        levels.entry(factor.trim().to_owned()).or_default().push(level.trim().into());
    }
    Ok(Selector(levels.into_iter().map(|(factor, any)| (factor, Value::Array(any))).collect()))
}

/// The cells of all runs without A/A twins.
fn cells(runs: &[(String, Run)]) -> impl Iterator<Item = &Cell> {
    runs.iter().flat_map(|(_, run)| &run.manifest().plan.cells).filter(|cell| cell.twin_of.is_none())
}

/// One series per label of a cell.
fn series(runs: &[(String, Run)], metric: &Metric, wanted: &Selector) -> Vec<Series> {
    let labels: IndexSet<String> = cells(runs).filter(|cell| wanted.matches(cell)).map(Cell::label).collect();
    let of = |label: String| {
        let mut before: Option<&Cell> = None;
        let (mut levels, mut changed) = (Vec::new(), Vec::new());
        for (_, run) in runs {
            let plan = &run.manifest().plan;
            let is_own = |cell: &Cell| cell.twin_of.is_none() && cell.label() == label;
            let Some(number) = plan.cells.iter().position(is_own) else {
                levels.push(None);
                changed.push(Vec::new());
                continue;
            };
            let cell = &plan.cells[number];
            levels.push(level(plan, run.trials(), number, metric));
            let settings = before.map(|before| differences(&before.job, &cell.job)).unwrap_or_default();
            changed.push(settings.into_iter().map(|difference| difference.field).collect());
            before = Some(cell);
        }
        let changes = changes(&levels, 1);
        Series { label, levels, changed, changes }
    };
    labels.into_iter().map(of).collect()
}

/// The runs with what differs from the run before.
fn described(runs: &[(String, Run)]) -> Vec<HistoryRun> {
    let mut before: Option<&Environment> = None;
    let mut described = Vec::with_capacity(runs.len());
    for (name, run) in runs {
        let manifest = run.manifest();
        let differ = before.map(|before| differences(before, &manifest.environment)).unwrap_or_default();
        let fields = differ.into_iter().map(|difference| difference.field);
        described.push(HistoryRun {
            run: name.clone(),
            created: manifest.created.clone(),
            changed: fields.filter(|field| FACTS.contains(&field.as_str())).collect(),
        });
        before = Some(&manifest.environment);
    }
    described
}
