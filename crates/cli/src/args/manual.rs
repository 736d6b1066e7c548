//! Arguments of `wirelab completions` and `wirelab man`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `completions`. The script asks wirelab itself, so that it knows the endpoints of the current folder.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab completions bash > ~/.local/share/bash-completion/completions/wirelab
  wirelab completions fish > ~/.config/fish/completions/wirelab.fish")]
pub struct CompletionsArgs {
    /// The shell that loads the completions
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab man | man -l -
  wirelab man endpoints install | man -l -
  wirelab man --out /usr/local/share/man/man1")]
pub struct ManArgs {
    /// The command, with its subcommand if it has one; default: wirelab itself
    pub command: Vec<String>,
    /// Write the pages of all commands to this folder
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub out: Option<PathBuf>,
}

/// Arguments of `reference`.
#[derive(Debug, Args)]
pub struct ReferenceArgs {
    /// Write the pages into this folder
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}
