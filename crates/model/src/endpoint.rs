//! What an endpoint says of itself (`<endpoint> describe`) and what its folder declares (`endpoint.toml`).

use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::Protocol;
use crate::spec::Feature;

/// The exit status that means "I cannot do what the spec asks for".
pub const UNSUPPORTED_STATUS: i32 = 127;

/// The JSON object that `<endpoint> describe` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The version of the contract that the endpoint speaks, 1.
    pub contract: u32,
    /// The endpoint's name, the same as its folder's.
    pub name: String,
    /// The protocol library (or libraries) that it measures.
    pub library: String,
    /// The version of that library, as the library reports it where it can.
    pub version: String,
    /// The language that the endpoint is written in.
    pub language: String,
    /// What it can do as a server; absent if it plays none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Role>,
    /// What it can do as a client; absent if it plays none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Role>,
}

/// What an endpoint can do in one role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// The protocols that it speaks.
    pub protocols: Vec<Protocol>,
    /// The features that it offers (server) or can ask for (client).
    pub features: Vec<Feature>,
}

/// `endpoint.toml`: how to start an endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The endpoint's name, the same as its folder's.
    pub name: String,
    /// The command, to which `describe`, `server --spec FILE` or `client --spec FILE` is appended. A relative program
    /// path that exists below the folder is taken from there; the folder is the working directory.
    pub command: Vec<String>,
    /// Environment variables to set.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub environment: IndexMap<String, String>,
}

/// An endpoint that can be started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Its name in study files.
    pub name: String,
    /// Program and leading arguments.
    pub command: Vec<String>,
    /// Environment variables to set.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub environment: IndexMap<String, String>,
    /// The working directory; absent: inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
}
