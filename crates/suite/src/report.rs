//! Results of the suite.

use std::fmt;

use serde::Serialize;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::Feature;

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseResult {
    /// The requirement as a sentence.
    pub name: String,
    /// The role; absent for a requirement on the whole endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// The protocol of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The feature of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature: Option<Feature>,
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The verdict of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "snake_case")]
pub enum Verdict {
    /// The endpoint meets the requirement.
    Passed,
    /// The endpoint does not: the expectation, the observation, and the end of its log.
    Failed(String),
    /// The case does not apply to this endpoint, or cannot run here; with the reason.
    NotApplicable(String),
    /// The suite ended before this case; with the reason.
    NotTried(String),
}

impl CaseResult {
    /// A result without role and protocol.
    pub(crate) fn of_suite(name: &str, verdict: Verdict) -> Self {
        Self { name: name.to_owned(), role: None, protocol: None, feature: None, verdict }
    }

    /// The requirement with role and protocol.
    pub(crate) fn sentence(&self) -> String {
        let words: Vec<_> = [self.role, self.protocol.map(Protocol::token)].into_iter().flatten().collect();
        if words.is_empty() { self.name.clone() } else { format!("{}: {}", words.join(" "), self.name) }
    }
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.verdict {
            Verdict::Passed => "pass  ",
            Verdict::Failed(_) => "FAIL  ",
            Verdict::NotApplicable(_) => "  -   ",
            Verdict::NotTried(_) => "  ?   ",
        })?;
        f.write_str(&self.sentence())?;
        match &self.verdict {
            Verdict::Passed => Ok(()),
            Verdict::Failed(reason) => write!(f, "\n        {}", reason.replace('\n', "\n        ")),
            Verdict::NotApplicable(why) | Verdict::NotTried(why) => write!(f, " ({why})"),
        }
    }
}

/// The results of one endpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The endpoint's name.
    pub endpoint: String,
    /// All cases in order of execution.
    pub cases: Vec<CaseResult>,
}

impl Report {
    /// Number of passed cases.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.count(|verdict| *verdict == Verdict::Passed)
    }

    /// Number of failed cases.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Failed(_)))
    }

    /// The requirements of failed cases, each with role and protocol.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let failed = self.cases.iter().filter(|case| matches!(case.verdict, Verdict::Failed(_)));
        failed.map(CaseResult::sentence).collect()
    }

    /// Number of cases that do not apply or cannot run here.
    #[must_use]
    pub fn not_applicable(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::NotApplicable(_)))
    }

    /// Number of cases that the suite did not reach.
    #[must_use]
    pub fn not_tried(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::NotTried(_)))
    }

    fn count(&self, is: impl Fn(&Verdict) -> bool) -> usize {
        self.cases.iter().filter(|case| is(&case.verdict)).count()
    }
}
