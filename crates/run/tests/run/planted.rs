//! Planted effects in whole runs of the fake lab: what the journal has, and what the analysis finds.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use wirelab_lab::Fake;
use wirelab_lab::fake::{Noise, Script};
use wirelab_model::journal::{StopReason, TrialRecord};
use wirelab_model::planted::{NotPlanted, Planting};
use wirelab_run::{Phase, Run};
use wirelab_stats::Moment;
use wirelab_stats::planted::{Detection, Planted, PlantedEffects};

use crate::support;

/// The built-in study `null` over HTTP/1.1 only, three cells, and 12 blocks. A test that needs planted trials in each
/// block lets them take 90 % of the measured time: they take half, and more on a busy machine.
fn create(parent: &Path, sets: &[&str]) -> Run {
    let text = wirelab_plan::find("null").unwrap().text;
    let fixed = ["protocol=h1", "requests=50", "blocks.min=12", "blocks.max=12", "references=0 %"];
    let sets: Vec<_> = fixed.iter().chain(sets).map(|set| (*set).to_owned()).collect();
    let study = wirelab_plan::resolve(wirelab_plan::parse(text, "null").unwrap(), None, &sets).unwrap();
    let (plan, _) = wirelab_plan::plan(&study).unwrap();
    support::planting(parent, study, plan, &["builtin"], &Fake::new(script())).unwrap()
}

fn script() -> Script {
    Script::plausible().with_noise(Noise { request: 0.02, trial: 0.005, block: 0.02, ..Noise::NONE })
}

fn execute(run: &mut Run) -> StopReason {
    run.execute(&mut Fake::new(script()), &mut |_| {}, &AtomicBool::new(false)).unwrap()
}

/// The planted effects as a report shows them.
fn found(run: &Run) -> PlantedEffects {
    let (study, plan) = (&run.manifest().study, &run.manifest().plan);
    let analysis = wirelab_stats::analyse(study, plan, run.trials(), &[], Moment::Ended);
    let judged = (&analysis.comparisons[..], Moment::Ended);
    let planting = run.manifest().planted.as_ref();
    match wirelab_stats::planted::planted(planting, plan, run.trials(), run.planted(), judged) {
        Some(Planted::Effects(effects)) => effects,
        other => panic!("{other:?}"),
    }
}

fn response(record: &TrialRecord) -> Option<f64> {
    record.values["response_median"].number()
}

#[test]
fn a_quiet_run_finds_its_planted_effects_without_bias() {
    let parent = tempfile::tempdir().unwrap();
    let mut run = create(parent.path(), &["planted=90 %"]);
    assert_eq!(execute(&mut run), StopReason::MaxBlocks);
    let effects = found(&Run::open(run.folder()).unwrap());
    assert_eq!((effects.trials, effects.failed), (36, 0));
    for effect in &effects.effects {
        assert_eq!((effect.detection, effect.blocks), (Detection::Found, 12), "{effect:?}");
        assert!((effect.ratio.unwrap() - effect.truth).abs() < 0.01, "{effect:?}");
        assert!((effect.truth - 1.0 - effect.size).abs() < 0.01, "{effect:?}");
    }
    let bias = &effects.biases[0];
    assert!((bias.ratio - 1.0).abs() < 0.005, "{bias:?}");
    assert_eq!(std::fs::read_dir(run.folder().join("samples")).unwrap().count(), 36, "only those of the plan");
}

#[test]
fn planted_trials_leave_the_trials_of_the_plan_as_they_are() {
    let parent = tempfile::tempdir().unwrap();
    let [mut with, mut without] = ["planted=90 %", "planted=0 %"].map(|set| create(parent.path(), &[set]));
    assert_eq!((execute(&mut with), execute(&mut without)), (StopReason::MaxBlocks, StopReason::MaxBlocks));
    assert_eq!(without.manifest().planted, Some(Planting::Nothing(NotPlanted::SwitchedOff)));
    assert_eq!((with.planted().len(), without.planted().len()), (36, 0));
    let facts = |run: &Run| -> Vec<_> {
        run.trials().iter().map(|record| (record.trial, response(record), record.results.clone())).collect()
    };
    assert_eq!(facts(&with), facts(&without));
}

#[test]
fn a_resumed_run_plants_the_same_effects() {
    let parent = tempfile::tempdir().unwrap();
    let mut whole = create(parent.path(), &["planted=90 %"]);
    execute(&mut whole);
    let mut run = create(parent.path(), &["planted=90 %"]);
    // Interrupted by the progress of the fourth planted trial, and resumed twice.
    for after in [4, 17] {
        let stop = AtomicBool::new(false);
        let mut planted = 0;
        let interrupted = run.execute(
            &mut Fake::new(script()),
            &mut |progress| {
                planted += u32::from(progress.phase == Phase::Planting);
                stop.store(planted == after, Ordering::Relaxed);
            },
            &stop,
        );
        assert_eq!(interrupted.unwrap(), StopReason::Interrupted);
        run = Run::reopen(run.folder(), false).unwrap();
    }
    assert_eq!(execute(&mut run), StopReason::MaxBlocks);
    let facts = |run: &Run| -> Vec<_> {
        run.planted().iter().map(|one| (one.record.trial, one.work_ns, response(&one.record))).collect()
    };
    let (resumed, at_once) = (facts(&run), facts(&whole));
    assert!(resumed.iter().all(|fact| at_once.contains(fact)));
    assert!(resumed.len() >= 30, "an interruption at the end of a block loses the planted trials that stand there");
}

#[test]
fn the_share_of_the_time_bounds_the_number_of_planted_trials() {
    let parent = tempfile::tempdir().unwrap();
    let mut run = create(parent.path(), &[]);
    assert_eq!(execute(&mut run), StopReason::MaxBlocks);
    // Three cells and 10 %: one trial in every third block at most. Trials of the fake lab take too little time to
    // bound the number by it.
    assert!((2..=4).contains(&run.planted().len()), "{}", run.planted().len());
    assert!(run.planted().iter().all(|one| one.record.trial.number >= 36 && one.work_ns > 0));
    let effects = found(&run);
    assert!(effects.effects.iter().all(|effect| effect.detection == Detection::TooFewBlocks), "{effects:?}");
}
