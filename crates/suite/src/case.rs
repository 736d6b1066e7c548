//! A case as data.

use wirelab_lab::Role;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::Feature;

use crate::finding::Finding;
use crate::report::{CaseResult, Verdict};
use crate::stage::Stage;

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

    /// What it demands, after its role and protocol.
    pub fn sentence(&self) -> String {
        self.result(Verdict::Passed).sentence()
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
