//! Arguments of `wirelab archive`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `archive`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab archive --to results/2026-11-24-laptop         the newest run
  wirelab archive wirelab-runs/quick-20261124T081500Z --to results/2026-11-24-laptop
  wirelab report results/2026-11-24-laptop               compute its report again

An archive has the manifest, the journal with the values of each trial, and the report as Markdown. It has no \
samples, logs and captures, and no paths of this machine. It cannot be resumed.")]
pub struct ArchiveArgs {
    /// The run folder; default: the newest one below --out
    pub run: Option<PathBuf>,
    /// The folder to write, new or empty
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// The folder that contains run folders
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
}
