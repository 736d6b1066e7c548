//! The test cluster and the container image: `make test-cluster`. NODES and PROXY are the settings of `make cluster`.
//!
//! One test, because starting the cluster is the most expensive step, and each step depends on the previous one.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use wirelab_testkit::cluster::{Cluster, FOLDER, command, eventually, image, root, script};
use wirelab_testkit::traces::{Machine, Processes};

#[test]
#[ignore = "brings a cluster up, for minutes, as root: make test-cluster"]
fn a_cluster_serves_runs_wirelab_survives_a_crash_and_leaves_no_trace() {
    let nodes = env::var("NODES").unwrap_or_else(|_| "2".to_owned());
    let proxy = env::var("PROXY").unwrap_or_else(|_| "nftables".to_owned());
    assert!(!Path::new(FOLDER).exists(), "there is a cluster already: make cluster-down");
    let before = Machine::now();
    let Some(cluster) = Cluster::up(&nodes, &proxy, &image()) else { return };
    every_node_is_ready_and_neighbours_are_in_different_zones(&cluster, &nodes);
    starting_it_again_does_nothing_and_says_so(&cluster, &nodes, &proxy);
    pods_reach_each_other_across_nodes_through_the_overlay(&cluster);
    services_of_each_kind_lead_to_every_pod(&cluster);
    wirelab_runs_as_nobody_on_a_read_only_root(&cluster);
    an_api_server_that_crashes_comes_back(&cluster);
    a_node_that_crashes_is_missed_and_comes_back(&cluster);
    down_leaves_no_trace(cluster, &before);
    a_start_that_is_killed_leaves_what_down_finds(&before);
}

fn every_node_is_ready_and_neighbours_are_in_different_zones(cluster: &Cluster, nodes: &str) {
    let mut zones = BTreeMap::new();
    for node in cluster.list("nodes", "") {
        let conditions = node["status"]["conditions"].as_array().unwrap();
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
        assert_eq!(ready["status"], "True", "{node}");
        let zone = node["metadata"]["labels"]["topology.kubernetes.io/zone"].as_str().unwrap().to_owned();
        zones.insert(node["metadata"]["name"].as_str().unwrap().to_owned(), zone);
    }
    assert_eq!(zones.len().to_string(), nodes);
    assert_ne!(zones["node1"], zones["node2"]);
    if let Some(third) = zones.get("node3") {
        assert_eq!(*third, zones["node1"], "a pair of nodes in the same zone");
    }
}

fn starting_it_again_does_nothing_and_says_so(cluster: &Cluster, nodes: &str, proxy: &str) {
    let number = || fs::read_to_string(format!("{FOLDER}/pid/kube-apiserver")).unwrap();
    let before = number();
    let again = cluster.up_again(nodes, proxy, &image()).with_status(0).complains(&["nothing to do"]);
    assert!(again.out.contains(&format!("KUBECONFIG={FOLDER}/kubeconfig")), "{}", again.out);
    assert_eq!(number(), before, "the API server was started again");
    cluster.up_again("9", proxy, &image()).with_status(1).complains(&["another kind", "make cluster-down"]);
}

/// A pod of the deployment `web`.
#[derive(Debug)]
struct Pod {
    name: String,
    node: String,
    address: String,
    restarts: u64,
}

fn pods(cluster: &Cluster) -> Vec<Pod> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let read = |pod: Value| Pod {
        name: text(&pod["metadata"]["name"]),
        node: text(&pod["spec"]["nodeName"]),
        address: text(&pod["status"]["podIP"]),
        restarts: pod["status"]["containerStatuses"][0]["restartCount"].as_u64().unwrap_or(0),
    };
    cluster.list("pods", "app=web").into_iter().map(read).collect()
}

/// The output of the program `web` in a pod; `None` if it failed.
fn try_web(pod: &Pod, args: &[&str]) -> Option<Value> {
    let said = script(&[&["kubectl", "exec", pod.name.as_str(), "--", "/web"], args].concat());
    (said.status == 0).then(|| serde_json::from_str(&said.out).unwrap())
}

fn pods_reach_each_other_across_nodes_through_the_overlay(cluster: &Cluster) {
    cluster.apply(&fs::read_to_string(root().join("tests/cluster/web.yaml")).unwrap());
    cluster.kubectl(&["rollout", "status", "deployment/web", "--timeout", "120s"]);
    let pods = pods(cluster);
    let used: BTreeSet<_> = pods.iter().map(|pod| pod.node.as_str()).collect();
    assert!(pods.len() == 3 && used.contains("node1") && used.contains("node2"), "{pods:?}");
    let on = |node: &str| pods.iter().find(|pod| pod.node == node).unwrap();
    for (from, to) in [("node1", "node2"), ("node2", "node1")] {
        let sent = sent_through_the_overlay(from);
        let answers = try_web(on(from), &["get", &format!("http://{}:8080/", on(to).address), "10"]);
        assert_eq!(answers, Some(json!({ &on(to).name: 10 })));
        assert!(sent_through_the_overlay(from) >= sent + 10, "from {from}, packets took another way");
    }
}

/// The number of packets that a node has sent through its VXLAN interface.
fn sent_through_the_overlay(node: &str) -> u64 {
    let mut command = std::process::Command::new("nsenter");
    command.arg(format!("--net={FOLDER}/netns/{node}")).args(["ip", "-json", "-statistics", "link", "show", "vxlan0"]);
    let links: Value =
        serde_json::from_str(&wirelab_testkit::said(command.output().unwrap()).with_status(0).out).unwrap();
    links[0]["stats64"]["tx"]["packets"].as_u64().unwrap()
}

fn services_of_each_kind_lead_to_every_pod(cluster: &Cluster) {
    let pods = pods(cluster);
    let names: BTreeSet<_> = pods.iter().map(|pod| pod.name.clone()).collect();
    let addresses: BTreeSet<_> = pods.iter().map(|pod| pod.address.clone()).collect();
    for client in &pods {
        // Nodes learn of a service at different times. By chance alone, one of three servers gets no request in one of
        // 10^10 tries.
        for url in ["http://web/", "http://172.30.0.11:30080/", "http://172.30.0.12:30080/"] {
            eventually(&format!("answers of {names:?} to {url} from {}", client.node), || {
                let Some(answers) = try_web(client, &["get", url, "60"]) else { return false };
                let answers = answers.as_object().unwrap();
                assert_eq!(answers.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 60);
                answers.keys().cloned().collect::<BTreeSet<_>>() == names
            });
        }
        eventually(&format!("the addresses {addresses:?} of the headless name on {}", client.node), || {
            let Some(found) = try_web(client, &["lookup", "web-headless"]) else { return false };
            let found = found.as_array().unwrap().iter().map(|address| address.as_str().unwrap().to_owned());
            found.collect::<BTreeSet<_>>() == addresses
        });
    }
}

fn wirelab_runs_as_nobody_on_a_read_only_root(cluster: &Cluster) {
    let description: Value =
        serde_json::from_str(&run_wirelab(cluster, "describe", &["endpoint", "describe"])).unwrap();
    assert_eq!(description["name"], "builtin");
    // wirelab finds a service by its name, and the name server by the pod's files.
    let load = ["load", "http://web/", "--requests", "50", "--json", "--quiet"];
    let load: Value = serde_json::from_str(&run_wirelab(cluster, "load", &load)).unwrap();
    assert_eq!(load["requests"], 50, "{load}");
    // wirelab starts endpoints by executing itself.
    let blocks = ["--set", "duration=20 ms", "--set", "blocks.min=2", "--set", "blocks.max=2"];
    let study = ["run", "quick", "--set", "protocol=h1,h3", "--set", "payload=1 KiB", "--out", "/tmp/runs", "--quiet"];
    run_wirelab(cluster, "run", &[&study[..], &blocks].concat());
}

/// The output of wirelab in a pod; wirelab must succeed.
fn run_wirelab(cluster: &Cluster, pod: &str, args: &[&str]) -> String {
    let manifest = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": pod },
        "spec": {
            "restartPolicy": "Never",
            "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
            "containers": [{
                "name": "wirelab",
                "image": "localhost/wirelab:dev",
                "args": args,
                "securityContext": {
                    "readOnlyRootFilesystem": true,
                    "allowPrivilegeEscalation": false,
                    "capabilities": { "drop": ["ALL"] }
                },
                "volumeMounts": [{ "name": "tmp", "mountPath": "/tmp" }]
            }],
            "volumes": [{ "name": "tmp", "emptyDir": {} }]
        }
    });
    cluster.apply(&manifest.to_string());
    let pod_of = format!("pod/{pod}");
    let ended = script(&["kubectl", "wait", &pod_of, "--for=jsonpath={.status.phase}=Succeeded", "--timeout", "120s"]);
    let log = cluster.kubectl(&["logs", pod]);
    assert_eq!(ended.status, 0, "wirelab {args:?}: {}{log}", ended.err);
    log
}

fn an_api_server_that_crashes_comes_back(cluster: &Cluster) {
    cluster.kill("kube-apiserver");
    script(&["kubectl", "get", "nodes"]).with_status(1);
    cluster.start("kube-apiserver");
    assert_eq!(pods(cluster).len(), 3);
    script(&["start", "kube-apiserver"]).with_status(1).complains(&["is running"]);
    script(&["kill", "node0"]).with_status(2).complains(&["expected node1 node2", "node0"]);
}

fn a_node_that_crashes_is_missed_and_comes_back(cluster: &Cluster) {
    let others: Vec<_> = pods(cluster).into_iter().filter(|pod| pod.node != "node2").collect();
    cluster.kill("node2");
    cluster.kubectl(&["wait", "node/node2", "--for=condition=Ready=Unknown", "--timeout", "180s"]);
    cluster.start("node2");
    cluster.kubectl(&["wait", "node/node2", "--for=condition=Ready", "--timeout", "120s"]);
    cluster.kubectl(&["--namespace", "kube-system", "rollout", "status", "deployment/coredns", "--timeout", "120s"]);
    cluster.kubectl(&["rollout", "status", "deployment/web", "--timeout", "120s"]);
    eventually("the pods of the node, restarted, and reached from another", || {
        let pods = pods(cluster);
        let back: Vec<_> = pods.iter().filter(|pod| pod.node == "node2").collect();
        let reached = |pod: &&Pod| {
            let answers = try_web(&others[0], &["get", &format!("http://{}:8080/", pod.address), "1"]);
            pod.restarts > 0 && answers == Some(json!({ &pod.name: 1 }))
        };
        !back.is_empty() && back.iter().all(reached)
    });
    for pod in pods(cluster).iter().filter(|pod| pod.node != "node2") {
        assert_eq!(pod.restarts, 0, "{pod:?} is on a node that did not crash");
    }
}

fn down_leaves_no_trace(cluster: Cluster, before: &Machine) {
    let processes = Processes::in_cgroups("wirelab-cluster");
    // The control plane has five processes; each of the two nodes has at least its first process, containerd, kubelet
    // and kube-proxy.
    assert!(processes.count() > 12, "{} processes", processes.count());
    assert!(processes.namespaces() > 10, "{} namespaces", processes.namespaces());
    drop(cluster);
    processes.end();
    assert_eq!(Machine::now(), *before);
    script(&["down"]).with_status(0).complains(&["nothing to do"]);
}

fn a_start_that_is_killed_leaves_what_down_finds(before: &Machine) {
    let reached = ["netns/node1", "log/kube-apiserver.log", "log/node2.log"];
    for sign in reached {
        let mut start = command(&["up"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually(sign, || Path::new(FOLDER).join(sign).exists());
        start.kill().unwrap();
        start.wait().unwrap();
        let processes = Processes::in_cgroups("wirelab-cluster");
        script(&["down"]).with_status(0);
        processes.end();
        assert_eq!(Machine::now(), *before, "killed at {sign}");
    }
}
