//! Arguments of `wirelab run` and `wirelab resume`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use wirelab_model::study::Artifact;
use wirelab_model::units::Span;

use super::{FailOn, ShowArgs};

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab run quick
  wirelab run cloud-quic --preset smoke         smoke test only; too short for conclusions
  wirelab run cloud-quic --plan                 print cells, comparisons and trials; run nothing
  wirelab run my-study.toml --set payload='1 KiB,1 MiB' --set workers=4
  wirelab run my-study.toml --lab kubernetes --clients 8 --set workers=64
                                                eight client pods with eight workers each
  wirelab run quick --lab netns --keep pcap     captures for Wireshark, in captures/ of the run
  wirelab run quick --lab netns --observe strace
                                                system calls instead of times
  wirelab run page-load --preset smoke --observe film
                                                filmstrips and the Speed Index, no other times
  wirelab run quick --fail-on 'p99 > 50 ms' --fail-on 'errors > 0.1 %'
                                                exit status 3 if the data show that (docs/gate.md)
  wirelab run my-study.toml --server './my-server --port {port}'
                                                your program as the server
  wirelab run grpc-balancing --metrics 127.0.0.1:9464
                                                live metrics for Prometheus (docs/metrics.md)

Ctrl-C ends the run after the current trial is cleaned up; `wirelab resume` continues it.")]
pub struct RunArgs {
    /// A built-in study (`wirelab studies` lists them), or the path of a study file
    pub study: String,
    /// Apply a preset of the study
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Replace the levels of a factor, or fix a setting; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE[,VALUE]")]
    pub sets: Vec<String>,
    /// Number of clients that share the workload: processes, or pods in the lab kubernetes. The same as --set
    /// clients=N. `workers`, `rate`, `requests`, `warm_up` and `connections` remain totals and must be divisible by N
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Use this program as the server instead of the study's: the command line, as in the setting `server_command`
    #[arg(long, value_name = "COMMAND")]
    pub server: Option<String>,
    /// Use this lab (`wirelab labs` lists them) instead of the study's
    #[arg(long, value_name = "LAB")]
    pub lab: Option<String>,
    /// The machines of the lab `hosts`, such as `client=alice@a.example,server=b.example`, or a file with tables
    /// `[[host]]` (docs/labs.md#hosts)
    #[arg(long, value_name = "ROLE=DESTINATION,...|FILE")]
    pub hosts: Option<String>,
    /// Add the placements of this file, such as `wirelab labs measure --as-placement` writes; repeatable
    #[arg(long, value_name = "FILE")]
    pub placements: Vec<PathBuf>,
    /// Add an observer to those of the study (`wirelab labs` lists them); repeatable, also with commas. `film` replaces
    /// the compared metrics with the Speed Index, because a filmed trial measures nothing else
    #[arg(long, value_name = "OBSERVER", value_delimiter = ',')]
    pub observe: Vec<String>,

    /// Keep further files of each trial; repeatable, also with commas. All kinds but har make trials slower
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub keep: Vec<Keep>,
    /// Serve metrics of the run to Prometheus at http://ADDRESS:PORT/metrics: requests, response times and connections
    /// of each server and client, and the actions of a timeline
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<SocketAddr>,
    /// The folder that contains run folders
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// Add a requirement by the condition of its failure: 'p99 > 50 ms', 'errors > 0.1 %', 'rate < 900/s', or 'p99 5 %
    /// worse' than the baseline; repeatable. If the run shows it, the exit status is 3. `inconclusive` extends this to
    /// requirements without a verdict, `claims` to claims that do not hold (docs/gate.md)
    #[arg(long, value_name = "CONDITION")]
    pub fail_on: Vec<FailOn>,
    /// Start no new block after this time, apart from the least number of blocks; for example '10 min'. The same as
    /// --set blocks.budget
    #[arg(long, value_name = "DURATION")]
    pub max_duration: Option<Span>,
    /// Print the plan and stop
    #[arg(long)]
    pub plan: bool,
    /// Lift the limits for hosts that wirelab does not start (`site`): you may send load to all of them
    #[arg(long)]
    pub i_may_load_these_hosts: bool,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// [`wirelab_model::study::Artifact`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Keep {
    /// Every packet, as pcapng with the secrets of TLS, so that Wireshark can decrypt it
    Pcap,
    /// The logs of QUIC libraries
    Qlog,
    /// The secrets of TLS and QUIC, as a key log
    Keys,
    /// The log of Chromium's network stack
    Netlog,
    /// Every load of a page, as an HTTP Archive (HAR 1.2)
    Har,
}

impl From<Keep> for Artifact {
    fn from(keep: Keep) -> Self {
        match keep {
            Keep::Pcap => Self::Pcap,
            Keep::Qlog => Self::Qlog,
            Keep::Keys => Self::Keys,
            Keep::Netlog => Self::Netlog,
            Keep::Har => Self::Har,
        }
    }
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab resume                                the newest run below wirelab-runs/
  wirelab resume wirelab-runs/quick-20261120-101500")]
pub struct ResumeArgs {
    /// The run folder; default: the newest one below --out
    pub run: Option<PathBuf>,
    /// The folder that contains run folders
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// Resume even if the machine or an endpoint has changed since; the report then warns of it
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub show: ShowArgs,
}
