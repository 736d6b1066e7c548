//! What a step of a case finds out.

/// Why a case did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The contract is broken: the expectation and the observation.
    Broken(String),
    /// The contract is broken by silence: nothing came until the deadline.
    Hung(String),
    /// It cannot be tried, and why.
    NotApplicable(String),
}

impl Stop {
    /// The contract is broken.
    pub fn broken(reason: impl Into<String>) -> Self {
        Self::Broken(reason.into())
    }

    /// It cannot be tried.
    pub fn skip(why: impl Into<String>) -> Self {
        Self::NotApplicable(why.into())
    }
}

/// What a step of a case gives.
pub type Finding<T = ()> = Result<T, Stop>;

/// Demands a condition.
pub fn demand(holds: bool, otherwise: impl FnOnce() -> String) -> Finding {
    if holds { Ok(()) } else { Err(Stop::Broken(otherwise())) }
}
