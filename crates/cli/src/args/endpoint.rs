//! The built-in endpoint.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::BrowserArg;

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
