//! Outcomes of trials and requests. An outcome is never converted into another one.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use wirelab_contract::error_kind::ErrorKind;

use crate::reason::Reason;

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
        /// Why.
        #[serde(flatten)]
        reason: Reason,
    },
    /// The endpoint does not support what the cell asks for (exit status 127).
    Unsupported {
        /// Why.
        #[serde(flatten)]
        reason: Reason,
    },
}

impl Outcome {
    /// A failed outcome.
    pub fn failed(blame: Blame, reason: impl Into<Reason>) -> Self {
        Self::Failed { blame, reason: reason.into() }
    }

    /// Why there is no result; `None` if the outcome is `ok`.
    #[must_use]
    pub const fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Ok => None,
            Self::Failed { reason, .. } | Self::Unsupported { reason } => Some(reason),
        }
    }
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
