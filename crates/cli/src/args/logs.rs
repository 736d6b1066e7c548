//! Arguments of `wirelab logs`, and the options of wirelab's own log.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

/// Options of wirelab's own log; valid for every command.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Write the log to standard error: -v what wirelab does, -vv also each message between wirelab and its processes.
    /// WIRELAB_LOG sets a filter instead
    #[arg(long, short, global = true, action = ArgAction::Count, help_heading = "Log")]
    pub verbose: u8,
    /// The format of the log on standard error
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    #[arg(help_heading = "Log")]
    pub log_format: LogFormat,
}

/// The formats of wirelab's own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object per line
    Json,
}

/// Arguments of `logs`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab logs                                  everything that the newest run logged
  wirelab logs RUN --trial 12                   one trial: wirelab, server, client
  wirelab logs --follow                         lines of a run in progress, as they come
  wirelab logs --trial 12 --json | jq -r .message

Lines are in the order of time. --follow ends with the run, or on Ctrl-C. A run always logs its own steps; an \
endpoint logs what it writes to standard error. docs/logs.md describes the log, and how to get more of it.")]
pub struct LogsArgs {
    /// The run folder; default: the newest one below --out
    pub run: Option<PathBuf>,
    /// The folder that contains run folders
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// Only this trial, by its number in the journal, from 0
    #[arg(long, value_name = "N")]
    pub trial: Option<u32>,
    /// Print further lines as they come, until the run ends or Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}
