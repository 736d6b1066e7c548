//! What studies there are.

use clap::{Args, Subcommand};

/// Arguments of `studies`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab studies                               the list
  wirelab studies show quick > my-study.toml    a start for one's own
  wirelab studies check my-study.toml
  wirelab studies keys                          every key that [workload] and [factors] know")]
pub struct StudiesArgs {
    /// The command; default: list
    #[command(subcommand)]
    pub command: Option<StudiesCommand>,
    /// Print as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// The subcommands of `studies`.
#[derive(Debug, Subcommand)]
pub enum StudiesCommand {
    /// Print the file of a built-in study
    Show {
        /// The name of the study
        study: String,
        /// Print the description instead of the file
        #[arg(long)]
        readme: bool,
    },
    /// Check a study file
    Check {
        /// A built-in study or a file
        study: String,
        /// Apply this preset first
        #[arg(long)]
        preset: Option<String>,
    },
    /// List the keys of [workload] and [factors]
    Keys,
}
