//! Arguments of `wirelab endpoints`.

use clap::{Args, Subcommand};

/// Arguments of `endpoints`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab endpoints                             list all endpoints
  wirelab endpoints install go-quic-go          build one endpoint
  wirelab endpoints install --set core          build all endpoints that install quickly
  wirelab endpoints check builtin               run the contract suite on one endpoint
  wirelab endpoints list --markdown             the list as a page, with installation times
  wirelab endpoints remove go-quic-go

wirelab looks for endpoints, folders with an endpoint.toml, in three places: the folders in $WIRELAB_ENDPOINTS \
(separated by colons), ./endpoints, and the user's data folder (~/.local/share/wirelab/endpoints). It carries the \
sources of its own endpoints, and unpacks them if no place has an endpoint of the same name (WIRELAB_CARRIED=off: \
never). contract/README.md describes how to write one. Installations are in the user's cache folder \
(~/.cache/wirelab), one for each content of an endpoint's folder.")]
pub struct EndpointsArgs {
    /// The action; default: list
    #[command(subcommand)]
    pub command: Option<EndpointsCommand>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// The subcommands of `endpoints`.
#[derive(Debug, Subcommand)]
pub enum EndpointsCommand {
    /// List endpoints with their capabilities, or the reason why they cannot be used
    #[command(after_help = "Examples:
  wirelab endpoints list
  wirelab endpoints list --markdown > endpoints.md")]
    List {
        /// Print a page in Markdown, with installation times and the results of the contract suite
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
    },
    /// Build endpoints in the user's cache folder
    #[command(after_help = "Examples:
  wirelab endpoints install go-quic-go curl
  wirelab endpoints install --set core --jobs 2
  wirelab endpoints install --all --except c-lsquic,dotnet")]
    Install {
        #[command(flatten)]
        chosen: Chosen,
        /// Number of endpoints to build at the same time; default: half the number of processors
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
        jobs: Option<u32>,
    },
    /// Run the contract suite; with --all or --set, show failed cases only
    #[command(after_help = "Examples:
  wirelab endpoints check builtin
  wirelab endpoints check go-quic-go --only 'client h3: a deadline'
  wirelab endpoints check --all --resume        omit endpoints that passed already")]
    Check {
        #[command(flatten)]
        chosen: Chosen,
        /// Try only the cases whose line contains these words, as in "client h3"; `endpoints list` keeps showing the
        /// last complete check
        #[arg(long, value_name = "WORDS")]
        only: Option<String>,
        /// Omit unchanged endpoints that passed the suite of this very program
        #[arg(long, conflicts_with = "only")]
        resume: bool,
    },
    /// Remove the installations of endpoints, in all versions
    #[command(after_help = "Examples:
  wirelab endpoints remove go-quic-go
  wirelab endpoints remove --all")]
    Remove {
        #[command(flatten)]
        chosen: Chosen,
    },
}

/// Selection of endpoints.
#[derive(Debug, Args)]
pub struct Chosen {
    /// The endpoints to include.
    #[command(flatten)]
    pub which: Which,
    /// Omit these endpoints of --all or --set
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "names")]
    pub except: Vec<String>,
}

/// The ways to include endpoints.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Which {
    /// The names of endpoints
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Every endpoint
    #[arg(long)]
    pub all: bool,
    /// The endpoints of a set: core (each installs in well under a minute, and every change of wirelab is tested with
    /// it) or full (the others)
    #[arg(long, value_name = "SET", value_enum)]
    pub set: Option<SetName>,
}

/// The sets of endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SetName {
    /// Endpoints that install quickly
    Core,
    /// All other endpoints
    Full,
}
