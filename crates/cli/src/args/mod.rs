//! Every command and flag, documented where it is declared: `--help`, the man pages and the completions come from here.

mod analyze;
mod doctor;
mod endpoint;
mod endpoints;
mod labs;
mod load;
mod manual;
mod page;
mod probe;
mod report;
mod run;
mod studies;

use clap::{Args, Parser, Subcommand};

pub use analyze::AnalyzeArgs;
pub use doctor::DoctorArgs;
pub use endpoint::{EndpointArgs, EndpointRole};
pub use endpoints::{Chosen, EndpointsArgs, EndpointsCommand, SetName};
pub use labs::{LabsArgs, LabsCommand};
pub use load::{ArrivalsArg, LoadArgs, ReachArgs, ResumptionArg};
pub use manual::{CompletionsArgs, ManArgs, ReferenceArgs};
pub use page::{BrowserArg, PageArgs};
pub use probe::ProbeArgs;
pub use report::{Format, ReportArgs};
pub use run::{Keep, ResumeArgs, RunArgs};
pub use studies::{StudiesArgs, StudiesCommand};

/// A laboratory for web communication protocols: measures HTTP/1.1, HTTP/2, HTTP/3 and their transports side by side,
/// with verdicts and intervals
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
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a study: a built-in one by name, or a study file
    Run(RunArgs),
    /// Continue a run that was interrupted or killed
    Resume(ResumeArgs),
    /// Show the report of a run in any format
    Report(ReportArgs),
    /// Run the statistics on a table of measurements (CSV), and report the result like a run
    Analyze(AnalyzeArgs),
    /// Send load to a server and print latencies, with the load generator alone
    Load(LoadArgs),
    /// Compare HTTP/1.1, HTTP/2 and HTTP/3 against one server, also a server of another owner, politely
    Probe(ProbeArgs),
    /// Load pages in real browsers over HTTP/1.1, HTTP/2 and HTTP/3, politely
    Page(PageArgs),
    /// List the built-in studies, print one, or check a study file
    Studies(StudiesArgs),
    /// List endpoints, install them, or check that they keep the contract
    Endpoints(EndpointsArgs),
    /// List labs and observers, measure links, or clean up in a cluster
    Labs(LabsArgs),
    /// Show what this machine can and cannot measure, with a remedy for each gap
    Doctor(DoctorArgs),
    /// Print the completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page of wirelab or of one command, or write all of them
    Man(ManArgs),
    /// Play a built-in endpoint; wirelab starts itself in this way (contract/README.md)
    Endpoint(EndpointArgs),
    /// Write the reference pages of the manual (internal)
    #[command(hide = true)]
    Reference(ReferenceArgs),
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

/// How progress and results are shown.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Print the result as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Show no progress: no bar, and no line every half minute if standard error is not a terminal
    #[arg(long, short)]
    pub quiet: bool,
}
