//! Running studies.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::ShowArgs;

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab run quick
  wirelab run cloud-quic --preset smoke
  wirelab run my-study.toml --set payload='1 KiB,1 MiB' --set workers=4
  wirelab run quick --lab netns --keep pcap     captures/ in the run folder, for Wireshark
  wirelab run my-study.toml --lab kubernetes --clients 8 --set workers=64
                                                eight client pods with eight workers each
  wirelab run quick --lab netns --observe strace   system calls by strace, and no times
  wirelab run page-load --preset smoke --observe film   filmstrips in the report, the Speed Index, and no other times
  wirelab run grpc-balancing --metrics 127.0.0.1:9464
                                                watched by Prometheus and Grafana (docs/metrics.md)
  wirelab run cloud-quic --plan                 show the cells and the expected time, run nothing

Ctrl-C ends the run after the trial in flight is cleaned up; `wirelab resume` goes on with it.")]
pub struct RunArgs {
    /// A built-in study (`wirelab studies` lists them), or the path of a study file
    pub study: String,
    /// A variant of the study
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Replace the levels of a factor, or fix a setting; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE[,VALUE]")]
    pub sets: Vec<String>,
    /// The number of clients that share the workload and start together: processes, in the lab `kubernetes` pods; the
    /// same as --set clients=N. `workers`, `rate`, `requests`, `warm_up` and `connections` remain totals and must be
    /// divisible by N
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// The lab
    #[arg(long, value_name = "LAB")]
    pub lab: Option<String>,
    /// Observe more than the study does, by the name of an observer (`wirelab labs` lists them); repeatable, with commas too. With
    /// `film` the Speed Index is compared in place of what the study compares, because a filmed trial gives nothing else
    #[arg(long, value_name = "OBSERVER", value_delimiter = ',')]
    pub observe: Vec<String>,

    /// Additional files to keep of each trial: packets (pcapng that Wireshark decrypts), qlog, the secrets of TLS and
    /// Chromium's netlog, which make trials slower; HAR of pages
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub keep: Vec<Keep>,
    /// Serve the state of the run to Prometheus: requests, response times and connections of each server and client,
    /// and the actions of a timeline, at `http://ADDRESS:PORT/metrics`
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<SocketAddr>,
    /// The folder for run folders
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// Show the plan and stop
    #[arg(long)]
    pub plan: bool,
    /// Lift the limits for hosts that wirelab does not start (`site`). Use it only for hosts that you may load
    #[arg(long)]
    pub i_may_load_these_hosts: bool,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// [`wirelab_model::study::Artifact`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Keep {
    /// Every packet, as pcapng with the secrets of TLS in it
    Pcap,
    /// The QUIC log of each library that writes one (qlog)
    Qlog,
    /// The secrets of TLS and QUIC, as a key log
    Keys,
    /// The log of Chromium's network stack (netlog)
    Netlog,
    /// Every load of a page, as HTTP Archive (HAR 1.2)
    Har,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab resume                                the newest run below wirelab-runs/
  wirelab resume wirelab-runs/quick-20261120-101500")]
pub struct ResumeArgs {
    /// The run folder; default: the newest one below --out
    pub run: Option<PathBuf>,
    /// The folder with the run folders
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// Continue although the machine or an endpoint has changed; the report states it
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub show: ShowArgs,
}
