//! Arguments of `wirelab doctor`.

use clap::Args;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab doctor                                every check, with a remedy for each gap
  wirelab doctor --json")]
pub struct DoctorArgs {
    /// Print the checks as JSON
    #[arg(long)]
    pub json: bool,
}
