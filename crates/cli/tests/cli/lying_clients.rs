//! Clients whose records are not what they did: `run` finds out by its own clock, by the server's count, and by what
//! the kernel saw.

use std::fs;

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use wirelab_testkit::lab::all_trials;
use wirelab_testkit::{Skip, program, run, skip_part};

const CLIENT: &str = include_str!("liar.py");

/// Pauses fill most of a window of half a second, so that a lie of 5 % is 25 ms.
const STUDY: &str = r#"
name = "lies"
title = "A client that lies"
question = "Does the run find out?"
lab = "loopback"
observers = ["exchanges"]
[workload]
protocol = "h1c"
client = "liar"
connections = 1
duration = "500 ms"
warm_up = 3
pause = "20 ms"
[factors]
payload = ["1 KiB", "2 KiB"]
[compare]
factor = "payload"
baseline = "1 KiB"
[blocks]
min = 1
max = 1
"#;

fn folder(lie: &str) -> TempDir {
    let folder = tempdir().unwrap();
    let endpoint = folder.path().join("endpoints/liar");
    fs::create_dir_all(&endpoint).unwrap();
    let wirelab = program();
    let manifest = format!(
        "name = \"liar\"\ncommand = [\"python3\", \"-B\", \"liar.py\"]\nenvironment = {{ LIE = \"{lie}\", WIRELAB = {wirelab:?} }}\n"
    );
    fs::write(endpoint.join("endpoint.toml"), manifest).unwrap();
    fs::write(endpoint.join("liar.py"), CLIENT).unwrap();
    fs::write(folder.path().join("study.toml"), STUDY).unwrap();
    folder
}

fn trials(lie: &str) -> Vec<Value> {
    trials_of(&folder(lie), &[])
}

fn trials_of(folder: &TempDir, more: &[&str]) -> Vec<Value> {
    run(folder.path(), &[&["run", "study.toml", "--quiet"], more].concat());
    let trials: Vec<_> = all_trials(folder.path()).into_iter().map(|(_, trial)| trial).collect();
    assert!(!trials.is_empty());
    trials
}

/// Demands that every trial fails, with one of these reasons.
#[track_caller]
fn is_caught(lie: &str, reasons: &[&str]) {
    trials(lie).iter().for_each(|trial| assert_is_caught(trial, reasons));
}

#[track_caller]
fn assert_is_caught(trial: &Value, reasons: &[&str]) {
    let reason = trial["reason"].to_string();
    let is_named = reasons.iter().any(|words| reason.contains(words));
    assert!(trial["outcome"] == "failed" && trial["blame"] == "client" && is_named, "{trial}");
}

/// Whether the kernel shows the exchanges of an honest client's trial; if not, this part of the tests is skipped.
fn is_shown(trial: &Value) -> bool {
    let seen = &trial["values"]["kernel_requests"];
    if !seen.is_number() {
        let (what, why) = ("eBPF programs that see sockets".to_owned(), seen.to_string());
        skip_part(Skip::KernelLacks { what, why });
    }
    seen.is_number()
}

#[test]
fn a_client_that_tells_the_truth_is_believed() {
    assert_are_believed(&trials("none"));
}

#[test]
fn the_load_engine_is_believed_in_clear_text_and_over_tls() {
    assert_are_believed(&trials_of(&folder("none"), &["--set", "client=engine", "--set", "protocol=h1c,h1"]));
}

fn assert_are_believed(trials: &[Value]) {
    for trial in trials {
        assert_eq!(trial["outcome"], "ok", "{trial}");
        if !is_shown(trial) {
            return;
        }
        let values = &trial["values"];
        assert_eq!(values["kernel_requests"], values["requests"], "{trial}");
        let [kernel, client] = ["kernel_response_median", "response_median"].map(|name| values[name].as_f64().unwrap());
        assert!(0.0 < kernel && kernel <= client * 1.04, "{kernel} ns in the kernel, {client} ns for the client");
    }
}

/// A busy machine delays the words themselves by more than the lie; then the kernel's times show it.
#[test]
fn a_client_that_reports_all_times_5_percent_short_fails_its_trial() {
    is_caught("shortens", &["the client reports a window of 4", "no time zero fits"]);
}

#[test]
fn a_client_that_hides_its_slowest_requests_fails_its_trial() {
    is_caught("hides", &["but the clients recorded"]);
}

#[test]
fn a_client_that_moves_its_requests_within_the_window_fails_its_trial_where_the_kernel_shows_them() {
    for trial in &trials("shifts") {
        if trial["outcome"] == "failed" || is_shown(trial) {
            assert_is_caught(trial, &["no time zero fits"]);
        }
    }
}
