//! What this machine can measure.

use clap::Args;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}
