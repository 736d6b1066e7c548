//! `wirelab report`: a pure function of the run folder.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use wirelab_model::film::Developed;
use wirelab_model::journal::{StopReason, TrialRecord};
use wirelab_model::metric::Value;
use wirelab_model::outcome::Outcome;
use wirelab_model::page::PageLoad;
use wirelab_model::plan::{Cell, Work};
use wirelab_model::request::WrittenRequest;
use wirelab_model::sample::Sample;
use wirelab_report::{Extent, Input, JudgedClaim, NoRequests, OfRequest, Pooled};
use wirelab_run::Run;
use wirelab_stats::Moment;
use wirelab_stats::analysis::{ClaimVerdict, RequirementResult};
use wirelab_stats::client_share::attribute;
use wirelab_stats::link_drift::link_drift;
use wirelab_stats::planted::planted;

use crate::args::{FailOn, Format, ReportArgs};
use crate::commands::studies;
use crate::failure::{Failure, Result};
use crate::output::{colour, print, print_document, width};
use crate::place::run_folder;

/// Prints the report of a run.
pub fn report(args: &ReportArgs) -> Result {
    if let Some(FailOn::Violated(that)) = args.fail_on.iter().find(|one| matches!(one, FailOn::Violated(_))) {
        return Err(Failure::input(format!(
            "a requirement belongs to the run, and is chosen before its data are known: put `{that}` into `[[require]]` of \
             the study, or give --fail-on to `wirelab run`"
        )));
    }
    let folder = run_folder(args.run.as_deref(), &args.out)?;
    let text = with_input(&folder, |input| formatted(input, args.format, extent(args.full)))?;
    print_report(&text, args.format)?;
    if let Some(summary) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|_| args.format == Format::Github) {
        append(Path::new(&summary), &render(&folder, Format::Markdown)?)?;
    }
    judge(&folder, &args.fail_on)
}

/// Appends a text to a file, which several steps of a job share.
fn append(path: &Path, text: &str) -> Result {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::failed(format!("cannot append the report to {}: {error}", path.display())))
}

/// Fails if a requirement of the run is not met, or for the other conditions of `--fail-on`.
pub fn judge(folder: &Path, fail_on: &[FailOn]) -> Result {
    let unmet = with_input(folder, |input| {
        let of_requirements = match fail_on.contains(&FailOn::Inconclusive) {
            true => wirelab_report::unmet_requirements(input),
            false => wirelab_report::failed_requirements(input),
        };
        let claims = input.analysis.claims.iter().filter(|claim| claim.verdict == ClaimVerdict::DoesNotHold);
        let claims = claims.map(|claim| format!("the claim {} does not hold: {}", claim.id, claim.text));
        let claims = claims.filter(|_| fail_on.contains(&FailOn::Claims));
        of_requirements.into_iter().chain(claims).collect::<Vec<_>>()
    })?;
    if unmet.is_empty() {
        return Ok(());
    }
    Err(Failure::unmet(format!("the run does not meet what is required of it.\n{}", unmet.join("\n"))))
}

/// The results of the requirements of a run.
pub fn requirements(folder: &Path) -> Result<Vec<RequirementResult>> {
    with_input(folder, |input| input.analysis.requirements.clone())
}

/// The claims of a run with their verdicts.
pub fn claims(folder: &Path) -> Result<Vec<JudgedClaim>> {
    with_input(folder, wirelab_report::judged_claims)
}

/// Prints a report: text for people, or a document.
pub fn print_report(text: &str, format: Format) -> Result {
    if format == Format::Terminal { print(text) } else { print_document(text) }
}

/// Writes `report.html` to the run folder and returns its path.
pub fn write_html(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("report.html");
    let page = render(folder, Format::Html)?;
    std::fs::write(&path, page)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
    Ok(path)
}

/// The moment of a run.
const fn moment(stopped: Option<StopReason>) -> Moment {
    match stopped {
        Some(StopReason::Precise | StopReason::MaxBlocks | StopReason::Budget | StopReason::Hopeless) => Moment::Ended,
        Some(StopReason::Interrupted) | None => Moment::Underway,
    }
}

/// Whether a run has reached its planned end.
pub fn has_ended(run: &Run) -> bool {
    moment(run.stopped()) == Moment::Ended
}

/// Renders the report of a run folder in a format; in the terminal one page.
pub fn render(folder: &Path, format: Format) -> Result<String> {
    with_input(folder, |input| formatted(input, format, Extent::Brief))
}

/// Analyses a run folder.
fn with_input<T>(folder: &Path, then: impl FnOnce(&Input) -> T) -> Result<T> {
    let run = Run::open(folder).map_err(Failure::input)?;
    let integrity = run.integrity();
    let mut manifest = run.manifest().clone();
    manifest.warnings.extend(integrity.warnings());
    let metrics = studies::metrics(&manifest.study);
    let moment = moment(run.stopped());
    let mut analysis = wirelab_stats::analyse(&manifest.study, &manifest.plan, run.trials(), &metrics, moment);
    let planting = manifest.planted.as_ref();
    let judged = (&analysis.comparisons[..], moment);
    analysis.planted = planted(planting, &manifest.plan, run.trials(), run.planted(), judged);
    let records = [run.trials(), run.references()];
    attribute(&mut analysis, &manifest.plan, manifest.references.as_ref(), records, run.links());
    analysis.warnings.extend(link_drift(run.links()));
    let pooled = |cell| pooled(&run, cell);
    let by_request = |cell| by_request(&run, cell);
    let typical_load = |cell| typical_load(&run, cell);
    let typical_film = |cell| typical_film(&run, cell);
    let input = Input {
        manifest: &manifest,
        table: None,
        trials: run.trials(),
        links: run.links(),
        stopped: run.stopped(),
        integrity: Some(&integrity),
        analysis: &analysis,
        metrics: &metrics,
        pooled: &pooled,
        by_request: &by_request,
        typical_load: &typical_load,
        typical_film: &typical_film,
    };
    Ok(then(&input))
}

/// The length of a terminal report by the flag `--full`.
const fn extent(full: bool) -> Extent {
    if full { Extent::Full } else { Extent::Brief }
}

/// Renders a report in a format. Only the terminal's has an extent.
pub fn formatted(input: &Input, format: Format, extent: Extent) -> String {
    match format {
        Format::Terminal => wirelab_report::terminal(input, width(), colour(), extent),
        Format::Markdown => wirelab_report::markdown(input),
        Format::Html => wirelab_report::html(input),
        Format::Latex => wirelab_report::latex(input),
        Format::Csv => wirelab_report::cells_csv(input),
        Format::Comparisons => wirelab_report::comparisons_csv(input),
        Format::Contests => wirelab_report::contests_csv(input),
        Format::Pairs => wirelab_report::pairs_csv(input),
        Format::Json => wirelab_report::json(input),
        Format::Junit => wirelab_report::junit(input),
        Format::Github => wirelab_report::github(input),
        Format::Gitlab => wirelab_report::openmetrics(input),
    }
}

/// The results of each request of the user in a cell. Empty with one request, and where records do not tell requests
/// apart.
fn by_request(run: &Run, cell: usize) -> Vec<OfRequest> {
    let requests = run.manifest().plan.cells.get(cell).map_or(&[][..], |cell| cell.job.own_requests());
    if requests.len() < 2 {
        return Vec::new();
    }
    let successful = |record: &&TrialRecord| record.trial.cell == cell && record.outcome == Outcome::Ok;
    let mut apart: Vec<Vec<Sample>> = vec![Vec::new(); requests.len()];
    for record in run.trials().iter().filter(successful) {
        for sample in run.samples(record).unwrap_or_default() {
            if let Some(own) = sample.request.and_then(|number| apart.get_mut(number as usize)) {
                own.push(sample);
            }
        }
    }
    if apart.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    let of = |(request, samples): (&WrittenRequest, Vec<Sample>)| {
        let succeeded = samples.iter().filter(|sample| sample.is_ok()).count();
        OfRequest {
            name: request.name(),
            weight: request.weight(),
            requests: succeeded as u64,
            failed: (samples.len() - succeeded) as u64,
            // No rate is shown, so that the length of the window does not matter.
            values: wirelab_stats::summarise(&samples, 1)
                .into_iter()
                .filter(|(metric, _)| metric.starts_with("response_"))
                .collect(),
        }
    };
    requests.iter().zip(apart).map(of).collect()
}

/// The most typical load of a cell: it belongs to the trial with the cell's median load event, and is nearest to that
/// median.
fn typical_load(run: &Run, cell: usize) -> Option<PageLoad> {
    let (median, record) = typical(run, cell, "page_onload")?;
    let loads = run.loads(record).ok()?;
    let distance = |load: &PageLoad| {
        let own = load.values.get("onload").and_then(Value::number);
        own.map_or(f64::INFINITY, |own| (own - median).abs())
    };
    loads.into_iter().min_by(|one, other| distance(one).total_cmp(&distance(other)))
}

/// The film of the trial with the cell's median Speed Index.
fn typical_film(run: &Run, cell: usize) -> Option<Developed> {
    let (_, record) = typical(run, cell, "page_speed_index")?;
    run.film(record).ok()?
}

/// The successful trial of a cell with the median of a metric, and that median.
fn typical<'a>(run: &'a Run, cell: usize, metric: &str) -> Option<(f64, &'a TrialRecord)> {
    let successful = |record: &&TrialRecord| record.trial.cell == cell && record.outcome == Outcome::Ok;
    let value = |record: &TrialRecord| record.values.get(metric).and_then(Value::number);
    let trials = run.trials().iter().filter(successful);
    let mut trials: Vec<_> = trials.filter_map(|record| Some((value(record)?, record))).collect();
    trials.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    trials.get(trials.len().checked_sub(1)? / 2).copied()
}

/// The response times of all successful requests in the successful trials of a cell; otherwise the reason for having
/// none.
fn pooled(run: &Run, cell: usize) -> std::result::Result<Pooled, NoRequests> {
    let is_page = |cell: &Cell| matches!(cell.job.work, Work::Page(_));
    if run.manifest().plan.cells.get(cell).is_some_and(is_page) {
        return Err(NoRequests::BrowserClient);
    }
    if run.is_archive() {
        return Err(NoRequests::Archive);
    }
    let successful = |record: &&TrialRecord| record.trial.cell == cell && record.outcome == Outcome::Ok;
    let mut trials = 0;
    let mut counts = BTreeMap::<u64, u64>::new();
    for record in run.trials().iter().filter(successful) {
        trials += 1;
        for sample in run.samples(record).map_err(NoRequests::unreadable)?.iter().filter(|sample| sample.is_ok()) {
            *counts.entry(sample.response_ns()).or_default() += 1;
        }
        if let Some(histograms) = run.histograms(record).map_err(NoRequests::unreadable)? {
            for (value, count) in wirelab_stats::response_counts(&histograms).map_err(NoRequests::unreadable)? {
                *counts.entry(value).or_default() += count;
            }
        }
    }
    Pooled::from_counts(trials, counts).ok_or(NoRequests::NoneSucceeded)
}
