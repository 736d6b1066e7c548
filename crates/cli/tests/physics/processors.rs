//! Placement on processors: read from the processes of real trials while they run, and from their records.

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use wirelab_testkit::lab::{folder_of, trials};
use wirelab_testkit::physics::Test;
use wirelab_testkit::{run, test};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(processes_run_where_the_trial_confines_them).retries(1),
        test!(two_clients_and_their_server_in_namespaces_are_apart).retries(1),
    ]
}

const STUDY: &str = r#"
name = "placed"
title = "Placed"
question = "Where do client and server run?"
lab = "loopback"
[workload]
protocol = "h1c"
duration = "200 ms"
[factors]
cpus = ["free", "shared", "split"]
[compare]
factor = "cpus"
baseline = "free"
[blocks]
min = 1
max = 1
"#;

/// The processors of this process, in the kernel's form of a list.
fn own() -> String {
    allowed(std::process::id()).unwrap()
}

/// The processors of a process; `None` after its end.
fn allowed(pid: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(line.trim().to_owned())
}

/// Roles and processors of the endpoints below this folder that run now.
fn running(folder: &str) -> BTreeSet<(String, String)> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let endpoint = |pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let spec = words.iter().position(|word| word == "--spec")?;
        let is_ours = words.get(spec + 1)?.starts_with(folder);
        is_ours.then_some((words.get(spec - 1)?.to_string(), allowed(pid)?))
    };
    pids.filter_map(endpoint).collect()
}

/// The processors of a side in a trial's record.
fn recorded(trial: &Value, side: &str) -> String {
    trial["processors"][side].as_str().unwrap_or_else(|| panic!("{side}: {trial}")).to_owned()
}

fn processes_run_where_the_trial_confines_them() {
    let folder = folder_of(STUDY);
    let path = folder.path().canonicalize().unwrap();
    let mut seen = BTreeSet::new();
    thread::scope(|scope| {
        let run = scope.spawn(|| run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0));
        while !run.is_finished() {
            seen.extend(running(path.to_str().unwrap()));
            // Processes start and end meanwhile, without an event for this test: each look sees those of its moment.
            thread::sleep(Duration::from_millis(5));
        }
        run.join().unwrap();
    });
    let mut found = 0;
    for (cell, trial) in trials(folder.path()) {
        assert_eq!(trial["outcome"], "ok", "{trial}");
        let (client, server) = (recorded(&trial, "client"), recorded(&trial, "server"));
        // The processes were seen on the processors that the record names.
        assert!(seen.contains(&("client".to_owned(), client.clone())), "{client}: {seen:?}");
        assert!(seen.contains(&("server".to_owned(), server.clone())), "{server}: {seen:?}");
        let moved = |side: &str| trial["values"][format!("migrations_{side}")].as_f64();
        match cell["levels"]["cpus"].as_str().unwrap() {
            "free" => assert_eq!((client, server), (own(), own())),
            "shared" => {
                assert!(client == server && client.parse::<u32>().is_ok(), "{trial}");
                let moves = (moved("client"), moved("server"));
                assert!(moves == (Some(0.0), Some(0.0)) || moves == (None, None), "{trial}");
            }
            _ => assert_ne!(client, server, "{trial}"),
        }
        found += 1;
    }
    assert_eq!(found, 4, "three cells and the twin of the baseline");
}

fn two_clients_and_their_server_in_namespaces_are_apart() {
    let study = STUDY
        .replace("lab = \"loopback\"", "lab = \"netns\"")
        .replace("[workload]", "[workload]\nplacement = \"same-node\"\nclients = 2\nworkers = 2")
        .replace("[\"free\", \"shared\", \"split\"]", "[\"shared\", \"split\"]")
        .replace("baseline = \"free\"", "baseline = \"shared\"");
    let Some(folder) = wirelab_testkit::lab::folder_with(&study, &[]) else { return };
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    for (cell, trial) in trials(folder.path()) {
        assert_eq!(trial["outcome"], "ok", "{trial}");
        let (client, server) = (recorded(&trial, "client"), recorded(&trial, "server"));
        assert_eq!(client == server, cell["levels"]["cpus"] == "shared", "{trial}");
    }
}
