//! Arguments of `wirelab report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::FailOn;

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab report                                the newest run, in the terminal
  wirelab report RUN --full                     every table, claim and warning
  wirelab report RUN --format html > report.html
  wirelab report RUN --format csv               one row for each cell and metric
  wirelab report RUN --format comparisons       one row for each comparison
  wirelab report RUN --format junit > junit.xml   requirements as tests of a CI job")]
pub struct ReportArgs {
    /// The run folder; default: the newest one below --out
    pub run: Option<PathBuf>,
    /// The folder that contains run folders
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// Exit status 3 also for: `inconclusive` requirements, or `claims` that do not hold; repeatable. Requirements are
    /// part of the run (docs/gate.md)
    #[arg(long, value_name = "CONDITION")]
    pub fail_on: Vec<FailOn>,
    /// The format of the report
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub format: Format,
    /// In the terminal: every table, claim and warning instead of one page
    #[arg(long)]
    pub full: bool,
}

/// The formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for the terminal
    Terminal,
    /// Markdown, with every table
    Markdown,
    /// One self-contained HTML file
    Html,
    /// LaTeX: a table of medians and verdicts in the first metric, with the rules of `booktabs`
    Latex,
    /// CSV, one row for each cell and metric
    Csv,
    /// CSV, one row for each comparison
    Comparisons,
    /// CSV, the best level under each condition: one row for each condition, metric and level
    Contests,
    /// CSV, clients against servers: one row for each pair, condition and metric
    Pairs,
    /// JSON (docs/report.schema.json)
    Json,
    /// JUnit XML: a test case for each requirement and cell, and for each claim
    Junit,
    /// Annotations for GitHub Actions; the Markdown report is appended to the file in $GITHUB_STEP_SUMMARY
    Github,
    /// OpenMetrics text for GitLab's metrics reports: the compared and required metrics of each cell
    Gitlab,
}
