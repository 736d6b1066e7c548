//! What the suite found.

use std::fmt;

use serde::Serialize;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::Feature;

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseResult {
    /// What is demanded, as a sentence.
    pub name: String,
    /// `server` or `client`; absent for what concerns the whole endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// The protocol that it was tried with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The feature that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature: Option<Feature>,
    /// How it ended.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "snake_case")]
pub enum Verdict {
    /// The endpoint does what is demanded.
    Passed,
    /// It does not: what was expected, what was observed, and the end of its log.
    Failed(String),
    /// The case does not concern this endpoint, or cannot be tried here, and why.
    NotApplicable(String),
    /// The suite gave up before it came to this case, and why.
    NotTried(String),
}

impl CaseResult {
    /// A result that concerns no role or protocol.
    pub(crate) fn of_suite(name: &str, verdict: Verdict) -> Self {
        Self { name: name.to_owned(), role: None, protocol: None, feature: None, verdict }
    }

    /// What is demanded, after its role and protocol.
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

/// What the suite found out about one endpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The endpoint's name.
    pub endpoint: String,
    /// Every case, in the order of trying.
    pub cases: Vec<CaseResult>,
}

impl Report {
    /// How many cases passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.count(|verdict| *verdict == Verdict::Passed)
    }

    /// How many cases failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Failed(_)))
    }

    /// What the cases that failed demand, each after its role and protocol.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let failed = self.cases.iter().filter(|case| matches!(case.verdict, Verdict::Failed(_)));
        failed.map(CaseResult::sentence).collect()
    }

    /// How many cases cannot be tried here or do not concern the endpoint.
    #[must_use]
    pub fn not_applicable(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::NotApplicable(_)))
    }

    /// How many cases the suite did not come to.
    #[must_use]
    pub fn not_tried(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::NotTried(_)))
    }

    fn count(&self, is: impl Fn(&Verdict) -> bool) -> usize {
        self.cases.iter().filter(|case| is(&case.verdict)).count()
    }
}
