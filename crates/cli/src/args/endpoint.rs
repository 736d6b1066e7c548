//! Arguments of `wirelab endpoint`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use wirelab_model::plan::OwnServers;
use wirelab_model::units::Span;

use super::BrowserArg;

/// Arguments of `endpoint`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wirelab endpoint describe
  wirelab endpoint server --spec server.json
  wirelab endpoint --engine client --spec client.json
  wirelab endpoint --browser firefox client --spec client.json

wirelab starts itself with this command. contract/README.md describes the messages of server and client.")]
pub struct EndpointArgs {
    /// Run a browser, which is a client of pages, instead of the endpoint that supports every protocol
    #[arg(long, value_enum)]
    pub browser: Option<BrowserArg>,
    /// Run the load engine instead of the endpoint that supports every protocol: as a client it sends requests, as a
    /// server it is the null server, which answers at once
    #[arg(long, conflicts_with = "browser")]
    pub engine: bool,
    /// Run a program of the user, which is a server: its words as a JSON list
    #[arg(long, value_name = "WORDS", conflicts_with_all = ["browser", "engine"], hide = true)]
    pub own_server: Option<String>,
    /// Run a program of the user, which is a client: its `words` and its `output`, as JSON
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["browser", "engine", "own_server"], hide = true)]
    pub own_client: Option<String>,
    /// The time limit for the program of --own-server to listen
    #[arg(long, value_name = "TIME", requires = "own_server", default_value_t = OwnServers::START_TIMEOUT, hide = true)]
    pub start_timeout: Span,
    /// The role to run
    #[command(subcommand)]
    pub role: EndpointRole,
}

/// The roles of the built-in endpoint.
#[derive(Debug, Subcommand)]
pub enum EndpointRole {
    /// Print the capabilities of the endpoint as JSON
    #[command(after_help = "Examples:
  wirelab endpoint describe")]
    Describe,
    /// Run a server
    #[command(after_help = "Examples:
  wirelab endpoint server --spec server.json")]
    Server {
        /// The specification (contract/schema/server-spec.schema.json)
        #[arg(long, value_name = "FILE")]
        spec: PathBuf,
    },
    /// Run a client, which sends requests
    #[command(after_help = "Examples:
  wirelab endpoint client --spec client.json")]
    Client {
        /// The specification (contract/schema/client-spec.schema.json)
        #[arg(long, value_name = "FILE")]
        spec: PathBuf,
    },
}
