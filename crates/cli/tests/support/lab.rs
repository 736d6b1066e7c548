//! Runs in the lab `netns`, and what they wrote.
#![allow(dead_code, reason = "each test file uses what it needs")]

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{only_run, run};

/// Whether network namespaces can be made here; says so on standard error where not.
pub fn namespaces_are_allowed(folder: &Path) -> bool {
    let text = run(folder, &["doctor", "--json"]).with_status(0).out;
    let findings: Vec<Value> = serde_json::from_str(&text).unwrap();
    let namespaces = findings.iter().find(|one| one["what"] == "network namespaces (lab netns)").unwrap();
    if namespaces["state"] == "missing" {
        eprintln!("NOT tested: network namespaces cannot be made here");
    }
    namespaces["state"] != "missing"
}

/// The manifest of the only run.
pub fn manifest(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(only_run(folder).join("manifest.json")).unwrap()).unwrap()
}

/// The trials in the journal of the only run.
pub fn trials(folder: &Path) -> Vec<Value> {
    let journal = fs::read_to_string(only_run(folder).join("journal.jsonl")).unwrap();
    let entries = journal.lines().map(|line| serde_json::from_str(line).unwrap());
    entries.filter(|entry: &Value| entry["entry"] == "trial").collect()
}
