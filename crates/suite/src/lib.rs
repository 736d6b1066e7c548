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

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use wirelab_model::endpoint::Endpoint;

pub use report::{CaseResult, Report, Verdict};

use case::Case;
use finding::Stop;
use stage::Stage;

/// Time limit of one step of an endpoint: to start, to refuse, to answer a command. It is long because the machine may
/// be busy; an endpoint that keeps the contract does not reach it.
const STEP_LIMIT: Duration = Duration::from_secs(60);

/// Time limit of all cases together, which number about two hundred.
const TOTAL_LIMIT: Duration = Duration::from_secs(3600);

/// Limits of the suite.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Limit of one step: to start, to refuse, to answer a command.
    pub step: Duration,
    /// Limit after which no further case starts.
    pub whole: Duration,
    /// The number of cases that run at the same time. A case mostly waits for its processes.
    pub at_once: NonZero<usize>,
}

impl Default for Limits {
    /// One minute per step, one hour in total, and as many cases at once as the machine has processors.
    fn default() -> Self {
        let at_once = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        Self { step: STEP_LIMIT, whole: TOTAL_LIMIT, at_once }
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
    let stages: Result<Vec<_>, _> = (0..limits.at_once.get())
        .map(|lane| Stage::set(endpoint, description.clone(), reference, &scratch.join(lane.to_string()), limits.step))
        .collect();
    let stages = match stages {
        Ok(stages) => stages,
        Err(error) => {
            note(CaseResult::of_suite("the suite can be set up", Verdict::Failed(error.to_string())));
            return report;
        }
    };
    let progress = Progress { begun, limits, next: AtomicUsize::new(0), hangs: AtomicU32::new(0) };
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for stage in stages {
            let (progress, sender) = (&progress, sender.clone());
            scope.spawn(move || progress.try_cases(&stage, words, &sender));
        }
        drop(sender);
        // Results are noted in the order of the cases, whichever ends first.
        let mut early = BTreeMap::new();
        let mut noted = 0;
        for (number, result) in results {
            early.insert(number, result);
            while let Some(result) = early.remove(&noted) {
                note(result);
                noted += 1;
            }
        }
    });
    report
}

/// How far the cases are that several threads share.
struct Progress {
    begun: Instant,
    limits: Limits,
    /// The number of the next case.
    next: AtomicUsize,
    hangs: AtomicU32,
}

impl Progress {
    /// Takes one case after the other until none is left.
    fn try_cases(&self, stage: &Stage, words: &str, results: &Sender<(usize, CaseResult)>) {
        let cases: Vec<_> = cases::all(stage).into_iter().filter(|case| case.sentence().contains(words)).collect();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(number) else { return };
            let result = case.result(self.verdict(case, stage));
            stage.clear();
            // The receiver stays until every thread has ended.
            let _ = results.send((number, result));
        }
    }

    fn verdict(&self, case: &Case, stage: &Stage) -> Verdict {
        if self.hangs.load(Ordering::Relaxed) >= HANGS {
            return Verdict::NotTried(format!("not tried: the endpoint hung in {HANGS} earlier cases"));
        }
        if self.begun.elapsed() >= self.limits.whole {
            let minutes = self.limits.whole.as_secs() / 60;
            return Verdict::NotTried(format!("not tried: the earlier cases took {minutes} minutes"));
        }
        match (case.run)(stage) {
            Ok(()) => Verdict::Passed,
            Err(Stop::NotApplicable(why)) => Verdict::NotApplicable(why),
            Err(Stop::Broken(reason)) => Verdict::Failed(stage.with_log(&reason)),
            Err(Stop::Hung(reason)) => {
                self.hangs.fetch_add(1, Ordering::Relaxed);
                Verdict::Failed(stage.with_log(&reason))
            }
        }
    }
}
