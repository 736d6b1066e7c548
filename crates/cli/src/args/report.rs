//! Reports of runs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab report                                the newest run, in the terminal
  wirelab report RUN --format html > report.html
  wirelab report RUN --format csv               one row per cell and metric
  wirelab report RUN --format comparisons       one row per comparison")]
pub struct ReportArgs {
    /// The run folder; default: the newest one below --out
    pub run: Option<PathBuf>,
    /// The folder with the run folders
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// The format
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub format: Format,
}

/// The format
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for the terminal
    Terminal,
    /// Markdown
    Markdown,
    /// One self-contained HTML file
    Html,
    /// CSV, one row per cell and metric
    Csv,
    /// CSV, one row per comparison
    Comparisons,
    /// CSV of the best levels, one row per condition, metric and level
    Contests,
    /// CSV of client and server pairs, one row per pair, condition and metric
    Pairs,
    /// JSON
    Json,
}
