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
    /// What it can do as a sidecar; absent if it plays none. Features are empty: a sidecar sends on whatever it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<Role>,
    /// What it can do as a control plane; absent if it plays none. Protocols are those that clients speak to the servers; features are
    /// empty: no request passes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<Role>,
}

/// What an endpoint can do in one role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// The protocols that it speaks.
    pub protocols: Vec<Protocol>,
    /// The features that it offers (server) or can ask for (client).
    pub features: Vec<Feature>,
    /// Whether it tells what it has counted, while it works (`exposition` in the spec).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exposition: bool,
}

/// `endpoint.toml`: how to start an endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The endpoint's name, the same as its folder's.
    pub name: String,
    /// The command, to which `describe`, or `server`, `client`, `sidecar` or `control-plane` and `--spec FILE`, is appended. A
    /// relative program path that exists below the folder is taken from there; the folder is the working directory.
    pub command: Vec<String>,
    /// Environment variables to set.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub environment: IndexMap<String, String>,
    /// How to build it; absent: its folder is all that there is to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<Install>,
}

/// How `wirelab endpoints install` makes an endpoint from its folder.
///
/// In `steps`, and in `command` and `environment` above, `{installed}` stands for the folder that the steps fill. In `steps`
/// `{work}` stands for a folder for whatever is in between, and `{shared}` for one that all endpoints of a user share, for what
/// compilers keep. Steps find the three in `WIRELAB_INSTALLED`, `WIRELAB_WORK` and `WIRELAB_SHARED` too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Install {
    /// The language of the library, for the list of what can be installed.
    pub language: String,
    /// Library and version, for the same list. The description that the installed endpoint gives has the last word.
    pub library: String,
    /// Which set it belongs to.
    pub set: Set,
    /// The programs that the steps need, or the endpoint itself where there are no steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// Other folders, relative to this one, from whose files it is built: they are part of the installation's identity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// Commands, run one after the other in the endpoint's folder, which they leave as it is. A step that failed is run
    /// again by the next attempt, with what it left in `{installed}` and `{work}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Vec<String>>,
}

/// A set of endpoints that are installed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// Installed in well under a minute each, and tested with every change of wirelab.
    Core,
    /// All others.
    Full,
}

/// A program that has to be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Its name, looked for in `PATH` and where Debian has programs of the administrator; or the path of a file or folder.
    pub program: String,
    /// The Debian package that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debian: Option<String>,
    /// What to do if it is missing, where that is not to install a package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
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
    /// The identity of what it was installed from; absent: it was not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation: Option<String>,
}
