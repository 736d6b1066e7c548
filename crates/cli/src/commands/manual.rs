//! `wirelab completions` and `wirelab man`, from the declarations of `--help`.

mod page;

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::env::Shells;
use wirelab_model::nearest::did_you_mean;

use self::page::page;
use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::complete::VARIABLE;
use crate::failure::{Failure, Result};
use crate::output::print_document;

/// The name of the program in scripts, which the shell finds through `PATH`.
const PROGRAM: &str = "wirelab";

/// Prints the script that lets a shell ask this program for completions.
pub fn completions(args: &CompletionsArgs) -> Result {
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell).ok_or_else(|| Failure::input(format!("no completions for {shell}")))?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)
        .map_err(|error| Failure::failed(format!("cannot write the completions: {error}")))?;
    print_document(&String::from_utf8_lossy(&script))
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
