//! Null references in whole runs of the fake lab: what the journal has, and which verdicts are withheld.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use wirelab_lab::Fake;
use wirelab_lab::fake::{Noise, Script};
use wirelab_model::journal::{StopReason, TrialRecord};
use wirelab_model::plan::{ENGINE, Job};
use wirelab_model::protocol::Protocol;
use wirelab_model::reference::{CellReference, NotReferenced};
use wirelab_model::units::Share as OfTime;
use wirelab_run::Run;
use wirelab_stats::analysis::{CannotTell, Verdict};
use wirelab_stats::client_share::{Share, attribute};
use wirelab_stats::{Analysis, METRICS, Moment};

use crate::support;

const STUDY: &str = r#"
name = "two"
title = "Two"
question = "Which one is faster?"
lab = "fake"
observers = []
references = "20 %"
[workload]
requests = 50
[factors]
protocol = ["h1", "h2"]
[compare]
factor = "protocol"
baseline = "h1"
metrics = ["response_median"]
[blocks]
min = 12
max = 12
"#;

fn create(parent: &Path, references: f64, endpoints: &[&str], script: Script) -> Run {
    let mut study = wirelab_plan::parse(STUDY, "study.toml").unwrap();
    study.references = OfTime(references);
    let (plan, _) = wirelab_plan::plan(&study).unwrap();
    support::planned(parent, study, plan, endpoints, &Fake::new(script)).unwrap()
}

/// Times of client and server in nanoseconds: HTTP/2 takes the client, or the server, 60 us longer.
fn script(is_slow: fn(&Job) -> bool) -> impl Fn() -> Script {
    let time = move |job: &Job, _: u64| {
        let server = if job.server().is_some_and(|server| server == ENGINE) { 0.0 } else { 100_000.0 };
        100_000.0 + server + if is_slow(job) { 60_000.0 } else { 0.0 }
    };
    move || Script::new(time).with_noise(Noise { request: 0.02, trial: 0.01, block: 0.02, ..Noise::NONE })
}

fn slow_client() -> Script {
    script(|job| job.protocol == Protocol::H2)()
}

fn slow_server() -> Script {
    script(|job| job.protocol == Protocol::H2 && job.server().is_some_and(|server| server != ENGINE))()
}

fn execute(run: &mut Run, script: Script) {
    let reason = run.execute(&mut Fake::new(script), &mut |_| {}, &AtomicBool::new(false)).unwrap();
    assert_eq!(reason, StopReason::MaxBlocks);
}

fn analysed(run: &Run) -> Analysis {
    let (study, plan) = (&run.manifest().study, &run.manifest().plan);
    let metrics: Vec<_> = METRICS.iter().collect();
    let mut analysis = wirelab_stats::analyse(study, plan, run.trials(), &metrics, Moment::Ended);
    let records = [run.trials(), run.references()];
    attribute(&mut analysis, plan, run.manifest().references.as_ref(), records, run.links());
    analysis
}

fn facts(records: &[TrialRecord]) -> Vec<(u32, Option<f64>, Option<String>)> {
    let fact =
        |record: &TrialRecord| (record.trial.number, record.values["response_median"].number(), record.results.clone());
    records.iter().map(fact).collect()
}

#[test]
fn a_difference_of_the_client_is_no_verdict_and_one_of_the_server_is() {
    let client_bound = Verdict::CannotTell { why: CannotTell::ClientBound };
    for (script, verdict) in [(slow_client as fn() -> Script, client_bound), (slow_server, Verdict::More)] {
        let parent = tempfile::tempdir().unwrap();
        let mut run = create(parent.path(), 0.4, &["builtin", "engine"], script());
        execute(&mut run, script());
        let analysis = analysed(&Run::open(run.folder()).unwrap());
        let compared = analysis.comparisons.iter().find(|compared| !compared.aa).unwrap();
        assert_eq!(compared.verdict, verdict);
        assert_eq!(analysis.contests[0].rivals[0].verdict == client_bound, verdict == client_bound);
        let Share::Measured { share, .. } = analysis.shares[0].client else { panic!("{:?}", analysis.shares[0]) };
        assert!((share - 0.5).abs() < 0.03, "{share}");
    }
}

#[test]
fn reference_trials_leave_the_trials_of_the_plan_as_they_are() {
    let parent = tempfile::tempdir().unwrap();
    let endpoints = ["builtin", "engine"];
    let [mut with, mut without] = [0.2, 0.0].map(|share| create(parent.path(), share, &endpoints, slow_client()));
    execute(&mut with, slow_client());
    execute(&mut without, slow_client());
    assert_eq!(facts(with.trials()), facts(without.trials()));
    // Three cells and 20 %: three trials in four blocks, give or take the time that they took.
    assert!((5..=9).contains(&with.references().len()), "{}", with.references().len());
    assert!(with.references().iter().all(|record| record.trial.number >= 12 * 6 && record.results.is_none()));
    assert_eq!(std::fs::read_dir(with.folder().join("samples")).unwrap().count(), 36, "only those of the plan");
    assert!(without.references().is_empty());
    let off = CellReference::Nothing(NotReferenced::SwitchedOff);
    assert_eq!(without.manifest().references.as_ref().unwrap().cells, [off.clone(), off.clone(), off]);
}

#[test]
fn a_wirelab_without_the_null_server_says_so() {
    let parent = tempfile::tempdir().unwrap();
    let run = create(parent.path(), 0.2, &["builtin"], slow_client());
    let cells = &run.manifest().references.as_ref().unwrap().cells;
    assert_eq!(cells[0], CellReference::Nothing(NotReferenced::NoNullServer));
    assert!(!run.manifest().endpoints.contains_key(ENGINE));
}
