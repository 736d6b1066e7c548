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
    /// Where run folders are
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// The form
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub format: Format,
}

/// The forms of a report.
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
    /// CSV, which level is the best under which conditions: one row per condition, metric and level
    Contests,
    /// CSV, clients against servers: one row per pair, condition and metric
    Pairs,
    /// JSON
    Json,
}
