//! The last result of the contract suite for an endpoint, kept in the user's cache beside the installation.
//!
//! The result of an endpoint without installation is kept in a similar folder, named by the endpoint's digest.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::endpoints::installation::{self, DIGITS};
use crate::endpoints::{Found, digest};

const FILE: &str = "checked.json";

/// Result of the contract suite for an endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Number of passed cases.
    pub passed: usize,
    /// Number of cases that do not apply to the endpoint.
    pub not_applicable: usize,
    /// Number of failed cases.
    pub failed: usize,
    /// Requirements of the failed cases, each with role and protocol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Number of cases that were skipped, because the endpoint hung in others or the suite ran out of time.
    pub not_tried: usize,
    /// Duration of the suite, in seconds of wall time.
    pub seconds: f64,
    /// End of the suite, as RFC 3339 in UTC.
    pub at: String,
    /// Version of the library in the endpoint's description; absent: it failed to describe itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Version of the wirelab that ran the suite.
    pub wirelab: String,
    /// SHA-256 of that wirelab's executable, hexadecimal.
    pub program: String,
}

impl Checked {
    /// Whether all applicable cases were tried and passed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.failed == 0 && self.not_tried == 0
    }
}

impl Found {
    /// The last result of the contract suite for the current version of the endpoint.
    #[must_use]
    pub fn checked(&self) -> Option<Checked> {
        installation::read(&self.result_folder().ok()?.join(FILE))
    }

    /// Stores the result of the contract suite.
    ///
    /// # Errors
    /// If the result cannot be written.
    pub fn keep(&self, checked: &Checked) -> Result<(), LabError> {
        let path = self.result_folder()?.join(FILE);
        std::fs::create_dir_all(path.parent().unwrap_or(&path))
            .and_then(|()| installation::write(&path, checked))
            .map_err(|error| {
                LabError::file(format!("cannot store the result of the contract suite in {}", path.display()))
                    .because(error)
            })
    }

    fn result_folder(&self) -> Result<PathBuf, LabError> {
        if let Some(installation) = &self.installation {
            return Ok(installation.place());
        }
        let identity = digest(self.endpoint.as_ref().map_err(Clone::clone)?)?;
        let cache = installation::cache().ok_or_else(|| {
            let attempt = format!("cannot store the result of the contract suite for `{}`", self.name);
            LabError::file(format!("{attempt}: neither XDG_CACHE_HOME nor HOME is set"))
        })?;
        Ok(installation::versions(&cache, &self.name).join(&identity[..DIGITS]))
    }
}
