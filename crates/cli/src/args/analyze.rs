//! Arguments of `wirelab analyze`.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use wirelab_model::metric::Better;
use wirelab_model::units::Share;

use super::Format;

/// Arguments of `analyze`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab analyze page-load                     a built-in published table, with its claims
  wirelab analyze two-columns.csv --unit ms     one column per variant; the first is the baseline
  wirelab analyze loads.csv --factor protocol --value onload_s --by page --baseline h1
  wirelab analyze loads.csv --wide h1=h1_ms,h2=h2_ms --unit ms --block run --by page --skip run=mean
  wirelab analyze loads.csv --mapping loads.toml --format html > report.html

Rows are independent observations, unless --block names a column whose equal values mark rows that were measured \
together. Every column needs a meaning; a column without one is an error. Without --mapping, the mapping of FILE.csv \
is FILE.toml beside it, if that file exists. Options override the mapping. docs/analyze.md describes mapping files, \
and what a verdict on a table means.")]
pub struct AnalyzeArgs {
    /// The table: a CSV file with a heading (separated by commas, semicolons or tabs), or the name of a published table
    pub file: String,
    /// A TOML file with the meaning of the columns
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,
    /// The column with the levels to compare; with --wide, a name for the compared factor
    #[arg(long, value_name = "COLUMN")]
    pub factor: Option<String>,
    /// The columns with the values, one for each metric
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', conflicts_with = "wide")]
    pub value: Vec<String>,
    /// The column with the values of each level, if every level has its own column
    #[arg(long, value_name = "LEVEL=COLUMN", value_delimiter = ',', value_parser = pair)]
    pub wide: Vec<(String, String)>,
    /// The level to compare the others with; default: the first one
    #[arg(long, value_name = "LEVEL")]
    pub baseline: Option<String>,
    /// A level that repeats the baseline (A/A pair); its spread is the noise floor
    #[arg(long, value_name = "LEVEL")]
    pub twin: Option<String>,
    /// Columns that distinguish cells: rows with different values are never pooled
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub by: Vec<String>,
    /// The column with equal values for rows that were measured together; default: rows are independent
    #[arg(long, value_name = "COLUMN")]
    pub block: Option<String>,
    /// Columns to ignore
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// Skip rows with this value in this column; repeatable
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = pair)]
    pub skip: Vec<(String, String)>,
    /// The unit of the values: ns, us, ms, s, B, KiB, Mbit/s, /s, %, ...; default: the suffix of the column's name
    #[arg(long)]
    pub unit: Option<String>,
    /// The direction of improvement; default: higher for rates, lower for all other units
    #[arg(long, value_enum)]
    pub better: Option<BetterArg>,
    /// Differences below this margin are equivalent, for example '5 %'; default: 5 %
    #[arg(long)]
    pub margin: Option<Share>,
    /// The format of the report
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub format: Format,
}

/// Parses `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), NotAPair> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(NotAPair(text.to_owned())),
    }
}

/// A text that is not of the form `NAME=VALUE`.
#[derive(Debug)]
struct NotAPair(String);

impl fmt::Display for NotAPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not of the form NAME=VALUE, such as `h1=h1_ms`", self.0)
    }
}

impl std::error::Error for NotAPair {}

/// [`wirelab_model::metric::Better`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BetterArg {
    /// Lower is better
    Lower,
    /// Higher is better
    Higher,
}

impl From<BetterArg> for Better {
    fn from(better: BetterArg) -> Self {
        match better {
            BetterArg::Lower => Self::Lower,
            BetterArg::Higher => Self::Higher,
        }
    }
}
