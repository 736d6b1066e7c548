//! The reasons why a build has no verdict.

use serde::Serialize;

use super::tree::BuildError;
use crate::failure::Failure;

/// The reason why a build has no verdict.
#[derive(Debug, Clone, Serialize, thiserror::Error)]
#[serde(into = "Shown")]
pub(super) enum Unusable {
    #[error(transparent)]
    NotBuilt(#[from] BuildError),
    /// Its program cannot be started, or does not listen.
    #[error("{0}")]
    NotStarted(Failure),
    #[error("every trial of the first block failed; the run has the logs")]
    NoTrial,
    #[error("the run has no values")]
    NoValues,
}

impl Unusable {
    /// The code in JSON.
    const fn code(&self) -> &'static str {
        match self {
            Self::NotBuilt(_) => "not-built",
            Self::NotStarted(_) => "not-started",
            Self::NoTrial => "no-trial",
            Self::NoValues => "no-values",
        }
    }
}

/// A reason in JSON.
#[derive(Serialize)]
struct Shown {
    reason: &'static str,
    why: String,
}

impl From<Unusable> for Shown {
    fn from(reason: Unusable) -> Self {
        Self { reason: reason.code(), why: reason.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_code_and_the_text_of_a_reason() {
        let shown = |reason: Unusable| serde_json::to_value(reason).unwrap();
        let start = shown(Unusable::NotStarted(Failure::input("--start: cannot start `server`")));
        assert_eq!(start, serde_json::json!({ "reason": "not-started", "why": "--start: cannot start `server`" }));
        assert_eq!(shown(Unusable::NoValues)["reason"], "no-values");
    }
}
