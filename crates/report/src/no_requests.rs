//! Why a cell has no response times of single requests.

use std::fmt;

/// Why a cell has no response times of single requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRequests {
    BrowserClient,
    /// The results are a table of external measurements.
    Table,
    /// The results are the archive of a run.
    Archive,
    /// None of its requests succeeded.
    NoneSucceeded,
    /// The samples cannot be read.
    Unreadable {
        /// The error of the reader.
        error: String,
    },
}

impl NoRequests {
    /// For `map_err`: the samples cannot be read.
    pub fn unreadable(error: impl fmt::Display) -> Self {
        Self::Unreadable { error: error.to_string() }
    }
}

impl fmt::Display for NoRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BrowserClient => "its client is a browser, which records page loads instead of single requests",
            Self::Table => "a table has no samples of single requests",
            Self::Archive => "the archive of a run has no samples of single requests",
            Self::NoneSucceeded => "no request succeeded",
            Self::Unreadable { error } => error,
        })
    }
}
