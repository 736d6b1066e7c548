//! The description that an endpoint prints (`<endpoint> describe`), and the manifest in its folder (`endpoint.toml`).

use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::Protocol;
use crate::spec::Feature;

/// Exit status of an endpoint that does not support what the spec asks for.
pub const UNSUPPORTED_STATUS: i32 = 127;

/// The JSON object that `<endpoint> describe` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The version of the contract that the endpoint implements, 1.
    pub contract: u32,
    /// The endpoint's name, the same as its folder's.
    pub name: String,
    /// The protocol library (or libraries) that it measures.
    pub library: String,
    /// The version of that library, from the library itself if it reports one.
    pub version: String,
    /// The language that the endpoint is written in.
    pub language: String,
    /// Abilities as a server; absent if it has no such role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Role>,
    /// Abilities as a client; absent if it has no such role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Role>,
    /// Abilities as a sidecar; absent if it has no such role. The features are empty: a sidecar forwards any request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<Role>,
    /// Abilities as a control plane; absent if it has no such role. The protocols are those between clients and
    /// servers. The features are empty: no request passes through a control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<Role>,
}

/// Abilities of an endpoint in one role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// The supported protocols.
    pub protocols: Vec<Protocol>,
    /// The features that a server offers or that a client can ask for.
    pub features: Vec<Feature>,
    /// Whether it can export its counters during a trial (`exposition` in the spec).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exposition: bool,
    /// Whether a client can send requests that the user wrote (`mix` in the spec).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_requests: bool,
    /// Whether a client can end its warm-up as soon as response times are steady (`until_steady` in the spec).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_steady: bool,
}

/// `endpoint.toml`: how to start an endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The endpoint's name, the same as its folder's.
    pub name: String,
    /// The command, to which wirelab appends `describe`, or `server`, `client`, `sidecar` or `control-plane` and
    /// `--spec FILE`. A relative program path that exists below the folder is resolved against the folder, which is
    /// also the working directory.
    pub command: Vec<String>,
    /// Environment variables to set.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub environment: IndexMap<String, String>,
    /// How to build it; absent: the folder needs no build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<Install>,
}

/// How `wirelab endpoints install` builds an endpoint from its folder.
///
/// In `steps`, and in `command` and `environment` above, `{installed}` stands for the folder that the steps fill. In
/// `steps`, `{work}` stands for a folder of intermediate files, and `{shared}` for a folder that all endpoints of a
/// user share, for caches of compilers. The environment variables `WIRELAB_INSTALLED`, `WIRELAB_WORK` and
/// `WIRELAB_SHARED` hold the same paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Install {
    /// The language of the library, for the list of installable endpoints.
    pub language: String,
    /// Library and version, for the same list. The description of the installed endpoint takes precedence.
    pub library: String,
    /// The set of endpoints to which it belongs.
    pub set: Set,
    /// The programs that the steps need, or that the endpoint itself needs if it has no steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// Other folders, relative to this one, whose files are input of the build: they are part of the installation's
    /// identity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// Commands, executed in order in the endpoint's folder, which they leave unchanged. The next attempt repeats a
    /// failed step, with the files that the step left in `{installed}` and `{work}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Vec<String>>,
    /// Commands instead of `steps` for another version of the library, as in `wirelab endpoints install NAME@VERSION`:
    /// `{version}` stands for the version. The description of the installed endpoint must name it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub version_steps: Vec<Vec<String>>,
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

/// A required program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Its name, to be found in `PATH` or in Debian's folders of system administration programs; or the path of a file
    /// or folder.
    pub program: String,
    /// The Debian package that contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debian: Option<String>,
    /// The remedy if it is missing and no package provides it.
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
    /// Identity of the installation; absent: the endpoint was not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation: Option<String>,
}
