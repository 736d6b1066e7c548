//! `wirelab completions` and `wirelab man`: derived from the same declarations as `--help`.

use std::path::Path;

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::{Failure, Result};
use crate::output::print;

/// Prints the completions of a shell.
pub fn completions(args: &CompletionsArgs) -> Result {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "wirelab", &mut text);
    print(&String::from_utf8_lossy(&text))
}

/// Prints one manual page, or writes all of them.
pub fn man(args: &ManArgs) -> Result {
    let mut root = Cli::command();
    root.build();
    if let Some(folder) = &args.out {
        return write_all(&root, folder);
    }
    let command = match &args.command {
        None => root,
        Some(name) => {
            let names: Vec<_> = root.get_subcommands().map(|c| c.get_name().to_owned()).collect();
            root.find_subcommand(name).cloned().ok_or_else(|| {
                Failure::input(format!("there is no command `{name}`; the commands are {}", names.join(", ")))
            })?
        }
    };
    print(&String::from_utf8_lossy(&page(&command)?))
}

fn write_all(root: &clap::Command, folder: &Path) -> Result {
    let attempt =
        |error: std::io::Error| Failure::failed(format!("cannot write manual pages to {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(attempt)?;
    std::fs::write(folder.join("wirelab.1"), page(root)?).map_err(attempt)?;
    for command in root.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
        std::fs::write(folder.join(format!("wirelab-{}.1", command.get_name())), page(command)?).map_err(attempt)?;
    }
    Ok(())
}

fn page(command: &clap::Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut text)
        .map_err(|error| Failure::failed(format!("cannot render a manual page: {error}")))?;
    Ok(text)
}
