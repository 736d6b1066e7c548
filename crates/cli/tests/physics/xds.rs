//! Proxyless gRPC in the lab `netns`: clients of a control plane give a new server its share at once, and lose only
//! requests in flight when a server ends. The tests are skipped if network namespaces or Go are not available.

use wirelab_testkit::installed::{first_trial_without, prepared, run};
use wirelab_testkit::lab::{all_trials, folder_with, in_time};
use wirelab_testkit::physics::Test;
use wirelab_testkit::test;
use wirelab_testkit::{processes, said};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(a_new_server_gets_its_share_at_once_and_with_one_that_dies_nothing_is_lost_but_what_is_under_way)
            .beside_few()
            .retries(2),
        test!(a_control_plane_that_dies_fails_its_trial_gets_the_blame_and_leaves_nothing).side_by_side(),
        test!(endpoints_without_the_control_plane_role_and_clients_without_xds_are_refused_before_the_run)
            .side_by_side()
            .retries(2),
    ]
}

/// The program that builds the endpoint, and the arguments that test whether it is installed.
const NEEDS: [&str; 2] = ["go", "version"];

const STUDY: &str = r#"
name = "proxyless"
title = "Proxyless"
question = "Who is asked?"
lab = "netns"
observers = ["cpu", "sidecars"]

[workload]
exchange = "heron"
client = "go-grpc-xds"
network = "overlay"
placement = "lan"
round_trip = "0 ms"
servers = "2 far"
pause = "2 ms"
duration = "6 s"
warm_up = 3

[factors.variant]
headless = { protocol = "grpcc", address = "headless", connections = 6 }
xds = { protocol = "grpcc", control_plane = "go-grpc-xds" }
xds-tls = { protocol = "grpc", control_plane = "go-grpc-xds" }

[timeline]
actions = [
    { name = "T2", at = "30 %", servers = "3 far" },
    { name = "T3", at = "55 %", clients = 3 },
    { name = "T4", at = "75 %", kill = 0 },
]

[timeline.windows]
T1-T2 = { to = "T2" }
T2-T3 = { from = "T2", to = "T3" }
T3-T4 = { from = "T3", to = "T4" }
from-T4 = { from = "T4" }

[compare]
factor = "variant"
baseline = "headless"

[blocks]
min = 1
max = 1
"#;

fn a_new_server_gets_its_share_at_once_and_with_one_that_dies_nothing_is_lost_but_what_is_under_way() {
    let Some(folder) = prepared(STUDY, "go-grpc-xds", NEEDS) else { return };
    said(run(folder.path()).output().unwrap()).with_status(0);
    let trials = all_trials(folder.path());
    assert_eq!(trials.len(), 4, "three cells, and the twin of the baseline");
    for (cell, trial) in in_time(trials) {
        let value = |metric: &str| &trial["values"][metric];
        let of = |metric: &str| value(metric).as_f64().unwrap_or_else(|| panic!("{metric}: {}", value(metric)));
        assert!(of("server_smallest@T1-T2") > 0.45, "{trial}");
        if cell["levels"]["variant"] == "headless" {
            assert!(of("server_newest@T2-T3") < 0.01, "{trial}");
            continue;
        }
        // Requests go to the servers in turn. The bounds allow for a slow machine with some tens of requests, whose
        // counts were read at slightly different moments.
        let requests = ["requests@T1-T2", "requests@T2-T3", "requests@T3-T4", "requests@from-T4"].map(of);
        assert!(requests.iter().all(|count| *count > 20.0), "{trial}");
        assert!((0.28..0.38).contains(&of("server_newest@T2-T3")), "{trial}");
        assert!(of("server_smallest@T3-T4") > 0.25, "{trial}");
        for window in ["T1-T2", "T2-T3", "T3-T4"] {
            assert_eq!(of(&format!("failed@{window}")), 0.0, "{trial}");
        }
        // Three clients had one request each in flight.
        assert!(of("failed@from-T4") <= 3.0, "{trial}");
        // The two remaining servers take turns.
        assert!(of("server_newest@from-T4") > 0.4, "{trial}");
        assert_eq!(value("cpu_client_sidecar_per_request")["not_measured"], "the trial has no sidecars");
        assert_eq!(trial["client"]["control_plane_balance"], "round robin", "{trial}");
    }
}

fn a_control_plane_that_dies_fails_its_trial_gets_the_blame_and_leaves_nothing() {
    let only = STUDY.replace("headless = { protocol = \"grpcc\", address = \"headless\", connections = 6 }\n", "");
    let only = only.replace("baseline = \"headless\"", "baseline = \"xds\"").replace("\"6 s\"", "\"20 s\"");
    let Some(folder) = prepared(&only, "go-grpc-xds", NEEDS) else { return };
    let trial = first_trial_without(folder.path(), "/control-plane.json");
    assert_eq!(
        (trial["outcome"].as_str(), trial["blame"].as_str()),
        (Some("failed"), Some("control-plane")),
        "{trial}"
    );
    let reason = trial["reason"].as_str().unwrap();
    assert!(reason.contains("the control plane `go-grpc-xds` was killed by signal 9"), "{reason}");
    assert!(processes(&folder.path().to_string_lossy()).is_empty(), "a process is left");
}

fn endpoints_without_the_control_plane_role_and_clients_without_xds_are_refused_before_the_run() {
    let study = STUDY
        .replace("client = \"go-grpc-xds\"\n", "")
        .replace("control_plane = \"go-grpc-xds\"", "control_plane = \"builtin\"");
    let Some(folder) = folder_with(&study, &[]) else { return };
    said(run(folder.path()).output().unwrap())
        .with_status(2)
        .complains(&["`control_plane` is `builtin`, an endpoint without that role"]);
    assert!(!folder.path().join("wirelab-runs").exists());

    let study = STUDY.replace("client = \"go-grpc-xds\"\n", "").replace("\"6 s\"", "\"1 s\"");
    let Some(folder) = prepared(&study, "go-grpc-xds", NEEDS) else { return };
    said(run(folder.path()).output().unwrap()).with_status(0);
    let unable = all_trials(folder.path()).into_iter().filter(|(cell, _)| cell["levels"]["variant"] != "headless");
    let unable: Vec<_> = unable.collect();
    assert_eq!(unable.len(), 2);
    for (_, trial) in unable {
        assert_eq!(trial["outcome"], "unsupported", "{trial}");
        assert!(trial["reason"].as_str().unwrap().contains("`discovers` is set"), "{trial}");
    }
}
