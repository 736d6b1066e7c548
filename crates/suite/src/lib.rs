//! The contract suite: tests that an endpoint keeps the contract of `contract/README.md`.
//!
//! [`check`] runs all cases that apply to an endpoint's description. A case is data: a sentence; its role, protocol and
//! feature; and the test. The peer is the built-in endpoint, or a server of `hostile` if the peer must misbehave.

mod case;
mod cases;
mod conversation;
mod finding;
mod hostile;
mod material;
mod pair;
mod report;
pub mod schema;
mod set_up_error;
mod stage;
mod verify;

use std::path::Path;
use std::time::{Duration, Instant};

use wirelab_model::endpoint::Endpoint;

pub use report::{CaseResult, Report, Verdict};

use finding::Stop;
use stage::Stage;

/// Time limit of one step of an endpoint: to start, to refuse, to answer a command. It is long because the machine may
/// be busy; an endpoint that keeps the contract does not reach it.
const STEP_LIMIT: Duration = Duration::from_secs(60);

/// Time limit of all cases together, which number about two hundred.
const TOTAL_LIMIT: Duration = Duration::from_secs(3600);

/// Time limits of the suite.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Limit of one step: to start, to refuse, to answer a command.
    pub step: Duration,
    /// Limit after which no further case starts.
    pub whole: Duration,
}

impl Default for Limits {
    /// One minute per step, one hour in total.
    fn default() -> Self {
        Self { step: STEP_LIMIT, whole: TOTAL_LIMIT }
    }
}

/// Number of cases with a silent endpoint after which the suite skips the others.
const HANGS: u32 = 3;

/// Runs the contract suite on `endpoint`, with `reference` (the built-in endpoint) as the peer.
///
/// Writes files only below `scratch`, which the caller removes. Calls `progress` at the end of every case.
pub fn check(
    endpoint: &Endpoint,
    reference: &Endpoint,
    scratch: &Path,
    progress: &mut dyn FnMut(&CaseResult),
) -> Report {
    check_within(endpoint, reference, scratch, Limits::default(), progress)
}

/// [`check`], limited to cases whose sentence, with role and protocol, contains `words`: `client h3: the warm-up`.
pub fn check_only(
    endpoint: &Endpoint,
    reference: &Endpoint,
    scratch: &Path,
    words: &str,
    progress: &mut dyn FnMut(&CaseResult),
) -> Report {
    check_some(endpoint, reference, scratch, Limits::default(), words, progress)
}

/// [`check`] with other limits, for tests of endpoints that hang.
pub fn check_within(
    endpoint: &Endpoint,
    reference: &Endpoint,
    scratch: &Path,
    limits: Limits,
    progress: &mut dyn FnMut(&CaseResult),
) -> Report {
    check_some(endpoint, reference, scratch, limits, "", progress)
}

fn check_some(
    endpoint: &Endpoint,
    reference: &Endpoint,
    scratch: &Path,
    limits: Limits,
    words: &str,
    progress: &mut dyn FnMut(&CaseResult),
) -> Report {
    let begun = Instant::now();
    let mut report = Report { endpoint: endpoint.name.clone(), cases: Vec::new() };
    let mut note = |result: CaseResult| {
        progress(&result);
        report.cases.push(result);
    };
    let described = cases::describe::check(endpoint);
    note(cases::describe::result(&described));
    let Ok(description) = described else { return report };
    let stage = match Stage::set(endpoint, description, reference, scratch, limits.step) {
        Ok(stage) => stage,
        Err(error) => {
            note(CaseResult::of_suite("the suite can be set up", Verdict::Failed(error.to_string())));
            return report;
        }
    };
    let mut hangs = 0;
    for case in cases::all(&stage).into_iter().filter(|case| case.sentence().contains(words)) {
        let verdict = if hangs >= HANGS {
            Verdict::NotTried(format!("not tried: the endpoint hung in {HANGS} earlier cases"))
        } else if begun.elapsed() >= limits.whole {
            Verdict::NotTried(format!("not tried: the earlier cases took {} minutes", limits.whole.as_secs() / 60))
        } else {
            match (case.run)(&stage) {
                Ok(()) => Verdict::Passed,
                Err(Stop::NotApplicable(why)) => Verdict::NotApplicable(why),
                Err(Stop::Broken(reason)) => Verdict::Failed(stage.with_log(&reason)),
                Err(Stop::Hung(reason)) => {
                    hangs += 1;
                    Verdict::Failed(stage.with_log(&reason))
                }
            }
        };
        stage.clear();
        note(case.result(verdict));
    }
    report
}
