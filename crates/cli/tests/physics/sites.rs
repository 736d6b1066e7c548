//! Servers that wirelab does not start: pages by URL with the limits for other owners, and substitutes for sites that
//! fail.

use std::fs;

use serde_json::Value;
use wirelab_testkit::lab::{all_trials, folder_with, trials};
use wirelab_testkit::physics::Test;
use wirelab_testkit::servers::{Builtin, Conduct, Hostile, Place};
use wirelab_testkit::test;
use wirelab_testkit::{Said, run};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(a_page_of_a_site_is_loaded_with_pauses_and_has_no_server_values).side_by_side(),
        test!(more_than_is_polite_is_refused_before_anything_is_sent_unless_the_user_may).side_by_side(),
        test!(a_site_that_gives_no_page_is_a_failure_with_the_blame_on_it).side_by_side(),
        test!(pages_are_measured_over_every_protocol_that_the_site_has).side_by_side(),
        test!(sites_are_in_their_own_lab_only).side_by_side(),
        test!(failing_sites_are_failures_of_the_server_and_the_others_have_values).side_by_side().retries(2),
    ]
}

/// A study of one page, in the place with its certificates.
fn study(place: &Place, port: u16, path: &str, workload: &str, protocols: &str) {
    study_of(place, &format!("https://localhost:{port}{path}"), workload, protocols);
}

/// A study of one URL.
fn study_of(place: &Place, url: &str, workload: &str, protocols: &str) {
    let text = format!(
        r#"
name = "page"
title = "A page"
question = "How long does it take?"
lab = "internet"
[workload]
site = "{url}"
site_trust = "ca.pem"
{workload}
[factors]
protocol = [{protocols}]
[compare]
factor = "protocol"
baseline = "h1"
[blocks]
min = 1
max = 2
"#
    );
    fs::write(place.path("study.toml"), text).unwrap();
}

#[track_caller]
fn measure(place: &Place, args: &[&str]) -> Said {
    run(place.folder(), &[&["run", "study.toml", "--quiet"], args].concat())
}

fn reason<'a>(trial: &'a Value, metric: &str) -> &'a str {
    trial["values"][metric]["not_measured"].as_str().unwrap_or_default()
}

fn a_page_of_a_site_is_loaded_with_pauses_and_has_no_server_values() {
    let place = Place::new();
    let server = Hostile::secure(&place, "good", Conduct::ok());
    study(&place, server.port, "/page?of=others", "requests = 3\npause = \"500 ms\"", "\"h1\"");
    measure(&place, &[]).with_status(0);
    let heads = server.heads();
    // Two blocks of the cell and its A/A twin, with three requests each.
    assert_eq!((heads.len(), server.most_at_once()), (12, 1));
    for head in heads {
        assert!(head.starts_with("get /page?of=others http/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nuser-agent: wirelab/") && head.contains("\r\nhost: localhost"), "{head}");
    }
    let trials = trials(place.folder());
    assert_eq!(trials.len(), 4);
    for (_, trial) in trials {
        assert_eq!(trial["outcome"], "ok", "{trial}");
        assert!(
            trial["values"]["response_median"].is_number() && trial["values"]["cpu_client_per_request"].is_number()
        );
        for metric in ["cpu_server_per_request", "memory_server_peak", "transport_server_sent"] {
            assert_eq!(reason(&trial, metric), "the server is not ours", "{metric}: {trial}");
        }
        assert_eq!(trial["server"]["address"], format!("127.0.0.1:{}", server.port));
        // By the client's clock, so that it holds on the busiest machine: two pauses lie between three requests.
        assert!(trial["window_ns"].as_u64().unwrap() >= 1_000_000_000);
    }
}

fn more_than_is_polite_is_refused_before_anything_is_sent_unless_the_user_may() {
    let place = Place::new();
    let server = Hostile::secure(&place, "good", Conduct::ok());
    // An address for documentation (RFC 5737), so that no request could arrive.
    let far = format!("https://203.0.113.7:{}/", server.port);
    for (workload, words) in [
        ("requests = 15\npause = \"500 ms\"", "203.0.113.7 would be sent 32 requests of HTTP/1.1"),
        ("requests = 2\npause = \"100 ms\"", "pauses for 100ms"),
        ("requests = 2\nworkers = 2\npause = \"500 ms\"", "2 requests in flight"),
    ] {
        study_of(&place, &far, workload, "\"h1\"");
        measure(&place, &[]).with_status(2).complains(&[words, "--i-may-load-these-hosts"]);
        measure(&place, &["--plan", "--i-may-load-these-hosts"]).with_status(0);
    }
    assert_eq!(server.heads().len(), 0);
    // A host of this machine has no limits.
    study(&place, server.port, "/", "requests = 40\nworkers = 4", "\"h1\"");
    measure(&place, &[]).with_status(0);
    // Two blocks of the cell and its A/A twin.
    assert_eq!(server.heads().len(), 2 * 2 * 40);
}

fn a_site_that_gives_no_page_is_a_failure_with_the_blame_on_it() {
    let place = Place::new();
    for (conduct, workload, words) in [
        (Conduct::redirect(), "", "never returned the page: 2 times `status 302`"),
        (Conduct::Silence, "request_timeout = \"1 s\"", "2 times `timeout`"),
    ] {
        let server = Hostile::secure(&place, "good", conduct);
        study(&place, server.port, "/", &format!("requests = 2\npause = \"500 ms\"\n{workload}"), "\"h1\"");
        let _ = fs::remove_dir_all(place.path("wirelab-runs"));
        measure(&place, &[]).with_status(1);
        let trials = all_trials(place.folder());
        assert!(!trials.is_empty());
        for (_, trial) in trials {
            assert_eq!((&trial["outcome"], &trial["blame"]), (&"failed".into(), &"server".into()), "{trial}");
            assert!(trial["reason"].as_str().unwrap().contains(words), "{trial}");
        }
        assert!(server.heads().len() <= 2 * 2, "{:?}", server.heads());
    }
}

fn pages_are_measured_over_every_protocol_that_the_site_has() {
    let place = Place::new();
    let (tcp, udp) = Builtin::side_by_side(&place);
    study(&place, tcp.port, "/bytes/1000", "requests = 5", "\"h1\", \"h2\", \"h3\"");
    measure(&place, &["--i-may-load-these-hosts"]).with_status(0);
    for (cell, trial) in all_trials(place.folder()) {
        match cell["levels"]["protocol"].as_str().unwrap() {
            // The server at the TCP port speaks HTTP/1.1 only.
            "h2" => assert_eq!((&trial["outcome"], &trial["blame"]), (&"failed".into(), &"server".into()), "{trial}"),
            _ => {
                assert_eq!(trial["outcome"], "ok", "{trial}");
                let goodput = trial["values"]["goodput"].as_f64().unwrap();
                let sum = goodput * trial["window_ns"].as_f64().unwrap() / 8e9;
                assert!((sum - 5000.0).abs() < 1.0, "{sum} bytes: {trial}");
            }
        }
    }
    // Two blocks, and HTTP/1.1 with its twin. Without expected content, no check request is sent.
    assert_eq!((tcp.stop(), udp.stop()), (2 * 2 * 5, 2 * 5));
}

fn sites_are_in_their_own_lab_only() {
    let place = Place::new();
    study(&place, 1, "/", "requests = 1", "\"h1\"");
    measure(&place, &["--lab", "loopback"]).with_status(2).complains(&["`loopback`", "--lab internet"]);
    run(place.folder(), &["run", "quick", "--lab", "internet", "--quiet"]).with_status(2).complains(&["set `site`"]);
}

fn failing_sites_are_failures_of_the_server_and_the_others_have_values() {
    let Some(folder) = folder_with("", &[]) else { return };
    let sites = "site=edge,without-h3,redirect-loop,times-out";
    let args = ["run", "public-sites", "--preset", "smoke", "--set", sites, "--set", "blocks.max=1", "--quiet"];
    // On a busy machine a link may be out of tolerance. That voids the run, but is not tested here.
    let said = run(folder.path(), &args);
    assert!([0, 1].contains(&said.status), "{said:?}");
    let trials = all_trials(folder.path());
    assert!(trials.len() > 20);
    for (cell, trial) in trials {
        let level = |factor: &str| cell["levels"][factor].as_str().unwrap();
        let words = match (level("site"), level("protocol")) {
            ("without-h3", "h3") => "reported `refused`",
            ("redirect-loop", _) => "status 302",
            ("times-out", _) => "reported `timeout`",
            _ => {
                // On a busy machine the emulator may lose frames.
                assert!(trial["outcome"] == "ok" || trial["blame"] == "lab", "{trial}");
                continue;
            }
        };
        assert_eq!((&trial["outcome"], &trial["blame"]), (&"failed".into(), &"server".into()), "{trial}");
        assert!(trial["reason"].as_str().unwrap().contains(words), "{trial}");
    }
}
