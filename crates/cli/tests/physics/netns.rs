//! Runs in the lab `netns`: protocols need the round trips of their specifications, and no process or namespace is left
//! behind. The tests are skipped if network namespaces are not available.

use std::collections::HashSet;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use wirelab_testkit::lab::{folder_with, trials};
use wirelab_testkit::physics::Test;
use wirelab_testkit::test;
use wirelab_testkit::{eventually, run, wirelab};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(each_protocol_needs_the_round_trips_of_its_handshake).beside_few().retries(2),
        test!(a_killed_run_leaves_neither_process_nor_namespace).side_by_side(),
    ]
}

const STUDY: &str = r#"
name = "round-trips"
title = "Round trips to the first byte"
question = "How many round trips does a request on a new connection take?"
lab = "netns"

[workload]
placement = "multi-az"
round_trip = "100 ms"
connections = "per-request"
requests = 4

[factors]
protocol = ["h1", "h2", "h3"]
resumption = ["none", "zero_rtt"]

[compare]
factor = "protocol"
baseline = "h1"

[blocks]
min = 1
max = 1
"#;

fn each_protocol_needs_the_round_trips_of_its_handshake() {
    let Some(folder) = folder_with(STUDY, &[]) else { return };
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    for (cell, trial) in trials(folder.path()) {
        let job = &cell["job"];
        // TCP takes one round trip, TLS 1.3 one, QUIC with TLS one, the request one. 0-RTT sends the request with the
        // first flight of TLS.
        let wanted = match (job["protocol"].as_str().unwrap(), job["resumption"].as_str().unwrap()) {
            ("h1" | "h2", "none") => 3,
            ("h1" | "h2", _) | ("h3", "none") => 2,
            _ => 1,
        };
        // The fastest request, in round trips: never fewer, and nearer to this number than to the next.
        let trips = trial["values"]["response_min"].as_f64().unwrap() / 100e6;
        assert!((f64::from(wanted)..f64::from(wanted) + 0.5).contains(&trips), "{trips} round trips: {job}");
    }
}

fn a_killed_run_leaves_neither_process_nor_namespace() {
    let Some(folder) = folder_with(STUDY, &["services"]) else { return };
    let overlay = STUDY.replace("[workload]\n", "[workload]\nnetwork = \"overlay\"\nservers = \"near + far\"\n");
    assert_ne!(overlay, STUDY);
    fs::write(folder.path().join("overlay.toml"), overlay).unwrap();
    // Killed at the start of this process, or some time later: while the network is created, while pods and services
    // are, and during a trial.
    for (study, words, later_ms) in [
        ("study.toml", "fabric", 0),
        ("study.toml", "endpoint server", 0),
        ("overlay.toml", "fabric", 20),
        ("overlay.toml", "fabric", 230),
        ("overlay.toml", "endpoint client", 0),
        ("overlay.toml", "endpoint client", 410),
    ] {
        let mut child = wirelab(folder.path(), &["run", study, "--quiet"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut descendants = Vec::new();
        eventually(words, || {
            descendants = children(child.id());
            descendants.iter().any(|pid| command(*pid).contains(words))
        });
        std::thread::sleep(Duration::from_millis(later_ms));
        descendants = children(child.id());
        let ours = fs::read_link("/proc/self/ns/net").unwrap();
        let theirs: HashSet<_> = descendants.iter().flat_map(|pid| namespaces(*pid)).filter(|ns| *ns != ours).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        eventually("the end of every process", || descendants.iter().all(|pid| command(*pid).is_empty()));
        eventually("the end of every namespace", || {
            every_process().into_iter().flat_map(namespaces).all(|namespace| !theirs.contains(&namespace))
        });
    }
}

fn every_process() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn children(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok()) == Some(parent)
    };
    every_process().into_iter().filter(is_child).collect()
}

/// The command line of a process; empty after its end.
fn command(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// The network namespaces that a process lives in or holds open.
fn namespaces(pid: u32) -> Vec<std::path::PathBuf> {
    let own = fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let held = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let held =
        held.filter_map(|fd| fs::read_link(fd.path()).ok()).filter(|path| path.to_string_lossy().starts_with("net:["));
    own.into_iter().chain(held).collect()
}
