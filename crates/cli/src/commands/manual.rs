//! `wirelab completions` and `wirelab man`, from the declarations of `--help`.

mod page;

use std::path::Path;

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use wirelab_model::nearest::did_you_mean;

use self::page::page;
use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::{Failure, Result};
use crate::output::print_document;

/// The identifier of every argument that takes a study.
const STUDY: &str = "study";

/// Prints the completions for a shell.
pub fn completions(args: &CompletionsArgs) -> Result {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut completed(), "wirelab", &mut text);
    let text = String::from_utf8_lossy(&text);
    print_document(&if args.shell == Shell::Zsh { with_files(&text) } else { text.into_owned() })
}

/// The commands that completions offer: no internal commands, and the names of built-in studies.
fn completed() -> Command {
    let all = Cli::command();
    let public = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned().map(with_studies);
    Command::new("wirelab").version(env!("CARGO_PKG_VERSION")).propagate_version(true).subcommands(public)
}

/// Adds the built-in studies as values of every argument that takes a study.
fn with_studies(command: Command) -> Command {
    let takes_study = command.get_arguments().any(|argument| argument.get_id() == STUDY);
    let command = command.mut_subcommands(with_studies);
    if takes_study {
        command.mut_arg(STUDY, |argument| argument.value_parser(PossibleValuesParser::new(studies())))
    } else {
        command
    }
}

fn studies() -> impl Iterator<Item = &'static str> {
    wirelab_plan::builtin().iter().map(|study| study.name)
}

/// Completions for zsh offer either values or files; an argument that takes a study accepts both.
fn with_files(text: &str) -> String {
    let names = studies().collect::<Vec<_>>().join(" ");
    text.replace(&format!(":({names})'"), &format!(":{{compadd -- {names}; _files}}'"))
}

/// Prints one manual page, or writes all of them.
pub fn man(args: &ManArgs) -> Result {
    let mut root = Cli::command();
    root.build();
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        return write_all(&root, folder);
    }
    let mut command = &root;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            let names: Vec<_> = page::subcommands(command).map(Command::get_name).collect();
            let meant = did_you_mean(name, names.iter().copied());
            Failure::input(format!("there is no command `{name}`{meant}; the commands are {}", names.join(", ")))
        })?;
    }
    print_document(&page(command)?)
}

/// Writes the page of a command and of each of its subcommands.
fn write_all(command: &Command, folder: &Path) -> Result {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    std::fs::write(folder.join(format!("{name}.1")), page(command)?).map_err(|error| unwritable(folder, &error))?;
    page::subcommands(command).try_for_each(|subcommand| write_all(subcommand, folder))
}

fn unwritable(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write manual pages to {}: {error}", folder.display()))
}
