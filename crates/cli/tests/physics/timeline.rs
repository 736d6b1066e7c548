//! Timelines in the lab `netns`: servers and clients that come and go, behind a service and by a name. The tests are
//! skipped if network namespaces are not available.

use serde_json::Value;
use wirelab_testkit::lab::{all_trials, folder_with, in_time};
use wirelab_testkit::physics::Test;
use wirelab_testkit::test;
use wirelab_testkit::{Skip, run, skip_part};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(the_share_of_servers_follows_from_the_way_of_connecting).beside_few().retries(2),
        test!(requests_of_a_killed_server_are_lost_and_the_other_servers_go_on).beside_few().retries(2),
        test!(a_drained_server_keeps_the_connections_it_has_and_gets_no_new_ones).beside_few().retries(2),
        test!(a_lab_without_timelines_refuses_and_the_fake_lab_plays_them).side_by_side(),
    ]
}

const STUDY: &str = r#"
name = "coming-and-going"
title = "Coming and going"
question = "Who gets what?"
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

[factors.variant]
rest = { protocol = "h1c", address = "service", connections = "per-request" }
standard = { protocol = "grpcc", address = "service" }
headless = { protocol = "grpcc", address = "headless", connections = 6 }
again = { protocol = "grpcc", address = "headless", connections = 6, max_connection_age = "100 ms", resolve_again = true }

[timeline]
actions = [
    { name = "T2", at = "30 %", servers = "3 far" },
    { name = "T3", at = "60 %", restart = "clients" },
    { name = "T4", at = "80 %", clients = 4 },
]

[timeline.windows]
T1-T2 = { to = "T2" }
T2-T3 = { from = "T2", to = "T3" }
T3-T4 = { from = "T3", to = "T4" }
from-T4 = { from = "T4" }

[compare]
factor = "variant"
baseline = "rest"

[blocks]
min = 1
max = 1
"#;

fn number(trial: &Value, metric: &str) -> f64 {
    trial["values"][metric].as_f64().unwrap_or_else(|| panic!("{metric}: {}", trial["values"][metric]))
}

fn the_share_of_servers_follows_from_the_way_of_connecting() {
    let Some(folder) = folder_with(STUDY, &["services"]) else { return };
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    let mut judged = 0;
    for (cell, trial) in in_time(all_trials(folder.path())) {
        let of = |metric: &str| number(&trial, metric);
        // With few requests the distribution is chance, and the check request weighs as much as they do.
        let few = |window: &&str| of(&format!("requests@{window}")) < 100.0;
        if let Some(window) = ["T1-T2", "T2-T3", "T3-T4"].into_iter().find(few) {
            let (what, why) = (cell["levels"].to_string(), format!("fewer than 100 requests in {window}"));
            skip_part(Skip::MachineTooBusy { what, why });
            continue;
        }
        match cell["levels"]["variant"].as_str().unwrap() {
            // Each request has a connection to a random server.
            "rest" => {
                assert!(of("server_newest@T2-T3") > 0.05, "{trial}");
                assert!(of("server_smallest@T1-T2") > 0.15, "{trial}");
            }
            "standard" => {
                assert_eq!((of("server_largest@T1-T2"), of("server_largest@T2-T3")), (1.0, 1.0), "{trial}");
                // The check request of the second client has its own connection.
                assert!(of("server_largest@T3-T4") > 0.9, "{trial}");
            }
            "headless" => {
                // Requests go to the servers in turn.
                assert!(of("server_smallest@T1-T2") > 0.4, "{trial}");
                assert_eq!(of("server_newest@T2-T3"), 0.0, "{trial}");
                assert!(of("server_smallest@T3-T4") > 0.2, "{trial}");
                assert!(of("server_smallest@from-T4") > 0.15, "{trial}");
            }
            // Connections of a tenth of a second, each to the next server that the name currently stands for.
            "again" => assert!(of("server_newest@T2-T3") > 0.1, "{trial}"),
            other => panic!("{other}"),
        }
        // One client, its replacement, and three more.
        assert_eq!(trial["timeline"]["clients"].as_array().unwrap().len(), 5);
        assert_eq!(trial["timeline"]["actions"].as_array().unwrap().len(), 3);
        assert!(of("failed@T2-T3") <= if cell["levels"]["variant"] == "again" { 60.0 } else { 0.0 }, "{trial}");
        // The cost covers all processes that run at both ends of the window.
        assert!(of("cpu_client_per_request") > 0.0 && of("cpu_server_per_request") > 0.0);
        judged += 1;
    }
    assert!(judged > 0, "the machine was too busy for every cell");
}

fn requests_of_a_killed_server_are_lost_and_the_other_servers_go_on() {
    let study = STUDY
        .replace("name = \"T2\", at = \"30 %\", servers = \"3 far\"", "name = \"T2\", at = \"30 %\", kill = 0")
        .replace(
            "name = \"T3\", at = \"60 %\", restart = \"clients\"",
            "name = \"T3\", at = \"60 %\", servers = \"2 far\"",
        );
    // New connections find the next server at once, and lasting ones after their loss; two ways are enough.
    let is_other = |line: &&str| line.starts_with("standard = ") || line.starts_with("again = ");
    let study: Vec<_> = study.lines().filter(|line| !is_other(line)).collect();
    let study = study.join("\n");
    let Some(folder) = folder_with(&study, &["services"]) else { return };
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    for (_, trial) in in_time(all_trials(folder.path())) {
        let servers = trial["timeline"]["servers"].as_array().unwrap();
        assert_eq!((servers.len(), servers[0]["from_ns"].as_u64()), (3, Some(0)));
        assert!(servers[0]["until_ns"].is_u64() && servers[1]["until_ns"].is_null() && servers[2]["from_ns"].is_u64());
        // Clients of the dead server find another server with the next request at the latest.
        assert!(number(&trial, "requests@T2-T3") > 10.0, "{trial}");
        // On a busy machine the clocks of runner and client differ by some milliseconds, so a request may fail just
        // before the kill.
        assert!(number(&trial, "failed@T1-T2") + number(&trial, "failed@T2-T3") < 20.0, "{trial}");
        assert_eq!(number(&trial, "failed@T3-T4"), 0.0, "{trial}");
    }
}

fn a_drained_server_keeps_the_connections_it_has_and_gets_no_new_ones() {
    let study =
        STUDY.replace("name = \"T2\", at = \"30 %\", servers = \"3 far\"", "name = \"T2\", at = \"30 %\", drain = 0");
    let Some(folder) = folder_with(&study, &["services"]) else { return };
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    for (cell, trial) in in_time(all_trials(folder.path())) {
        let of = |metric: &str| number(&trial, metric);
        assert_eq!(of("server_drained@T1-T2"), 0.0, "{trial}");
        match cell["levels"]["variant"].as_str().unwrap() {
            // A request that is answered during the change of the address may still count for the drained server.
            "rest" => assert!(of("server_drained@T2-T3") < 0.1 && of("server_drained@T3-T4") < 0.05, "{trial}"),
            // The one connection goes to a random server: either all requests go to the drained one, or none.
            "standard" => assert!([0.0, 1.0].contains(&of("server_drained@T2-T3")), "{trial}"),
            // Half of the six connections go to it, until the client is replaced.
            "headless" => {
                assert!((0.4..0.6).contains(&of("server_drained@T2-T3")), "{trial}");
                // One request of the old client may be in flight at T3.
                assert!(of("server_drained@T3-T4") < 0.05, "{trial}");
            }
            // Connections of a tenth of a second.
            "again" => assert!(of("server_drained@T2-T3") < 0.4 && of("server_drained@T3-T4") < 0.05, "{trial}"),
            other => panic!("{other}"),
        }
        if cell["levels"]["variant"] != "again" {
            assert_eq!(of("failed@T1-T2") + of("failed@T2-T3"), 0.0, "nothing is lost by it: {trial}");
        }
    }
}

fn a_lab_without_timelines_refuses_and_the_fake_lab_plays_them() {
    let Some(folder) = folder_with(STUDY, &[]) else { return };
    let said = run(folder.path(), &["run", "study.toml", "--lab", "loopback", "--quiet"]).with_status(2).err;
    assert!(said.contains("has no timelines") && said.contains("netns"), "{said}");
    run(folder.path(), &["run", "study.toml", "--lab", "fake", "--quiet"]).with_status(0);
    let report = run(folder.path(), &["report", "--full"]).with_status(0).out;
    assert!(report.contains("Requests of each server, T1-T2") && report.contains("Time to balance"), "{report}");
    let page = run(folder.path(), &["report", "--format", "html"]).with_status(0).out;
    assert!(page.contains("servers-over-time") && page.contains("responses-over-time"));
}
