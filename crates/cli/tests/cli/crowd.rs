//! Five hundred clients in pods: their cost for wirelab and the API server. The test cluster gets a node whose pods are
//! processes (`tests/cluster/crowd.sh`), because no machine has room for so many containers: `make test-cluster`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use rustix::process::Pid;
use tempfile::tempdir;
use wirelab_lab::{ExitStatus, reap};
use wirelab_testkit::cluster::{Cluster, FOLDER, image, script};
use wirelab_testkit::lab::trials;
use wirelab_testkit::{program, wirelab};

const CLIENTS: u64 = 500;

const MIB: u64 = 1 << 20;

const STUDY: &str = r#"
name = "crowd"
title = "A crowd"
question = "Does a study run with hundreds of clients?"
lab = "kubernetes"

[workload]
protocol = "h1"
congestion = "reno"
placement = "other-node"
client_nodes = "kubernetes.io/hostname=crowd"
server_nodes = "kubernetes.io/hostname=node1"
recording = "histograms"
requests = 5000
workers = 500

[factors]
payload = ["100 B", "1 KiB"]

[compare]
factor = "payload"
baseline = "100 B"

[blocks]
min = 1
max = 1
"#;

#[test]
#[ignore = "brings a cluster up, for minutes, as root: make test-cluster"]
#[expect(clippy::zombie_processes, reason = "`reap` waits for it, and brings its account")]
fn hundreds_of_clients_start_together_at_a_low_cost_for_wirelab_and_the_api_server() {
    let Some(cluster) = Cluster::up("3", "nftables", &image()) else { return };
    script(&["crowd", &program().to_string_lossy()]).with_status(0);
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), STUDY).unwrap();

    let before = asked(&cluster);
    let begun = Instant::now();
    let mut command = wirelab(folder.path(), &["run", "study.toml", "--clients", &CLIENTS.to_string(), "--quiet"]);
    let words = folder.path().join("words");
    command.env("KUBECONFIG", Path::new(FOLDER).join("kubeconfig")).stdout(Stdio::null());
    let run = command.stderr(File::create(&words).unwrap()).spawn().unwrap();
    // Waiting for the process returns the kernel's account of its resources.
    let (status, usage) = reap(Pid::from_child(&run)).unwrap();
    let took = begun.elapsed();
    assert_eq!(status, ExitStatus::Code(0), "{}", fs::read_to_string(&words).unwrap());
    let requests = since(&before, &asked(&cluster));

    let trials = trials(folder.path());
    for (_, trial) in &trials {
        let clients = trial["clients"].as_array().unwrap();
        let each: Vec<_> = clients.iter().map(|client| client["requests"].as_u64().unwrap()).collect();
        assert_eq!(each, [10; CLIENTS as usize]);
        assert_eq!(trial["values"]["requests"], 5000.0);
        let took = trial["took_ns"].as_f64().unwrap() / 1e9;
        let spread = trial["values"]["clients_start_spread"].as_f64().unwrap() / 1e9;
        eprintln!("{CLIENTS} clients: a trial of {took:.0} s, in which they started within {spread:.3} s");
    }
    let count = trials.len() as u64;
    eprintln!(
        "{count} trials in {:.0} s; wirelab's peak memory {} MiB; the API server was asked:",
        took.as_secs_f64(),
        usage.peak_memory / MIB
    );
    for (what, times) in &requests {
        eprintln!("  {times:>6} {what}");
    }
    // The pods include the server's. Each trial asks each pod for files, starts the endpoint and its observers, and
    // reads the results. Facts about a pod are asked for once.
    let times = |what: &str| requests.get(what).copied().unwrap_or_default();
    assert_eq!(times("POST pods"), CLIENTS + 1);
    assert!(times("CONNECT pods/exec") <= (CLIENTS + 1) * (1 + 4 * count) + 20 * count, "{requests:?}");
    // The API server reports changes of pods by itself.
    assert!(times("LIST pods") < 20 && times("WATCH pods") < 60, "{requests:?}");
    assert!((MIB..1024 * MIB).contains(&usage.peak_memory), "{usage:?}");
}

/// The number of requests to the API server that concern pods, by verb and resource.
fn asked(cluster: &Cluster) -> BTreeMap<String, u64> {
    let mut asked = BTreeMap::new();
    for line in cluster.kubectl(&["get", "--raw", "/metrics"]).lines() {
        let Some((labels, value)) =
            line.strip_prefix("apiserver_request_total{").and_then(|rest| rest.split_once("} "))
        else {
            continue;
        };
        let label = |name: &str| {
            let (_, rest) = labels.split_once(&format!("{name}=\"")).unwrap_or_default();
            rest.split('"').next().unwrap_or_default()
        };
        if label("resource") == "pods" {
            let of = if label("subresource").is_empty() {
                "pods".to_owned()
            } else {
                format!("pods/{}", label("subresource"))
            };
            *asked.entry(format!("{} {of}", label("verb"))).or_insert(0) += value.parse::<f64>().unwrap() as u64;
        }
    }
    asked
}

fn since(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let change = |(what, times): (&String, &u64)| (what.clone(), times - before.get(what).unwrap_or(&0));
    after.iter().map(change).filter(|(_, times)| *times > 0).collect()
}
