//! `wirelab run` and `wirelab resume`.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use wirelab_lab::{Lab, Opening};
use wirelab_model::journal::StopReason;
use wirelab_model::plan::Plan;
use wirelab_model::requirement::Inconclusive;
use wirelab_model::settings::Settings;
use wirelab_model::study::{Artifact, Factor, Study};
use wirelab_model::warning::Warning;
use wirelab_observe::{Exporter, OBSERVERS};
use wirelab_plan::{Expected, polite};
use wirelab_run::{Additions, Create, Resolved, Run, RunError};

use crate::args::{FailOn, ResumeArgs, RunArgs, ShowArgs};
use crate::browsers;
use crate::commands::earlier::{earlier_runs, earlier_trials};
use crate::commands::sensitivity::{Sensitivity, sensitivity};
use crate::commands::{report, studies};
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{print, print_document, print_json};
use crate::place::{newest, program};
use crate::progress::Display;
use crate::visits::{self, Aim, What};
use crate::{carried, labs, log, stderr};

/// Makes a program the server of a study.
fn own_server(study: &mut Study, command: &str) -> Result {
    let words = shlex::split(command)
        .filter(|words| !words.is_empty())
        .ok_or_else(|| Failure::input(format!("--server '{command}' has no word, or a quote that is not closed")))?;
    let sets_server = |settings: &Settings| settings.server.is_some() || settings.server_command.is_some();
    let varies = study.factors.iter().find(|(name, factor)| match factor {
        Factor::Values(_) => *name == "server",
        Factor::Levels(levels) => levels.values().any(sets_server),
    });
    if let Some((name, _)) = varies {
        return Err(Failure::input(format!(
            "--server: the factor `{name}` sets the server, which would hide this; choose levels with --set {name}=…, or \
             change the study file"
        )));
    }
    (study.workload.server, study.workload.server_command) = (None, Some(words));
    Ok(())
}

/// Runs a study in a new run folder.
pub fn run(args: &RunArgs) -> Result {
    let sets: Vec<_> =
        args.sets.iter().cloned().chain(args.clients.map(|clients| format!("clients={clients}"))).collect();
    let source = studies::read(&args.study)?.with_placements(&args.placements)?;
    let mut study = source.resolve(args.preset.as_deref(), &sets)?;
    if let Some(command) = &args.server {
        own_server(&mut study, command)?;
    }
    start(study, &sets, args)
}

/// Runs a resolved study in a new run folder.
pub fn start(study: Study, sets: &[String], args: &RunArgs) -> Result {
    match prepare(study, sets, args)? {
        Some((mut run, mut lab)) => execute(&mut run, lab.as_mut(), &args.show, &args.fail_on),
        None => Ok(()),
    }
}

/// A finished run.
pub struct Measured {
    pub folder: PathBuf,
    pub end: End,
}

/// How a run ended.
pub enum End {
    /// With trials that can be compared.
    Complete,
    /// Every trial of the first block failed.
    Hopeless,
    /// A server that the user brought does not start.
    NotStarted(Failure),
}

/// Runs a resolved study in a new run folder, without printing a report.
///
/// # Errors
/// Also if the user interrupts the run.
pub fn measure(study: Study, sets: &[String], args: &RunArgs) -> Result<Measured> {
    let (mut run, mut lab) = prepare(study, sets, args)?.expect("only --plan has no run");
    let (folder, end) = perform(&mut run, lab.as_mut(), args.show.quiet)?;
    report::write_html(&folder)?;
    let end = match end {
        Err(error) => End::NotStarted(Failure::input(error)),
        Ok(StopReason::Interrupted) => return Err(interrupted(&folder)),
        Ok(StopReason::Hopeless) => End::Hopeless,
        Ok(StopReason::Precise | StopReason::MaxBlocks | StopReason::Budget) => End::Complete,
    };
    Ok(Measured { folder, end })
}

/// The new run folder of a study, and its lab; `None` after `--plan`.
fn prepare(mut study: Study, sets: &[String], args: &RunArgs) -> Result<Option<(Run, Box<dyn Lab>)>> {
    if let Some(name) = args.observe.iter().find(|name| !OBSERVERS.iter().any(|about| about.name == **name)) {
        return Err(Failure::input(format!("--observe {name}: {}", wirelab_observe::unknown(name))));
    }
    let keep = args.keep.iter().copied().map(Artifact::from).collect();
    require(&mut study, &args.fail_on)?;
    study.blocks.budget = args.max_duration.or(study.blocks.budget);
    let (lab, observers) = (args.lab.clone(), args.observe.clone());
    Additions { lab, observers, keep, metrics: args.metrics }.apply(&mut study);
    let (endpoints, browsers) =
        (wirelab_lab::endpoints::discover(&program()?, carried::endpoints()), browsers::endpoints(&program()?));
    // An unknown lab is refused when it is opened.
    let lab = labs::find(&study.lab).ok();
    let Resolved { study, plan, mut warnings, endpoints } =
        wirelab_run::resolve(study, endpoints, browsers, lab, args.i_may_load_these_hosts).map_err(Failure::input)?;
    if !wirelab_endpoint::OPTIMISED {
        warnings.push(Warning::NotOptimised);
    }
    studies::warn_of_short_windows(&study, &plan);
    let earlier = earlier_runs(&args.out, &study.lab);
    let expected = wirelab_plan::expected(&plan, [study.planted, study.references], &earlier_trials(&earlier));
    let sensitivity = sensitivity(&study, &plan, &earlier);
    drop(earlier);
    if args.plan {
        if let Some(why) = polite::excess(&plan).filter(|_| !args.i_may_load_these_hosts) {
            stderr::write_line(format_args!("! Without --i-may-load-these-hosts this plan is refused: {why}."));
        }
        return show_plan(&plan, &expected, sensitivity.as_ref(), &warnings, args.show.json).map(|()| None);
    }
    let own = program()?;
    let opening = Opening { hosts: args.hosts.as_deref(), ..Opening::by(&own) };
    let lab = labs::open(&study.lab, &opening).map_err(Failure::input)?;
    let exporter = exporter(study.metrics)?;
    // A plan that exceeds the limits by itself is refused below, with the reason.
    if !args.i_may_load_these_hosts && polite::excess(&plan).is_none() {
        let aims = polite::requests(&plan).into_iter();
        let aims = aims
            .map(|((host, protocol), count)| (Aim { host: host.to_owned(), what: What::Requests(protocol) }, count));
        visits::admit(&aims.collect())?;
    }
    let mut run = Run::create(Create {
        commit: option_env!("WIRELAB_COMMIT_OF_BUILD"),
        may_load: args.i_may_load_these_hosts,
        parent: &args.out,
        study,
        preset: args.preset.clone(),
        set: sets.to_vec(),
        plan,
        warnings,
        endpoints,
        lab: lab.as_ref(),
    })
    .map_err(|error| match error {
        RunError::Refused { .. } | RunError::Impolite { .. } => Failure::input(error),
        _ => Failure::failed(error),
    })?;
    exporter.into_iter().for_each(|exporter| run.set_exporter(exporter));
    if !args.show.quiet {
        stderr::write_line(format_args!("{expected}"));
        sensitivity.iter().for_each(|sensitivity| stderr::write_line(format_args!("{sensitivity}")));
    }
    Ok(Some((run, lab)))
}

/// Adds the requirements of `--fail-on` to a study.
fn require(study: &mut Study, fail_on: &[FailOn]) -> Result {
    let violated = fail_on.iter().filter_map(|one| match one {
        FailOn::Violated(that) => Some(that.clone()),
        FailOn::Inconclusive | FailOn::Claims => None,
    });
    let metrics = studies::metrics(study);
    wirelab_plan::require(study, violated.collect(), &metrics)
        .map_err(|error| Failure::input(format!("--fail-on: {error}")))?;
    if fail_on.contains(&FailOn::Inconclusive) {
        study.require.iter_mut().for_each(|requirement| requirement.inconclusive = Inconclusive::Fail);
    }
    Ok(())
}

/// Starts the exporter for Prometheus, if the study has an address for it.
fn exporter(address: Option<SocketAddr>) -> Result<Option<Exporter>> {
    let Some(address) = address else { return Ok(None) };
    let exporter = Exporter::start(address, None).map_err(|error| Failure::input(error.to_string()))?;
    stderr::write_line(format_args!("For Prometheus: http://{}/metrics", exporter.address()));
    Ok(Some(exporter))
}

/// Resumes a run.
pub fn resume(args: &ResumeArgs) -> Result {
    let folder = match &args.run {
        Some(folder) => folder.clone(),
        None => newest(&args.out)?,
    };
    let mut run = Run::reopen(&folder, args.force).map_err(Failure::failed)?;
    let own = program()?;
    let opening = Opening { resumed: Some(run.folder()), ..Opening::by(&own) };
    let mut lab = labs::open(&run.manifest().lab, &opening).map_err(Failure::failed)?;
    exporter(run.manifest().study.metrics)?.into_iter().for_each(|exporter| run.set_exporter(exporter));
    execute(&mut run, lab.as_mut(), &args.show, &[])
}

/// Runs the rest of the plan, writes `report.html` and prints the report.
fn execute(run: &mut Run, lab: &mut dyn Lab, show: &ShowArgs, fail_on: &[FailOn]) -> Result {
    let (folder, end) = perform(run, lab, show.quiet)?;
    let reason = end.map_err(Failure::input)?;
    let page = report::write_html(&folder)?;
    if show.json {
        print_document(&report::render(&folder, crate::args::Format::Json)?)?;
    } else {
        print(&report::render(&folder, crate::args::Format::Terminal)?)?;
        print(&format!("\nReport: {}\n", page.display()))?;
    }
    match reason {
        StopReason::Interrupted => Err(interrupted(&folder)),
        StopReason::Hopeless => Err(Failure::failed(format!(
            "every trial of the first block failed, so the run was stopped. The logs are in {}",
            folder.join("logs").display()
        ))),
        StopReason::Precise | StopReason::MaxBlocks | StopReason::Budget => report::judge(&folder, fail_on),
    }
}

/// Runs the rest of the plan. Returns the run folder, and why the run ended: an error is that of a server that the user
/// brought, and that does not start.
fn perform(
    run: &mut Run,
    lab: &mut dyn Lab,
    is_quiet: bool,
) -> Result<(PathBuf, std::result::Result<StopReason, RunError>)> {
    let stop = stop_flag()?;
    log::keep_in(run.folder())?;
    let result = {
        let mut display = Display::new(is_quiet);
        run.execute(lab, &mut |progress| display.show(progress), &stop)
    };
    let folder = run.folder().to_owned();
    match result {
        Ok(reason) => Ok((folder, Ok(reason))),
        Err(error @ RunError::ServerDoesNotStart { .. }) => Ok((folder, Err(error))),
        Err(error) => Err(Failure::failed(format!(
            "{error}\nAll completed trials are in {}. Resume with: {}",
            folder.display(),
            resuming(&folder)
        ))),
    }
}

fn interrupted(folder: &Path) -> Failure {
    Failure::interrupted(format!("interrupted; all completed trials are kept. Resume with: {}", resuming(folder)))
}

fn resuming(folder: &Path) -> String {
    format!("wirelab resume {}", folder.display())
}

/// Prints cells, comparisons, blocks and warnings of a plan.
fn show_plan(
    plan: &Plan,
    expected: &Expected,
    sensitivity: Option<&Sensitivity>,
    warnings: &[Warning],
    json: bool,
) -> Result {
    if json {
        return print_json(plan);
    }
    let mut text = String::new();
    for (number, cell) in plan.cells.iter().enumerate() {
        let _ = writeln!(text, "{number:>5}  {}", cell.label());
    }
    let budget = plan.budget.map_or_else(String::new, |budget| format!(", no new block after {budget}"));
    let _ = writeln!(
        text,
        "\n{} cells (A/A twins included), {} comparisons, {} to {} blocks of {} trials{budget}; seed {}.",
        plan.cells.len(),
        plan.comparisons.len(),
        plan.min_blocks,
        plan.max_blocks,
        plan.cells.len(),
        plan.seed
    );
    let _ = writeln!(text, "{expected}");
    let _ = match sensitivity {
        Some(sensitivity) => writeln!(text, "{sensitivity}"),
        None => writeln!(
            text,
            "No earlier run here shows the noise of this plan, and so the number of blocks that it needs."
        ),
    };
    for warning in warnings {
        let _ = writeln!(text, "! {} {}", warning.meaning(), warning.remedy());
    }
    print(&text)
}
