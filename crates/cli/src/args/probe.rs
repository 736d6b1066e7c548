//! Arguments of `wirelab probe`.

use clap::Args;
use clap::builder::ArgPredicate;
use wirelab_model::protocol::Protocol;

use super::{ReachArgs, RequestArgs, ShowArgs};

/// The default protocols of ways that carry no UDP.
const WITHOUT_UDP: [(&str, ArgPredicate, &str); 2] =
    [("unix_socket", ArgPredicate::IsPresent, "h1,h2"), ("proxy", ArgPredicate::IsPresent, "h1,h2")];

/// Arguments of `probe`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab probe https://example.org/
  wirelab probe https://example.org/ --protocols h2,h3 --json
  wirelab probe https://localhost:8443/ --ca ca.pem --requests 10
  wirelab probe --proxy socks5h://localhost:1080 https://localhost:8443/
  wirelab probe --unix-socket /run/api.sock --protocols h1c,h2c http://localhost/health
  wirelab probe https://www.mine.example/ --requests 10 --i-may-load-these-hosts

A host outside this machine and private networks gets at most 30 requests per protocol in an hour, one at a time, at \
most 2 per second. docs/load-and-probe.md describes the measurement and the output of --json.")]
pub struct ProbeArgs {
    /// The URL, https://
    pub url: String,
    /// The protocols to compare; the first one is the baseline. With --unix-socket and --proxy, which carry no UDP, the
    /// default is h1,h2
    #[arg(long, value_delimiter = ',', default_value = "h1,h2,h3", default_value_ifs = WITHOUT_UDP)]
    pub protocols: Vec<Protocol>,
    /// Number of blocks; each block measures every protocol on a new and on a kept connection, in random order
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub blocks: u32,
    /// Requests for each protocol and block: one on a new connection, the others on a second, kept connection
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub requests: u32,
    /// Lift the limits: you own this host, or may send load to it
    #[arg(long, visible_alias = "i-own-this-host")]
    pub i_may_load_these_hosts: bool,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub reach: ReachArgs,
    /// The seed of the random order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub show: ShowArgs,
}
