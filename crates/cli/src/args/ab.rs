//! Arguments of `wirelab ab`.

use std::path::PathBuf;

use clap::Args;
use wirelab_model::protocol::Protocol;
use wirelab_model::units::{Share, Span};

use super::{FailOn, ShowArgs};

/// Arguments of `ab`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab ab --base server-main --head server-branch
  wirelab ab --base nginx --head caddy --protocol h3 --set 'payload=64 KiB' --set connections=4
  wirelab ab --base my-main --head my-branch --fail-on 'p99 5 % worse' --max-duration '5 min'

The exit status is 3 if the head is shown to be worse than allowed (docs/gate.md).")]
pub struct AbArgs {
    /// The endpoint of the base build (`wirelab endpoints` lists them)
    #[arg(long, value_name = "ENDPOINT")]
    pub base: String,
    /// The endpoint of the head build
    #[arg(long, value_name = "ENDPOINT")]
    pub head: String,
    /// The protocol, for example h1, h2 or h3
    #[arg(long, short, default_value = "h2")]
    pub protocol: Protocol,
    /// Fix a setting of the load (`wirelab studies keys` lists them); repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// The largest difference that does not matter
    #[arg(long, value_name = "SHARE", default_value = "5 %")]
    pub margin: Share,
    /// Fail on this instead of a median or P99 response time that is worse by more than --margin, as in `wirelab run`;
    /// repeatable
    #[arg(long, value_name = "CONDITION")]
    pub fail_on: Vec<FailOn>,
    /// Start no new block after this time, apart from the 10 blocks that a verdict needs
    #[arg(long, value_name = "DURATION", default_value = "10 min")]
    pub max_duration: Span,
    /// Use this lab (`wirelab labs` lists them)
    #[arg(long, value_name = "LAB", default_value = "loopback")]
    pub lab: String,
    /// The folder that contains run folders
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// Print the plan and stop
    #[arg(long)]
    pub plan: bool,
    #[command(flatten)]
    pub show: ShowArgs,
}
