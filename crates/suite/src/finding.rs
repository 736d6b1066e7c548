//! Results of a case's steps.

use std::fmt;

/// The reason why a case did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The endpoint broke the contract: the expectation and the observation.
    Broken(String),
    /// The endpoint broke the contract by silence until the deadline.
    Hung(String),
    /// The case cannot run, with the reason.
    NotApplicable(String),
}

impl Stop {
    /// A broken contract.
    pub fn broken(reason: impl Into<String>) -> Self {
        Self::Broken(reason.into())
    }

    /// A case that cannot run.
    pub fn skip(why: impl Into<String>) -> Self {
        Self::NotApplicable(why.into())
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(reason) | Self::Hung(reason) | Self::NotApplicable(reason) => f.write_str(reason),
        }
    }
}

/// The result of a step.
pub type Finding<T = ()> = Result<T, Stop>;

/// Returns `Broken` with the reason unless the condition holds.
pub fn demand(holds: bool, otherwise: impl FnOnce() -> String) -> Finding {
    if holds { Ok(()) } else { Err(Stop::Broken(otherwise())) }
}
