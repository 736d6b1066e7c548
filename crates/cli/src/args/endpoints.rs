//! What endpoints there are.

use clap::{Args, Subcommand};

/// Arguments of `endpoints`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab endpoints                             the list
  wirelab endpoints install go-quic-go          build one, in the user's cache folder
  wirelab endpoints install --set core          those that are quickly installed
  wirelab endpoints check builtin               run the contract suite on one
  wirelab endpoints check go-quic-go --only 'client h3: a deadline'
  wirelab endpoints check --all --resume        without those that it has found right already
  wirelab endpoints list --markdown             what installing took, and what the suite said
  wirelab endpoints remove go-quic-go

Endpoints are folders with an endpoint.toml below ./endpoints, below the folders in $WIRELAB_ENDPOINTS (separated by
colons), and below the user's data folder (~/.local/share/wirelab/endpoints). contract/README.md says how to write one.
What is installed is in the user's cache folder (~/.cache/wirelab), a version for each content of the endpoint's folder.")]
pub struct EndpointsArgs {
    /// The command; default: list
    #[command(subcommand)]
    pub command: Option<EndpointsCommand>,
    /// Print as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// The subcommands of `endpoints`.
#[derive(Debug, Subcommand)]
pub enum EndpointsCommand {
    /// List endpoints with their abilities, or the reason why they cannot be used
    List {
        /// Print a page in Markdown, with the cost of installation and the result of the contract suite
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
    },
    /// Build endpoints that are not built in
    Install {
        #[command(flatten)]
        chosen: Chosen,
        /// The number of endpoints to build at the same time; default: one for each two processors
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
        jobs: Option<u32>,
    },
    /// Run the contract suite. Endpoints that are not named show only failed cases
    Check {
        #[command(flatten)]
        chosen: Chosen,
        /// Try only the cases with these words, such as "client h3"; the list keeps the last complete check
        #[arg(long, value_name = "WORDS")]
        only: Option<String>,
        /// Omit unchanged endpoints that passed with this version of wirelab
        #[arg(long, conflicts_with = "only")]
        resume: bool,
    },
    /// Remove all installed versions of an endpoint
    Remove {
        #[command(flatten)]
        chosen: Chosen,
    },
}

/// Which endpoints a command is about.
#[derive(Debug, Args)]
pub struct Chosen {
    /// What includes them.
    #[command(flatten)]
    pub which: Which,
    /// Exclude these from --all or --set
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "names")]
    pub except: Vec<String>,
}

/// One of the ways to choose endpoints.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Which {
    /// The names of endpoints
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Every endpoint
    #[arg(long)]
    pub all: bool,
    /// A set: core (each installed in well under a minute, and tested with every change of wirelab) or full (the
    /// others)
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
