//! Whole runs in the fake lab: their records, the state after a kill or an interruption, and the blame.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::planned;
use serde_json::json;
use wirelab_lab::fake::{Case, Misbehaviour, Moment, Script};
use wirelab_lab::{Fake, Role};
use wirelab_model::journal::{Entry, LinkCheck, LinkRecord, StopReason};
use wirelab_model::link::{Link, Reading};
use wirelab_model::outcome::{Blame, ErrorKind, Outcome};
use wirelab_model::plan::{Cell, Comparison, Job, Load, Plan, Requests, Work};
use wirelab_model::protocol::Protocol;
use wirelab_model::reason::Reason;
use wirelab_model::spec::{Extent, Recording};
use wirelab_model::units::{Size, Span};
use wirelab_model::warning::Warning;
use wirelab_run::{Phase, Run, RunError};

fn job(protocol: Protocol) -> Job {
    Job { load: Load { extent: Extent::Requests(20), ..Load::plain() }, ..Job::plain(protocol) }
}

fn cell(protocol: Protocol) -> Cell {
    let levels = [("protocol".to_owned(), protocol.token().to_owned())].into_iter().collect();
    Cell { levels, twin_of: None, job: job(protocol) }
}

fn plan(blocks: u32) -> Plan {
    Plan {
        cells: [Protocol::H1, Protocol::H2, Protocol::H3].map(cell).into(),
        comparisons: vec![Comparison { cell: 1, baseline: 0, aa: false }],
        seed: 7,
        min_blocks: blocks,
        max_blocks: blocks,
        budget: None,
        precision: 0.05,
    }
}

fn create(parent: &Path, plan: Plan) -> Result<Run, RunError> {
    create_with(parent, plan, &json!({}))
}

fn create_with(parent: &Path, plan: Plan, blocks: &serde_json::Value) -> Result<Run, RunError> {
    let study = serde_json::from_value(json!({
        "name": "test", "title": "Test", "question": "?", "observers": [], "blocks": blocks,
        "compare": { "factor": "protocol", "baseline": "h1" },
    }));
    planned(parent, study.unwrap(), plan, &["builtin"], &Fake::new(Script::plausible()))
}

fn execute(run: &mut Run, script: Script) -> Result<StopReason, RunError> {
    run.execute(&mut Fake::new(script), &mut |_| {}, &AtomicBool::new(false))
}

/// A completed run of three cells.
fn finished(parent: &Path, blocks: u32) -> Run {
    let mut run = create(parent, plan(blocks)).unwrap();
    assert_eq!(execute(&mut run, Script::plausible()).unwrap(), StopReason::MaxBlocks);
    run
}

/// The values that are equal in every run of a plan in the fake lab.
fn essence(run: &Run) -> Vec<(u32, usize, Outcome, Vec<f64>)> {
    run.trials()
        .iter()
        .map(|record| {
            let numbers = record.values.values().filter_map(|value| value.number()).collect();
            (record.trial.number, record.trial.cell, record.outcome.clone(), numbers)
        })
        .collect()
}

/// Removes the checksums of a journal, which older versions did not write.
fn without_checksums(journal: &Path) {
    let text = fs::read_to_string(journal).unwrap();
    let lines = text.lines().map(|line| line.split_once(r#","checksum":"#).unwrap().0);
    fs::write(journal, lines.map(|line| format!("{line}}}\n")).collect::<String>()).unwrap();
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_same_seed_gives_the_same_run_and_the_folder_holds_all_of_it() {
    let parent = tempfile::tempdir().unwrap();
    let (first, second) = (finished(parent.path(), 2), finished(parent.path(), 2));
    assert_eq!(essence(&first), essence(&second));
    assert_eq!(first.trials().len(), 6);
    let read = Run::open(first.folder()).unwrap();
    assert_eq!((essence(&read), read.stopped(), read.torn()), (essence(&first), Some(StopReason::MaxBlocks), 0));
    for record in read.trials() {
        assert_eq!(record.outcome, Outcome::Ok);
        assert_eq!(read.samples(record).unwrap().len(), 20);
        assert_eq!(read.histograms(record).unwrap(), None);
    }
    assert_eq!(files(first.folder()), ["journal.jsonl", "lock", "logs", "manifest.json", "samples"]);
    assert_eq!(files(&first.folder().join("logs")), [""; 0]);
}

#[test]
fn a_run_killed_at_any_byte_of_its_journal_is_resumed_to_the_same_end() {
    let parent = tempfile::tempdir().unwrap();
    let complete = finished(parent.path(), 2);
    let journal = complete.folder().join("journal.jsonl");
    let full = fs::read(&journal).unwrap();
    // The stride is prime, so cuts fall on every position within lines. The ends of lines are added.
    let strides = (0..full.len()).step_by(509);
    let ends = full.iter().enumerate().filter(|(_, byte)| **byte == b'\n').flat_map(|(at, _)| [at, at + 1]);
    for cut in strides.chain(ends) {
        fs::write(&journal, &full[..cut]).unwrap();
        let mut run = Run::reopen(complete.folder(), false).unwrap();
        let kept = run.trials().len();
        assert_eq!(essence(&run), essence(&complete)[..kept], "cut at {cut}");
        assert_eq!(execute(&mut run, Script::plausible()).unwrap(), StopReason::MaxBlocks, "cut at {cut}");
        assert_eq!(essence(&run), essence(&complete), "cut at {cut}");
        assert_eq!(files(&run.folder().join("samples")).len(), 6, "cut at {cut}");
        let read = Run::open(run.folder()).unwrap();
        assert_eq!((read.torn(), read.stopped()), (0, Some(StopReason::MaxBlocks)), "cut at {cut}");
    }
}

#[test]
fn a_run_interrupted_before_or_within_any_trial_is_resumed_to_the_same_end() {
    let parent = tempfile::tempdir().unwrap();
    let complete = finished(parent.path(), 2);
    for after in 0..6 {
        let mut run = create(parent.path(), plan(2)).unwrap();
        let stop = AtomicBool::new(false);
        // The stop flag is raised when the trial is announced, so the stop falls into it.
        let reason = run.execute(
            &mut Fake::new(Script::plausible()),
            &mut |progress| stop.store(progress.phase == Phase::Measuring && progress.done >= after, Ordering::Relaxed),
            &stop,
        );
        assert_eq!((reason.unwrap(), run.trials().len() as u32), (StopReason::Interrupted, after));
        assert_eq!(files(&run.folder().join("samples")).len() as u32, after);
        assert!(!run.folder().join("work").exists());
        let mut run = Run::reopen(run.folder(), false).unwrap();
        assert_eq!(run.stopped(), Some(StopReason::Interrupted));
        assert_eq!(execute(&mut run, Script::plausible()).unwrap(), StopReason::MaxBlocks);
        assert_eq!(essence(&run), essence(&complete));
    }
}

#[test]
fn a_finished_run_is_left_as_it_is() {
    let parent = tempfile::tempdir().unwrap();
    let run = finished(parent.path(), 1);
    let before = fs::read(run.folder().join("journal.jsonl")).unwrap();
    let mut run = Run::reopen(run.folder(), false).unwrap();
    assert_eq!(execute(&mut run, Script::plausible()).unwrap(), StopReason::MaxBlocks);
    assert_eq!(fs::read(run.folder().join("journal.jsonl")).unwrap(), before);
}

fn outcome_of(trouble: impl Fn(&Case<'_>) -> Option<(Moment, Misbehaviour)> + Send + 'static) -> (Outcome, Run) {
    let parent = tempfile::tempdir().unwrap();
    let mut run = create(parent.path(), plan(1)).unwrap();
    // Only the second trial has trouble, so the run continues after it.
    let script = Script::plausible().with_trouble(move |case| if case.number == 1 { trouble(case) } else { None });
    assert_eq!(execute(&mut run, script).unwrap(), StopReason::MaxBlocks);
    let record = &run.trials()[1];
    assert!(record.values.is_empty() && record.results.is_none(), "{record:?}");
    assert!(run.trials().iter().filter(|record| record.outcome == Outcome::Ok).count() == 2);
    (record.outcome.clone(), run)
}

fn check(role: Role, moment: Moment, misbehaviour: Misbehaviour, blame: Blame, words: &[&str]) {
    let what = format!("{role:?} {moment:?} {misbehaviour:?}");
    let (outcome, _) = outcome_of(move |case| (case.role == role).then(|| (moment, misbehaviour.clone())));
    let Outcome::Failed { blame: found, reason } = outcome else { panic!("{what}: {outcome:?}") };
    assert_eq!(found, blame, "{what}: {reason}");
    for word in words {
        assert!(reason.to_string().contains(word), "{what}: {reason}");
    }
}

#[test]
fn the_part_that_breaks_a_trial_gets_the_blame_with_the_attempt() {
    let nonsense = || Misbehaviour::Nonsense("hello".to_owned());
    let fails = |kind| Misbehaviour::Fails(kind, "broken".to_owned());
    for (role, blame, word) in
        [(Role::Client, Blame::Client, "the client"), (Role::Server, Blame::Server, "the server")]
    {
        check(role, Moment::Start, Misbehaviour::Exits(3), blame, &[word, "exit status 3", "starting"]);
        check(role, Moment::Start, Misbehaviour::Hangs, blame, &[word, "printed no event", "starting"]);
        check(role, Moment::Start, nonsense(), blame, &[word, "invalid event", "hello"]);
        check(role, Moment::Start, fails(ErrorKind::Other), blame, &[word, "`other`", "broken"]);
        check(role, Moment::Start, Misbehaviour::Exits(0), blame, &[word, "too early"]);
        check(role, Moment::Finish, Misbehaviour::Exits(1), blame, &[word, "exit status 1"]);
        check(role, Moment::Finish, Misbehaviour::Hangs, blame, &[word, "printed no event"]);
    }
    check(Role::Client, Moment::Check, Misbehaviour::Dies(11), Blame::Client, &["signal 11", "check request"]);
    check(Role::Client, Moment::Window, Misbehaviour::Hangs, Blame::Client, &["printed no event", "measuring"]);
    check(Role::Server, Moment::Window, Misbehaviour::Dies(9), Blame::Server, &["the server", "signal 9"]);
    // The client reports a wrong answer of the server.
    check(Role::Client, Moment::Check, fails(ErrorKind::Digest), Blame::Server, &["the client", "`digest`"]);
    check(Role::Client, Moment::Check, fails(ErrorKind::Unreachable), Blame::Lab, &["`unreachable`"]);
    check(Role::Client, Moment::Check, fails(ErrorKind::Certificate), Blame::Client, &["`certificate`"]);
}

#[test]
fn unsupported_is_its_own_outcome_with_the_endpoints_words() {
    for misbehaviour in [Misbehaviour::Unsupported("no such window".to_owned()), Misbehaviour::Exits(127)] {
        let (outcome, _) =
            outcome_of(move |case| (case.role == Role::Server).then(|| (Moment::Start, misbehaviour.clone())));
        let Outcome::Unsupported { reason } = outcome else { panic!("{outcome:?}") };
        assert!(reason.to_string().contains("the server `builtin`"), "{reason}");
    }
}

#[test]
fn a_run_in_which_nothing_works_is_given_up_after_its_first_block() {
    let parent = tempfile::tempdir().unwrap();
    let mut run = create(parent.path(), plan(5)).unwrap();
    let script = Script::plausible().with_trouble(|_| Some((Moment::Start, Misbehaviour::Exits(2))));
    assert_eq!(execute(&mut run, script).unwrap(), StopReason::Hopeless);
    assert_eq!(run.trials().len(), 3);
    // After the repair the run continues.
    assert_eq!(execute(&mut run, Script::plausible()).unwrap(), StopReason::MaxBlocks);
    assert_eq!(run.trials().len(), 15);
}

#[test]
fn a_cell_that_always_fails_is_given_up_and_the_others_continue() {
    let parent = tempfile::tempdir().unwrap();
    // The second cell hangs; the fake lab does not wait for it.
    let script = || {
        Script::plausible().with_trouble(|case| {
            (case.role == Role::Client && case.cell == 1).then_some((Moment::Check, Misbehaviour::Hangs))
        })
    };
    let mut run = create_with(parent.path(), plan(5), &json!({ "give_up_after": 2 })).unwrap();
    // Interrupted after the trials of two blocks and one trial of the third, then resumed from the journal.
    let stop = AtomicBool::new(false);
    let interrupted = run.execute(
        &mut Fake::new(script()),
        &mut |progress| stop.store(progress.phase == Phase::Measuring && progress.done >= 7, Ordering::Relaxed),
        &stop,
    );
    assert_eq!(interrupted.unwrap(), StopReason::Interrupted);
    let mut run = Run::reopen(run.folder(), false).unwrap();
    assert_eq!(execute(&mut run, script()).unwrap(), StopReason::MaxBlocks);
    let of_cell = |cell: usize| run.trials().iter().filter(move |record| record.trial.cell == cell);
    assert!([0, 2].iter().all(|cell| of_cell(*cell).filter(|record| record.outcome == Outcome::Ok).count() == 5));
    let reasons: Vec<_> = of_cell(1)
        .map(|record| match &record.outcome {
            Outcome::Failed { blame: Blame::Client, reason } => {
                (matches!(reason, Reason::NotRun { after: 2, .. }), record.took_ns == 0)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(reasons, [(false, false), (false, false), (true, true), (true, true), (true, true)]);
}

#[test]
fn a_link_out_of_tolerance_corrects_the_outcomes_of_its_trials_in_the_journal() {
    let parent = tempfile::tempdir().unwrap();
    let (mut plan, link) = (plan(1), Link::wire());
    plan.cells[0].job.topology.link = Some(link);
    let mut run = create(parent.path(), plan).unwrap();
    assert_eq!(execute(&mut run, Script::plausible()).unwrap(), StopReason::MaxBlocks);
    // Older versions wrote the check, but no correction.
    let none = json!({ "lost": 0, "of": 1 });
    let reading = json!({ "loss_up": none, "loss": none, "mtu": 1500, "missed": 0 });
    let reading: Reading = serde_json::from_value(reading).unwrap();
    let (placement, miss) = ("lan".to_owned(), Some("the round trip is 9 ms".to_owned()));
    let links = vec![LinkRecord { placement, link, reading, miss }];
    let check = Entry::Links(LinkCheck { block: 1, at: String::new(), links, paths: Vec::new() });
    let path = run.folder().join("journal.jsonl");
    without_checksums(&path);
    let mut journal = fs::File::options().append(true).open(&path).unwrap();
    writeln!(journal, "{}", serde_json::to_string(&check).unwrap()).unwrap();
    let spoiled = |run: &Run| -> Vec<u32> {
        let is_spoiled = |outcome: &Outcome| matches!(outcome.reason(), Some(Reason::LinkDeviated { .. }));
        run.trials().iter().filter(|one| is_spoiled(&one.outcome)).map(|one| one.trial.number).collect()
    };
    let numbers = spoiled(&Run::open(run.folder()).unwrap());
    assert_eq!(numbers.len(), 1);
    for _ in 0..2 {
        let mut run = Run::reopen(run.folder(), false).unwrap();
        assert_eq!(execute(&mut run, Script::plausible()).unwrap(), StopReason::MaxBlocks);
        let text = fs::read_to_string(&path).unwrap();
        let entries = text.lines().map(|line| serde_json::from_str::<Entry>(line).unwrap());
        let corrected = entries.filter_map(|entry| match entry {
            Entry::Corrected(correction) => Some(correction.number),
            _ => None,
        });
        assert_eq!((corrected.collect(), spoiled(&run)), (numbers.clone(), numbers.clone()));
    }
}

#[test]
fn a_spent_budget_ends_a_run_at_the_next_block_but_not_before_the_minimum() {
    let parent = tempfile::tempdir().unwrap();
    let plan = Plan { min_blocks: 2, max_blocks: 5, budget: Some(Span(1)), ..plan(5) };
    let mut run = create(parent.path(), plan).unwrap();
    assert_eq!(execute(&mut run, Script::plausible()).unwrap(), StopReason::Budget);
    assert_eq!(run.trials().len(), 6);
}

#[test]
fn failed_requests_are_counted_and_warned_of_and_the_trial_is_still_one() {
    let parent = tempfile::tempdir().unwrap();
    let mut run = create(parent.path(), plan(1)).unwrap();
    let mut script = Script::plausible();
    script.failed_requests = 1.0;
    assert_eq!(execute(&mut run, script).unwrap(), StopReason::MaxBlocks);
    for record in run.trials() {
        assert_eq!(record.outcome, Outcome::Ok);
        let [Warning::RequestsFailed { share, kind, .. }] = &record.warnings[..] else { panic!("{record:?}") };
        assert_eq!((*share, kind.as_str()), (1.0, "timeout"));
        assert_eq!(record.values["response_median"].number(), None);
    }
}

#[test]
fn histograms_are_kept_as_json_and_read_back() {
    let parent = tempfile::tempdir().unwrap();
    let mut plan = plan(1);
    for cell in &mut plan.cells {
        cell.job.load.recording = Recording::Histograms;
    }
    let mut run = create(parent.path(), plan).unwrap();
    assert_eq!(execute(&mut run, Script::plausible()).unwrap(), StopReason::MaxBlocks);
    for record in run.trials() {
        assert_eq!(record.outcome, Outcome::Ok, "{record:?}");
        assert_eq!(run.histograms(record).unwrap().unwrap().requests, 20);
        assert_eq!(run.samples(record).unwrap(), []);
    }
}

#[test]
fn a_run_that_another_process_works_on_is_busy() {
    let parent = tempfile::tempdir().unwrap();
    let folder = create(parent.path(), plan(1)).unwrap().folder().to_owned();
    let mut run = Run::reopen(&folder, false).unwrap();
    let lock = fs::File::create(run.folder().join("lock")).unwrap();
    lock.lock().unwrap();
    assert!(matches!(execute(&mut run, Script::plausible()), Err(RunError::Busy { .. })));
    assert!(!run.folder().join("journal.jsonl").exists());
}

#[test]
fn other_conditions_are_refused_on_resuming_or_warned_of_where_forced() {
    let parent = tempfile::tempdir().unwrap();
    let folder: PathBuf = create(parent.path(), plan(1)).unwrap().folder().to_owned();
    let path = folder.join("manifest.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["environment"]["kernel"] = "Linux 2.0".into();
    fs::write(&path, manifest.to_string()).unwrap();
    let message = Run::reopen(&folder, false).unwrap_err().to_string();
    assert!(message.contains("`Linux 2.0`") && message.contains("--force"), "{message}");
    let mut run = Run::reopen(&folder, true).unwrap();
    assert_eq!(execute(&mut run, Script::plausible()).unwrap(), StopReason::MaxBlocks);
    let warnings = Run::open(&folder).unwrap().manifest().warnings.clone();
    assert!(warnings.iter().any(|warning| matches!(warning, Warning::ConditionsChanged { .. })), "{warnings:?}");
}

#[test]
fn a_plan_that_compares_a_cell_that_it_lacks_is_damaged() {
    let parent = tempfile::tempdir().unwrap();
    let folder: PathBuf = create(parent.path(), plan(1)).unwrap().folder().to_owned();
    let path = folder.join("manifest.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["plan"]["comparisons"][0]["cell"] = 99.into();
    fs::write(&path, manifest.to_string()).unwrap();
    let message = Run::open(&folder).unwrap_err().to_string();
    assert!(message.contains("manifest.json") && message.contains("cell 99"), "{message}");
}

#[test]
fn damaged_and_repeated_records_are_named_and_not_used_and_a_resumed_run_repeats_their_trials() {
    let parent = tempfile::tempdir().unwrap();
    let complete = finished(parent.path(), 2);
    assert_eq!(complete.integrity().warnings(), []);
    let path = complete.folder().join("journal.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let at = lines[2].find(r#""took_ns":"#).unwrap() + r#""took_ns":"#.len();
    let digit = if lines[2].as_bytes()[at] == b'1' { "2" } else { "1" };
    lines[2].replace_range(at..=at, digit);
    lines.insert(5, lines[4].clone());
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let mut run = Run::reopen(complete.folder(), false).unwrap();
    assert_eq!(run.trials().len(), 5);
    let integrity = run.integrity();
    assert_eq!((&integrity.damaged_lines[..], &integrity.repeated_lines[..]), (&[3][..], &[6][..]));
    assert_eq!(execute(&mut run, Script::plausible()).unwrap(), StopReason::MaxBlocks);
    let mut all = essence(&run);
    all.sort_by_key(|(number, ..)| *number);
    let mut expected = essence(&complete);
    expected.sort_by_key(|(number, ..)| *number);
    assert_eq!(all, expected);
}

#[test]
fn missing_cut_and_changed_samples_are_named() {
    let parent = tempfile::tempdir().unwrap();
    let run = finished(parent.path(), 2);
    let file = |record: usize| run.folder().join(run.trials()[record].results.as_ref().unwrap());
    fs::remove_file(file(0)).unwrap();
    let whole = fs::read(file(1)).unwrap();
    fs::write(file(1), &whole[..whole.len() / 2]).unwrap();
    // A change in the middle of the data can leave a readable file with other numbers.
    let mut changed = fs::read(file(2)).unwrap();
    changed[100] ^= 1;
    fs::write(file(2), changed).unwrap();
    let damaged = |run: &Run| run.integrity().damaged_files;
    let named: Vec<_> = (0..3).map(|record| run.trials()[record].results.clone().unwrap()).collect();
    assert_eq!(damaged(&run), named);
    assert!(run.samples(&run.trials()[2]).is_err());
    // Older versions recorded no checksum. A cut file is still unreadable.
    let path = run.folder().join("journal.jsonl");
    without_checksums(&path);
    let text = fs::read_to_string(&path).unwrap().replace(r#""results_sha256""#, r#""other""#);
    fs::write(&path, text).unwrap();
    let old = Run::open(run.folder()).unwrap();
    assert_eq!(damaged(&old)[..2], named[..2]);
    let integrity = old.integrity();
    assert_eq!((integrity.verified, integrity.unverified), (0, 8));
}

#[test]
fn an_unknown_endpoint_and_a_huge_body_are_refused_before_a_folder_is_made() {
    let parent = tempfile::tempdir().unwrap();
    let mut unknown = plan(1);
    unknown.cells[0].job.client = "bultin".to_owned();
    let message = create(parent.path(), unknown).unwrap_err().to_string();
    assert!(message.contains("`bultin`") && message.contains("builtin"), "{message}");
    let mut huge = plan(1);
    huge.cells[0].job.work = Work::Requests(Requests::document(Size(1 << 40)));
    let message = create(parent.path(), huge).unwrap_err().to_string();
    assert!(message.contains("protocol=h1"), "{message}");
    assert_eq!(files(parent.path()), [""; 0]);
}

#[test]
fn a_journal_that_cannot_be_opened_ends_the_session_with_its_path_and_the_run_goes_on_later() {
    let parent = tempfile::tempdir().unwrap();
    let mut run = create(parent.path(), plan(1)).unwrap();
    let journal = run.folder().join("journal.jsonl");
    // A folder with the journal's name makes every opening fail.
    fs::create_dir(&journal).unwrap();
    let message = execute(&mut run, Script::plausible()).unwrap_err().to_string();
    assert!(message.contains("journal.jsonl"), "{message}");
    fs::remove_dir(&journal).unwrap();
    assert_eq!(execute(&mut run, Script::plausible()).unwrap(), StopReason::MaxBlocks);
}
