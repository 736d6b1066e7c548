//! Studies in which browsers are the clients: the whole way from the study file to the report, on loopback and over an emulated link.
//! Browsers that are not installed are not tested, and the tests say so.

#[path = "support/browsers.rs"]
mod browsers;
#[path = "support/har.rs"]
mod har;
#[path = "support/lab.rs"]
mod lab;
#[path = "support/page_command.rs"]
mod page_command;
#[path = "support/pages.rs"]
mod pages;
#[path = "support/readable.rs"]
mod readable;
#[path = "support/servers.rs"]
mod servers;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;

use browsers::{browsers, loads, study};
use lab::{all_trials, folder_with, trials};
use pages::{REQUESTS, write_page};
use readable::assert_readable;
use serde_json::Value;
use support::{eventually, only_run, processes, run, said, wirelab};
use tempfile::tempdir;
use wirelab_model::protocol::Protocol;

#[test]
fn every_browser_loads_a_page_over_every_version_and_the_report_shows_how() {
    let browsers = browsers();
    if browsers.is_empty() {
        return;
    }
    let folder = tempdir().unwrap();
    let workload = "page = 'small-50'\nrequests = 2\nwarm_up = 1";
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
        assert_eq!(loads.len(), 2);
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
        assert_eq!(archive["log"]["pages"].as_array().unwrap().len(), 2, "a page for each load");
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
    assert_eq!(report.matches("Bytes that have come by a time").count(), browsers.len());
    assert!(!report.contains("NaN"));
    assert_readable(&only_run(folder.path()).join("report.html"));
}

#[test]
fn filmed_trials_give_the_speed_index_and_nothing_else_and_the_report_shows_the_films() {
    let browsers = browsers();
    if browsers.is_empty() {
        return;
    }
    let folder = tempdir().unwrap();
    let text = study("loopback", &browsers, "page = 'small-10'\nrequests = 2", "protocol = ['h1', 'h2']");
    fs::write(folder.path().join("study.toml"), text).unwrap();
    run(folder.path(), &["run", "study.toml", "--quiet", "--observe", "film"]).with_status(0);
    let trials = trials(folder.path());
    assert_eq!(trials.len(), browsers.len() * 3);
    for (_, trial) in &trials {
        let mut values = trial["values"].as_object().unwrap().iter();
        let index = values.clone().find(|(name, _)| *name == "page_speed_index").and_then(|(_, value)| value.as_f64());
        assert!(index.is_some_and(|ns| ns > 1e6), "{trial}");
        assert!(values.all(|(name, value)| name == "page_speed_index" || !value.is_number()), "{trial}");
        let warnings = trial["warnings"].as_array().unwrap();
        assert!(warnings.len() == 1 && warnings[0]["warning"] == "filmed", "{trial}");
        assert!(trial["results"].is_null(), "{trial}");
        let films = only_run(folder.path()).join(format!("films/trial-{:06}", trial["number"].as_u64().unwrap()));
        let read: Value = serde_json::from_str(&fs::read_to_string(films.join("film.json")).unwrap()).unwrap();
        assert_eq!(read["speed_index"].as_array().unwrap().len(), 2, "one of each load");
        for picture in read["typical"]["pictures"].as_array().unwrap() {
            let jpeg = fs::read(films.join(picture["file"].as_str().unwrap())).unwrap();
            assert_eq!(jpeg[..2], [0xff, 0xd8], "{picture}");
        }
        assert_eq!(read["typical"]["pictures"].as_array().unwrap().last().unwrap()["progress"], 1.0);
    }
    let report = fs::read_to_string(only_run(folder.path()).join("report.html")).unwrap();
    assert_eq!(report.matches("id=\"filmstrip-").count(), browsers.len());
    assert!(report.contains("Filmstrips of a load by HTTP/1.1, HTTP/2") && !report.contains("Waterfall"));
    assert_readable(&only_run(folder.path()).join("report.html"));
    let refused = run(folder.path(), &["run", "quick", "--quiet", "--observe", "film"]).with_status(2);
    refused.complains(&["the observer `film` films pages", "set `page`"]);
}

#[test]
fn what_browsers_write_of_their_connections_is_kept_of_each_trial_and_what_they_do_not_write_is_unsupported() {
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

/// Which content a file has, browsers believe the server; that a page works with one server shows nothing of another.
#[test]
fn pages_come_from_other_servers_as_from_the_built_in_one() {
    let is_there = |(program, _): &(&str, &str)| Path::new("/usr/sbin").join(program).exists();
    let (there, missing): (Vec<_>, Vec<_>) =
        [("nginx", "nginx"), ("apache2", "apache-httpd")].into_iter().partition(is_there);
    missing.iter().for_each(|(program, _)| eprintln!("NOT tested: there is no {program}; tests/setup.sh installs it"));
    let servers: Vec<_> = there.into_iter().map(|(_, endpoint)| endpoint).chain(["builtin"]).collect();
    let Some(browser) = browsers().into_iter().next() else { return };
    let folder = tempdir().unwrap();
    // Windows that every server can be told there are none.
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

/// A folder with a page of PNGs, which no page that wirelab makes has.
#[test]
fn a_folder_is_a_page_in_both_labs_and_what_is_no_page_is_refused_or_blamed() {
    let browsers = browsers();
    let browser = browsers.first().copied().unwrap_or("chromium");
    let factors = "protocol = ['h1', 'h2', 'h3']";
    let text = study("loopback", &[browser], "page = './site'", factors);
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), &text).unwrap();
    let refused = || run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(2);
    refused().complains(&["`./site`", "does not exist"]);
    fs::create_dir(folder.path().join("site")).unwrap();
    refused().complains(&["`./site`", "has no `index.html`"]);
    if browsers.is_empty() {
        return;
    }
    for (lab, more) in [("loopback", ""), ("netns", "\nplacement = 'home'")] {
        let text = study(lab, &browsers, &format!("page = './site'{more}"), factors);
        let Some(folder) = (if lab == "netns" { folder_with(&text, &[]) } else { tempdir().ok() }) else { return };
        fs::write(folder.path().join("study.toml"), text).unwrap();
        write_page(&folder.path().join("site"));
        run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
        for (_, trial) in trials(folder.path()) {
            assert_eq!(trial["values"]["page_requests"], f64::from(REQUESTS), "{trial}");
            for resource in loads(folder.path(), &trial)[0]["resources"].as_array().unwrap() {
                assert_eq!(resource["status"], 200, "{resource}");
            }
            assert!(trial["values"]["page_received"].as_f64().unwrap() > 150_000.0, "{trial}");
        }
    }
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), text).unwrap();
    fs::create_dir(folder.path().join("site")).unwrap();
    // A name that is for documents (RFC 6761): nobody has it.
    let image = "<!doctype html><p>text</p><img src='https://other.invalid/picture.png'>";
    fs::write(folder.path().join("site/index.html"), image).unwrap();
    run(folder.path(), &["run", "study.toml", "--quiet"]);
    for (_, trial) in all_trials(folder.path()) {
        let reason = trial["reason"].as_str().unwrap_or_else(|| panic!("{trial}"));
        assert!(
            trial["blame"] == "server" && reason.contains("asks another host for https://other.invalid/"),
            "{trial}"
        );
    }
}

#[test]
fn what_is_hinted_at_is_asked_for_while_the_server_thinks() {
    const THINK_NS: f64 = 2e9;
    let browsers = browsers();
    if browsers.is_empty() {
        return;
    }
    let folder = tempdir().unwrap();
    let factors = "protocol = ['h1', 'h2', 'h3']\nearly_hints = [false, true]";
    let text = study("loopback", &browsers, "page = 'today'\ndelay = '2 s'", factors);
    fs::write(folder.path().join("study.toml"), text).unwrap();
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    let mut heeded = BTreeSet::new();
    for (cell, trial) in all_trials(folder.path()) {
        let job = &cell["job"];
        let is_hinted = job["early_hints"] == true;
        if is_hinted && job["client"] == "chromium" && job["protocol"] == "h1" {
            assert_eq!(trial["outcome"], "unsupported", "{trial}");
            let reason = trial["reason"].as_str().unwrap();
            assert!(reason.contains("Chromium takes no early hints over HTTP/1.1"), "{reason}");
            continue;
        }
        // A browser that has no processor may miss the hints, and the trial is rightly none; but not every time.
        let missed = |reason: &str| reason.contains("the browser asked for nothing because of them");
        if is_hinted && trial["reason"].as_str().is_some_and(missed) {
            eprintln!("NOT tested: {}: {}", cell["levels"], trial["reason"]);
            continue;
        }
        assert_eq!(trial["outcome"], "ok", "{trial}");
        if is_hinted {
            heeded.insert(job["client"].as_str().unwrap().to_owned());
        }
        assert_eq!(trial["values"]["page_requests"], 55.0, "{trial}");
        if let Some(first) = trial["values"]["page_first_byte"].as_f64() {
            assert!(first >= THINK_NS, "the first byte is that of the final response: {trial}");
        }
        let load = &loads(folder.path(), &trial)[0];
        let resources = load["resources"].as_array().unwrap();
        let first = |ending: &str| resources.iter().find(|one| one["url"].as_str().unwrap().ends_with(ending)).unwrap();
        // Of what it was hinted at Chromium says when the response began; Firefox over HTTP/1.1 does not know it of the document.
        let begins = |one: &Value, or: &str| one["response_ns"].as_u64().or(one[or].as_u64()).unwrap();
        let document = begins(&resources[0], "end_ns");
        assert!(document as f64 >= THINK_NS / 2.0, "{load}");
        for ending in ["/000.css", "/000.js", "/000.woff2"] {
            let hinted = begins(first(ending), "request_ns");
            assert_eq!(hinted < document, is_hinted, "{ending}: {hinted}, {document}: {cell}");
        }
        assert!(begins(first("/000.jpg"), "request_ns") > document, "it was not hinted at: {cell}");
    }
    assert_eq!(heeded, browsers.iter().map(ToString::to_string).collect());
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
        let workload = "page = 'small-10'\nserver_lacks = 'h3'\nrequest_timeout = '8 s'";
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
fn a_browser_that_is_asked_for_what_no_browser_does_is_refused_with_the_remedy() {
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
        // Profiles are below the folder, so that browsers are found by it, and so is what they leave.
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

/// Ticks of all processors, and those of them that the host took (proc_stat(5)).
fn processor_time() -> [u64; 2] {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let fields = text.lines().next().unwrap().split_ascii_whitespace().skip(1).take(8);
    let ticks: Vec<u64> = fields.map(|field| field.parse().unwrap()).collect();
    [ticks.iter().sum(), ticks[7]]
}

/// TCP takes one round trip, TLS 1.3 one, QUIC with TLS one, the request one. Other work on the machine delays browsers, and never makes
/// them faster: what counts is the fastest load, of six tries at most, and a reading during which the host of a virtual machine took
/// processor time is no try.
#[test]
#[ignore = "wants a quiet machine, for minutes: make test-pages"]
fn the_first_byte_comes_after_the_round_trips_of_the_handshake() {
    const ROUND_TRIP_MS: f64 = 50.0;
    const TOLERANCE_MS: f64 = 20.0;
    let browsers = browsers();
    let workload = "page = 'small-10'\nrequests = 5\nwarm_up = 1\nplacement = 'lan'\nround_trip = '50 ms'\nbandwidth = '10 Mbit/s'";
    let text = study("netns", &browsers, workload, "protocol = ['h1', 'h2', 'h3']");
    let mut fastest: BTreeMap<(String, String), f64> = BTreeMap::new();
    let mut tries = 0;
    for _ in 0..12 {
        let Some(folder) = folder_with(&text, &[]).filter(|_| !browsers.is_empty()) else { return };
        let before = processor_time();
        run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
        let [all, stolen] = std::array::from_fn(|which| processor_time()[which] - before[which]);
        for (cell, trial) in trials(folder.path()) {
            let word = |key: &str| cell["job"][key].as_str().unwrap().to_owned();
            for load in loads(folder.path(), &trial) {
                let net = load["values"]["net"].as_f64().unwrap() / 1e6;
                assert!(net >= 109_700.0 * 8.0 / 10e3, "the link needs longer than {net} ms for the page: {cell}");
                let key = (word("client"), word("protocol"));
                match load["values"]["first_byte"].as_f64() {
                    Some(first) => {
                        let known = fastest.entry(key).or_insert(f64::INFINITY);
                        *known = known.min(first / 1e6);
                    }
                    // Firefox takes session tickets for it, and that is the only reason.
                    None => assert_eq!(key, ("firefox".to_owned(), "h1".to_owned()), "{load}"),
                }
            }
        }
        let wanted = |protocol: &str| if protocol == "h3" { 2.0 } else { 3.0 } * ROUND_TRIP_MS;
        for ((client, protocol), first) in &fastest {
            assert!(*first >= wanted(protocol), "{first} ms are less than physics allow: {client} {protocol}");
        }
        if fastest.iter().all(|((_, protocol), first)| *first <= wanted(protocol) + TOLERANCE_MS) {
            return;
        }
        eprintln!("{fastest:?}; {stolen} of {all} ticks went to others");
        tries += i32::from(stolen * 50 <= all);
        assert!(tries < 6, "{fastest:?}");
    }
    eprintln!("NOT tested: {fastest:?}, and the host of this machine keeps taking its processors");
}
