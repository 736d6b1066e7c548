//! Outcomes of trials and requests. An outcome is never converted into another one.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use wirelab_contract::error_kind::ErrorKind;

/// The outcome of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// The trial completed and every check passed. Single requests may have failed; metrics count them.
    Ok,
    /// The trial gave no valid measurement.
    Failed {
        /// The party at fault.
        blame: Blame,
        /// The attempted operation and what went wrong.
        reason: String,
    },
    /// The endpoint does not support what the cell asks for (exit status 127).
    Unsupported {
        /// The endpoint's message.
        reason: String,
    },
}

/// Prefix of the reason of a trial that did not run because its cell was abandoned.
pub const NOT_RUN: &str = "not run, because";

impl Outcome {
    /// A failed outcome.
    pub fn failed(blame: Blame, reason: impl Into<String>) -> Self {
        Self::Failed { blame, reason: reason.into() }
    }
}

/// Removes numbers (ports, times, identifiers, hexadecimal digits) from a reason: two reasons with equal results are of
/// the same kind.
#[must_use]
pub fn without_numbers(reason: &str) -> String {
    reason.chars().filter(|letter| !letter.is_ascii_hexdigit()).collect()
}

/// The party at fault for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The server's endpoint.
    Server,
    /// The client's endpoint.
    Client,
    /// A sidecar's endpoint.
    Sidecar,
    /// The control plane's endpoint.
    #[serde(rename = "control-plane")]
    ControlPlane,
    /// The lab: its network, its hosts.
    Lab,
    /// An observer.
    Observer,
    /// wirelab itself, or its machine.
    Runner,
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Sidecar => "sidecar",
            Self::ControlPlane => "control plane",
            Self::Lab => "lab",
            Self::Observer => "observer",
            Self::Runner => "wirelab",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_alike_that_differ_in_numbers_only() {
        let slow = |measured: &str| {
            without_numbers(&format!("the round trip is {measured} ms where 5.093 ms were configured"))
        };
        assert_eq!(slow("19.064"), slow("7.2"));
        assert_ne!(slow("19.064"), without_numbers("the rate is 19.064 Mbit/s where 5.093 ms were configured"));
    }
}
