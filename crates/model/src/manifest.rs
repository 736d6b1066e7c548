//! The manifest of a run: all facts known before the first trial.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::endpoint::{Description, Endpoint};
use crate::environment::Environment;
use crate::plan::{Job, Plan};
use crate::planted::Planting;
use crate::reference::{self, References};
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
    /// The study after preset and command line.
    pub study: Study,
    /// The applied preset.
    pub preset: Option<String>,
    /// Arguments of `--set`, as written.
    pub set: Vec<String>,
    pub lab: String,
    /// Whether the user allowed loads on foreign hosts above the polite limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_load: bool,
    /// The observers, by name.
    pub observers: Vec<String>,
    pub plan: Plan,
    /// Planted effects; absent in runs of versions without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planted: Option<Planting>,
    /// Null references; absent in runs of versions without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub references: Option<References>,
    /// The endpoints of the run, by name.
    pub endpoints: IndexMap<String, EndpointRecord>,
    /// The machine.
    pub environment: Environment,
    /// Warnings about the whole run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

impl Manifest {
    /// The jobs of the run's reference trials.
    #[must_use]
    pub fn reference_jobs(&self) -> Vec<Job> {
        let repeated = self.references.iter().flat_map(References::repeated);
        repeated.filter_map(|cell| reference::job(&self.plan.cells.get(cell)?.job).ok()).collect()
    }
}

/// An endpoint of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointRecord {
    /// Command and environment.
    pub endpoint: Endpoint,
    pub description: Description,
    /// SHA-256 of its program, hexadecimal.
    pub digest: String,
}
