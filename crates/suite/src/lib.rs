//! The contract suite: proves that an endpoint keeps the contract of `contract/README.md`.
//!
//! [`check`] runs one endpoint through every case that its description calls for. A case is data: a sentence, the role,
//! protocol and feature that it is about, and what to do. The built-in endpoint plays the peer where the peer behaves;
//! `hostile` plays it where it does not.

mod case;
mod cases;
mod conversation;
mod finding;
mod hostile;
mod material;
mod pair;
mod report;
pub mod schema;
mod stage;
mod verify;

use std::path::Path;
use std::time::{Duration, Instant};

use wirelab_model::endpoint::Endpoint;

pub use report::{CaseResult, Report, Verdict};

use finding::Stop;
use stage::Stage;

/// How long an endpoint may take for any one step: to start, to refuse, to answer a word. Long, because the machine may
/// be busy; an endpoint that keeps the contract never takes it.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the suite may take: the same for all cases together, of which there are some two hundred.
const WHOLE: Duration = Duration::from_secs(3600);

/// How long the suite waits.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// What an endpoint may take for any one step: to start, to refuse, to answer a word.
    pub step: Duration,
    /// After this long no further case is begun.
    pub whole: Duration,
}

impl Default for Limits {
    /// A minute for a step, an hour for all.
    fn default() -> Self {
        Self { step: PATIENCE, whole: WHOLE }
    }
}

/// After that many cases in which the endpoint said nothing until the deadline, the others are not tried.
const HANGS: u32 = 3;

/// Runs the contract suite on `endpoint`, with `reference` (the built-in endpoint) as the peer.
///
/// Everything is written below `scratch`, which the caller removes. `progress` hears of every case as it ends.
pub fn check(
    endpoint: &Endpoint,
    reference: &Endpoint,
    scratch: &Path,
    progress: &mut dyn FnMut(&CaseResult),
) -> Report {
    check_within(endpoint, reference, scratch, Limits::default(), progress)
}

/// [`check`] of those cases alone whose sentence, with its role and protocol, has these words: `client h3: the warm-up`.
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
        Err(reason) => {
            note(CaseResult::of_suite("the suite can be set up", Verdict::Failed(reason)));
            return report;
        }
    };
    let mut hangs = 0;
    for case in cases::all(&stage).into_iter().filter(|case| case.sentence().contains(words)) {
        let verdict = if hangs >= HANGS {
            Verdict::NotTried(format!("not tried: the endpoint hung in {HANGS} cases before"))
        } else if begun.elapsed() >= limits.whole {
            Verdict::NotTried(format!("not tried: the cases before took {} minutes", limits.whole.as_secs() / 60))
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
