//! The load generator, and how servers are reached.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use wirelab_model::protocol::Protocol;
use wirelab_model::units::{Frequency, Size, Span};

use super::ShowArgs;

/// Arguments of `load`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("extent").args(["requests", "duration"])))]
#[command(after_help = "Examples:
  wirelab load https://localhost:8443/              HTTP/2, one request at a time, 10 s
  wirelab load --protocol h2 -c 10 -m 10 -d 10s URL 10 connections, 10 streams on each
  wirelab load --protocol h3 --rate 500/s -d 30s URL an open loop: latency counts from the intended start
  wirelab load --protocol h1 --new-connections -n 1000 URL

Time starts at the intended start of each request, so a stalled server cannot hide (no coordinated omission).
Send load only to your own servers. docs/load-and-probe.md explains the measurement and the output of --json.")]
pub struct LoadArgs {
    /// The URL, http:// or https://
    pub url: String,
    /// The protocol: h1, h1c, h2, h2c or h3; default: h2 for https, h1c for http
    #[arg(long, short)]
    pub protocol: Option<Protocol>,
    /// Persistent connections
    #[arg(long, short, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: u32,
    /// Requests in flight on each connection (HTTP/2 and HTTP/3)
    #[arg(long, short = 'm', default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub streams: u32,
    /// Open a new connection for every request; -c is then the number of requests in flight
    #[arg(long)]
    pub new_connections: bool,
    /// Session resumption for new connections
    #[arg(long, value_enum, default_value_t = ResumptionArg::None, requires = "new_connections")]
    pub resumption: ResumptionArg,
    /// The number of requests
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// The duration, for example 10s; default: 10 s
    #[arg(long, short)]
    pub duration: Option<Span>,
    /// Warm-up requests before the measured window
    #[arg(long, value_name = "REQUESTS", default_value_t = 0)]
    pub warm_up: u64,
    /// Arrivals per second, for example 500/s: an open loop
    #[arg(long, short)]
    pub rate: Option<Frequency>,
    /// The spacing of arrivals in an open loop
    #[arg(long, value_enum, default_value_t = ArrivalsArg::Poisson, requires = "rate")]
    pub arrivals: ArrivalsArg,
    /// Threads of the client
    #[arg(long, short, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// The method; default: `GET`, or `POST` with --body
    #[arg(long)]
    pub method: Option<String>,
    /// A header field; repeatable
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// Bytes of request body, for example '32 KiB'
    #[arg(long, default_value = "0 B")]
    pub body: Size,
    #[command(flatten)]
    pub reach: ReachArgs,
    /// The deadline of a connection's handshake
    #[arg(long, default_value = "5 s")]
    pub connect_timeout: Span,
    /// Write one record per request to this file, as JSON lines (contract/schema/sample.schema.json)
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
    /// The seed of the arrivals
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// How to reach a server, and which certificates to trust.
#[derive(Debug, Args)]
pub struct ReachArgs {
    /// Trust this certificate authority (PEM) instead of the system's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Do not verify the server's certificate
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
    /// Connect to this address without looking up the host of the URL
    #[arg(long, value_name = "ADDRESS")]
    pub connect_to: Option<std::net::IpAddr>,
    /// The deadline of a request, connecting included
    #[arg(long, default_value = "10 s")]
    pub timeout: Span,
}

/// [`wirelab_model::spec::Resumption`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ResumptionArg {
    /// Nothing: every handshake is a full one
    None,
    /// TLS session tickets
    Resume,
    /// Session tickets and 0-RTT data
    ZeroRtt,
}

/// [`wirelab_model::spec::Arrivals`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsArg {
    /// At equal intervals
    Uniform,
    /// A Poisson process
    Poisson,
}
