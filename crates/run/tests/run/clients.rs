//! Several clients that share one workload, in the fake lab: their shares, the merged result, and the blame.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::executed;
use wirelab_lab::fake::{Misbehaviour, Moment, Noise, Script};
use wirelab_lab::{Fake, Lab, Role};
use wirelab_model::outcome::{Blame, ErrorKind, Outcome};
use wirelab_run::Run;

const STUDY: &str = r#"
name = "shared"
title = "Shared"
question = "Do four clients do what one does?"
lab = "fake"
observers = []
[workload]
protocol = "h2"
clients = 4
workers = 8
requests = 400
[factors]
recording = ["samples", "histograms"]
[compare]
factor = "recording"
baseline = "samples"
[blocks]
min = 1
max = 1
"#;

fn run(parent: &Path, lab: &mut dyn Lab) -> Run {
    executed(parent, STUDY, &["builtin"], lab)
}

fn script() -> Script {
    Script::plausible().with_noise(Noise::NONE)
}

#[test]
fn all_together_make_the_requests_of_one_and_their_records_are_merged() {
    let parent = tempfile::tempdir().unwrap();
    let run = run(parent.path(), &mut Fake::new(script()));
    for record in run.trials() {
        assert_eq!(record.outcome, Outcome::Ok);
        assert_eq!(record.values["requests"].number(), Some(400.0));
        let each: Vec<_> = record.clients.iter().map(|portion| (portion.requests, portion.failed)).collect();
        assert_eq!(each, [(100, 0); 4]);
        assert!(record.clients.iter().all(|portion| portion.begun_ns >= portion.told_ns));
        assert_eq!(record.clients.iter().map(|portion| portion.told_ns).min().map(|ns| ns < 1_000_000_000), Some(true));
        // The fake clients of a trial have the same seed, so they are equal.
        assert_eq!(record.values["clients_rate_ratio"].number(), Some(1.0));
        assert_eq!(record.values["clients_median_ratio"].number(), Some(1.0));
        let ends = record.clients.iter().map(|portion| portion.told_ns + portion.window_ns);
        assert_eq!(ends.max(), Some(record.window_ns), "from the first word to the last end");
        match run.histograms(record).unwrap() {
            Some(histograms) => {
                assert_eq!((histograms.requests, histograms.response.count), (400, 400));
                let median = record.values["response_median"].number().unwrap();
                let of_one = record.clients[0].response_median_ns.unwrap() as f64;
                assert!(
                    (median / of_one - 1.0).abs() < 0.001,
                    "{median} of all, {of_one} of one of four that are alike"
                );
            }
            None => {
                let samples = run.samples(record).unwrap();
                assert_eq!(samples.len(), 400);
                let connections: std::collections::BTreeSet<_> =
                    samples.iter().map(|sample| sample.connection).collect();
                assert_eq!(connections.len(), 4, "each client has its own");
                let first: Vec<_> = record.clients.iter().map(|portion| portion.first_connection).collect();
                assert!(first.is_sorted() && first.iter().all(|first| connections.contains(first)), "{first:?}");
            }
        }
    }
    // The records survive writing and reading.
    assert_eq!(Run::open(run.folder()).unwrap().trials(), run.trials());
}

#[test]
fn failed_and_silent_clients_fail_the_trial() {
    for (misbehaviour, words) in [
        (Misbehaviour::Fails(ErrorKind::Other, "out of luck".to_owned()), "out of luck"),
        (Misbehaviour::Dies(9), "was killed by signal 9 while measuring"),
        (Misbehaviour::Hangs, "printed no event for"),
        (Misbehaviour::Nonsense("42".to_owned()), "printed an invalid event while measuring: 42"),
    ] {
        let parent = tempfile::tempdir().unwrap();
        let misbehave = misbehaviour.clone();
        let script =
            script().with_trouble(move |case| (case.role == Role::Client).then(|| (Moment::Window, misbehave.clone())));
        let run = run(parent.path(), &mut Fake::new(script));
        let record = &run.trials()[0];
        let Outcome::Failed { blame: Blame::Client, reason } = &record.outcome else { panic!("{:?}", record.outcome) };
        assert!(reason.to_string().contains(words), "{misbehaviour:?}: {reason}");
        assert!(record.clients.is_empty() && record.values.is_empty());
    }
}

#[test]
fn blame_is_the_same_with_several_clients_as_with_one() {
    let parent = tempfile::tempdir().unwrap();
    let reset = Misbehaviour::Fails(ErrorKind::Reset, "gone".to_owned());
    let script =
        script().with_trouble(move |case| (case.role == Role::Client).then(|| (Moment::Window, reset.clone())));
    let run = run(parent.path(), &mut Fake::new(script));
    let Outcome::Failed { blame, reason } = &run.trials()[0].outcome else { panic!("{:?}", run.trials()[0].outcome) };
    assert!(
        *blame == Blame::Server && reason.to_string().contains("reported `reset` while measuring"),
        "{blame:?}: {reason}"
    );
}

#[test]
fn the_client_that_fails_at_its_end_is_named_among_several() {
    for (misbehaviour, words) in [
        (Misbehaviour::Fails(ErrorKind::Other, "no more room".to_owned()), "reported `other` while closing"),
        (Misbehaviour::Dies(9), "was killed by signal 9 while closing"),
        (Misbehaviour::Hangs, "printed no event for 120.0 s while closing"),
        (Misbehaviour::Nonsense("42".to_owned()), "printed an invalid event while closing"),
    ] {
        let parent = tempfile::tempdir().unwrap();
        let (begun, misbehave) = (AtomicU32::new(0), misbehaviour.clone());
        let script = script().with_trouble(move |case| {
            // Clients are started in order.
            let is_third = case.role == Role::Client && begun.fetch_add(1, Ordering::Relaxed) % 4 == 2;
            is_third.then(|| (Moment::Finish, misbehave.clone()))
        });
        let run = run(parent.path(), &mut Fake::new(script));
        let record = &run.trials()[0];
        let Outcome::Failed { blame: Blame::Client, reason } = &record.outcome else { panic!("{:?}", record.outcome) };
        assert!(
            reason.to_string().starts_with(&format!("the client `builtin` (number 2) {words}")),
            "{misbehaviour:?}: {reason}"
        );
    }
}
