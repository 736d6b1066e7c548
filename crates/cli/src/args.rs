//! Every command and flag, documented where it is declared: `--help`, the man pages and the completions come from here.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use wirelab_model::metric::Better;
use wirelab_model::protocol::Protocol;
use wirelab_model::units::{Frequency, Share, Size, Span};

/// A laboratory for web communication protocols: measures HTTP/1.1, HTTP/2, HTTP/3 and the transports under them side by
/// side, and says how sure it is.
#[derive(Debug, Parser)]
#[command(name = "wirelab", version, propagate_version = true, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Examples:
  wirelab run quick                             HTTP/1.1, HTTP/2 and HTTP/3 side by side, in about a minute
  wirelab run quick --set protocol=h1,h3        only these two
  wirelab load --protocol h2 -c 10 -m 10 -d 10s https://localhost:8443/
  wirelab page https://example.org/             the same versions in real browsers
  wirelab doctor                                what this machine can and cannot measure

Exit status: 0 done, 1 failed, 2 wrong input, 130 interrupted.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a study: a built-in one by name, or a study file
    Run(RunArgs),
    /// Go on with a run that was interrupted or killed
    Resume(ResumeArgs),
    /// Show the report of a run again, in any format
    Report(ReportArgs),
    /// Run the statistics on measurements of anybody's (CSV), and show them as a run is shown
    Analyze(AnalyzeArgs),
    /// Send load to a server and print latencies: the load generator on its own
    Load(LoadArgs),
    /// Compare HTTP/1.1, HTTP/2 and HTTP/3 against one server that need not be yours, politely
    Probe(ProbeArgs),
    /// Load pages in real browsers over HTTP/1.1, HTTP/2 and HTTP/3, politely
    Page(PageArgs),
    /// List the built-in studies, print one, or check a study file
    Studies(StudiesArgs),
    /// List endpoints, or check that one keeps the contract
    Endpoints(EndpointsArgs),
    /// List labs and observers, measure what links really do, or clean up in a cluster
    Labs(LabsArgs),
    /// Say what this machine can and cannot measure, with the remedy for each
    Doctor(DoctorArgs),
    /// Print the completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page of wirelab or of one command, or write all of them
    Man(ManArgs),
    /// Play a built-in endpoint (this is how wirelab starts itself; see contract/README.md)
    Endpoint(EndpointArgs),
    /// Watch over the processes of a run (internal)
    #[command(hide = true)]
    Guard,
    /// Hold the network of a run (internal)
    #[command(hide = true)]
    Fabric,
    /// Look at the network of a run from within (internal)
    #[command(hide = true)]
    Witness,
    /// Work in a pod of a run (internal)
    #[command(hide = true)]
    Agent {
        /// What to do
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

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
    /// How many clients share the workload, started together: processes, in the lab `kubernetes` pods; the same as --set clients=N.
    /// `workers`, `rate`, `requests`, `warm_up` and `connections` stay those of all together, and have to divide by N
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Where to run
    #[arg(long, value_name = "LAB")]
    pub lab: Option<String>,
    /// Observe more than the study does, by the name of an observer (`wirelab labs` lists them); repeatable, with commas too. With
    /// `film` the Speed Index is compared in place of what the study compares, because a filmed trial gives nothing else
    #[arg(long, value_name = "OBSERVER", value_delimiter = ',')]
    pub observe: Vec<String>,

    /// What else to keep of each trial: packets (pcapng that Wireshark decrypts), qlog, the secrets of TLS and Chromium's netlog, which
    /// make trials slower; HAR of pages
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub keep: Vec<Keep>,
    /// Show the run to Prometheus while it goes on: requests, response times and connections of each server and client, and the
    /// actions of a timeline, at http://ADDRESS:PORT/metrics
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Where run folders are made
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// Show the plan and stop
    #[arg(long)]
    pub plan: bool,
    /// Lift the limits on what hosts are sent that are not started here (`site`): you may send load to all of them
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
    /// What QUIC libraries log of themselves
    Qlog,
    /// The secrets of TLS and QUIC, as a key log
    Keys,
    /// What Chromium's network stack does (netlog)
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
    /// Where run folders are
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// Go on though the machine or an endpoint has changed since; the report will say so
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// How progress and results are shown.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Print the result as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// No progress: neither the bar nor, where standard error is no terminal, a line in half a minute
    #[arg(long, short)]
    pub quiet: bool,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab report                                the newest run, in the terminal
  wirelab report RUN --format html > report.html
  wirelab report RUN --format csv               one row per cell and metric
  wirelab report RUN --format comparisons       one row per comparison")]
pub struct ReportArgs {
    /// The run folder; default: the newest one below --out
    pub run: Option<PathBuf>,
    /// Where run folders are
    #[arg(long, value_name = "DIR", default_value = "wirelab-runs")]
    pub out: PathBuf,
    /// The form
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub format: Format,
}

/// The forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for the terminal
    Terminal,
    /// Markdown
    Markdown,
    /// One self-contained HTML file
    Html,
    /// CSV, one row per cell and metric
    Csv,
    /// CSV, one row per comparison
    Comparisons,
    /// CSV, which level is the best under which conditions: one row per condition, metric and level
    Contests,
    /// CSV, clients against servers: one row per pair, condition and metric
    Pairs,
    /// JSON
    Json,
}

/// Arguments of `analyze`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab analyze page-load                     a published table that is built in, with its claims
  wirelab analyze two-columns.csv --unit ms     a column for each variant, the first one is the baseline
  wirelab analyze loads.csv --factor protocol --value onload_s --by page --baseline h1
  wirelab analyze loads.csv --wide h1=h1_ms,h2=h2_ms --unit ms --block run --by page --skip run=mean
  wirelab analyze loads.csv --mapping loads.toml --format html > report.html

Rows are independent observations; name a --block only if rows with the same value were measured together. Columns that
nobody names are an error, not a guess. Without --mapping, FILE.toml beside FILE.csv is the mapping, if it is there;
options go before it. docs/analyze.md says what a mapping file has, and what a verdict on a table means.")]
pub struct AnalyzeArgs {
    /// The table (CSV with a heading; semicolons and tabs do as well), or the name of a published one
    pub file: String,
    /// What the columns mean, as a TOML file
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,
    /// What is compared: the column that has the levels, or with --wide a name for it
    #[arg(long, value_name = "COLUMN")]
    pub factor: Option<String>,
    /// The column of the numbers, one for each metric
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', conflicts_with = "wide")]
    pub value: Vec<String>,
    /// The column of the numbers of each level, where every level has one
    #[arg(long, value_name = "LEVEL=COLUMN", value_delimiter = ',', value_parser = pair)]
    pub wide: Vec<(String, String)>,
    /// The level that the others are compared with; default: the first one
    #[arg(long, value_name = "LEVEL")]
    pub baseline: Option<String>,
    /// A level that is the baseline measured once more: the A/A pair, whose spread is the noise floor
    #[arg(long, value_name = "LEVEL")]
    pub twin: Option<String>,
    /// Columns that tell cells apart: rows that differ in them are never thrown together
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub by: Vec<String>,
    /// The column whose equal values mark rows that were measured together; default: rows are independent
    #[arg(long, value_name = "COLUMN")]
    pub block: Option<String>,
    /// Columns that are not to be used
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// Leave out the rows that have this value in this column; repeatable
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = pair)]
    pub skip: Vec<(String, String)>,
    /// The unit of the numbers: ns, us, ms, s, B, KiB, Mbit/s, /s, %, ...; default: the end of the column's name
    #[arg(long)]
    pub unit: Option<String>,
    /// Which direction is an improvement; default: higher of rates, lower of everything else
    #[arg(long, value_enum)]
    pub better: Option<BetterArg>,
    /// Differences below this are called equivalent, for example '5 %'; default: 5 %
    #[arg(long)]
    pub margin: Option<Share>,
    /// The form
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

/// Arguments of `load`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("extent").args(["requests", "duration"])))]
#[command(after_help = "Examples:
  wirelab load https://localhost:8443/              HTTP/2, one request at a time, 10 s
  wirelab load --protocol h2 -c 10 -m 10 -d 10s URL 10 connections, 10 streams on each
  wirelab load --protocol h3 --rate 500/s -d 30s URL an open loop: latency counts from the intended start
  wirelab load --protocol h1 --new-connections -n 1000 URL

Time starts at the intended start of each request, so a stalled server cannot hide (no coordinated omission).
Send load only to servers that are yours. docs/load-and-probe.md says what is measured, and what --json prints.")]
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
    /// A new connection for every request; -c is then the number of requests in flight
    #[arg(long)]
    pub new_connections: bool,
    /// What new connections may reuse
    #[arg(long, value_enum, default_value_t = ResumptionArg::None, requires = "new_connections")]
    pub resumption: ResumptionArg,
    /// How many requests to send
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// How long to send, for example 10s; default 10 s
    #[arg(long, short)]
    pub duration: Option<Span>,
    /// Requests to send before measuring
    #[arg(long, value_name = "REQUESTS", default_value_t = 0)]
    pub warm_up: u64,
    /// Arrivals per second, for example 500/s: an open loop
    #[arg(long, short)]
    pub rate: Option<Frequency>,
    /// How the arrivals of an open loop are spaced
    #[arg(long, value_enum, default_value_t = ArrivalsArg::Poisson, requires = "rate")]
    pub arrivals: ArrivalsArg,
    /// Threads of the client
    #[arg(long, short, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// The method; default: GET, or POST with --body
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
    /// Seeds arrivals
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// How a server is reached, and whom to trust.
#[derive(Debug, Args)]
pub struct ReachArgs {
    /// Trust this certificate authority (PEM) instead of the system's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Do not verify the server's certificate
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
    /// Connect to this address instead of looking up the URL's host
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

/// Arguments of `probe`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab probe https://example.org/
  wirelab probe https://localhost:8443/ --ca ca.pem --requests 10 --i-own-this-host

Without --i-own-this-host at most 30 requests per protocol are sent, one at a time, at most 2 per second.
docs/load-and-probe.md says what is measured, and what --json prints.")]
pub struct ProbeArgs {
    /// The URL, https://
    pub url: String,
    /// The protocols to compare
    #[arg(long, value_delimiter = ',', default_value = "h1,h2,h3")]
    pub protocols: Vec<Protocol>,
    /// Blocks: in each, every protocol has its turn with a new and with a kept connection, in random order
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub blocks: u32,
    /// Requests per protocol and block: one on a new connection, the others on another connection that is kept
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub requests: u32,
    /// Lift the limits: you may send load to this host
    #[arg(long)]
    pub i_own_this_host: bool,
    #[command(flatten)]
    pub reach: ReachArgs,
    /// Seeds the order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// Arguments of `page`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab page https://example.org/             HTTP/1.1, HTTP/2 and HTTP/3 in every browser that is installed
  wirelab page --browsers firefox --protocols h2,h3 --loads 10 URL URL
  wirelab page https://localhost:8443/index.html --ca ca.pem --har loads.har
  wirelab page https://example.org/ --browsers chromium --protocols h2 --loads 1 --save saved.har
  wirelab page https://localhost:8443/index.html --filmstrip films    pictures, and the Speed Index
  wirelab page https://localhost:8443/index.html --loads 1 --keys keys.log --netlog netlog   for Wireshark and netlog viewers

Every load is cold, and counts only if every resource came over the protocol that was forced. Without
--i-may-load-these-hosts a host gets at most 30 loads, one at a time, with 5 s between them.
docs/pages.md says what is measured, and what --json prints.")]
pub struct PageArgs {
    /// The pages, https://
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<String>,
    /// The browsers; default: those that are installed
    #[arg(long, value_enum, value_delimiter = ',')]
    pub browsers: Vec<BrowserArg>,
    /// The versions of HTTP: h1, h2, h3
    #[arg(long, value_delimiter = ',', default_value = "h1,h2,h3")]
    pub protocols: Vec<Protocol>,
    /// Loads of each page in each browser over each version, in random order
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub loads: u32,
    /// Start the browser anew for every load; otherwise a load has an isolated context in a browser that runs
    #[arg(long)]
    pub fresh: bool,
    /// The requests that a page makes: a load with another number is no sample
    #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u32).range(1..))]
    pub expect: Option<u32>,
    /// Trust this certificate authority (PEM) beside the system's; needs certutil
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// The deadline of a load
    #[arg(long, default_value = "30 s")]
    pub timeout: Span,
    /// Write every load to this file, as an HTTP Archive (HAR 1.2)
    #[arg(long, value_name = "FILE")]
    pub har: Option<PathBuf>,
    /// Load the page once more in Chromium, and write what came of it with all bodies to this file: an HTTP Archive that a study loads again
    /// from servers of its own (`--set page=./FILE.har`)
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Film one more load of each page in each browser over each version: pictures and a page of filmstrips go to this new folder, and the
    /// Speed Index to the result. The loads that are measured are not filmed
    #[arg(long, value_name = "DIR")]
    pub filmstrip: Option<PathBuf>,
    /// Add the secrets of TLS and QUIC to this file, by which Wireshark decrypts packets (the format of SSLKEYLOGFILE). This and the
    /// next two are written while pages load, and make loads longer
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Have Chromium log what its network stack does (netlog): a file for each start of it goes to this new folder. Firefox writes none
    #[arg(long, value_name = "DIR")]
    pub netlog: Option<PathBuf>,
    /// Have Firefox log its QUIC (qlog): a file for each connection goes to this new folder. Chromium writes none
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,
    /// Lift the limits: you may send load to these hosts
    #[arg(long)]
    pub i_may_load_these_hosts: bool,
    /// Seeds the order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// [`wirelab_browser::Browser`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BrowserArg {
    /// Chromium, or Google Chrome
    Chromium,
    /// Firefox, or its extended support release
    Firefox,
}

/// Arguments of `studies`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab studies                               the list
  wirelab studies show quick > my-study.toml    a start for one's own
  wirelab studies check my-study.toml
  wirelab studies keys                          every key that [workload] and [factors] know")]
pub struct StudiesArgs {
    /// What to do; default: list
    #[command(subcommand)]
    pub command: Option<StudiesCommand>,
    /// Print as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// The subcommands of `studies`.
#[derive(Debug, Subcommand)]
pub enum StudiesCommand {
    /// Print the file of a built-in study
    Show {
        /// Its name
        study: String,
        /// Its description instead of its file
        #[arg(long)]
        readme: bool,
    },
    /// Check a study file
    Check {
        /// A built-in study or a file
        study: String,
        /// With this preset applied
        #[arg(long)]
        preset: Option<String>,
    },
    /// List the keys of [workload] and [factors]
    Keys,
}

/// Arguments of `endpoints`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab endpoints                             the list
  wirelab endpoints install go-quic-go          build one, in the user's cache folder
  wirelab endpoints install --set core          those that are quickly installed
  wirelab endpoints check builtin               run the contract suite on one
  wirelab endpoints check go-quic-go --only 'client h3: a deadline'
  wirelab endpoints check --all
  wirelab endpoints remove go-quic-go

Endpoints are folders with an endpoint.toml below ./endpoints, below the folders in $WIRELAB_ENDPOINTS (separated by
colons), and below the user's data folder (~/.local/share/wirelab/endpoints). contract/README.md says how to write one.
What is installed is in the user's cache folder (~/.cache/wirelab), a version for each content of the endpoint's folder.")]
pub struct EndpointsArgs {
    /// What to do; default: list
    #[command(subcommand)]
    pub command: Option<EndpointsCommand>,
    /// Print as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// The subcommands of `endpoints`.
#[derive(Debug, Subcommand)]
pub enum EndpointsCommand {
    /// List them: what they can do, or why they cannot be used
    List {
        /// Print a table in Markdown, with what installing took and what the contract suite said
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
    },
    /// Build those that are not built in
    Install {
        #[command(flatten)]
        chosen: Chosen,
        /// How many to build at the same time; default: one for each two processors
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
        jobs: Option<u32>,
    },
    /// Run the contract suite; of endpoints that are not named only what failed is shown
    Check {
        #[command(flatten)]
        chosen: Chosen,
        /// Try only the cases whose line has these words, as in "client h3"; the list keeps the last whole check
        #[arg(long, value_name = "WORDS")]
        only: Option<String>,
    },
    /// Remove what was installed, all versions of it
    Remove {
        #[command(flatten)]
        chosen: Chosen,
    },
}

/// Which endpoints a command is about.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Chosen {
    /// Their names
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Every endpoint
    #[arg(long)]
    pub all: bool,
    /// Those of a set: core (quickly installed) or full (the others)
    #[arg(long, value_name = "SET", value_enum)]
    pub set: Option<SetName>,
}

/// The sets of endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SetName {
    /// Quickly installed
    Core,
    /// The others
    Full,
}

/// Arguments of `labs`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab labs                                  the list
  wirelab labs measure                          every link that has a name
  wirelab labs measure --set placement=home --set bandwidth='10 Mbit/s,50 Mbit/s'
  wirelab labs measure conditions               the links of a study
  wirelab labs rbac | kubectl apply -f -        the rights that the lab kubernetes needs
  wirelab labs clean --dry-run                  what killed runs left in the cluster")]
pub struct LabsArgs {
    /// What to do; default: list
    #[command(subcommand)]
    pub command: Option<LabsCommand>,
    /// Print as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// The subcommands of `labs`.
#[derive(Debug, Subcommand)]
pub enum LabsCommand {
    /// Measure what the links of the lab netns really do on this machine: round trip, rate, loss, MTU. Exit status 1 if one is
    /// out of tolerance
    Measure {
        /// A built-in study or the path of a study file, whose links are measured; default: every link that has a name
        study: Option<String>,
        /// Replace the levels of a factor, or fix a setting; repeatable
        #[arg(long = "set", value_name = "KEY=VALUE[,VALUE]")]
        sets: Vec<String>,
        /// How often each link is measured
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
        times: u32,
    },
    /// Remove what runs that were killed left in the cluster of the kubeconfig: namespaces with wirelab's labels whose run has
    /// ended
    Clean {
        /// List them, and remove nothing
        #[arg(long)]
        dry_run: bool,
        /// Remove those of other machines as well: whether their runs go on cannot be told from here
        #[arg(long)]
        other_machines: bool,
    },
    /// Print the rights that the lab kubernetes needs, and no others, as a ClusterRole in YAML
    Rbac,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab completions bash > ~/.local/share/bash-completion/completions/wirelab")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab man | man -l -
  wirelab man run | man -l -
  wirelab man --out /usr/local/share/man/man1")]
pub struct ManArgs {
    /// The command; default: wirelab itself
    pub command: Option<String>,
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub out: Option<PathBuf>,
}

/// Arguments of `endpoint`.
#[derive(Debug, Args)]
pub struct EndpointArgs {
    /// Play a browser, which is a client of pages, instead of the endpoint that speaks every protocol itself
    #[arg(long, value_enum)]
    pub browser: Option<BrowserArg>,
    /// What to play
    #[command(subcommand)]
    pub role: EndpointRole,
}

/// The roles of the built-in endpoint.
#[derive(Debug, Subcommand)]
pub enum EndpointRole {
    /// Print what the endpoint can do, as JSON
    Describe,
    /// Serve
    Server {
        /// The spec (contract/schema/server-spec.schema.json)
        #[arg(long)]
        spec: PathBuf,
    },
    /// Send requests
    Client {
        /// The spec (contract/schema/client-spec.schema.json)
        #[arg(long)]
        spec: PathBuf,
    },
}
