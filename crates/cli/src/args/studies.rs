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
    /// What to do; default: list
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
        /// Its name
        study: String,
        /// Its description instead of its file
        #[arg(long)]
        readme: bool,
    },
    /// Check a study file
    Check {
        /// A built-in study or a file
        study: String,
        /// With this preset applied
        #[arg(long)]
        preset: Option<String>,
    },
    /// List the keys of [workload] and [factors]
    Keys,
}
