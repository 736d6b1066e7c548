//! Several clients that share one workload, as processes of this machine: on loopback, and in the lab `netns` if it is
//! available.

use std::fs;
use std::path::Path;

use serde_json::Value;
use wirelab_testkit::lab::{folder_of, folder_with, trials};
use wirelab_testkit::physics::Test;
use wirelab_testkit::test;
use wirelab_testkit::{only_run, run};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(four_processes_share_a_workload_on_loopback).side_by_side(),
        test!(four_processes_share_a_workload_in_a_network_namespace).side_by_side().retries(2),
        test!(an_unshareable_workload_is_refused_before_the_start).side_by_side(),
    ]
}

const STUDY: &str = r#"
name = "shared"
title = "Shared"
question = "Do four clients do what one does?"
lab = "loopback"

[workload]
workers = 8
requests = 800
warm_up = 8

[factors]
protocol = ["h1", "h2", "h3"]
recording = ["samples", "histograms"]

[compare]
factor = "protocol"
baseline = "h1"

[blocks]
min = 1
max = 1
"#;

/// Checks that every trial has four clients, which shared the workload of one.
fn four_did_the_work_of_one(folder: &Path) {
    for (cell, trial) in trials(folder) {
        let number = |name: &str| trial["values"][name].as_f64().unwrap_or_else(|| panic!("{name}: {trial}"));
        assert_eq!((number("requests"), number("error_share")), (800.0, 0.0), "{trial}");
        let clients = trial["clients"].as_array().unwrap();
        assert_eq!(clients.len(), 4, "{trial}");
        for client in clients {
            let of = |key: &str| client[key].as_u64().unwrap_or_else(|| panic!("{key}: {client}"));
            assert_eq!((of("requests"), of("failed")), (200, 0), "{trial}");
            assert!(of("told_ns") <= of("begun_ns") && of("window_ns") > 0 && of("response_median_ns") > 0, "{trial}");
            assert!(of("told_ns") + of("window_ns") <= trial["window_ns"].as_u64().unwrap(), "{trial}");
        }
        assert!(number("clients_rate_ratio") >= 1.0 && number("clients_median_ratio") >= 1.0, "{trial}");
        let begun = clients.iter().map(|client| client["begun_ns"].as_f64().unwrap()).fold(0.0, f64::max);
        assert_eq!(number("clients_start_spread"), begun, "{trial}");
        assert!(number("response_max") <= number("total_time"), "{trial}");
        // The account covers all four clients; one client alone would have a quarter.
        let (client, life) = (number("cpu_client_per_request") * 800.0, number("life_cpu_client_user"));
        assert!(client > 0.0 && life + number("life_cpu_client_system") > client * 0.99, "{trial}");
        let results = trial["results"].as_str().unwrap();
        let is_histograms = cell["levels"]["recording"] == "histograms";
        assert_eq!(results.ends_with(".json"), is_histograms, "{trial}");
        if is_histograms {
            let text = fs::read_to_string(only_run(folder).join(results)).unwrap();
            let merged: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((&merged["requests"], &merged["response"]["count"]), (&800.into(), &800.into()));
        }
    }
}

fn four_processes_share_a_workload_on_loopback() {
    let folder = folder_of(STUDY);
    let said = run(folder.path(), &["run", "study.toml", "--clients", "4", "--quiet"]).with_status(0);
    assert!(said.out.contains("Report: "), "{}", said.out);
    four_did_the_work_of_one(folder.path());
}

fn four_processes_share_a_workload_in_a_network_namespace() {
    let study = STUDY
        .replace("lab = \"loopback\"", "lab = \"netns\"")
        .replace("[workload]", "[workload]\nplacement = \"same-node\"");
    let Some(folder) = folder_with(&study, &[]) else { return };
    run(folder.path(), &["run", "study.toml", "--set", "clients=4", "--set", "protocol=h1,h3", "--quiet"])
        .with_status(0);
    four_did_the_work_of_one(folder.path());
}

fn an_unshareable_workload_is_refused_before_the_start() {
    let folder = folder_of(STUDY);
    for (clients, words) in [
        ("3", "`workers` is 8, which 3 clients cannot share equally; set `workers` to 6 or 9"),
        ("501", "`clients` is 501, but must be from 1 to 500"),
    ] {
        run(folder.path(), &["run", "study.toml", "--clients", clients]).with_status(2).complains(&[words]);
    }
    assert!(!folder.path().join("wirelab-runs").exists());
}
