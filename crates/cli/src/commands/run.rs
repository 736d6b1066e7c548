//! `wirelab run` and `wirelab resume`.

use std::fmt::Write;
use std::net::SocketAddr;

use wirelab_lab::endpoints::Found;
use wirelab_model::journal::StopReason;
use wirelab_model::plan::Plan;
use wirelab_model::study::Artifact;
use wirelab_model::warning::Warning;
use wirelab_observe::Exporter;
use wirelab_observe::film::ABOUT as FILM;
use wirelab_plan::polite;
use wirelab_run::{Create, Run, RunError};

use crate::args::{Keep, ResumeArgs, RunArgs, ShowArgs};
use crate::browsers;
use crate::candidates::candidates;
use crate::commands::{report, studies};
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{print, print_json};
use crate::place::{newest, program};
use crate::progress::Display;
use crate::{log, stderr};

/// Runs a study in a new run folder.
pub fn run(args: &RunArgs) -> Result {
    let sets: Vec<_> =
        args.sets.iter().cloned().chain(args.clients.map(|clients| format!("clients={clients}"))).collect();
    let mut study = studies::read(&args.study)?.resolve(args.preset.as_deref(), &sets)?;
    if let Some(lab) = &args.lab {
        wirelab_plan::move_to(&mut study, lab);
    }
    if !args.observe.is_empty() {
        let defaults = || wirelab_observe::default_set().into_iter().map(str::to_owned).collect();
        let observers = study.observers.get_or_insert_with(defaults);
        for name in &args.observe {
            if !wirelab_observe::OBSERVERS.iter().any(|about| about.name == name) {
                return Err(Failure::input(format!("--observe {name}: {}", wirelab_observe::unknown(name))));
            }
            if !observers.contains(name) {
                observers.push(name.clone());
            }
        }
        // A filmed trial measures none of the metrics that the study compares.
        if args.observe.iter().any(|name| name == FILM.name) {
            study.compare.primary.clear();
            study.compare.metrics = FILM.metrics.iter().map(|metric| metric.name.to_owned()).collect();
        }
    }
    for keep in &args.keep {
        let artifact = match keep {
            Keep::Pcap => Artifact::Pcap,
            Keep::Qlog => Artifact::Qlog,
            Keep::Keys => Artifact::Keys,
            Keep::Netlog => Artifact::Netlog,
            Keep::Har => Artifact::Har,
        };
        if !study.keep.contains(&artifact) {
            study.keep.push(artifact);
        }
    }
    study.metrics = args.metrics.or(study.metrics);
    let mut endpoints = wirelab_lab::endpoints::discover(&program()?);
    // An unknown lab is refused when it is opened.
    let starts_endpoints = crate::labs::find(&study.lab).is_ok_and(|lab| lab.starts_endpoints);
    let (study, mut warnings) = wirelab_plan::with_installed(study, &mut || candidates(&endpoints, starts_endpoints))
        .map_err(Failure::input)?;
    endpoints.extend(browsers::endpoints(&program()?));
    let (study, more) = wirelab_plan::only_installed(study, &mut |name| unusable(&endpoints, name, starts_endpoints))
        .map_err(Failure::input)?;
    warnings.extend(more);
    let name = study.lab.clone();
    let (study, mut plan, more) =
        wirelab_plan::placed(study, &|job| crate::labs::refusal(&name, job)).map_err(Failure::input)?;
    warnings.extend(more);
    if !args.i_may_load_these_hosts {
        polite::remove_twins(&mut plan);
    }
    if args.plan {
        if let Some(why) = polite::excess(&plan).filter(|_| !args.i_may_load_these_hosts) {
            stderr::write_line(format_args!("! Without --i-may-load-these-hosts this plan is refused: {why}."));
        }
        return show_plan(&plan, &warnings, args.show.json);
    }
    let mut lab = crate::labs::open(&study.lab, &program()?).map_err(Failure::input)?;
    let exporter = exporter(study.metrics)?;
    let mut run = Run::create(Create {
        may_load: args.i_may_load_these_hosts,
        parent: &args.out,
        study,
        preset: args.preset.clone(),
        set: sets,
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
    execute(&mut run, lab.as_mut(), &args.show)
}

/// Starts the exporter for Prometheus, if the study has an address for it.
fn exporter(address: Option<SocketAddr>) -> Result<Option<Exporter>> {
    let Some(address) = address else { return Ok(None) };
    let exporter = Exporter::start(address).map_err(|error| Failure::input(error.to_string()))?;
    stderr::write_line(format_args!("For Prometheus: http://{}/metrics", exporter.address()));
    Ok(Some(exporter))
}

/// The reason why an endpoint cannot be used; `None` if it can. In a lab that starts no endpoint, a folder suffices.
fn unusable(endpoints: &[Found], name: &str, starts_endpoints: bool) -> Option<String> {
    let Some(found) = endpoints.iter().find(|found| found.name == name) else {
        return Some(wirelab_lab::endpoints::unknown(name, endpoints));
    };
    match &found.endpoint {
        Ok(_) if !starts_endpoints => None,
        Ok(endpoint) => wirelab_lab::endpoints::describe(endpoint).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

/// Resumes a run.
pub fn resume(args: &ResumeArgs) -> Result {
    let folder = match &args.run {
        Some(folder) => folder.clone(),
        None => newest(&args.out)?,
    };
    let mut run = Run::reopen(&folder, args.force).map_err(Failure::failed)?;
    let mut lab = crate::labs::open(&run.manifest().lab, &program()?).map_err(Failure::failed)?;
    exporter(run.manifest().study.metrics)?.into_iter().for_each(|exporter| run.set_exporter(exporter));
    execute(&mut run, lab.as_mut(), &args.show)
}

/// Runs the rest of the plan, writes `report.html` and prints the report.
fn execute(run: &mut Run, lab: &mut dyn wirelab_lab::Lab, show: &ShowArgs) -> Result {
    let stop = stop_flag()?;
    log::keep_in(run.folder())?;
    let result = {
        let mut display = Display::new(show.quiet);
        run.execute(lab, &mut |progress| display.show(progress), &stop)
    };
    let folder = run.folder().to_owned();
    let resume = format!("wirelab resume {}", folder.display());
    let reason = result.map_err(|error| {
        Failure::failed(format!("{error}\nAll completed trials are in {}. Resume with: {resume}", folder.display()))
    })?;
    let page = report::write_html(&folder)?;
    if show.json {
        print(&report::render(&folder, crate::args::Format::Json)?)?;
    } else {
        print(&report::render(&folder, crate::args::Format::Terminal)?)?;
        print(&format!("\nReport: {}\n", page.display()))?;
    }
    match reason {
        StopReason::Interrupted => {
            Err(Failure::interrupted(format!("interrupted; all completed trials are kept. Resume with: {resume}")))
        }
        StopReason::Hopeless => Err(Failure::failed(format!(
            "every trial of the first block failed, so the run was stopped. The logs are in {}",
            folder.join("logs").display()
        ))),
        StopReason::Precise | StopReason::MaxBlocks | StopReason::Budget => Ok(()),
    }
}

/// Prints cells, comparisons, blocks and warnings of a plan.
fn show_plan(plan: &Plan, warnings: &[Warning], json: bool) -> Result {
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
    for warning in warnings {
        let _ = writeln!(text, "! {} {}", warning.meaning(), warning.remedy());
    }
    print(&text)
}
