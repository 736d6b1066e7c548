//! Sidecars, control planes, and the mesh of the cluster.

use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{ended, nothing_stays, on_cluster};
use wirelab_testkit::cluster::{Cluster, eventually, root};
use wirelab_testkit::lab::{all_trials, in_time};
use wirelab_testkit::{said, wirelab};

/// Three ways to find servers. One server comes later, and the network need not change for it.
const BESIDE: &str = r#"
name = "beside"
title = "Beside"
question = "Who gets what?"
lab = "kubernetes"
observers = ["cpu", "memory"]

[workload]
exchange = "heron"
network = "overlay"
congestion = "reno"
placement = "lan"
servers = "2 far"
pause = "5 ms"
duration = "8 s"

[factors.variant]
standard = { protocol = "grpcc", address = "service" }
mesh = { protocol = "grpcc", mesh = "envoy" }
xds = { protocol = "grpcc", control_plane = "go-grpc-xds", client = "go-grpc-xds" }

[timeline]
actions = [
    { name = "T2", at = "30 %", servers = "3 far" },
    { name = "T3", at = "80 %", clients = 3 },
]

[timeline.windows]
T1-T2 = { to = "T2" }
T2-T3 = { from = "T2", to = "T3" }

[compare]
factor = "variant"
baseline = "standard"

[blocks]
min = 1
max = 1
"#;

/// The image must contain both endpoints, as the image of `make test-cluster` does.
pub fn sidecars_and_control_planes_play_in_pods() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), BESIDE).unwrap();
    for endpoint in ["envoy", "go-grpc-xds"] {
        said(wirelab(&root(), &["endpoints", "install", endpoint]).output().unwrap()).with_status(0);
    }
    let mut command = on_cluster(folder.path(), &["run", "study.toml", "--quiet"]);
    said(command.env("WIRELAB_ENDPOINTS", root().join("endpoints")).output().unwrap()).with_status(0);
    for (cell, trial) in in_time(all_trials(folder.path())) {
        let value = |metric: &str| &trial["values"][metric];
        let of = |metric: &str| value(metric).as_f64().unwrap_or_else(|| panic!("{metric}: {trial}"));
        // The total cost is known in each variant. With sidecars or a control plane it exceeds the cost of clients and
        // servers.
        let both = of("cpu_client_per_request") + of("cpu_server_per_request");
        let variant = cell["levels"]["variant"].as_str().unwrap();
        if variant == "standard" {
            assert_eq!(of("server_largest@T2-T3"), 1.0, "{trial}");
            assert!((of("cpu_all_per_request") / both - 1.0).abs() < 0.02, "{trial}");
            assert_eq!(value("cpu_client_sidecar_per_request")["not_measured"], "the trial has no sidecars");
            continue;
        }
        assert!(of("server_smallest@T1-T2") > 0.4 && of("server_newest@T2-T3") > 0.2, "{trial}");
        assert_eq!(of("failed@T2-T3"), 0.0, "{trial}");
        if variant == "mesh" {
            let sidecars = of("cpu_client_sidecar_per_request") + of("cpu_server_sidecar_per_request");
            assert!(sidecars > 0.0 && of("cpu_all_per_request") > both + 0.9 * sidecars, "{trial}");
            assert!(of("memory_client_sidecar_peak") > 1e7 && of("memory_server_sidecar_peak") > 3e7, "{trial}");
            assert_eq!(trial["server"]["sidecar_balance"], "round robin", "{trial}");
        } else {
            assert!(of("cpu_all_per_request") > 0.98 * both, "{trial}");
        }
    }
    nothing_stays(folder.path());
}

/// A substitute for Linkerd's injector: pods with the annotation get a container of that name, which forwards nothing.
const INJECTION: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: { name: stand-in-for-an-injector }
spec:
  matchConstraints:
    resourceRules:
      - { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }
  matchConditions:
    - name: asks-for-it
      expression: "has(object.metadata.annotations) && 'linkerd.io/inject' in object.metadata.annotations"
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
    - patchType: JSONPatch
      jsonPatch:
        expression: >
          [JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{
            name: "linkerd-proxy", image: "localhost/wirelab:dev",
            command: ["/usr/bin/python3", "-c", "import signal; signal.pause()"]}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: { name: stand-in-for-an-injector }
spec: { policyName: stand-in-for-an-injector }
"#;

/// A pod that looks like Linkerd's injector, and injects nothing.
fn injector(image: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "idle-injector", "labels": { "linkerd.io/control-plane-component": "proxy-injector" } },
        "spec": { "containers": [
            { "name": "proxy-injector", "image": image, "command": ["/wirelab", "agent", "wait", "idle-injector"] },
        ] },
    })
}

pub fn the_mesh_of_the_cluster_is_asked_for_and_its_absence_is_noticed(cluster: &Cluster) {
    let folder = tempdir().unwrap();
    let study = BESIDE.replace("\"envoy\"", "\"linkerd\"");
    let (study, rest) = (study.split("xds =").next().unwrap(), &study[study.find("[timeline]").unwrap()..]);
    fs::write(folder.path().join("study.toml"), format!("{study}{rest}")).unwrap();
    let run = |more: &[&str]| on_cluster(folder.path(), &[&["run", "study.toml", "--quiet"][..], more].concat());
    let without = said(run(&[]).output().unwrap());
    without.with_status(2).complains(&["not installed in the cluster", "`linkerd install | kubectl apply -f -`"]);
    assert!(!folder.path().join("wirelab-runs").exists(), "nothing is made for a run that cannot be");
    said(run(&["--lab", "netns"]).output().unwrap()).with_status(2).complains(&["`mesh` is `linkerd`", "`kubernetes`"]);

    cluster.apply(&injector("localhost/wirelab:dev").to_string());
    cluster.kubectl(&["wait", "--for=condition=Ready", "pod/idle-injector", "--timeout=60s"]);
    said(run(&[]).output().unwrap()).with_status(0);
    let trials = ended(folder.path());
    let (failed, ok): (Vec<_>, Vec<_>) = trials.iter().partition(|trial| trial["outcome"] == "failed");
    assert!(!ok.is_empty(), "those outside of the mesh go on: {trials:?}");
    let [failed] = &failed[..] else { panic!("{failed:?}") };
    let reason = failed["reason"].as_str().unwrap();
    assert!(failed["blame"] == "lab" && reason.contains("the pod meshed-client is not what its cell says"), "{failed}");
    assert!(reason.contains("no container `linkerd-proxy`"), "{failed}");
    nothing_stays(folder.path());

    cluster.apply(INJECTION);
    let mut asks = injector("localhost/wirelab:dev");
    asks["metadata"] = json!({ "name": "asks", "annotations": { "linkerd.io/inject": "enabled" } });
    let dry = ["create", "--dry-run=server", "--output", "json", "--filename", "-"];
    eventually("an injection", || cluster.try_kubectl(&dry, &asks.to_string()).out.contains("linkerd-proxy"));
    said(run(&["--out", "injected"]).output().unwrap()).with_status(0);
    let journal =
        fs::read_dir(folder.path().join("injected")).unwrap().next().unwrap().unwrap().path().join("journal.jsonl");
    let entries = fs::read_to_string(journal).unwrap();
    let trials = entries.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let trials: Vec<_> = trials.filter(|entry| entry["entry"] == "trial" && entry["outcome"] == "ok").collect();
    let meshed: Vec<_> = trials.iter().filter(|trial| trial["client"]["proxy"].is_string()).collect();
    let [meshed] = &meshed[..] else { panic!("{trials:?}") };
    assert!(meshed["server"]["proxy"].is_string(), "{meshed}");
    let outside = trials.iter().find(|trial| trial["client"]["proxy"].is_null()).unwrap();
    assert_eq!(meshed["client"]["node"], outside["client"]["node"], "a client in the mesh is where the one outside is");
    assert!(meshed["values"]["cpu_all_per_request"]["not_measured"].to_string().contains("Linkerd"), "{meshed}");
    cluster.try_kubectl(&["delete", "--filename", "-"], INJECTION).with_status(0);
    cluster.kubectl(&["delete", "pod", "idle-injector", "--now"]);
    nothing_stays(folder.path());
}
