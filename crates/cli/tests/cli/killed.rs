//! wirelab is killed at random moments: no process is left, at most the current trial is lost, and the run can be
//! resumed.

use std::fs;
use std::process::{Command, Stdio};

use tempfile::tempdir;
use wirelab_testkit::tree::descendants;
use wirelab_testkit::{eventually, only_run, processes, run, wirelab};

const RUN: &[&str] = &[
    "run",
    "quick",
    "--set",
    "protocol=h1,h2",
    "--set",
    "payload=1 KiB",
    "--set",
    "requests=20",
    "--set",
    "blocks.min=3",
    "--set",
    "blocks.max=3",
    "--quiet",
];

#[test]
fn a_killed_run_leaves_no_process_and_can_be_resumed() {
    // The number of journal lines before the kill: early, in the middle, late.
    for lines in [0, 1, 4, 9] {
        let folder = tempdir().unwrap();
        let mark = folder.path().to_string_lossy().into_owned();
        let mut child = wirelab(folder.path(), RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let journal = || {
            let runs = fs::read_dir(folder.path().join("wirelab-runs")).ok()?;
            let path = runs.flatten().next()?.path();
            fs::read_to_string(path.join("journal.jsonl")).ok()
        };
        eventually("the journal line", || journal().is_some_and(|text| text.lines().count() > lines));
        child.kill().unwrap();
        child.wait().unwrap();
        eventually("the end of every process", || processes(&mark).is_empty());

        let complete =
            journal().unwrap().lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).count();
        run(folder.path(), &["resume", "--quiet"]).with_status(0);
        let text = fs::read_to_string(only_run(folder.path()).join("journal.jsonl")).unwrap();
        let entries: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut numbers: Vec<_> = entries
            .iter()
            .filter(|entry| entry["entry"] == "trial")
            .map(|entry| entry["number"].as_u64().unwrap())
            .collect();
        assert!(numbers.len() + 2 > complete, "what was journalled is kept");
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count, "no trial was done twice");
        assert_eq!(numbers.last().copied(), Some(count as u64 - 1), "no trial is missing");
    }
}

#[test]
fn an_interrupted_run_keeps_what_was_measured_and_says_how_to_go_on() {
    let folder = tempdir().unwrap();
    // Long enough that the run has not ended before a busy machine lets this test look.
    let args = [RUN, &["--set", "blocks.min=8", "--set", "blocks.max=8"]].concat();
    let child = wirelab(folder.path(), &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = || {
        let runs = fs::read_dir(folder.path().join("wirelab-runs")).ok()?;
        Some(fs::read_to_string(runs.flatten().next()?.path().join("journal.jsonl")).ok()?.lines().count())
    };
    eventually("a few trials", || lines().is_some_and(|lines| lines > 3));
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let said = wirelab_testkit::said(child.wait_with_output().unwrap()).with_status(130).complains(&["wirelab resume"]);
    assert!(said.out.contains("report.html"), "{}", said.out);
    assert!(processes(&folder.path().to_string_lossy()).is_empty(), "a process is left");
    run(folder.path(), &["resume", "--quiet"]).with_status(0);
}

#[test]
fn a_killed_guard_stops_the_run_which_can_be_resumed() {
    let folder = tempdir().unwrap();
    let args = [RUN, &["--set", "blocks.min=8", "--set", "blocks.max=8"]].concat();
    let child = wirelab(folder.path(), &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let trials = || {
        let runs = fs::read_dir(folder.path().join("wirelab-runs")).ok()?;
        let text = fs::read_to_string(runs.flatten().next()?.path().join("journal.jsonl")).ok()?;
        Some(text.lines().filter(|line| line.contains(r#""entry":"trial""#)).count())
    };
    eventually("a few trials", || trials().is_some_and(|trials| trials > 2));
    let guard =
        descendants(child.id()).into_iter().find(|process| process.line.trim_end().ends_with(" guard")).unwrap();
    assert!(Command::new("kill").args(["-KILL", &guard.pid.to_string()]).status().unwrap().success());
    let said = wirelab_testkit::said(child.wait_with_output().unwrap()).with_status(1);
    said.complains(&["the guard process has ended", "wirelab resume"]);
    run(folder.path(), &["resume", "--quiet"]).with_status(0);
    // Eight blocks of four cells and two A/A twins.
    assert_eq!(trials(), Some(48));
    let text = fs::read_to_string(only_run(folder.path()).join("journal.jsonl")).unwrap();
    let failed: Vec<_> = text.lines().filter(|line| line.contains(r#""outcome":"failed""#)).collect();
    assert!(failed.len() <= 1 && failed.iter().all(|line| line.contains(r#""blame":"lab""#)), "{failed:?}");
}
