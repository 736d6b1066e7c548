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
        /// Print a page in Markdown, with what installing took and what the contract suite said
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
        /// Leave out those that passed already as they are now, checked by this very program
        #[arg(long, conflicts_with = "only")]
        resume: bool,
    },
    /// Remove what was installed, all versions of it
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
    /// But not these, of --all or --set
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "names")]
    pub except: Vec<String>,
}

/// One of the ways to choose endpoints.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Which {
    /// Their names
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Every endpoint
    #[arg(long)]
    pub all: bool,
    /// Those of a set: core (installed in well under a minute each, and tested with every change of wirelab) or full (the others)
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
