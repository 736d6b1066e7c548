//! Runs that Prometheus observes while they continue, and the files in `deploy/` for its users.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use wirelab_testkit::lab::{all_trials, folder_with};
use wirelab_testkit::physics::Test;
use wirelab_testkit::prometheus::{Prometheus, expressions, get};
use wirelab_testkit::test;
use wirelab_testkit::{Running, Skip, eventually, only_run, run, skip_part, wirelab};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(prometheus_saw_last_what_the_journal_has_and_every_expression_of_the_dashboard_has_data)
            .beside_few()
            .retries(2),
        test!(the_last_counts_of_a_trial_stay_until_its_next_turn_and_the_run_waits_for_its_scraper).side_by_side(),
        test!(without_the_option_nothing_is_shown_to_prometheus).side_by_side(),
        test!(an_invalid_missing_or_used_address_is_refused_before_the_run).side_by_side(),
        test!(the_first_process_of_a_pod_shows_the_endpoints_of_the_pod).side_by_side(),
        test!(the_chart_gives_the_rights_that_wirelab_asks_for_and_no_others).side_by_side(),
    ]
}

const TIMELINE: &str = r#"
name = "watched"
title = "Watched"
question = "Does Prometheus see what the journal has?"
lab = "netns"
observers = ["cpu"]

[workload]
exchange = "heron"
network = "overlay"
placement = "lan"
round_trip = "0 ms"
servers = "2 far"
pause = "5 ms"
duration = "6 s"

[factors.variant]
standard = { protocol = "grpcc", address = "service" }
headless = { protocol = "grpcc", address = "headless", connections = 6 }

[timeline]
actions = [
    { name = "T2", at = "25 %", servers = "3 far" },
    { name = "T3", at = "50 %", restart = "clients" },
    { name = "T4", at = "75 %", clients = 4 },
]

[timeline.windows]
from-T4 = { from = "T4" }

[compare]
factor = "variant"
baseline = "standard"

[blocks]
min = 1
max = 1
"#;

/// Two blocks of two trials on the loopback interface.
const PLAIN: &str = r#"
name = "plain"
title = "Plain"
question = "Which?"
[workload]
requests = 50
[factors]
protocol = ["h1", "h2"]
[compare]
factor = "protocol"
baseline = "h1"
[blocks]
min = 2
max = 2
"#;

/// A file of the chart.
fn chart(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/helm/wirelab").join(name)
}

/// Runs `study.toml` at an address that the kernel chooses, calls `watch` with that address, and returns the output.
fn shown(folder: &Path, watch: impl FnOnce(&str)) -> String {
    let mut process = wirelab(folder, &["run", "study.toml", "--quiet", "--metrics", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut complaints = BufReader::new(process.stderr.take().unwrap());
    let mut line = String::new();
    complaints.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("For Prometheus: http://").and_then(|url| url.strip_suffix("/metrics"));
    watch(address.unwrap_or_else(|| panic!("{line}")));
    // Both streams are short.
    let (mut said, mut complained) = (String::new(), String::new());
    process.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    complaints.read_to_string(&mut complained).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0), "{said}\n{complained}");
    said
}

fn prometheus_saw_last_what_the_journal_has_and_every_expression_of_the_dashboard_has_data() {
    let Some(folder) = folder_with(TIMELINE, &["services"]) else { return };
    let Some(prometheus) = Prometheus::start() else { return };
    let said = shown(folder.path(), |address| prometheus.watch(address));
    assert!(said.contains("Prometheus scraped the trials"), "{said}");

    let mut tested = 0;
    for (cell, trial) in all_trials(folder.path()) {
        let variant = match (&cell["levels"]["variant"], cell["twin_of"].is_null()) {
            (level, true) => level.as_str().unwrap().to_owned(),
            (level, false) => format!("{} (A/A)", level.as_str().unwrap()),
        };
        if trial["outcome"] != "ok" {
            // Other work used the processors, which proves nothing about wirelab.
            assert!(trial["reason"].as_str().unwrap().contains("the machine was too busy"), "{trial}");
            skip_part(Skip::MachineTooBusy { what: variant, why: trial["reason"].to_string() });
            continue;
        }
        tested += 1;
        // A server's counters continue from trial to trial of a cell. Here each cell has one trial.
        let last = |metric: &str, role: &str| -> BTreeMap<u64, f64> {
            let series = format!("{metric}{{variant=\"{variant}\",role=\"{role}\"}}");
            let all = prometheus.now(&format!("max_over_time({series}[10m])"));
            all.into_iter()
                .map(|(labels, value)| (labels["pod"].as_str().unwrap_or("0").parse().unwrap(), value))
                .collect()
        };
        let answered = trial["timeline"]["answered"].as_array().unwrap().last().unwrap()["requests"].clone();
        let servers: Vec<_> = last("wirelab_requests_total", "server").into_values().collect();
        assert_eq!(servers, serde_json::from_value::<Vec<f64>>(answered).unwrap(), "{variant}");
        // One client, its replacement, and three more.
        let clients = last("wirelab_requests_total", "client");
        assert_eq!(clients.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4], "{variant}");
        assert_eq!(clients.values().sum::<f64>(), trial["values"]["requests"].as_f64().unwrap(), "{variant}");
        assert_eq!(last("wirelab_response_seconds_count", "client"), clients, "{variant}");
        let pods = |role| last("wirelab_pods", role).into_values().collect::<Vec<_>>();
        assert_eq!((pods("server"), pods("client")), (vec![3.0], vec![4.0]), "{variant}");
        let connections: f64 = last("wirelab_open_connections", "server").values().sum();
        assert!(connections >= 1.0, "{variant}: {connections}");
        // The same moments, by two clocks of one machine.
        let at =
            prometheus.now(&format!("max_over_time(wirelab_action_timestamp_seconds{{variant=\"{variant}\"}}[10m])"));
        let at: BTreeMap<_, _> =
            at.into_iter().map(|(labels, at)| (labels["action"].as_str().unwrap().to_owned(), at)).collect();
        let actions = trial["timeline"]["actions"].as_array().unwrap();
        for pair in actions.windows(2) {
            let shown = at[pair[1]["name"].as_str().unwrap()] - at[pair[0]["name"].as_str().unwrap()];
            let journal = (pair[1]["began_ns"].as_f64().unwrap() - pair[0]["began_ns"].as_f64().unwrap()) / 1e9;
            assert!((shown - journal).abs() < 0.5, "{variant}: {shown} s between {pair:?}");
        }
    }
    assert!(tested > 0, "the machine was too busy for every trial");
    let expressions = expressions(&chart("dashboard.json"));
    assert!(expressions.len() >= 12, "{expressions:?}");
    for expression in expressions {
        let series = prometheus.series(&expression);
        assert!(series > 0, "the dashboard asks for `{expression}`, and there is nothing");
        eprintln!("{series:>3} series  {expression}");
    }
}

fn the_last_counts_of_a_trial_stay_until_its_next_turn_and_the_run_waits_for_its_scraper() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), PLAIN).unwrap();
    let mut last = String::new();
    shown(folder.path(), |address| {
        assert_eq!(get(address, "/").unwrap().0, 404);
        // Scrapes as often as possible, until no server answers any more.
        while let Some((status, text)) = get(address, "/metrics") {
            assert_eq!(status, 200);
            assert!(text.ends_with("# EOF\n"), "{text}");
            // Before the first trial the page has no series. After the last one the run waited for this client, so no
            // trial is missing.
            if text.contains("wirelab_requests_total") {
                last = text;
            }
        }
    });
    for (variant, role, requests) in [
        ("h1", "client", 50),
        ("h2", "client", 50),
        ("h1", "server", 51),
        ("h2", "server", 51),
        ("h1 (A/A)", "client", 50),
    ] {
        let run = only_run(folder.path()).file_name().unwrap().to_string_lossy().into_owned();
        let line = format!(
            "wirelab_requests_total{{study=\"plain\",run=\"{run}\",variant=\"{variant}\",role=\"{role}\",pod=\"0\"}} {requests}"
        );
        assert!(last.lines().any(|is| is == line), "`{line}` is missing in:\n{last}");
    }
    assert!(!only_run(folder.path()).join("work").exists());
}

fn without_the_option_nothing_is_shown_to_prometheus() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), PLAIN.replace("= 2", "= 1")).unwrap();
    let said = run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    assert!(!said.out.contains("Prometheus") && !said.err.contains("Prometheus"), "{said:?}");
    let manifest = fs::read_to_string(only_run(folder.path()).join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert!(!manifest["observers"].as_array().unwrap().iter().any(|name| name == "prometheus"), "{manifest}");
}

fn an_invalid_missing_or_used_address_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), PLAIN).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    run(folder.path(), &["run", "study.toml", "--metrics", &taken]).with_status(2).complains(&[
        "cannot listen at",
        &taken,
        "another address",
    ]);
    run(folder.path(), &["run", "study.toml", "--metrics", "here"]).with_status(2).complains(&["--metrics", "here"]);
    let study = PLAIN.replace("title", "observers = [\"prometheus\"]\ntitle");
    fs::write(folder.path().join("study.toml"), study).unwrap();
    run(folder.path(), &["run", "study.toml"]).with_status(2).complains(&["`prometheus`", "--metrics 127.0.0.1:9464"]);
    assert!(!folder.path().join("wirelab-runs").exists());
}

fn the_first_process_of_a_pod_shows_the_endpoints_of_the_pod() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = folder.path().join("metrics");
    // This port was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let words = ["agent", "wait", "other-0", "--metrics", &address, sockets.to_str().unwrap()];
    let _agent = Running(wirelab(folder.path(), &words).spawn().unwrap());
    let mut text = String::new();
    eventually("an answer", || get(&address, "/metrics").map(|(_, is)| text = is).is_some());
    assert_eq!(text, "# EOF\n", "no trial was there yet");
    fs::create_dir(&sockets).unwrap();
    fs::write(sockets.join("0-server0.sock.last"), r#"{"labels":{"pod":"0"},"requests":7}"#).unwrap();
    let (_, text) = get(&address, "/metrics").unwrap();
    assert!(text.contains("wirelab_requests_total{pod=\"0\"} 7\n"), "{text}");
}

fn the_chart_gives_the_rights_that_wirelab_asks_for_and_no_others() {
    let printed = run(Path::new("."), &["labs", "rbac"]).with_status(0).out;
    let given = fs::read_to_string(chart("cluster-role.yaml")).unwrap();
    assert_eq!(given, printed, "wirelab labs rbac > deploy/helm/wirelab/cluster-role.yaml");
}
