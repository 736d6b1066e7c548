//! Measurements of anybody's.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use wirelab_model::metric::Better;
use wirelab_model::units::Share;

use super::Format;

/// Arguments of `analyze`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab analyze page-load                     a published table that is built in, with its claims
  wirelab analyze two-columns.csv --unit ms     a column for each variant, the first one is the baseline
  wirelab analyze loads.csv --factor protocol --value onload_s --by page --baseline h1
  wirelab analyze loads.csv --wide h1=h1_ms,h2=h2_ms --unit ms --block run --by page --skip run=mean
  wirelab analyze loads.csv --mapping loads.toml --format html > report.html

Rows are independent observations. Name a --block only if rows with the same value were measured together. A column
without a meaning is an error. Without --mapping, an existing FILE.toml beside FILE.csv is the mapping; options override
it. docs/analyze.md explains mapping files and verdicts on tables.")]
pub struct AnalyzeArgs {
    /// The table (CSV with a heading; semicolons and tabs also separate), or the name of a published one
    pub file: String,
    /// The meaning of the columns, as a TOML file
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,
    /// The column with the levels to compare, or with --wide a name for what is compared
    #[arg(long, value_name = "COLUMN")]
    pub factor: Option<String>,
    /// The columns with the numbers, one for each metric
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', conflicts_with = "wide")]
    pub value: Vec<String>,
    /// The columns with the numbers of each level, if every level has its own
    #[arg(long, value_name = "LEVEL=COLUMN", value_delimiter = ',', value_parser = pair)]
    pub wide: Vec<(String, String)>,
    /// The baseline level; default: the first one
    #[arg(long, value_name = "LEVEL")]
    pub baseline: Option<String>,
    /// A level that repeats the baseline: the A/A pair, which gives the noise floor
    #[arg(long, value_name = "LEVEL")]
    pub twin: Option<String>,
    /// Columns that distinguish cells; rows with different values are never pooled
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub by: Vec<String>,
    /// The column with equal values for rows that were measured together; default: rows are independent
    #[arg(long, value_name = "COLUMN")]
    pub block: Option<String>,
    /// Columns to ignore
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// Omit the rows with this value in this column; repeatable
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = pair)]
    pub skip: Vec<(String, String)>,
    /// The unit of the numbers: ns, us, ms, s, B, KiB, Mbit/s, /s, %, ...; default: the end of the column's name
    #[arg(long)]
    pub unit: Option<String>,
    /// The direction of improvement; default: higher for rates, lower for everything else
    #[arg(long, value_enum)]
    pub better: Option<BetterArg>,
    /// The equivalence margin, for example '5 %'; default: 5 %
    #[arg(long)]
    pub margin: Option<Share>,
    /// The format
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub format: Format,
}

/// Two words with a `=` between them.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not two words with a `=` between them, such as `h1=h1_ms`")),
    }
}

/// [`wirelab_model::metric::Better`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BetterArg {
    /// Less is better
    Lower,
    /// More is better
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
