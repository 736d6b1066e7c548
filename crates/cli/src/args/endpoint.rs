//! The built-in endpoint.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::BrowserArg;

/// Arguments of `endpoint`.
#[derive(Debug, Args)]
pub struct EndpointArgs {
    /// Play a browser as a client of pages, instead of the built-in endpoint
    #[arg(long, value_enum)]
    pub browser: Option<BrowserArg>,
    /// The role
    #[command(subcommand)]
    pub role: EndpointRole,
}

/// The roles of the built-in endpoint.
#[derive(Debug, Subcommand)]
pub enum EndpointRole {
    /// Print what the endpoint can do, as JSON
    Describe,
    /// Play a server
    Server {
        /// The spec (contract/schema/server-spec.schema.json)
        #[arg(long)]
        spec: PathBuf,
    },
    /// Play a client
    Client {
        /// The spec (contract/schema/client-spec.schema.json)
        #[arg(long)]
        spec: PathBuf,
    },
}
