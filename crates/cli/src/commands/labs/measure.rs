//! `wirelab labs measure`: measures links and paths without a run.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::Arc;

use serde_json::Value;
use wirelab_lab::guard::Guard;
use wirelab_lab::{Folder, Lab, LabInfo, Opening, Preparation, PreparedLab, netns};
use wirelab_model::emulation::emulating;
use wirelab_model::journal::LinkCheck;
use wirelab_model::link::PRESETS;
use wirelab_model::path::{Measured, PathReading};
use wirelab_model::plan::{Job, Plan};
use wirelab_model::study::Study;

use crate::args::MeasureArgs;
use crate::commands::studies::{self, Source};
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::labs;
use crate::output::{print, print_json};
use crate::place::program;
use crate::stderr;

/// Measures, and prints what was found.
pub(super) fn measure(args: &MeasureArgs, as_json: bool) -> Result {
    let usual = if args.hosts.is_some() { wirelab_hosts::INFO.name } else { netns::INFO.name };
    let info = labs::find(args.lab.as_deref().unwrap_or(usual)).map_err(Failure::input)?;
    if let Some(name) = &args.as_placement {
        check_name(name)?;
    }
    let study = study(args, info)?;
    let (plan, _) = wirelab_plan::plan_in(&study, &(info.defaults)()).map_err(Failure::input)?;
    let own = program()?;
    let opening = Opening { hosts: args.hosts.as_deref(), ..Opening::by(&own) };
    let mut lab = (info.open)(&opening).map_err(Failure::input)?;
    let checks = checks(lab.as_mut(), &study, &plan, args.times)?;
    if as_json {
        let links = checks.iter().flat_map(|check| &check.links).map(serde_json::to_value);
        let paths = checks.iter().flat_map(|check| &check.paths).map(serde_json::to_value);
        let all: serde_json::Result<Vec<Value>> = links.chain(paths).collect();
        print_json(&all.expect("measurements always serialise"))?;
    } else {
        if checks.iter().any(|check| !check.links.is_empty()) {
            print(&wirelab_report::links(&checks))?;
        }
        if checks.iter().any(|check| !check.paths.is_empty()) {
            print(&wirelab_report::paths(&checks))?;
        }
    }
    if let Some(name) = &args.as_placement {
        write_placement(name, info, &checks)?;
    }
    judge(&checks)
}

/// The study with the links to measure.
fn study(args: &MeasureArgs, info: &LabInfo) -> Result<Study> {
    let source = match &args.study {
        Some(name) => studies::read(name)?,
        None => Source::generated("the built-in links", links_of(info))?,
    };
    source.with_placements(&args.placements)?.resolve(None, &args.sets)
}

/// A study whose only factor of interest is the link: every link that has a name, or the lab's usual placement.
fn links_of(info: &LabInfo) -> String {
    let placement = match (info.defaults)().placement {
        Some(usual) => format!("{usual:?}"),
        None => PRESETS.map(|preset| format!("{:?}", preset.name)).join(", "),
    };
    format!(
        "name = 'links'\ntitle = 'Links'\nquestion = 'Are the links in tolerance?'\nlab = '{}'\n[factors]\nprotocol = \
         ['udp']\nplacement = [{placement}]\n[compare]\nfactor = 'protocol'\nbaseline = 'udp'\n",
        info.name
    )
}

/// Measures the links of a plan several times.
fn checks(lab: &mut dyn Lab, study: &Study, plan: &Plan, times: u32) -> Result<Vec<LinkCheck>> {
    let all = || plan.cells.iter().map(|cell| &cell.job);
    let jobs: Vec<&Job> = all().filter(|job| lab.check(job).is_ok()).collect();
    if jobs.is_empty() {
        // The lab explains why.
        all().try_for_each(|job| lab.check(job)).map_err(Failure::input)?;
    }
    let name = lab.info().name;
    let guard = Arc::new(Guard::start(&program()?).map_err(Failure::failed)?);
    let folder = Folder::create(&guard).map_err(Failure::failed)?;
    let stop = stop_flag()?;
    let preparation = Preparation { jobs: &jobs, folder: folder.path(), stop: &stop, metrics: None };
    let mut lab = lab.prepare(&preparation).map_err(Failure::failed)?;
    let linked: Vec<&Job> = jobs.iter().copied().filter(|job| job.topology.link.is_some()).collect();
    let mut checks = Vec::new();
    for block in 0..times {
        checks.push(check(lab.as_mut(), study, &linked, &jobs, block)?);
    }
    if checks.iter().all(|check| check.links.is_empty() && check.paths.is_empty()) {
        let message =
            format!("the lab `{name}` has no links to measure; use `--lab netns`, or `--lab hosts` with --hosts");
        return Err(Failure::input(message));
    }
    Ok(checks)
}

fn check(lab: &mut dyn PreparedLab, study: &Study, linked: &[&Job], jobs: &[&Job], block: u32) -> Result<LinkCheck> {
    let links = lab.measure_links(linked, study.seed.wrapping_add(u64::from(block))).map_err(Failure::failed)?;
    let paths = lab.measure_paths(jobs, study.link_load);
    Ok(LinkCheck { block, at: String::new(), links, paths })
}

/// Fails if a link is out of tolerance, or a path was not measured.
fn judge(checks: &[LinkCheck]) -> Result {
    let links = || checks.iter().flat_map(|check| &check.links);
    let misses: Vec<_> = links().filter_map(|record| Some((&record.placement, record.miss.as_ref()?))).collect();
    if let Some((placement, miss)) = misses.first() {
        return Err(Failure::failed(format!(
            "{} of {} measurements of links are out of tolerance. The first one, `{placement}`: {miss}. Stop other work on this \
             machine, or choose a lower rate",
            misses.len(),
            links().count()
        )));
    }
    let paths = || checks.iter().flat_map(|check| &check.paths);
    let missing: Vec<_> = paths()
        .filter_map(|record| match &record.reading {
            Measured::Is(_) => None,
            Measured::Missing(why) => Some((record.label(), why)),
        })
        .collect();
    match missing.first() {
        None => Ok(()),
        Some((path, why)) => Err(Failure::failed(format!(
            "{} of {} measurements of paths failed. The first one, `{path}`: {why}",
            missing.len(),
            paths().count()
        ))),
    }
}

/// The name becomes a key in TOML and the name of a file.
fn check_name(name: &str) -> Result {
    let is_usable = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(is_usable) && PRESETS.iter().all(|preset| preset.name != name) {
        return Ok(());
    }
    Err(Failure::input(format!(
        "--as-placement `{name}`: a name has letters, digits, hyphens and underscores, and is not that of a link that \
         wirelab has"
    )))
}

/// Writes the placement that emulates the measured path to a new file.
fn write_placement(name: &str, info: &LabInfo, checks: &[LinkCheck]) -> Result {
    let mut labels: Vec<String> = checks.iter().flat_map(|check| &check.paths).map(|record| record.label()).collect();
    labels.sort_unstable();
    labels.dedup();
    let [label] = &labels[..] else {
        return Err(Failure::input(format!(
            "--as-placement {name}: a placement is written from one path between hosts, but {} were measured; choose one \
             with --hosts and --set placement=…",
            labels.len()
        )));
    };
    let readings: Vec<&PathReading> =
        checks.iter().flat_map(|check| &check.paths).filter_map(|record| record.reading.value()).collect();
    if readings.is_empty() {
        return Ok(());
    }
    let file = format!("{name}.toml");
    let text = placement(name, &file, &format!("`{label}` in the lab `{}`", info.name), &readings);
    let written = OpenOptions::new().write(true).create_new(true).open(&file);
    written.and_then(|mut to| to.write_all(text.as_bytes())).map_err(|error| {
        Failure::failed(format!("cannot write {file}: {error}; remove it first, or choose another name"))
    })?;
    stderr::write_line(format_args!("Placement written: {file}"));
    Ok(())
}

/// The content of the file.
fn placement(name: &str, file: &str, measured: &str, readings: &[&PathReading]) -> String {
    let settings = emulating(readings);
    let mut text = format!(
        "# Measured {measured}. To emulate it:\n# wirelab run quick --lab netns --placements {file} --set \
         placement={name}\n[placements.{name}]\n{}",
        toml::to_string(&settings).expect("settings always serialise")
    );
    let loads = readings.iter().flat_map(|reading| reading.directions().map(|(_, direction)| &direction.load));
    let not_measured = loads.clone().find_map(|load| match load {
        Measured::Is(_) => None,
        Measured::Missing(why) => Some(format!("not measured: {why}")),
    });
    let most = loads.filter_map(Measured::value).map(|load| load.arrived).fold(0.0, f64::max);
    if settings.bandwidth.is_none() {
        let why = not_measured.unwrap_or_else(|| format!("above the allowed load, {:.1} Mbit/s arrived", most / 1e6));
        let _ = writeln!(text, "# bandwidth is not limited; {why}");
    }
    text
}
