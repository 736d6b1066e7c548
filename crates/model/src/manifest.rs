//! The manifest of a run: everything that is known before the first trial.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::endpoint::{Description, Endpoint};
use crate::environment::Environment;
use crate::plan::Plan;
use crate::study::Study;
use crate::warning::Warning;

/// The version of the run folder's layout.
pub const FORMAT: u32 = 1;

/// `manifest.json` of a run folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the layout, [`FORMAT`].
    pub format: u32,
    /// When the run was created, RFC 3339.
    pub created: String,
    /// The study, with preset and command line applied.
    pub study: Study,
    /// The preset that was applied.
    pub preset: Option<String>,
    /// What `--set` changed, as written.
    pub set: Vec<String>,
    /// The lab.
    pub lab: String,
    /// Whether hosts that are not ours may be sent more than is polite: the user said that they may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_load: bool,
    /// The observers, by name.
    pub observers: Vec<String>,
    /// The plan.
    pub plan: Plan,
    /// The endpoints that take part, by name.
    pub endpoints: IndexMap<String, EndpointRecord>,
    /// The machine.
    pub environment: Environment,
    /// What the report has to say of the whole run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// An endpoint that takes part in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointRecord {
    /// How it is started.
    pub endpoint: Endpoint,
    /// What it says of itself.
    pub description: Description,
    /// SHA-256 of its program, hexadecimal.
    pub digest: String,
}
