//! Arguments of `wirelab tag`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `tag`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab tag                                   the runs below wirelab-runs that have tags
  wirelab tag wirelab-runs/quick-20261124T081500Z baseline v1.2
  wirelab tag wirelab-runs/quick-20261124T081500Z --remove v1.2
  wirelab tag wirelab-runs/quick-20261124T081500Z
                                                the tags of one run

`wirelab serve` shows tags and finds them: the filter `tag:baseline` keeps the runs with this tag.")]
pub struct TagArgs {
    /// The run folder; without it, all runs below --out that have tags are listed
    pub run: Option<PathBuf>,
    /// The tags to add: 1 to 40 lower-case letters, digits, `.`, `-` and `_`, the first a letter or a digit
    #[arg(value_name = "TAG")]
    pub tags: Vec<String>,
    /// Remove the tags instead
    #[arg(long, requires = "tags")]
    pub remove: bool,
    /// The folder that contains run folders
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// Print runs and tags as JSON: [{"run": "...", "tags": ["..."]}]
    #[arg(long)]
    pub json: bool,
}
