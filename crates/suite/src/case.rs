//! A case as data.

use wirelab_lab::Role;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::Feature;

use crate::report::{CaseResult, Verdict};
use crate::stage::Stage;

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

/// One thing that the contract demands.
pub struct Case {
    /// It, as a sentence.
    pub name: String,
    /// The role that is under test.
    pub role: Option<Role>,
    /// What is spoken.
    pub protocol: Option<Protocol>,
    /// What is asked of the server.
    pub feature: Option<Feature>,
    /// What is done to find out.
    pub run: Box<dyn Fn(&Stage) -> Finding>,
}

impl Case {
    /// A case of a role with a protocol.
    pub fn new(
        role: Role,
        protocol: Protocol,
        name: impl Into<String>,
        run: impl Fn(&Stage) -> Finding + 'static,
    ) -> Self {
        Self { name: name.into(), role: Some(role), protocol: Some(protocol), feature: None, run: Box::new(run) }
    }

    /// The same, about a feature.
    pub fn about(self, feature: Feature) -> Self {
        Self { feature: Some(feature), ..self }
    }

    /// Its result.
    pub fn result(&self, verdict: Verdict) -> CaseResult {
        CaseResult {
            name: self.name.clone(),
            role: self.role.map(Role::word),
            protocol: self.protocol,
            feature: self.feature,
            verdict,
        }
    }
}
