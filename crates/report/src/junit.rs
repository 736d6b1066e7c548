//! The requirements and claims as JUnit XML, which CI systems show as tests.

use askama::Template;
use wirelab_stats::analysis::{ClaimVerdict, RequirementResult, RequirementVerdict, Requiring};

use crate::Input;
use crate::claims;
use crate::numbers::NBSP;
use crate::requirements;

/// A test suite per requirement with a test case per cell, and one suite with the claims.
///
/// # Panics
/// Never: writing to memory cannot fail.
#[must_use]
pub fn junit(input: &Input) -> String {
    let mut suites: Vec<Suite> =
        input.analysis.requirements.iter().map(|result| of_requirement(input, result)).collect();
    if !input.analysis.claims.is_empty() {
        suites.push(of_claims(input));
    }
    let document = Document { study: &input.manifest.study.name, suites };
    document.render().expect("writing to memory cannot fail").replace(NBSP, " ")
}

#[derive(Template)]
#[template(path = "junit.xml", escape = "html")]
struct Document<'a> {
    study: &'a str,
    suites: Vec<Suite>,
}

struct Suite {
    name: String,
    cases: Vec<Case>,
}

struct Case {
    name: String,
    result: CaseResult,
    /// The measured size and the reason.
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CaseResult {
    Passed,
    Failed,
    Skipped,
}

impl Suite {
    fn count(&self, result: CaseResult) -> usize {
        self.cases.iter().filter(|case| case.result == result).count()
    }

    fn failed(&self) -> usize {
        self.count(CaseResult::Failed)
    }

    fn skipped(&self) -> usize {
        self.count(CaseResult::Skipped)
    }
}

impl Case {
    fn is_failed(&self) -> bool {
        self.result == CaseResult::Failed
    }

    fn is_skipped(&self) -> bool {
        self.result == CaseResult::Skipped
    }
}

impl Document<'_> {
    fn tests(&self) -> usize {
        self.suites.iter().map(|suite| suite.cases.len()).sum()
    }

    fn failed(&self) -> usize {
        self.suites.iter().map(Suite::failed).sum()
    }

    fn skipped(&self) -> usize {
        self.suites.iter().map(Suite::skipped).sum()
    }
}

fn of_requirement(input: &Input, result: &RequirementResult) -> Suite {
    let fails_unclear = result.fails() && result.verdict != RequirementVerdict::NotMet;
    let case = |test: &Requiring| Case {
        name: requirements::label(input, test.cell),
        result: match test.verdict {
            RequirementVerdict::Met => CaseResult::Passed,
            RequirementVerdict::NotMet => CaseResult::Failed,
            RequirementVerdict::CannotTell { .. } if fails_unclear => CaseResult::Failed,
            RequirementVerdict::CannotTell { .. } => CaseResult::Skipped,
        },
        text: requirements::cell(input, result, test),
    };
    let mut cases: Vec<Case> = result.tests.iter().map(case).collect();
    if cases.is_empty() {
        let result = if fails_unclear { CaseResult::Failed } else { CaseResult::Skipped };
        cases.push(Case { name: "no cell".to_owned(), result, text: requirements::NO_CELL.to_owned() });
    }
    Suite { name: requirements::statement(input, &result.that), cases }
}

/// Claims do not fail a run, so a refuted claim is skipped, with its verdict as the text.
fn of_claims(input: &Input) -> Suite {
    let cases = input.analysis.claims.iter().map(|claim| Case {
        name: format!("{} {}", claim.id, claim.text),
        result: if claim.verdict == ClaimVerdict::Holds { CaseResult::Passed } else { CaseResult::Skipped },
        text: format!("{}: {}", crate::words::claim(claim.verdict), claims::tally(claim)),
    });
    Suite { name: "Claims".to_owned(), cases: cases.collect() }
}
