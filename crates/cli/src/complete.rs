//! Completions of the shell: the script asks this program, which knows studies, endpoints, settings and labs by name.

use std::ffi::OsStr;

use clap::{Arg, Command, CommandFactory};
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use wirelab_model::settings::Settings;
use wirelab_model::study::Study;

use crate::args::Cli;
use crate::{carried, labs, place};

/// Environment variable with which the script asks for completions.
pub const VARIABLE: &str = "WIRELAB_COMPLETE";

/// Answers and exits, if the script of a shell asks.
pub fn answer() {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// The public commands, with the values of their arguments.
pub fn command() -> Command {
    let all = Cli::command();
    let public = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned().map(with_values);
    Command::new("wirelab").version(env!("WIRELAB_VERSION")).propagate_version(true).subcommands(public)
}

fn with_values(command: Command) -> Command {
    command.mut_subcommands(with_values).mut_args(|argument: Arg| match argument.get_id().as_str() {
        "study" => argument.add(ArgValueCompleter::new(study)),
        "names" | "except" | "base" | "head" => argument.add(ArgValueCandidates::new(endpoints)),
        "sets" => argument.add(ArgValueCompleter::new(key)),
        "lab" => argument.add(ArgValueCandidates::new(|| named(labs::LABS.iter().map(|lab| lab.name)))),
        "observe" => {
            argument.add(ArgValueCandidates::new(|| named(wirelab_observe::OBSERVERS.iter().map(|about| about.name))))
        }
        "preset" => {
            argument.add(ArgValueCandidates::new(|| named(studies().flat_map(|study| study.presets.into_keys()))))
        }
        _ => argument,
    })
}

fn named(names: impl Iterator<Item = impl Into<String>>) -> Vec<CompletionCandidate> {
    let mut names: Vec<String> = names.map(Into::into).collect();
    names.sort();
    names.dedup();
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn studies() -> impl Iterator<Item = Study> {
    wirelab_plan::builtin().iter().filter_map(|builtin| wirelab_plan::parse(builtin.text, builtin.name).ok())
}

/// Built-in studies, and files.
fn study(current: &OsStr) -> Vec<CompletionCandidate> {
    let begun = current.to_string_lossy();
    let mut found =
        named(wirelab_plan::builtin().iter().map(|study| study.name).filter(|name| name.starts_with(&*begun)));
    found.extend(PathCompleter::file().complete(current));
    found
}

/// Endpoints, usable or not.
fn endpoints() -> Vec<CompletionCandidate> {
    let Ok(program) = place::program() else { return Vec::new() };
    let all = wirelab_lab::endpoints::discover(&program, carried::endpoints());
    named(all.into_iter().map(|found| found.name))
}

/// The settings and the factors of the built-in studies, for `--set KEY=VALUE`.
fn key(current: &OsStr) -> Vec<CompletionCandidate> {
    let begun = current.to_string_lossy();
    let settings = Settings::documented_keys().into_iter().map(|(key, _)| key.to_string());
    let keys = settings.chain(studies().flat_map(|study| study.factors.into_keys()));
    named(keys.filter(|key| key.starts_with(&*begun)).map(|key| format!("{key}=")))
}
