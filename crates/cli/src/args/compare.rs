//! Arguments of `wirelab compare` and `wirelab history`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use wirelab_model::units::Share;

use super::FailOn;

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab compare wirelab-runs/shop-monday wirelab-runs/shop-tuesday
  wirelab compare OLD NEW --metric p99 --metric cpu_server_per_request
  wirelab compare OLD NEW --fail-on 'p99 5 % worse' --fail-on inconclusive
  wirelab compare OLD NEW --format html > change.html

The runs were not interleaved, so a change of the machine looks like a change of the server. `wirelab ab` has no such \
doubt (docs/gate.md).")]
pub struct CompareArgs {
    /// The folder of the first run, for example of the old version
    #[arg(value_name = "RUN")]
    pub first: PathBuf,
    /// The folder of the second run
    #[arg(value_name = "RUN")]
    pub second: PathBuf,
    /// Compare this metric; repeatable. Default: the metrics that both studies compare
    #[arg(long = "metric", value_name = "METRIC", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// The largest difference that does not matter. Default: the margin of the second study
    #[arg(long, value_name = "SHARE")]
    pub margin: Option<Share>,
    /// Exit status 3 if the second run shows this against the first: 'p99 5 % worse'; repeatable. `inconclusive`
    /// extends it to conditions without a verdict
    #[arg(long, value_name = "CONDITION")]
    pub fail_on: Vec<FailOn>,
    /// The format of the comparison
    #[arg(long, value_enum, default_value_t = CompareFormat::Terminal)]
    pub format: CompareFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// Tables for the terminal
    Terminal,
    /// JSON, one object
    Json,
    /// One self-contained HTML file, with a chart of each metric
    Html,
}

/// Arguments of `history`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab history                               the first metric of the newest run's study
  wirelab history wirelab-runs --metric p99 --cell protocol=h2
  wirelab history --study shop --metric rate --format csv > rate.csv

At a change point the values become higher or lower and stay so, by Pettitt's test (docs/gate.md).")]
pub struct HistoryArgs {
    /// The folder that contains run folders
    #[arg(value_name = "FOLDER", default_value = "wirelab-runs")]
    pub folder: PathBuf,
    /// The metric. Default: the first one that the study compares
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<String>,
    /// Only cells with this level of a factor; repeatable
    #[arg(long = "cell", value_name = "FACTOR=LEVEL")]
    pub cells: Vec<String>,
    /// The runs of this study. Default: that of the newest run
    #[arg(long, value_name = "NAME")]
    pub study: Option<String>,
    /// The format of the history
    #[arg(long, value_enum, default_value_t = HistoryFormat::Terminal)]
    pub format: HistoryFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HistoryFormat {
    /// Tables for the terminal
    Terminal,
    /// CSV, one row for each cell and run
    Csv,
    /// JSON, one object with every cell and run
    Json,
    /// One self-contained HTML file, with a chart of each cell
    Html,
}
