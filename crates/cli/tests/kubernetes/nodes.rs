//! What agents on nodes observe, and that there are none unless somebody says so.

use serde_json::Value;

use super::lab::trials;
use super::support::{said, wirelab};
use super::{folder, nothing_stays, on_cluster};

const VARIABLE: &str = "WIRELAB_KUBERNETES_NODE_AGENTS";

/// The metrics of system calls and packets, of the side that has them in a cluster.
const METRICS: [&str; 4] = [
    "syscalls_client_per_request",
    "syscalls_server_per_request",
    "packets_client_sent_per_request",
    "packets_client_bytes_received_per_request",
];

pub fn packets_and_system_calls_are_counted_where_privileged_pods_are_allowed_and_only_there() {
    let args = [
        "run",
        "study.toml",
        "--quiet",
        "--observe",
        "syscalls,packets",
        "--set",
        "scenario=far",
        "--set",
        "protocol=h1,h3",
    ];
    let of = |trial: &Value, metric: &str| trial["values"][metric].clone();

    let without = folder();
    said(on_cluster(without.path(), &args).output().unwrap()).with_status(0);
    for (_, trial) in trials(without.path()) {
        for metric in METRICS {
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
    for (_, trial) in trials(with.path()) {
        for metric in METRICS {
            assert!(of(&trial, metric).as_f64().is_some_and(|value| value > 0.5), "{metric}: {trial}");
        }
        // The payload has to pass the client's interface, in packets that fit the overlay.
        assert!(of(&trial, "packets_client_bytes_received_per_request").as_f64().unwrap() > 1024.0, "{trial}");
        assert!(of(&trial, "packets_client_largest").as_f64().is_some_and(|bytes| bytes <= 1450.0), "{trial}");
        let of_node = of(&trial, "packets_server_node_sent_per_request");
        assert!(of_node["not_measured"].to_string().contains("shares its network interfaces"), "{trial}");
    }
    nothing_stays(with.path());
}
