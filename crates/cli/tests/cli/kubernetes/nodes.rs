//! Agents on nodes: their metrics, and their absence by default.

use serde_json::Value;

use super::{folder, nothing_stays, on_cluster};
use wirelab_testkit::lab::trials;
use wirelab_testkit::{said, wirelab};

const VARIABLE: &str = "WIRELAB_KUBERNETES_NODE_AGENTS";

/// Metrics of system calls and packets.
const METRICS: [&str; 4] = [
    "syscalls_client_per_request",
    "syscalls_server_per_request",
    "packets_client_sent_per_request",
    "packets_client_bytes_received_per_request",
];

/// Metrics of packets at the node of the servers.
const OF_NODE: [&str; 3] = [
    "packets_server_node_sent_per_request",
    "packets_server_node_bytes_received_per_request",
    "packets_server_node_largest",
];

pub fn packets_and_system_calls_are_counted_where_privileged_pods_are_allowed_and_only_there() {
    let args = [
        "run",
        "study.toml",
        "--quiet",
        "--observe",
        "syscalls,packets",
        "--set",
        "scenario=near,far,service,port",
        "--set",
        "protocol=h1,h3",
    ];
    let of = |trial: &Value, metric: &str| trial["values"][metric].clone();

    let without = folder();
    said(on_cluster(without.path(), &args).output().unwrap()).with_status(0);
    for (_, trial) in trials(without.path()) {
        for metric in METRICS.iter().chain(&OF_NODE) {
            let why = of(&trial, metric)["not_measured"].to_string();
            assert!(why.contains("WIRELAB_KUBERNETES_NODE_AGENTS=privileged"), "{metric}: {why}");
        }
    }
    nothing_stays(without.path());

    let wrong =
        said(wirelab(without.path(), &args).args(["--lab", "kubernetes"]).env(VARIABLE, "yes").output().unwrap());
    wrong.with_status(2).complains(&["is `yes`; set it to `privileged`"]);

    let with = folder();
    said(on_cluster(with.path(), &args).env(VARIABLE, "privileged").output().unwrap()).with_status(0);
    for (cell, trial) in trials(with.path()) {
        for metric in METRICS {
            assert!(of(&trial, metric).as_f64().is_some_and(|value| value > 0.5), "{metric}: {trial}");
        }
        // The payload must pass the client's interface, in packets that fit the overlay.
        assert!(of(&trial, "packets_client_bytes_received_per_request").as_f64().unwrap() > 1024.0, "{trial}");
        assert!(of(&trial, "packets_client_largest").as_f64().is_some_and(|bytes| bytes <= 1450.0), "{trial}");
        let number = |metric: &str| of(&trial, metric).as_f64().unwrap_or_else(|| panic!("{metric}: {trial}"));
        match cell["levels"]["scenario"].as_str().unwrap() {
            scenario @ ("near" | "port") => {
                let why = if scenario == "near" { "client and server share a node" } else { "as NodePort services do" };
                for metric in OF_NODE {
                    assert!(of(&trial, metric)["not_measured"].to_string().contains(why), "{metric}: {trial}");
                }
            }
            scenario => {
                for (way, other_way) in [("sent", "received"), ("received", "sent")] {
                    let packets = number(&format!("packets_server_node_{way}_per_request"));
                    assert!(packets > 0.0, "{trial}");
                    // Equal except for packets in flight. One of the two servers of the service is beside the client.
                    let of_client = number(&format!("packets_client_{other_way}_per_request"));
                    assert!(scenario != "far" || (packets - of_client).abs() < 0.5, "{way}: {trial}");
                    // VXLAN adds 50 bytes to each packet.
                    let outer = number(&format!("packets_server_node_bytes_{way}_per_request"));
                    let inner = number(&format!("packets_server_node_inner_bytes_{way}_per_request"));
                    assert!((outer - inner - 50.0 * packets).abs() < 1e-6, "{way}: {trial}");
                }
                assert!(number("packets_server_node_largest") <= 1500.0, "{trial}");
            }
        }
    }
    nothing_stays(with.path());
}
