//! Runs in the lab `kubernetes`, on the test cluster: `make test-cluster`. PROXY is the setting of `make cluster`. The
//! cluster has three nodes, two of them in one zone. A running cluster is used, and stays.
//!
//! One test, because starting the cluster is the most expensive step. Its first step is a test of its own for
//! `make test`.

mod mesh;
mod nodes;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use wirelab_testkit::cluster::{Cluster, FOLDER, eventually, image, processes};
use wirelab_testkit::lab::{all_trials, in_time, trials};
use wirelab_testkit::{run, said, wirelab};

const STUDY: &str = r#"
name = "pods"
title = "Pods"
question = "Does a study run on a cluster?"
lab = "kubernetes"

[workload]
connections = "per-request"
congestion = "reno" # the only one that every node allows to pods without privileges
requests = 12

[factors]
protocol = ["h1", "h2", "h3"]

[factors.scenario]
near = {}
beside = { placement = "same-zone" }
far = { placement = "other-zone" }
service = { placement = "other-zone", servers = "near + far", address = "service" }
by-name = { placement = "multi-az", servers = "near + far", address = "headless" }
port = { placement = "other-zone", servers = "near + far", address = "node-port" }

[compare]
factor = "protocol"
baseline = "h1"

[blocks]
min = 1
max = 1
"#;

#[test]
#[ignore = "brings a cluster up, for minutes, as root: make test-cluster"]
fn studies_run_in_pods_whatever_becomes_of_these_and_leave_nothing() {
    let Some(cluster) = Cluster::up("3", &proxy(), &image()) else { return };
    every_protocol_runs_near_and_far_through_a_service_and_by_name();
    the_rights_that_are_printed_are_enough(&cluster);
    clients_in_pods_of_their_own_share_a_workload();
    client_and_servers_are_on_the_nodes_that_their_labels_choose();
    servers_come_and_go_as_a_timeline_says();
    mesh::sidecars_and_control_planes_play_in_pods();
    mesh::the_mesh_of_the_cluster_is_asked_for_and_its_absence_is_noticed(&cluster);
    nodes::packets_and_system_calls_are_counted_where_privileged_pods_are_allowed_and_only_there();
    what_is_missing_is_named_and_nothing_is_left(&cluster);
    the_namespace_of_a_killed_run_is_removed_and_that_of_a_running_one_stays();
    an_endpoint_that_is_killed_is_to_blame_and_a_pod_that_is_evicted_is_not(&cluster);
    a_server_that_uses_more_memory_than_its_pod_may_is_to_blame();
    a_quota_that_is_exceeded_is_named_and_its_end_is_noticed(&cluster);
    an_api_server_that_crashes_costs_the_trial_in_flight(&cluster);
    a_node_that_crashes_costs_its_trials_and_is_used_again(&cluster);
}

/// The part that `make test` runs if Kubernetes has been built.
#[test]
#[ignore = "brings a cluster up, as root: make test, where Kubernetes has been built"]
fn a_study_runs_in_pods_in_short() {
    let Some(_cluster) = Cluster::up("3", &proxy(), &image()) else { return };
    every_protocol_runs_near_and_far_through_a_service_and_by_name();
}

#[test]
fn without_a_cluster_there_is_nothing_to_clean_and_a_wrong_configuration_is_named() {
    let home = tempdir().unwrap();
    let clean = |kubeconfig: &str, args: &[&str]| {
        let mut command = wirelab(home.path(), &[&["labs", "clean"], args].concat());
        command.env("HOME", home.path()).env("KUBECONFIG", kubeconfig).env_remove("KUBERNETES_SERVICE_HOST");
        said(command.output().unwrap())
    };
    assert_eq!(clean("", &[]).with_status(0).out, "no cluster is configured, so none was cleaned\n");
    assert_eq!(clean("", &["--json"]).with_status(0).out, "[]\n");
    clean("nowhere", &[]).with_status(1).complains(&["there is no cluster", "nowhere", "KUBECONFIG"]);
    fs::create_dir(home.path().join(".kube")).unwrap();
    fs::write(home.path().join(".kube/config"), "kind: [").unwrap();
    clean("", &[]).with_status(1).complains(&["there is no cluster"]);
}

/// A folder with the study.
fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), STUDY).unwrap();
    folder
}

/// A folder with the study and with trials long enough to be disturbed.
fn folder_with_long_trials() -> TempDir {
    let folder = tempdir().unwrap();
    let study = STUDY.replace("requests = 12", "duration = \"2 s\"").replace("min = 1\nmax = 1", "min = 30\nmax = 30");
    fs::write(folder.path().join("study.toml"), study).unwrap();
    folder
}

/// The mode of kube-proxy.
fn proxy() -> String {
    env::var("PROXY").unwrap_or_else(|_| "nftables".to_owned())
}

fn kubeconfig() -> PathBuf {
    Path::new(FOLDER).join("kubeconfig")
}

fn on_cluster(folder: &Path, args: &[&str]) -> Command {
    let mut command = wirelab(folder, args);
    command.env("KUBECONFIG", kubeconfig());
    command
}

/// The output of `labs clean` for the namespaces of runs in this folder.
fn left(folder: &Path, args: &[&str]) -> Vec<String> {
    let all =
        said(on_cluster(folder, &[&["labs", "clean", "--json"], args].concat()).output().unwrap()).with_status(0).out;
    let all: Vec<Value> = serde_json::from_str(&all).unwrap();
    let folder = fs::canonicalize(folder).unwrap();
    let ours = all.iter().filter(|one| one["run"].as_str().unwrap().starts_with(&*folder.to_string_lossy()));
    ours.map(|one| one["outcome"].as_str().unwrap().to_owned()).collect()
}

fn nothing_stays(folder: &Path) {
    eventually("the end of its namespace", || left(folder, &["--dry-run"]).is_empty());
}

fn every_protocol_runs_near_and_far_through_a_service_and_by_name() {
    let folder = folder();
    said(on_cluster(folder.path(), &["run", "study.toml", "--quiet"]).output().unwrap()).with_status(0);
    let mut seen = BTreeSet::new();
    for (cell, trial) in trials(folder.path()) {
        let (client, server) = (&trial["client"], &trial["server"]);
        for of in [client, server] {
            for fact in ["node", "zone", "kubelet", "kernel", "container_runtime", "image", "kubernetes"] {
                assert!(of[fact].is_string(), "{fact}: {trial}");
            }
            // The test cluster's network has no CNI plug-in; kube-proxy is configured as by kubeadm.
            assert!(of["cni"].as_str().unwrap().starts_with("not known: no DaemonSet"), "{trial}");
            assert_eq!(of["kube_proxy"], proxy(), "{trial}");
            assert_eq!(of["mtu"], 1450, "that of the overlay: {trial}");
        }
        let scenario = cell["levels"]["scenario"].as_str().unwrap();
        // If a near server exists, it is the first one.
        let (same_node, same_zone) = match scenario {
            "beside" => (false, true),
            "far" => (false, false),
            _ => (true, true),
        };
        assert_eq!(client["node"] == server["node"], same_node, "{scenario}: {trial}");
        assert_eq!(client["zone"] == server["zone"], same_zone, "{scenario}: {trial}");
        if ["service", "by-name", "port"].contains(&scenario) {
            assert_ne!(client["zone"], server["zone_1"], "{trial}");
        }
        for metric in ["response_median", "life_memory_server"] {
            assert!(trial["values"][metric].as_f64().is_some_and(|value| value > 0.0), "{metric}: {trial}");
        }
        for side in ["client", "server"] {
            let number = |name: String| trial["values"][&name].as_f64().unwrap_or_else(|| panic!("{name}: {trial}"));
            let window = number(format!("cpu_{side}_per_request")) * number("requests".to_owned());
            let life = number(format!("life_cpu_{side}_user")) + number(format!("life_cpu_{side}_system"));
            assert!(
                window > 0.0 && window <= life * 1.01,
                "{side}: {window} ns in the window, {life} ns in all: {trial}"
            );
            // An endpoint needs some megabytes. The peak of its whole life is at least the peak of the window.
            let peak = number(format!("memory_{side}_peak"));
            assert!(peak > 1e6 && peak <= number(format!("memory_{side}_life_peak")), "{side}: {trial}");
            assert!(number(format!("switches_{side}_per_request")) > 0.0, "{side}: {trial}");
            number(format!("faults_{side}_per_request"));
        }
        assert!(trial["values"]["machine_busy_share"]["not_measured"].is_string(), "{trial}");
        for metric in ["tcp_retransmitted", "udp_in_errors"] {
            assert!(trial["values"][metric].is_number(), "{metric}: {trial}");
        }
        seen.insert((cell["levels"]["protocol"].to_string(), scenario.to_owned()));
    }
    assert_eq!(seen.len(), 18);
    nothing_stays(folder.path());
}

/// A kubeconfig of a new service account without rights.
fn account(cluster: &Cluster, folder: &Path, name: &str) -> PathBuf {
    cluster.kubectl(&["create", "serviceaccount", name]);
    let token = cluster.kubectl(&["create", "token", name]);
    let mut config: Value =
        serde_json::from_str(&cluster.kubectl(&["config", "view", "--raw", "--output", "json"])).unwrap();
    config["users"][0]["user"] = serde_json::json!({ "token": token.trim() });
    let path = folder.join(name);
    fs::write(&path, config.to_string()).unwrap();
    path
}

fn the_rights_that_are_printed_are_enough(cluster: &Cluster) {
    let folder = folder();
    let config = account(cluster, folder.path(), "printed");
    let with = |args: &[&str]| said(wirelab(folder.path(), args).env("KUBECONFIG", &config).output().unwrap());
    let doctor = || {
        let findings: Vec<Value> = serde_json::from_str(&with(&["doctor", "--json"]).with_status(0).out).unwrap();
        findings.into_iter().find(|one| one["what"].as_str().unwrap().starts_with("cluster ")).unwrap()
    };
    let quick = ["run", "quick", "--preset", "smoke", "--lab", "kubernetes", "--quiet"];
    let sets = ["--set", "congestion=reno", "--set", "blocks.max=1", "--set", "blocks.min=1"];
    with(&[&quick[..], &sets].concat()).with_status(1).complains(&["forbidden", "`wirelab labs rbac`"]);
    assert_eq!(doctor()["state"], "missing");

    cluster.apply(&with(&["labs", "rbac"]).with_status(0).out);
    let subject = ["--clusterrole", "wirelab", "--serviceaccount", "default:printed"];
    cluster.kubectl(&[&["create", "clusterrolebinding", "printed"], &subject[..]].concat());
    eventually("its rights", || doctor()["state"] == "good");
    let report = with(&["resume"]).with_status(0).out;
    assert!(report.contains("Report: "), "{report}");
    assert!(trials(folder.path()).len() >= 12);
    with(&["labs", "clean"]).with_status(0);
    nothing_stays(folder.path());
}

fn what_is_missing_is_named_and_nothing_is_left(cluster: &Cluster) {
    let folder = folder();
    let mut command = on_cluster(folder.path(), &["run", "study.toml", "--set", "scenario=near", "--quiet"]);
    command.env("WIRELAB_KUBERNETES_IMAGE", "localhost/absent:1");
    said(command.output().unwrap()).with_status(1).complains(&["localhost/absent:1", "WIRELAB_KUBERNETES_IMAGE"]);
    nothing_stays(folder.path());

    let labelled = [
        "run",
        "study.toml",
        "--set",
        "scenario=far",
        "--out",
        "labelled",
        "--quiet",
        "--set",
        "server_nodes=disk=ssd",
    ];
    said(on_cluster(folder.path(), &labelled).output().unwrap())
        .with_status(1)
        .complains(&["`disk=ssd` (`server_nodes`)", "kubectl label node NAME disk=ssd"]);
    nothing_stays(folder.path());

    for node in ["node1", "node3"] {
        cluster.kubectl(&["cordon", node]);
    }
    let command = &mut on_cluster(folder.path(), &["resume", "--quiet"]);
    said(command.output().unwrap()).with_status(0);
    nothing_stays(folder.path());
    let elsewhere = ["run", "study.toml", "--set", "scenario=far", "--out", "far", "--quiet"];
    said(on_cluster(folder.path(), &elsewhere).output().unwrap())
        .with_status(1)
        .complains(&["`other-zone`", "nodes that take pods: node2 (zone-b)"]);
    for node in ["node1", "node3"] {
        cluster.kubectl(&["uncordon", node]);
    }
    nothing_stays(folder.path());
}

/// A run of long trials in the background, which has started to measure.
fn begun(folder: &Path) -> Child {
    begun_in(folder, "near", &[])
}

fn begun_in(folder: &Path, scenario: &str, more: &[&str]) -> Child {
    let scenario = format!("scenario={scenario}");
    let args = ["run", "study.toml", "--quiet", "--set", &scenario, "--set", "protocol=h1,h3"];
    let mut command = on_cluster(folder, &[&args, more].concat());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("a trial", || !ended(folder).is_empty());
    child
}

/// The trials that have ended so far.
fn ended(folder: &Path) -> Vec<Value> {
    let mut runs = fs::read_dir(folder.join("wirelab-runs")).into_iter().flatten().flatten();
    if !runs.any(|run| run.path().join("journal.jsonl").exists()) {
        return Vec::new();
    }
    all_trials(folder).into_iter().map(|(_, trial)| trial).collect()
}

fn the_namespace_of_a_killed_run_is_removed_and_that_of_a_running_one_stays() {
    let folder = folder_with_long_trials();
    let mut child = begun(folder.path());
    assert_eq!(left(folder.path(), &[]), ["kept: its run is active"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(left(folder.path(), &["--dry-run"]), ["would be removed"]);
    assert_eq!(left(folder.path(), &[]), ["removed"]);
    nothing_stays(folder.path());
}

/// The reason of a trial that failed, after which other trials succeeded.
fn failure(folder: &Path, mut harm: impl FnMut()) -> Value {
    let is_bad = |trial: &Value| trial["outcome"] != "ok";
    eventually("a trial that fails", || {
        harm();
        ended(folder).iter().any(is_bad)
    });
    let all = || ended(folder);
    eventually("a trial that succeeds afterwards", || {
        all().iter().skip_while(|trial| !is_bad(trial)).any(|trial| !is_bad(trial))
    });
    all().into_iter().find(is_bad).unwrap()
}

fn an_endpoint_that_is_killed_is_to_blame_and_a_pod_that_is_evicted_is_not(cluster: &Cluster) {
    let kill_server = || {
        for server in processes("/wirelab\0endpoint\0server") {
            // The process may have ended by itself.
            Command::new("kill").args(["-9", &server.to_string()]).output().unwrap();
        }
    };
    let folder = folder_with_long_trials();
    let mut child = begun(folder.path());
    let failed = failure(folder.path(), kill_server);
    assert_eq!(failed["blame"], "server", "{failed}");
    assert!(failed["reason"].as_str().unwrap().contains("killed by signal 9"), "{failed}");
    interrupt(&mut child);
    nothing_stays(folder.path());

    let folder = folder_with_long_trials();
    let mut child = begun(folder.path());
    let failed = failure(folder.path(), || evict(cluster, "near-0"));
    assert_eq!(failed["blame"], "lab", "{failed}");
    assert!(failed["reason"].as_str().unwrap().contains("the pod near-0: "), "{failed}");
    interrupt(&mut child);
    nothing_stays(folder.path());

    // With several clients, the message names the client of the failed pod.
    let folder = folder_with_long_trials();
    let mut child = begun_in(folder.path(), "near", &["--clients", "3", "--set", "workers=3"]);
    let failed = failure(folder.path(), || evict(cluster, "client-2"));
    assert_eq!(failed["blame"], "lab", "{failed}");
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.contains("the pod client-2: ") && !reason.contains("client-1"), "{failed}");
    interrupt(&mut child);
    nothing_stays(folder.path());
}

/// Evicts a pod of the only run, as a drain does. The pod may already be gone.
fn evict(cluster: &Cluster, pod: &str) {
    let pods = cluster.kubectl(&["get", "pods", "--all-namespaces", "--selector", "wirelab/host", "--output", "json"]);
    let pods: Value = serde_json::from_str(&pods).unwrap();
    let found = pods["items"].as_array().unwrap().iter().find(|one| one["metadata"]["name"] == pod);
    let Some(namespace) = found.map(|one| one["metadata"]["namespace"].as_str().unwrap()) else { return };
    let eviction = serde_json::json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod, "namespace": namespace }
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
    cluster.try_kubectl(&["create", "--raw", &path, "--filename", "-"], &eviction.to_string());
}

/// Ends a run as Ctrl-C does.
fn interrupt(child: &mut Child) {
    Command::new("kill").args(["-INT", &child.id().to_string()]).output().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

fn an_api_server_that_crashes_costs_the_trial_in_flight(cluster: &Cluster) {
    let folder = folder_with_long_trials();
    let mut child = begun(folder.path());
    cluster.kill("kube-apiserver");
    let before = ended(folder.path()).len();
    cluster.start("kube-apiserver");
    eventually("trials that succeed afterwards", || {
        ended(folder.path()).iter().skip(before).filter(|trial| trial["outcome"] == "ok").count() > 1
    });
    interrupt(&mut child);
    let failed: Vec<_> = ended(folder.path()).into_iter().filter(|trial| trial["outcome"] != "ok").collect();
    assert!(failed.len() < 2 && failed.iter().all(|trial| trial["blame"] == "lab"), "{failed:?}");
    nothing_stays(folder.path());
}

/// Three clients that share a workload, with servers at each distance.
const SHARED: &str = r#"
name = "shared"
title = "Shared"
question = "Do three pods do what one does?"
lab = "kubernetes"

[workload]
protocol = "h3"
congestion = "reno"
network = "overlay"
servers = "2 far"
workers = 6
requests = 300

[factors]
address = ["service", "headless"]
recording = ["samples", "histograms"]

[compare]
factor = "address"
baseline = "service"

[blocks]
min = 1
max = 1
"#;

fn clients_in_pods_of_their_own_share_a_workload() {
    for placement in ["other-zone", "other-node", "same-node"] {
        let folder = tempdir().unwrap();
        let near = SHARED.replace("2 far", "2 near");
        fs::write(folder.path().join("study.toml"), if placement == "same-node" { &near } else { SHARED }).unwrap();
        let place = format!("placement={placement}");
        let args = ["run", "study.toml", "--clients", "3", "--set", &place, "--quiet"];
        said(on_cluster(folder.path(), &args).output().unwrap()).with_status(0);
        for (_, trial) in trials(folder.path()) {
            let clients = trial["clients"].as_array().unwrap();
            let each: Vec<_> = clients.iter().map(|client| client["requests"].as_u64().unwrap()).collect();
            assert_eq!(each, [100; 3], "{trial}");
            assert_eq!(trial["values"]["requests"], 300.0, "{trial}");
            assert!(trial["values"]["clients_start_spread"].is_number(), "{trial}");
            // The placement is right for every pair of client and server.
            let of = |side: &str, key: &str, number: usize| match number {
                0 => trial[side][key].clone(),
                _ => trial[side][format!("{key}_{number}")].clone(),
            };
            for (client, server) in (0..3).flat_map(|client| [(client, 0), (client, 1)]) {
                let same = |key: &str| {
                    let (client, server) = (of("client", key, client), of("server", key, server));
                    assert!(client.is_string() && server.is_string(), "{trial}");
                    client == server
                };
                let holds = match placement {
                    "other-zone" => !same("zone"),
                    "other-node" => !same("node"),
                    _ => same("node"),
                };
                assert!(holds, "{placement}: {trial}");
            }
        }
        nothing_stays(folder.path());
    }
}

fn client_and_servers_are_on_the_nodes_that_their_labels_choose() {
    let folder = folder();
    let study = fs::read_to_string(folder.path().join("study.toml")).unwrap();
    let levels = "far = { placement = \"other-node\", server_nodes = \"kubernetes.io/hostname=node1\" }\n\
                  beside = { placement = \"other-node\", server_nodes = \"kubernetes.io/hostname=node2,kubernetes.io/os=linux\" }";
    let (before, rest) = study.split_once("near = {}").unwrap();
    let rest = &rest[rest.find("[compare]").unwrap()..];
    let study = before.replace("[workload]", "[workload]\nclient_nodes = \"kubernetes.io/hostname=node3\"");
    fs::write(folder.path().join("study.toml"), format!("{study}{levels}\n{rest}")).unwrap();
    let args = ["run", "study.toml", "--set", "protocol=h1", "--quiet"];
    said(on_cluster(folder.path(), &args).output().unwrap()).with_status(0);
    for (cell, trial) in trials(folder.path()) {
        let server = if cell["levels"]["scenario"] == "far" { "node1" } else { "node2" };
        assert_eq!((&trial["client"]["node"], &trial["server"]["node"]), (&"node3".into(), &server.into()), "{trial}");
    }
    nothing_stays(folder.path());
}

/// Five ways to find servers that come and go. The window is long enough for name servers to forget.
const COMING_AND_GOING: &str = r#"
name = "coming-and-going"
title = "Coming and going"
question = "Who gets what?"
lab = "kubernetes"

[workload]
exchange = "heron"
network = "overlay"
congestion = "reno"
placement = "lan"
servers = "2 far"
pause = "5 ms"
duration = "10 s"

[factors.variant]
rest = { protocol = "h1c", address = "service", connections = "per-request" }
standard = { protocol = "grpcc", address = "service" }
port = { protocol = "grpcc", address = "node-port" }
headless = { protocol = "grpcc", address = "headless", connections = 6 }
again = { protocol = "grpcc", address = "headless", connections = 6, max_connection_age = "200 ms", resolve_again = true }

[timeline]
actions = [
    { name = "T2", at = "20 %", servers = "3 far" },
    { name = "T3", at = "80 %", restart = "clients" },
    { name = "T4", at = "90 %", clients = 4 },
]

[timeline.windows]
T1-T2 = { to = "T2" }
T2-T3 = { from = "T2", to = "T3" }
T3-T4 = { from = "T3", to = "T4" }

[compare]
factor = "variant"
baseline = "rest"

[blocks]
min = 1
max = 1
"#;

fn servers_come_and_go_as_a_timeline_says() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), COMING_AND_GOING).unwrap();
    said(on_cluster(folder.path(), &["run", "study.toml", "--quiet"]).output().unwrap()).with_status(0);
    for (cell, trial) in in_time(all_trials(folder.path())) {
        let of = |metric: &str| trial["values"][metric].as_f64().unwrap_or_else(|| panic!("{metric}: {trial}"));
        match cell["levels"]["variant"].as_str().unwrap() {
            "rest" => assert!(of("server_newest@T2-T3") > 0.1 && of("server_smallest@T1-T2") > 0.1, "{trial}"),
            "headless" => {
                assert!(of("server_smallest@T1-T2") > 0.4 && of("server_smallest@T3-T4") > 0.2, "{trial}");
                assert_eq!(of("server_newest@T2-T3"), 0.0, "{trial}");
            }
            // The name server forgets after five seconds what it answered before T2.
            "again" => assert!(of("server_newest@T3-T4") > 0.1, "{trial}"),
            // A kept connection stays with its server.
            _ => assert_eq!((of("server_largest@T1-T2"), of("server_largest@T2-T3")), (1.0, 1.0), "{trial}"),
        }
        let actions = trial["timeline"]["actions"].as_array().unwrap();
        // The network of a cluster never changes at once.
        assert!(actions.len() == 3 && actions[0]["took_ns"].as_u64().unwrap() > 1_000_000, "{trial}");
        assert_eq!(trial["timeline"]["clients"].as_array().unwrap().len(), 5);
        assert!(trial["client"]["node"].is_string() && trial["client"]["node_1"].is_null(), "one pod: {trial}");
        assert!(trial["server"]["node_2"].is_string(), "{trial}");
    }
    nothing_stays(folder.path());

    let folder = tempdir().unwrap();
    let study = COMING_AND_GOING
        .replace(r#"name = "T3", at = "80 %", restart = "clients""#, r#"name = "T3", at = "50 %", servers = "2 far""#)
        .replace(r#"name = "T4", at = "90 %", clients = 4"#, r#"name = "T4", at = "75 %", kill = 0"#);
    fs::write(folder.path().join("study.toml"), study).unwrap();
    let args = ["run", "study.toml", "--set", "variant=rest,standard", "--quiet"];
    said(on_cluster(folder.path(), &args).output().unwrap()).with_status(0);
    for (_, trial) in in_time(all_trials(folder.path())) {
        let servers = trial["timeline"]["servers"].as_array().unwrap();
        let left = |server: &Value| server["until_ns"].is_u64();
        // The newest server was stopped, the oldest one killed.
        assert_eq!(servers.iter().map(left).collect::<Vec<_>>(), [true, false, true], "{trial}");
        let last = trial["timeline"]["answered"].as_array().unwrap().last().unwrap();
        assert!(last["requests"][1].as_u64().unwrap() > 50, "the one that stayed went on: {trial}");
    }
    nothing_stays(folder.path());

    let folder = tempdir().unwrap();
    let study = COMING_AND_GOING.replace(r#"servers = "3 far" }"#, "drain = 0 }");
    fs::write(folder.path().join("study.toml"), study).unwrap();
    let args = ["run", "study.toml", "--set", "variant=rest,headless", "--quiet"];
    said(on_cluster(folder.path(), &args).output().unwrap()).with_status(0);
    for (cell, trial) in in_time(all_trials(folder.path())) {
        let drained = |window: &str| trial["values"][format!("server_drained@{window}")].as_f64().unwrap();
        match cell["levels"]["variant"].as_str().unwrap() {
            // From the moment when the address leads elsewhere.
            "rest" => assert!(drained("T2-T3") < 0.3 && drained("T3-T4") < 0.05, "{trial}"),
            _ => assert!(drained("T2-T3") > 0.4 && drained("T3-T4") < 0.05, "{trial}"),
        }
        assert_eq!(trial["values"]["failed@T2-T3"], 0.0, "nothing is lost by it: {trial}");
    }
    nothing_stays(folder.path());
}

fn a_server_that_uses_more_memory_than_its_pod_may_is_to_blame() {
    let folder = folder();
    // Servers keep their documents in memory, and pods have 512 MiB.
    let sets = ["--set", "payload=520 MiB", "--set", "protocol=h1", "--set", "scenario=near", "--set", "requests=1"];
    let args = [&["run", "study.toml", "--quiet"], &sets[..]].concat();
    said(on_cluster(folder.path(), &args).output().unwrap()).with_status(1);
    let failed = ended(folder.path());
    assert!(!failed.is_empty());
    for trial in failed {
        assert_eq!((&trial["outcome"], &trial["blame"]), (&"failed".into(), &"server".into()), "{trial}");
        let reason = trial["reason"].as_str().unwrap();
        // If the whole pod is killed, the cluster reports it; otherwise the agent that started the server does.
        assert!(reason.contains("more memory than"), "{trial}");
    }
    nothing_stays(folder.path());
}

fn a_quota_that_is_exceeded_is_named_and_its_end_is_noticed(cluster: &Cluster) {
    let folder = folder_with_long_trials();
    let mut child = begun(folder.path());
    let namespace = namespace_of_the_run(cluster);
    let within = ["--namespace", namespace.as_str()];
    cluster.kubectl(&[&["create", "quota", "few", "--hard", "pods=1"], &within[..]].concat());
    let counted = ["wait", "quota/few", "--for=jsonpath={.status.hard.pods}=1", "--timeout", "60s"];
    cluster.kubectl(&[&counted[..], &within].concat());
    evict(cluster, "near-0");
    let refused = || {
        let trials = ended(folder.path());
        let reasons =
            trials.iter().filter_map(|trial| Some((trial["blame"].clone(), trial["reason"].as_str()?.to_owned())));
        reasons.into_iter().find(|(_, reason)| reason.contains("exceeded quota"))
    };
    eventually("a trial for which there is no pod", || refused().is_some());
    let (blame, reason) = refused().unwrap();
    assert!(blame == "lab" && reason.contains("raise the quota"), "{reason}");
    let before = ended(folder.path()).len();
    cluster.kubectl(&[&["delete", "quota", "few"], &within[..]].concat());
    eventually("a trial that succeeds afterwards", || {
        ended(folder.path()).iter().skip(before).any(|trial| trial["outcome"] == "ok")
    });
    interrupt(&mut child);
    nothing_stays(folder.path());
}

/// The namespace of the only run.
fn namespace_of_the_run(cluster: &Cluster) -> String {
    let selector = "app.kubernetes.io/managed-by=wirelab";
    let all = cluster.list("namespaces", selector);
    let alive: Vec<_> = all.iter().filter(|one| one["metadata"]["deletionTimestamp"].is_null()).collect();
    assert_eq!(alive.len(), 1, "{all:?}");
    alive[0]["metadata"]["name"].as_str().unwrap().to_owned()
}

fn a_node_that_crashes_costs_its_trials_and_is_used_again(cluster: &Cluster) {
    let folder = folder_with_long_trials();
    let mut child = begun_in(folder.path(), "far", &[]);
    let namespace = namespace_of_the_run(cluster);
    let node = ["get", "pod", "other-0", "--output", "jsonpath={.spec.nodeName}", "--namespace", namespace.as_str()];
    let node = cluster.kubectl(&node);
    cluster.kill(&node);
    let is_bad = |trial: &Value| trial["outcome"] != "ok";
    eventually("a trial that fails", || ended(folder.path()).iter().any(is_bad));
    cluster.start(&node);
    eventually("a trial that succeeds afterwards", || {
        ended(folder.path()).iter().skip_while(|trial| !is_bad(trial)).any(|trial| !is_bad(trial))
    });
    let failed = ended(folder.path()).into_iter().find(is_bad).unwrap();
    let reason = failed["reason"].as_str().unwrap();
    // Before an endpoint runs, wirelab does not ask the cluster for the state of its pod.
    let named = [format!("the pod other-0 on {node}"), "in the pod other-0: error dialing".to_owned()];
    assert!(failed["blame"] == "lab" && named.iter().any(|words| reason.contains(words)), "{failed}");
    interrupt(&mut child);
    nothing_stays(folder.path());
}

#[test]
fn without_a_cluster_the_remedy_is_named() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), STUDY).unwrap();
    let mut command = wirelab(folder.path(), &["run", "study.toml"]);
    command.env("KUBECONFIG", "/nowhere").env_remove("KUBERNETES_SERVICE_HOST");
    said(command.output().unwrap()).with_status(2).complains(&[
        "there is no cluster",
        "KUBECONFIG",
        "kubectl get nodes",
    ]);
    assert!(!folder.path().join("wirelab-runs").exists());
}

#[test]
fn the_rights_are_printed_without_a_cluster() {
    let folder = tempdir().unwrap();
    let role = run(folder.path(), &["labs", "rbac"]).with_status(0).out;
    for word in ["kind: \"ClusterRole\"", "pods/exec", "endpointslices"] {
        assert!(role.contains(word), "{role}");
    }
}
