//! Studies with browsers as clients, from the study file to the report, on loopback and over an emulated link. Browsers
//! that are not installed are skipped parts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tempfile::tempdir;
use wirelab_model::protocol::Protocol;
use wirelab_testkit::browsers::{browsers, loads, study};
use wirelab_testkit::har;
use wirelab_testkit::lab::{all_trials, trials};
use wirelab_testkit::readable::assert_readable;
use wirelab_testkit::{Skip, eventually, only_run, processes, run, said, skip_part, wirelab};

#[test]
fn every_browser_loads_a_page_over_every_version_and_the_report_shows_how() {
    let browsers = browsers();
    if browsers.is_empty() {
        return;
    }
    let folder = tempdir().unwrap();
    let workload = "page = 'small-50'\nrequests = 1\nwarm_up = 1";
    let text = study("loopback", &browsers, workload, "protocol = ['h1', 'h2', 'h3']");
    fs::write(folder.path().join("study.toml"), text).unwrap();
    run(folder.path(), &["run", "study.toml", "--quiet", "--keep", "har"]).with_status(0);
    let trials = trials(folder.path());
    // Each version in each browser, and the twin of the baseline.
    assert_eq!(trials.len(), browsers.len() * 4);
    for (cell, trial) in &trials {
        let protocol: Protocol = cell["job"]["protocol"].as_str().unwrap().parse().unwrap();
        let right = protocol.alpn().unwrap();
        assert_eq!(trial["client"]["alpn"], right);
        let loads = loads(folder.path(), trial);
        assert_eq!(loads.len(), 1, "the warm-up is none of them");
        for load in &loads {
            assert_eq!(load["outcome"], "ok", "{load}");
            let resources = load["resources"].as_array().unwrap();
            assert_eq!(resources.len(), 51);
            for resource in resources {
                assert_eq!((&resource["protocol"], &resource["status"]), (&right.into(), &200.into()), "{resource}");
                assert!(resource["end_ns"].as_u64() >= resource["start_ns"].as_u64(), "{resource}");
            }
        }
        let archive = only_run(folder.path()).join(format!("har/trial-{:06}.har", trial["number"].as_u64().unwrap()));
        har::assert_is_valid(&archive);
        let archive: Value = serde_json::from_str(&fs::read_to_string(&archive).unwrap()).unwrap();
        assert_eq!(archive["log"]["pages"].as_array().unwrap().len(), 1, "a page for each load");
        let value = |name: &str| trial["values"][name].as_f64().unwrap_or_else(|| panic!("{name}: {trial}"));
        assert_eq!(value("page_requests"), 51.0);
        assert!(value("page_received") > 412_800.0, "the page has more bytes than that");
        let most = if protocol == Protocol::H1 { 6.0 } else { 1.0 };
        assert!((1.0..=most).contains(&value("page_connections")), "{trial}");
        assert!(value("page_onload") > 0.0 && value("page_net") > 0.0 && value("page_first_paint") > 0.0);
        assert!(value("cpu_server_per_request") > 0.0, "{trial}");
    }
    let report = fs::read_to_string(only_run(folder.path()).join("report.html")).unwrap();
    assert_eq!(report.matches("Waterfall of a load by HTTP/3: 51 requests").count(), browsers.len());
    assert_eq!(report.matches("id=\"waterfall-").count(), browsers.len());
    assert_eq!(report.matches("Bytes received over time at ").count(), browsers.len());
    assert!(!report.contains("NaN"));
    assert_readable(&only_run(folder.path()).join("report.html"));
}

#[test]
fn logs_of_browsers_are_kept_for_each_trial_and_unwritten_logs_are_unsupported() {
    for browser in browsers() {
        let folder = tempdir().unwrap();
        let text = study("loopback", &[browser], "page = 'small-10'", "protocol = ['h2', 'h3']");
        fs::write(folder.path().join("study.toml"), text.replace("baseline = \"h1\"", "baseline = \"h2\"")).unwrap();
        let (own, other) = if browser == "chromium" { ("netlog", "qlog") } else { ("qlog", "netlog") };
        run(folder.path(), &["run", "study.toml", "--quiet", "--keep", "keys", "--keep", own]).with_status(0);
        let path = only_run(folder.path());
        for (cell, trial) in trials(folder.path()) {
            let stem = format!("trial-{:06}", trial["number"].as_u64().unwrap());
            let keys = fs::read_to_string(path.join("keys").join(format!("{stem}.log"))).unwrap();
            assert!(keys.contains("CLIENT_HANDSHAKE_TRAFFIC_SECRET "), "{keys}");
            let own =
                if own == "netlog" { path.join(own).join(stem) } else { path.join(own).join(stem).join("client") };
            if browser == "chromium" {
                let netlog = fs::read_to_string(
                    own.join(format!("chromium-{}-0.json", cell["job"]["protocol"].as_str().unwrap())),
                );
                let netlog: Value = serde_json::from_str(&netlog.unwrap()).unwrap();
                assert!(netlog["events"].as_array().unwrap().len() > 100);
            } else if cell["job"]["protocol"] == "h3" {
                let files: Vec<_> = fs::read_dir(&own).unwrap().map(|file| file.unwrap().path()).collect();
                assert!(
                    files.iter().any(|file| fs::read_to_string(file).unwrap().contains("qlog_version")),
                    "{files:?}"
                );
            }
        }
        let manifest: Value = serde_json::from_str(&fs::read_to_string(path.join("manifest.json")).unwrap()).unwrap();
        let said = manifest["warnings"].as_array().unwrap().iter().filter(|warning| warning["warning"] == "keeping");
        assert_eq!(said.count(), 2, "both take time while pages load: {}", manifest["warnings"]);

        fs::remove_dir_all(folder.path().join("wirelab-runs")).unwrap();
        run(folder.path(), &["run", "study.toml", "--quiet", "--keep", other]);
        for (cell, trial) in all_trials(folder.path()) {
            if other == "netlog" || cell["job"]["protocol"] == "h3" {
                assert_eq!(trial["outcome"], "unsupported", "{trial}");
                assert!(trial["reason"].as_str().unwrap().contains(&format!("writes no {other}")), "{trial}");
            } else {
                assert_eq!(trial["outcome"], "ok", "there is no QUIC to be logged: {trial}");
            }
        }
    }
}

/// Browsers take a file's content type from the server, so each server is tested on its own.
#[test]
fn pages_come_from_other_servers_as_from_the_built_in_one() {
    let is_there = |(program, _): &(&str, &str)| Path::new("/usr/sbin").join(program).exists();
    let (there, missing): (Vec<_>, Vec<_>) =
        [("nginx", "nginx"), ("apache2", "apache-httpd")].into_iter().partition(is_there);
    for (program, _) in missing {
        skip_part(Skip::MissingProgram { program: program.to_owned(), remedy: "tests/setup.sh".to_owned() });
    }
    let servers: Vec<_> = there.into_iter().map(|(_, endpoint)| endpoint).chain(["builtin"]).collect();
    let Some(browser) = browsers().into_iter().next() else { return };
    let folder = tempdir().unwrap();
    // No windows are set, because not every server supports them.
    let workload = "page = 'today'\ntransport_defaults = 'library'";
    let factors = format!("protocol = ['h1', 'h2']\nserver = {servers:?}");
    fs::write(folder.path().join("study.toml"), study("loopback", &[browser], workload, &factors)).unwrap();
    let mut command = wirelab(folder.path(), &["run", "study.toml", "--quiet", "--keep", "har"]);
    command.env("WIRELAB_ENDPOINTS", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../endpoints"));
    said(command.output().unwrap()).with_status(0);
    let mut seen = BTreeSet::new();
    for (cell, trial) in trials(folder.path()) {
        let server = cell["job"]["server"].as_str().unwrap().to_owned();
        let number = trial["number"].as_u64().unwrap();
        let archive = fs::read_to_string(only_run(folder.path()).join(format!("har/trial-{number:06}.har"))).unwrap();
        let archive: Value = serde_json::from_str(&archive).unwrap();
        for entry in archive["log"]["entries"].as_array().unwrap() {
            let url = entry["request"]["url"].as_str().unwrap();
            let kind = entry["response"]["content"]["mimeType"].as_str().unwrap();
            let right = wirelab_model::page::content_type(url).unwrap();
            assert_eq!(kind.split(';').next().unwrap(), right, "{server}: {url}");
        }
        assert_eq!(trial["values"]["page_requests"], 55.0, "{trial}");
        seen.insert(server);
    }
    assert_eq!(seen, servers.into_iter().map(str::to_owned).collect());
}

#[test]
fn priorities_are_obeyed_over_http3_and_otherwise_the_cell_is_unsupported() {
    let Some(browser) = browsers().into_iter().next() else { return };
    let folder = tempdir().unwrap();
    let factors = "protocol = ['h1', 'h2', 'h3']\npriorities = ['ignored', 'obeyed']";
    fs::write(folder.path().join("study.toml"), study("loopback", &[browser], "page = 'today'", factors)).unwrap();
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    for (cell, trial) in all_trials(folder.path()) {
        if cell["job"]["priorities"] == "ignored" || cell["job"]["protocol"] == "h3" {
            assert_eq!(trial["outcome"], "ok", "{trial}");
            continue;
        }
        assert_eq!(trial["outcome"], "unsupported", "{trial}");
        assert!(trial["reason"].as_str().unwrap().contains("`priorities` is `obeyed`"), "{trial}");
    }
}

#[test]
fn a_server_without_the_version_fails_the_trial_and_is_blamed() {
    for browser in browsers() {
        let folder = tempdir().unwrap();
        let workload = "page = 'small-10'\nserver_lacks = 'h3'\nrequest_timeout = '20 s'";
        let text = study("loopback", &[browser], workload, "protocol = ['h1', 'h3']");
        fs::write(folder.path().join("study.toml"), text.replace("request_timeout = \"30 s\"\n", "")).unwrap();
        run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
        for (cell, trial) in all_trials(folder.path()) {
            if cell["job"]["protocol"] == "h1" {
                assert_eq!(trial["outcome"], "ok", "{trial}");
                continue;
            }
            assert_eq!((&trial["outcome"], &trial["blame"]), (&"failed".into(), &"server".into()), "{trial}");
            let reason = trial["reason"].as_str().unwrap();
            assert!(reason.contains("is no sample") && reason.contains("HTTP/3"), "{reason}");
            assert_eq!(trial["values"], serde_json::json!({}), "what failed has no values");
        }
    }
}

#[test]
fn a_setting_that_no_browser_supports_is_refused_with_the_remedy() {
    let folder = tempdir().unwrap();
    let text = study("loopback", &["chromium"], "page = 'small-10'\nworkers = 9", "protocol = ['h1', 'h2']");
    fs::write(folder.path().join("study.toml"), text).unwrap();
    let said = run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(2);
    said.complains(&["`workers` is set beside `page` (small-10)", "remove one"]);
    let text = study("loopback", &["chromium"], "page = 'smal-10'", "protocol = ['h1', 'h2']");
    fs::write(folder.path().join("study.toml"), text).unwrap();
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(2).complains(&["small-10", "study.toml:8"]);
    let text = study("loopback", &["chromium"], "early_hints = true", "protocol = ['h1', 'h2']");
    fs::write(folder.path().join("study.toml"), text).unwrap();
    run(folder.path(), &["run", "study.toml", "--quiet"])
        .with_status(2)
        .complains(&["early_hints", "set `page` as well"]);
}

#[test]
fn a_killed_run_leaves_no_browser() {
    for browser in browsers() {
        let folder = tempdir().unwrap();
        let text = study("loopback", &[browser], "page = 'small-10'\nrequests = 50", "protocol = ['h1', 'h2']");
        fs::write(folder.path().join("study.toml"), text).unwrap();
        let mut command = wirelab(folder.path(), &["run", "study.toml", "--quiet"]);
        // Profiles are below the folder, which identifies browser processes and files that they leave.
        command.env("TMPDIR", folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mark = format!("{}/wirelab-", folder.path().display());
        eventually("the start of a browser", || !processes(&mark).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        eventually("the end of every process", || processes(&folder.path().to_string_lossy()).is_empty());
        let left = || fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name());
        let profile =
            |name: std::ffi::OsString| name.to_string_lossy().starts_with("wirelab-") && name != "wirelab-runs";
        eventually("the removal of every profile", || !left().any(profile));
    }
}
