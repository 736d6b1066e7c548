//! Sidecars in the lab `netns`: Envoy beside servers and clients balances each request, new servers get requests at
//! once, and failed sidecars are reported. The tests are skipped if network namespaces or Envoy are not available.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use wirelab_testkit::installed::{LONGEST_WAIT, first_trial_without, prepared, run};
use wirelab_testkit::lab::{all_trials, folder_with, in_time};
use wirelab_testkit::physics::Test;
use wirelab_testkit::test;
use wirelab_testkit::{eventually_within, processes, said, wirelab};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(the_mesh_of_a_cluster_is_refused_where_there_is_none).side_by_side(),
        test!(each_request_goes_to_the_next_server_and_a_new_one_gets_its_share_at_once).beside_few().retries(2),
        test!(a_sidecar_that_dies_fails_its_trial_and_gets_the_blame).side_by_side(),
        test!(when_wirelab_is_killed_no_sidecar_is_left).side_by_side(),
        test!(endpoints_without_the_sidecar_role_and_labs_without_sidecars_are_refused_before_the_run).side_by_side(),
    ]
}

/// The program that starts Envoy (util-linux), and the arguments that test whether it is installed.
const NEEDS: [&str; 2] = ["setpriv", "--version"];

const STUDY: &str = r#"
name = "beside"
title = "Beside"
question = "Who carries what?"
lab = "netns"
observers = ["cpu"]

[workload]
exchange = "heron"
network = "overlay"
placement = "lan"
round_trip = "0 ms"
servers = "2 far"
pause = "2 ms"
duration = "4 s"
warm_up = 3

[factors.variant]
standard = { protocol = "grpcc", address = "service" }
mesh = { protocol = "grpcc", mesh = "envoy" }
rest-mesh = { protocol = "h1c", connections = "per-request", mesh = "envoy" }

[timeline]
actions = [
    { name = "T2", at = "35 %", servers = "3 far" },
    { name = "T3", at = "75 %", clients = 3 },
]

[timeline.windows]
T1-T2 = { to = "T2" }
T2-T3 = { from = "T2", to = "T3" }
from-T3 = { from = "T3" }

[compare]
factor = "variant"
baseline = "standard"

[blocks]
min = 1
max = 1
"#;

/// The number of processes that work below a folder. Envoy's command line does not contain the folder.
fn at_work(folder: &Path) -> usize {
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    let below = |place: PathBuf| place.to_string_lossy().contains(&*folder.to_string_lossy());
    folders.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(below)).count()
}

fn the_mesh_of_a_cluster_is_refused_where_there_is_none() {
    let Some(folder) = folder_with(&STUDY.replace("envoy", "linkerd"), &["services"]) else { return };
    said(run(folder.path()).output().unwrap()).with_status(2).complains(&[
        "`mesh` is `linkerd`",
        "use the lab `kubernetes`",
        "an endpoint that plays sidecars",
    ]);
}

fn each_request_goes_to_the_next_server_and_a_new_one_gets_its_share_at_once() {
    let Some(folder) = prepared(STUDY, "envoy", NEEDS) else { return };
    said(run(folder.path()).output().unwrap()).with_status(0);
    let trials = all_trials(folder.path());
    assert_eq!(trials.len(), 4, "three cells, and the twin of the baseline");
    for (cell, trial) in in_time(trials) {
        let value = |metric: &str| &trial["values"][metric];
        let of = |metric: &str| value(metric).as_f64().unwrap_or_else(|| panic!("{metric}: {}", value(metric)));
        assert!(of("cpu_all_per_request") > 0.0);
        if cell["levels"]["variant"] == "standard" {
            assert_eq!(of("server_largest@T1-T2"), 1.0, "{trial}");
            assert_eq!(value("cpu_client_sidecar_per_request")["not_measured"], "the trial has no sidecars");
            continue;
        }
        // Requests go to the servers in turn. The bounds allow for a slow machine with some tens of requests, whose
        // counts were read at slightly different moments.
        let [two, three] = ["requests@T1-T2", "requests@T2-T3"].map(of);
        assert!(two > 20.0 && three > 20.0, "{trial}");
        if cell["levels"]["variant"] == "mesh" {
            assert!(of("server_smallest@T1-T2") > 0.45, "{trial}");
            assert!((0.28..0.38).contains(&of("server_newest@T2-T3")), "{trial}");
        } else {
            // Each worker of the sidecar has its own turn, and a connection belongs to one worker.
            assert!(of("server_smallest@T1-T2") > 0.4 && of("server_newest@T2-T3") > 0.25, "{trial}");
        }
        assert!(of("server_smallest@from-T3") > 0.2, "{trial}");
        assert_eq!(of("failed@T2-T3"), 0.0, "{trial}");
        // The cost of sidecars is separate from the cost of servers and clients.
        let cpu =
            ["client", "server", "client_sidecar", "server_sidecar"].map(|who| of(&format!("cpu_{who}_per_request")));
        assert!(cpu.iter().all(|time| *time > 0.0), "{trial}");
        let sum: f64 = cpu.iter().sum();
        assert!((of("cpu_all_per_request") - sum).abs() < sum / 10.0, "{trial}");
        assert!(of("memory_server_sidecar_peak") > of("memory_client_sidecar_peak"), "{trial}");
        // The record has the sidecars' effective settings beside those of clients and servers.
        for side in ["client", "server"] {
            assert_eq!(trial[side]["sidecar_balance"], "round robin", "{trial}");
            assert_eq!(trial[side]["sidecar_congestion"], trial[side]["congestion"], "{trial}");
        }
    }
}

fn a_sidecar_that_dies_fails_its_trial_and_gets_the_blame() {
    let only = STUDY.replace("standard = { protocol = \"grpcc\", address = \"service\" }\n", "");
    let only = only.replace("baseline = \"standard\"", "baseline = \"mesh\"").replace("\"4 s\"", "\"20 s\"");
    let Some(folder) = prepared(&only, "envoy", NEEDS) else { return };
    let trial = first_trial_without(folder.path(), "client-sidecar.json");
    assert_eq!((trial["outcome"].as_str(), trial["blame"].as_str()), (Some("failed"), Some("sidecar")), "{trial}");
    let reason = trial["reason"].as_str().unwrap();
    assert!(reason.contains("the sidecar `envoy` of the clients was killed by signal 9"), "{reason}");
    let mark = folder.path().to_string_lossy().into_owned();
    assert!(processes(&mark).is_empty() && at_work(folder.path()) == 0, "a process is left");
}

fn when_wirelab_is_killed_no_sidecar_is_left() {
    let Some(folder) = prepared(STUDY, "envoy", NEEDS) else { return };
    let mut child = run(folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Envoy itself, which works in a folder of the trial.
    eventually_within(LONGEST_WAIT, "Envoy", || at_work(&folder.path().join("wirelab-runs")) > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let mark = folder.path().to_string_lossy().into_owned();
    eventually_within(LONGEST_WAIT, "the end of every process", || {
        processes(&mark).is_empty() && at_work(folder.path()) == 0
    });
}

fn endpoints_without_the_sidecar_role_and_labs_without_sidecars_are_refused_before_the_run() {
    let study = STUDY.replace("mesh = \"envoy\"", "mesh = \"builtin\"");
    let Some(folder) = folder_with(&study, &[]) else { return };
    said(run(folder.path()).output().unwrap())
        .with_status(2)
        .complains(&["`builtin`, an endpoint without the role sidecar"]);
    let elsewhere = ["run", "study.toml", "--quiet", "--lab", "loopback", "--set", "network=direct"];
    said(wirelab(folder.path(), &elsewhere).output().unwrap()).with_status(2);
    assert!(!folder.path().join("wirelab-runs").exists());
}
