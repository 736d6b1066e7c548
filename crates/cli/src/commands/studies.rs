//! `wirelab studies`: lists, prints and checks studies.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::json;
use wirelab_model::metric::Metric;
use wirelab_model::plan::Plan;
use wirelab_model::settings::Settings;
use wirelab_model::study::Study;
use wirelab_plan::{BareBound, StudyError};

use crate::args::{StudiesArgs, StudiesCommand};
use crate::failure::{Failure, Result};
use crate::output::{print, print_document, print_json};
use crate::{labs, stderr};

/// The JSON Schema of study files.
pub const SCHEMA: &str = include_str!("../../../../contract/schema/study.schema.json");

/// The line of the built-in studies that tells editors their schema (Taplo), and the line for a copy.
const IN_CHECKOUT: &str = "#:schema ../../contract/schema/study.schema.json\n";
const BESIDE: &str = "#:schema ./study.schema.json\n";

/// Runs the subcommand.
pub fn studies(args: &StudiesArgs) -> Result {
    match &args.command {
        None => list(args.json),
        Some(StudiesCommand::Show { study, readme, name }) => {
            let builtin = wirelab_plan::find(study).map_err(Failure::input)?;
            match name {
                Some(name) => print_document(&renamed(builtin.text, builtin.name, name)?),
                None if *readme => print_document(builtin.readme),
                None => print_document(&copied(builtin.text)),
            }
        }
        Some(StudiesCommand::Check { study, preset }) => check(study, preset.as_deref(), args.json),
        Some(StudiesCommand::Keys) => keys(args.json),
        Some(StudiesCommand::Schema) => print_document(SCHEMA),
    }
}

/// A study with its source text, which error messages refer to by line and column.
pub struct Source {
    study: Study,
    name: String,
    text: String,
    /// Whether it is a file of the user, who can correct it.
    is_file: bool,
}

/// Reads a built-in study by name, or a study file by path.
pub fn read(name: &str) -> Result<Source> {
    let text = text(name)?;
    let study = parse(&text, name).map_err(Failure::input)?;
    let is_file = wirelab_plan::builtin().iter().all(|builtin| builtin.text != text);
    Ok(Source { study, name: name.to_owned(), text, is_file })
}

/// Reads a study with all checks that need no machine.
pub fn parse(text: &str, file: &str) -> std::result::Result<Study, StudyError> {
    wirelab_plan::parse_and(text, file, &|study| known(study).map(drop))
}

/// The text of a built-in study, or of a study file by path.
pub fn text(name: &str) -> Result<String> {
    let is_path = name.contains('/') || name.ends_with(".toml");
    if !is_path {
        match wirelab_plan::find(name) {
            Ok(builtin) => return Ok(builtin.text.to_owned()),
            Err(error) if !Path::new(name).exists() => return Err(Failure::input(error)),
            Err(_) => {}
        }
    }
    let wrong = |error: std::io::Error| Failure::input(format!("cannot read the study file {name}: {error}"));
    // Refuses directories, devices and huge files, which could block or exhaust the memory.
    let facts = std::fs::metadata(name).map_err(wrong)?;
    if !facts.is_file() || facts.len() > wirelab_plan::MAX_TEXT as u64 {
        return Err(Failure::input(format!("{name} is not a study file, which is a regular file of at most 1 MiB")));
    }
    std::fs::read_to_string(name).map_err(wrong)
}

/// Every metric that the study can compare.
pub fn metrics(study: &Study) -> Vec<&'static Metric> {
    let of_endpoints = wirelab_stats::METRICS.iter().chain(wirelab_stats::TRANSPORT_METRICS);
    let of_timeline = study.timeline.iter().flat_map(wirelab_stats::timeline::metrics);
    of_endpoints
        .chain(of_timeline)
        .chain(wirelab_stats::PAGE_METRICS)
        .chain(wirelab_stats::CLIENTS_METRICS)
        .chain(&wirelab_run::PREPARATION_METRICS)
        .chain(wirelab_observe::metrics())
        .chain(&wirelab_lab::METRICS)
        .collect()
}

/// Checks the names of labs, observers and metrics, which `wirelab_plan` does not know, and the units of bounds.
/// Returns bounds without a unit.
fn known(study: &Study) -> std::result::Result<Vec<BareBound>, StudyError> {
    let labs: Vec<_> = crate::labs::LABS.iter().map(|lab| lab.name).collect();
    let observers: Vec<_> = wirelab_observe::OBSERVERS.iter().map(|about| about.name).collect();
    let metrics = metrics(study);
    let known: Vec<_> = metrics.iter().map(|metric| metric.name).collect();
    let names = wirelab_plan::Names { labs: &labs, observers: &observers, metrics: &known };
    wirelab_plan::check_names(study, &names)?;
    wirelab_plan::check_bounds(study, &metrics)
}

impl Source {
    /// A study that wirelab wrote itself.
    pub fn generated(name: &str, text: String) -> Result<Self> {
        let study = wirelab_plan::parse(&text, name).map_err(Failure::input)?;
        Ok(Self { study, name: name.to_owned(), text, is_file: false })
    }

    /// Changes the study beyond its text.
    pub fn with(mut self, change: impl FnOnce(&mut Study)) -> Self {
        change(&mut self.study);
        self
    }

    /// Adds the placements of these files.
    pub fn with_placements(mut self, files: &[PathBuf]) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Placements {
            placements: IndexMap<String, Settings>,
        }
        for file in files {
            let text = std::fs::read_to_string(file).map_err(|error| {
                Failure::input(format!("--placements: cannot read the file {}: {error}", file.display()))
            })?;
            let read: Placements = wirelab_plan::read(&text, &file.display().to_string()).map_err(Failure::input)?;
            self.study.placements.extend(read.placements);
        }
        Ok(self)
    }

    /// Checks names and bounds, and applies preset and settings.
    pub fn resolve(self, preset: Option<&str>, sets: &[String]) -> Result<Study> {
        let bare = known(&self.study).map_err(|error| Failure::input(error.located(&self.text, &self.name)))?;
        for bound in bare.iter().filter(|_| self.is_file) {
            stderr::write_line(format_args!("! {bound}"));
        }
        wirelab_plan::resolve(self.study, preset, sets).map_err(Failure::input)
    }
}

/// The text of a built-in study for another folder: `wirelab studies schema` writes the schema beside it.
fn copied(text: &str) -> String {
    text.replacen(IN_CHECKOUT, BESIDE, 1)
}

/// The text of a study with another name.
pub fn renamed(text: &str, name: &str, new: &str) -> Result<String> {
    let text = copied(text).replacen(&format!("name = {name:?}"), &format!("name = {new:?}"), 1);
    wirelab_plan::parse(&text, "--name").map_err(Failure::input)?;
    Ok(text)
}

fn list(as_json: bool) -> Result {
    let studies = wirelab_plan::builtin();
    let mut text = String::new();
    let mut rows = Vec::new();
    for builtin in studies {
        let study = wirelab_plan::parse(builtin.text, builtin.name).map_err(Failure::failed)?;
        let _ = writeln!(text, "{:<14} {}", study.name, study.title);
        for (name, preset) in &study.presets {
            let _ = writeln!(text, "  --preset {name:<10} {}", preset.about);
        }
        rows.push(json!({
            "name": study.name, "title": study.title, "question": study.question,
            "presets": study.presets.iter().map(|(name, preset)| (name.clone(), preset.about.clone().into())).collect::<serde_json::Map<_, _>>(),
        }));
    }
    if as_json { print_json(&rows) } else { print(&text) }
}

fn check(name: &str, preset: Option<&str>, as_json: bool) -> Result {
    let study = read(name)?.resolve(preset, &[])?;
    let plan = plan(&study).map_err(Failure::input)?;
    if as_json {
        return print_json(&plan);
    }
    warn_of_short_windows(&study, &plan);
    print(&format!("{name} is valid: {}", size(&study, &plan)))
}

/// The plan of a resolved study, without the endpoints of this machine.
///
/// # Errors
/// If a cell cannot be planned.
pub fn plan(study: &Study) -> std::result::Result<Plan, StudyError> {
    // An unknown lab is refused when it is opened.
    let defaults = labs::find(&study.lab).map(|lab| (lab.defaults)()).unwrap_or_default();
    wirelab_plan::plan_in(study, &defaults).map(|(plan, _)| plan)
}

/// The size and the expected duration of a plan, in lines.
pub fn size(study: &Study, plan: &Plan) -> String {
    let mut text = format!(
        "{} cells, {} comparisons, {} to {} blocks.\n{}\n",
        plan.cells.len(),
        plan.comparisons.len(),
        plan.min_blocks,
        plan.max_blocks,
        wirelab_plan::expected(plan, [study.planted, study.references], &[])
    );
    if wirelab_plan::takes_installed(study) {
        text.push_str(
            "`installed` is counted as one endpoint; `wirelab run --plan` shows the cells on this machine.\n",
        );
    }
    text
}

/// Prints which percentiles the windows are too short for.
pub fn warn_of_short_windows(study: &Study, plan: &Plan) {
    for short in wirelab_plan::short_windows(study, plan) {
        stderr::write_line(format_args!("! {short}"));
    }
}

fn keys(as_json: bool) -> Result {
    let keys = Settings::documented_keys();
    if as_json {
        return print_json(
            &keys.iter().map(|(name, about)| json!({ "key": name, "about": about })).collect::<Vec<_>>(),
        );
    }
    let mut text = String::new();
    for (name, about) in keys {
        let _ = writeln!(text, "{name}\n    {}", about.replace('\n', "\n    "));
    }
    print(&text)
}
