//! One server, politely.

use clap::Args;
use wirelab_model::protocol::Protocol;

use super::{ReachArgs, ShowArgs};

/// Arguments of `probe`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab probe https://example.org/
  wirelab probe https://localhost:8443/ --ca ca.pem --requests 10 --i-own-this-host

Without --i-own-this-host at most 30 requests per protocol are sent, one at a time, at most 2 per second.
docs/load-and-probe.md explains the measurement and the output of --json.")]
pub struct ProbeArgs {
    /// The URL, https://
    pub url: String,
    /// The protocols to compare
    #[arg(long, value_delimiter = ',', default_value = "h1,h2,h3")]
    pub protocols: Vec<Protocol>,
    /// The number of blocks. In each block every protocol uses a new and a kept connection, in random order
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub blocks: u32,
    /// Requests per protocol and block: one on a new connection, the others on a second, kept connection
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub requests: u32,
    /// Lift the limits. Use it only for hosts that you may load
    #[arg(long)]
    pub i_own_this_host: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
    /// The seed of the order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub show: ShowArgs,
}
