//! Arguments of `wirelab studies`.

use clap::{Args, Subcommand};

/// Arguments of `studies`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab studies                               list the built-in studies
  wirelab studies show quick --name my-study > my-study.toml
                                                copy one, as a start for your own
  wirelab studies check my-study.toml           check a study file
  wirelab studies keys                          list the keys of [workload] and [factors]
  wirelab studies schema > study.schema.json    let an editor check study files")]
pub struct StudiesArgs {
    /// The action; default: list
    #[command(subcommand)]
    pub command: Option<StudiesCommand>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// The subcommands of `studies`.
#[derive(Debug, Subcommand)]
pub enum StudiesCommand {
    /// Print the file of a built-in study
    #[command(after_help = "Examples:
  wirelab studies show quick --name my-study > my-study.toml
  wirelab studies show cloud-quic --readme")]
    Show {
        /// The name of the study
        study: String,
        /// Print the description of the study instead of its file
        #[arg(long)]
        readme: bool,
        /// Give the copy this name, which its run folders have
        #[arg(long, value_name = "NAME", conflicts_with = "readme")]
        name: Option<String>,
    },
    /// Check a study file
    #[command(after_help = "Examples:
  wirelab studies check my-study.toml
  wirelab studies check cloud-quic --preset smoke")]
    Check {
        /// A built-in study, or the path of a study file
        study: String,
        /// Apply this preset first
        #[arg(long, value_name = "NAME")]
        preset: Option<String>,
    },
    /// List the keys of [workload] and [factors]
    #[command(after_help = "Examples:
  wirelab studies keys
  wirelab studies keys --json")]
    Keys,
    /// Print the JSON Schema of study files, which editors take from a first line `#:schema FILE`
    #[command(after_help = "Examples:
  wirelab studies schema > study.schema.json")]
    Schema,
}
