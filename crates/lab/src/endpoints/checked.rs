//! What the contract suite said of an endpoint, kept in the user's cache beside what was installed.
//!
//! Of an endpoint that is not installed it is kept in a place of the same kind, named by what it consists of.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::endpoints::installation::{self, DIGITS};
use crate::endpoints::{Found, digest};

const FILE: &str = "checked.json";

/// What the contract suite said of an endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Cases passed.
    pub passed: usize,
    /// Cases that it has no part in.
    pub not_applicable: usize,
    /// Cases failed.
    pub failed: usize,
    /// What the failed cases demand, each after its role and protocol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Cases not tried, because it hung in others, or the suite had taken its time.
    pub not_tried: usize,
    /// How long the suite took, in seconds of wall time.
    pub seconds: f64,
    /// When it ended, as RFC 3339 in UTC.
    pub at: String,
    /// The version of the library that it described; absent: it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version of the wirelab whose suite it was.
    pub wirelab: String,
    /// SHA-256 of that wirelab's program file, hexadecimal.
    pub program: String,
}

impl Checked {
    /// Whether everything that concerns the endpoint was tried, and passed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.failed == 0 && self.not_tried == 0
    }
}

impl Found {
    /// What the contract suite said last of it as it is now.
    #[must_use]
    pub fn checked(&self) -> Option<Checked> {
        installation::read(&self.place().ok()?.join(FILE))
    }

    /// Keeps what the contract suite says.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, checked: &Checked) -> Result<(), LabError> {
        let path = self.place()?.join(FILE);
        std::fs::create_dir_all(path.parent().unwrap_or(&path))
            .and_then(|()| installation::write(&path, checked))
            .map_err(|error| LabError(format!("keeping what the contract suite said in {}: {error}", path.display())))
    }

    /// Where it is kept.
    fn place(&self) -> Result<PathBuf, LabError> {
        if let Some(installation) = &self.installation {
            return Ok(installation.place());
        }
        let identity = digest(self.endpoint.as_ref().map_err(Clone::clone)?)?;
        let cache = installation::cache().ok_or_else(|| {
            let attempt = format!("keeping what the contract suite said of `{}`", self.name);
            LabError(format!("{attempt}: neither XDG_CACHE_HOME nor HOME is set"))
        })?;
        Ok(installation::versions(&cache, &self.name).join(&identity[..DIGITS]))
    }
}
