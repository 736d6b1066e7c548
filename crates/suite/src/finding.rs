//! Results of a case's steps.

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

/// The result of a step.
pub type Finding<T = ()> = Result<T, Stop>;

/// Returns `Broken` with the reason unless the condition holds.
pub fn demand(holds: bool, otherwise: impl FnOnce() -> String) -> Finding {
    if holds { Ok(()) } else { Err(Stop::Broken(otherwise())) }
}
