//! The machine stands still in the middle of a trial, as a virtual machine does that is suspended or moved.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::tempdir;
use wirelab_testkit::lab::all_trials;
use wirelab_testkit::{eventually, only_run, said, tree, wirelab};

/// How long everything stands still, which is what the trial suffers, and its window.
const PAUSE: Duration = Duration::from_millis(1500);
const WINDOW: &str = "duration=6s";

#[test]
fn a_trial_in_which_everything_stood_still_is_marked_or_fails() {
    let folder = tempdir().unwrap();
    let args = ["run", "quick", "--lab", "loopback", "--quiet", "--set", "protocol=h1", "--set", "payload=1 KiB"];
    let one = ["--set", "connection=persistent", "--set", WINDOW, "--set", "blocks.min=1", "--set", "blocks.max=1"];
    let mut command = wirelab(folder.path(), &[&args[..], &one].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The warm-up of 20 requests takes a hundredth of this processor time.
    eventually("a client in its window", || {
        let all = tree::descendants(child.id());
        all.iter().any(|process| process.line.contains("client") && ticks(process.pid) >= 30)
    });
    let mut all: Vec<_> = tree::descendants(child.id()).iter().map(|process| process.pid).collect();
    all.push(child.id());
    signal("STOP", &all);
    sleep(PAUSE);
    signal("CONT", &all);
    let ended = said(child.wait_with_output().unwrap());
    assert!(matches!(ended.status, 0 | 1), "{}", ended.err);
    let trials: Vec<Value> = all_trials(folder.path()).into_iter().map(|(_, trial)| trial).collect();
    let stalled = |trial: &Value| trial["values"]["stalled_share"].as_f64().is_some_and(|share| share > 0.2);
    let has_failed = trials.iter().any(|trial| trial["outcome"] == "failed");
    assert!(has_failed || trials.iter().any(stalled), "{trials:?}");
    let report = fs::read_to_string(only_run(folder.path()).join("report.html")).unwrap();
    assert!(has_failed || report.contains("its percentiles hide these stalls"), "the report does not say so");
}

/// The processor time of a process in hundredths of a second (proc_pid_stat(5)); 0 after its end.
fn ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

fn signal(name: &str, processes: &[u32]) {
    let numbers = processes.iter().map(u32::to_string);
    // A process may have ended by itself.
    let _ = Command::new("kill").arg(format!("-{name}")).args(numbers).status().unwrap();
}
