//! Runs in the overlay network of the lab `netns`: pods on two nodes, and services. The tests are skipped if network
//! namespaces are not available.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::tempdir;
use wirelab_testkit::lab::{folder_with, trials};
use wirelab_testkit::physics::Test;
use wirelab_testkit::test;
use wirelab_testkit::{only_run, program, run, said, wirelab};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(pods_are_a_link_apart_and_a_service_spreads_connections_by_chance).beside_few().retries(2),
        test!(the_name_of_the_servers_resolves_to_all_of_them_for_the_client_alone).side_by_side().retries(2),
        test!(an_impossible_overlay_is_refused_with_the_remedy).side_by_side(),
    ]
}

const STUDY: &str = r#"
name = "overlay"
title = "An overlay network"
question = "Does a cluster's network do what it is said to do?"
lab = "netns"

[workload]
placement = "multi-az"
network = "overlay"
round_trip = "100 ms"
connections = "per-request"

[factors]
protocol = ["h1", "h3"]

[factors.scenario]
pod = { requests = 3, payload = "10 KiB", more_observers = ["packets"] }
two = { servers = "2 far", requests = 300, round_trip = "0 ms" }
spread = { servers = "near + far", requests = 300, round_trip = "0 ms" }
by-name = { servers = "near + far", address = "headless", requests = 6 }
one = { address = "service", requests = 3 }
near = { placement = "same-node", round_trip = "0 ms", requests = 3 }

[compare]
factor = "protocol"
baseline = "h1"

[blocks]
min = 1
max = 1
"#;

fn pods_are_a_link_apart_and_a_service_spreads_connections_by_chance() {
    let Some(folder) = folder_with(STUDY, &["capturing packets", "services"]) else { return };
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    for (cell, trial) in trials(folder.path()) {
        let share = &trial["values"]["service_largest_share"];
        let trips = trial["values"]["response_min"].as_f64().unwrap() / 100e6;
        let handshake = if cell["levels"]["protocol"] == "h1" { 3.0 } else { 2.0 };
        match cell["levels"]["scenario"].as_str().unwrap() {
            // Full packets, possibly more than one congestion window.
            "pod" => {
                assert!(trips >= handshake, "{trips} round trips: {cell}");
                assert!(share["not_measured"].is_string(), "{share}");
                is_wrapped(&trial["values"]);
            }
            // A small request on a new connection takes the round trips of its handshake, with or without the tunnel.
            "one" => {
                assert!((handshake..handshake + 0.5).contains(&trips), "{trips} round trips: {cell}");
                assert_eq!(share, &Value::from(1.0));
            }
            // Half of the connections each, within four standard errors of a fair coin.
            "two" | "spread" => {
                let error = (0.25_f64 / 301.0).sqrt();
                let share = share.as_f64().unwrap();
                assert!((0.5..0.5 + 4.0 * error).contains(&share), "{share}: {cell}");
            }
            // The check request goes to the first server, which is near. Every second one of the next six requests goes
            // far.
            "by-name" => {
                let [least, mean, most] = ["min", "mean", "max"]
                    .map(|which| trial["values"][format!("response_{which}")].as_f64().unwrap() / 100e6);
                assert!(least < 1.0 && most >= handshake, "{least} to {most} round trips: {cell}");
                assert!((handshake / 2.0..handshake / 2.0 + 0.5).contains(&mean), "{mean} round trips: {cell}");
            }
            _ => assert!(share["not_measured"].is_string(), "{share}"),
        }
    }
}

/// Between the nodes every packet is inside another one, which adds the headers of IPv4, UDP and VXLAN, and the
/// packet's own Ethernet header. In the pods this is not visible.
fn is_wrapped(values: &Value) {
    const HEADERS: f64 = 20.0 + 8.0 + 8.0 + 14.0;
    let value = |name: &str| values[name].as_f64().unwrap_or_else(|| panic!("{name}: {}", values[name]));
    for direction in ["sent", "received"] {
        let of = |name: &str| value(&format!("packets_server_node_{name}{direction}_per_request"));
        let added = of("bytes_") - of("inner_bytes_");
        assert!((added - HEADERS * of("")).abs() < 1e-6, "{direction}: {added} of {}", of(""));
    }
    assert!(value("packets_client_largest") <= 1450.0);
    let between = value("packets_server_node_largest") - value("packets_client_largest");
    assert!((between - HEADERS).abs() < 1e-6, "{between}");
}

/// A client that resolves the name of the servers by the system's resolver, prints the result, and continues as the
/// built-in one.
const ASKING: &str = r#"#!/bin/sh
[ "$1" = client ] && getent ahostsv4 wirelab.test >&2
[ "$1" = describe ] && { "$WIRELAB" endpoint describe | sed 's/"builtin"/"asking"/'; exit; }
exec "$WIRELAB" endpoint "$@"
"#;

fn the_name_of_the_servers_resolves_to_all_of_them_for_the_client_alone() {
    let study = STUDY
        .replace("connections =", "client = \"asking\"\nconnections =")
        .replace("\"h1\", \"h3\"", "\"h1c\", \"h1\"");
    let (before, after) = study.split_once("pod = ").unwrap();
    let only = after.lines().find(|line| line.starts_with("by-name")).unwrap();
    let study = format!("{before}{only}\n\n[compare]{}", after.split_once("[compare]").unwrap().1)
        .replace("\"h1\"\n", "\"h1c\"\n");
    let Some(folder) = folder_with(&study, &[]) else { return };
    let asking = folder.path().join("endpoints/asking");
    fs::create_dir_all(&asking).unwrap();
    fs::write(asking.join("endpoint.toml"), "name = \"asking\"\ncommand = [\"sh\", \"asking.sh\"]\n").unwrap();
    fs::write(asking.join("asking.sh"), ASKING).unwrap();
    let mut command = wirelab(folder.path(), &["run", "study.toml", "--quiet"]);
    command.env("WIRELAB", program());
    said(command.output().unwrap()).with_status(0);
    for (_, trial) in trials(folder.path()) {
        let log = format!("logs/trial-{:06}-client.log", trial["number"].as_u64().unwrap());
        let heard = fs::read_to_string(only_run(folder.path()).join(log)).unwrap();
        let addresses: BTreeSet<_> = heard.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        assert_eq!(addresses.len(), 2, "{heard}");
    }
    let outside = Command::new("getent").args(["ahostsv4", "wirelab.test"]).output().unwrap();
    assert!(outside.stdout.is_empty(), "{outside:?}");
}

fn an_impossible_overlay_is_refused_with_the_remedy() {
    let folder = tempdir().unwrap();
    let refused = |from: &str, to: &str, remedy: &str| {
        assert!(STUDY.contains(from));
        fs::write(folder.path().join("study.toml"), STUDY.replace(from, to)).unwrap();
        let said = run(folder.path(), &["run", "study.toml", "--plan"]).with_status(2).err;
        assert!(said.contains(remedy), "{said}");
    };
    refused("network = \"overlay\"", "network = \"direct\"", "`network = \"overlay\"`");
    refused("network = \"overlay\"", "network = \"overlays\"", "overlay");
    refused("\"2 far\"", "\"2 fat\"", "`far`, `2 far`, `near + far`");
    refused("servers = \"2 far\"", "servers = \"2 far\", address = \"server\"", "`service`");
}
