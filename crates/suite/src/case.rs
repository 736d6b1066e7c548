//! A test case as data.

use wirelab_lab::Role;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::Feature;

use crate::finding::Finding;
use crate::report::{CaseResult, Verdict};
use crate::stage::Stage;

/// One requirement of the contract.
pub struct Case {
    /// The requirement as a sentence.
    pub name: String,
    /// The role under test.
    pub role: Option<Role>,
    pub protocol: Option<Protocol>,
    /// The feature that requests use.
    pub feature: Option<Feature>,
    /// The test.
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

    /// Adds the feature that the case is about.
    pub fn about(self, feature: Feature) -> Self {
        Self { feature: Some(feature), ..self }
    }

    /// The requirement with role and protocol.
    pub fn sentence(&self) -> String {
        self.result(Verdict::Passed).sentence()
    }

    /// The result with this verdict.
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
