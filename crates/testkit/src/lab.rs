//! Runs in the lab `netns`, and their records.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::{Skip, only_run, run, skip, skip_part};

/// A folder with this study as `study.toml`.
pub fn folder_of(study: &str) -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), study).unwrap();
    folder
}

/// A folder with this study. `None` if network namespaces, or another requirement (as `wirelab doctor` names it), are
/// missing; the test is then skipped.
#[track_caller]
pub fn folder_with(study: &str, needs: &[&str]) -> Option<TempDir> {
    let folder = folder_of(study);
    let text = run(folder.path(), &["doctor", "--json"]).with_status(0).out;
    let findings: Vec<Value> = serde_json::from_str(&text).unwrap();
    for need in needs.iter().chain(&["network namespaces"]) {
        let is_it = |one: &&Value| one["what"].as_str().unwrap().starts_with(need);
        let finding = findings.iter().find(is_it).unwrap_or_else(|| panic!("doctor does not look at {need}"));
        if finding["state"] == "missing" {
            let why = finding.to_string();
            skip(match *need {
                "network namespaces" => Skip::NoNetworkNamespaces { why },
                what => Skip::KernelLacks { what: what.to_owned(), why },
            });
            return None;
        }
    }
    Some(folder)
}

/// The trials of a timeline whose actions were in time. All of them must have succeeded, and at least one must exist. A
/// trial whose actions were delayed by other work on the machine proves nothing and is a skipped part.
#[track_caller]
pub fn in_time(trials: Vec<(Value, Value)>) -> Vec<(Value, Value)> {
    let mut in_time = trials;
    in_time.retain(|(cell, trial)| {
        let was_too_busy = ["late-action", "slow-action"].iter().any(|code| trial["reason_code"] == *code);
        if was_too_busy {
            let (what, why) = (cell["levels"].to_string(), trial["reason"].to_string());
            skip_part(Skip::MachineTooBusy { what, why });
        }
        !was_too_busy
    });
    assert!(!in_time.is_empty(), "the machine was too busy for every trial");
    for (_, trial) in &in_time {
        assert_eq!(trial["outcome"], "ok", "{trial}");
    }
    in_time
}

/// The trials of the only run with their cells. All trials must have succeeded.
#[track_caller]
pub fn trials(folder: &Path) -> Vec<(Value, Value)> {
    let trials = all_trials(folder);
    assert!(!trials.is_empty());
    for (_, trial) in &trials {
        assert_eq!(trial["outcome"], "ok", "{trial}");
    }
    trials
}

/// The trials of the only run with their cells, whatever their outcome.
#[track_caller]
pub fn all_trials(folder: &Path) -> Vec<(Value, Value)> {
    let read = |name: &str| fs::read_to_string(only_run(folder).join(name)).unwrap();
    let manifest: Value = serde_json::from_str(&read("manifest.json")).unwrap();
    let mut trials = Vec::new();
    for line in read("journal.jsonl").lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        if entry["entry"] == "trial" {
            let cell = manifest["plan"]["cells"][entry["cell"].as_u64().unwrap() as usize].clone();
            trials.push((cell, entry));
        }
    }
    trials
}
