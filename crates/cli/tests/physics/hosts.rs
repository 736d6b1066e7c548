//! Pages of several hosts in browsers: one server per host, behind one emulated link. Browsers that are not installed
//! are skipped parts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;
use wirelab_browser::Browser;
use wirelab_model::protocol::Protocol;
use wirelab_testkit::browsers::{browsers, is_here, loads, study};
use wirelab_testkit::lab::{all_trials, folder_with, trials};
use wirelab_testkit::pages::{REQUESTS, write_page};
use wirelab_testkit::physics::Test;
use wirelab_testkit::servers::{Builtin, Place, Serve, serve};
use wirelab_testkit::test;
use wirelab_testkit::{only_run, program, run, said, wirelab};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(every_host_of_a_page_speaks_the_forced_version_on_connections_of_its_own).beside_few().retries(2),
        test!(a_host_without_the_version_fails_the_trial_and_is_named).beside_few().retries(2),
        test!(an_archive_is_a_page_of_all_its_hosts).beside_few().retries(2),
        test!(a_page_that_was_saved_is_loaded_again).beside_few().retries(2),
        test!(an_archive_that_is_no_page_is_refused_with_the_remedy).side_by_side(),
        test!(hosts_that_a_lab_or_a_page_does_not_have_are_refused_with_the_remedy).side_by_side(),
    ]
}

const VERSIONS: &str = "protocol = ['h1', 'h2', 'h3']";

/// The resources of a load by their hosts.
fn by_host(load: &Value) -> BTreeMap<String, Vec<Value>> {
    let mut hosts: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for resource in load["resources"].as_array().unwrap() {
        let host = resource["url"].as_str().unwrap().split('/').nth(2).unwrap();
        hosts.entry(host.to_owned()).or_default().push(resource.clone());
    }
    hosts
}

/// The numbers of the connections that carried the resources.
fn connections(resources: &[Value]) -> BTreeSet<u64> {
    let number = |resource: &Value| resource["connection"].as_u64().unwrap_or_else(|| panic!("{resource}"));
    resources.iter().map(number).collect()
}

fn every_host_of_a_page_speaks_the_forced_version_on_connections_of_its_own() {
    let browsers = browsers();
    let workload = "page = 'today'\nhosts = 3\nplacement = 'lan'";
    let text = study("netns", &browsers, workload, VERSIONS);
    let Some(folder) = folder_with(&text, &[]).filter(|_| !browsers.is_empty()) else { return };
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    let trials = trials(folder.path());
    // Each version in each browser, and the twin of the baseline.
    assert_eq!(trials.len(), browsers.len() * 4);
    for (cell, trial) in &trials {
        let protocol: Protocol = cell["job"]["protocol"].as_str().unwrap().parse().unwrap();
        for load in loads(folder.path(), trial) {
            let hosts = by_host(&load);
            let shares: Vec<_> = hosts.iter().map(|(host, resources)| (host.as_str(), resources.len())).collect();
            assert_eq!(shares, [("cdn-2.wirelab.test", 17), ("cdn-3.wirelab.test", 16), ("wirelab.test", 22)]);
            let mut all = 0;
            for (host, resources) in &hosts {
                for resource in resources {
                    let right = protocol.alpn().unwrap();
                    assert_eq!(
                        (&resource["protocol"], &resource["status"]),
                        (&right.into(), &200.into()),
                        "{resource}"
                    );
                }
                let own = connections(resources).len();
                let most = if protocol == Protocol::H1 { 6 } else { 1 };
                assert!((1..=most).contains(&own), "{own} connections to {host}: {cell}");
                all += own;
            }
            assert_eq!(load["values"]["connections"].as_f64(), Some(all as f64), "hosts share none: {cell}");
        }
        assert_eq!(trial["values"]["page_requests"], 55.0, "{trial}");
        assert!(trial["values"]["cpu_server_per_request"].as_f64().unwrap() > 0.0, "{trial}");
    }
    let report = fs::read_to_string(only_run(folder.path()).join("report.html")).unwrap();
    assert!(report.contains("cdn-3.wirelab.test: ") && report.contains("grouped by host"), "no waterfall by host");
}

/// A server that speaks HTTP/2 where it is one of several hosts and the study demands HTTP/3.
const LACKING: &str = r#"#!/bin/sh
[ "$1" = describe ] && { "$WIRELAB" endpoint describe | sed 's/"builtin"/"lacking"/'; exit; }
grep -q '"cdn-2.wirelab.test"' "$3" && sed -i 's/"protocol": "h3"/"protocol": "h2"/' "$3"
exec "$WIRELAB" endpoint "$@"
"#;

fn a_host_without_the_version_fails_the_trial_and_is_named() {
    let browsers = browsers();
    // Browsers wait for the host without the version until the time-out, so it is short where all loads fail.
    let versions = "version.h2 = { protocol = 'h2' }\nversion.h3 = { protocol = 'h3', request_timeout = '8 s' }";
    let text =
        study("netns", &browsers, "page = 'small-10'\nhosts = 3\nplacement = 'lan'\nserver = 'lacking'", versions);
    let text = text.replace("factor = \"protocol\"", "factor = \"version\"").replace("= \"h1\"", "= \"h2\"");
    let Some(folder) = folder_with(&text, &[]).filter(|_| !browsers.is_empty()) else { return };
    let lacking = folder.path().join("endpoints/lacking");
    fs::create_dir_all(&lacking).unwrap();
    fs::write(lacking.join("endpoint.toml"), "name = \"lacking\"\ncommand = [\"sh\", \"lacking.sh\"]\n").unwrap();
    fs::write(lacking.join("lacking.sh"), LACKING).unwrap();
    let mut command = wirelab(folder.path(), &["run", "study.toml", "--quiet"]);
    command.env("WIRELAB", program());
    said(command.output().unwrap()).with_status(0);
    for (cell, trial) in all_trials(folder.path()) {
        if cell["job"]["protocol"] == "h2" {
            assert_eq!(trial["outcome"], "ok", "{trial}");
            continue;
        }
        assert_eq!((&trial["outcome"], &trial["blame"]), (&"failed".into(), &"server".into()), "{trial}");
        let reason = trial["reason"].as_str().unwrap();
        assert!(reason.contains("is no sample") && reason.contains("https://cdn-2.wirelab.test/"), "{reason}");
    }
}

/// A site of two hosts as a browser saved it: a style sheet on the other host, with a picture that it names, and three
/// entries that cannot be replayed.
fn archive() -> Value {
    let entry = |method: &str, url: &str, status: u16, kind: &str, content: Value| {
        let mut content = content;
        content["mimeType"] = json!(kind);
        let headers = json!([{ "name": "content-type", "value": kind }, { "name": "content-encoding", "value": "br" }]);
        json!({
            "request": { "method": method, "url": url }, "response": { "status": status, "headers": headers, "content": content }
        })
    };
    let document = "<!doctype html><title>shop</title><link rel=icon href='data:,'><h1>shop</h1>\
        <link rel=stylesheet href='https://static.shop.test/s.css?v=2'><img src='/old.svg'><img src='/gone.png?x=1'>";
    let picture = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect width='9' height='9'/></svg>";
    // body { background: url(b.svg) }
    let style = json!({ "text": "Ym9keSB7IGJhY2tncm91bmQ6IHVybChiLnN2ZykgfQ==", "encoding": "base64" });
    let moved = json!({
        "request": { "method": "GET", "url": "https://www.shop.test/old.svg" },
        "response": {
            "status": 302, "headers": [{ "name": "Location", "value": "https://static.shop.test/b.svg" }], "content": { "size": 0 }
        }
    });
    json!({ "log": { "version": "1.2", "entries": [
        entry("GET", "https://www.shop.test/?q=1", 200, "text/html; charset=utf-8", json!({ "text": document })),
        entry("GET", "https://static.shop.test/s.css?v=2", 200, "text/css", style),
        entry("GET", "https://static.shop.test/b.svg", 200, "image/svg+xml", json!({ "text": picture })),
        moved,
        entry("POST", "https://www.shop.test/count", 204, "", json!({})),
        entry("GET", "http://plain.shop.test/a.png", 200, "image/png", json!({ "text": "" })),
        entry("GET", "https://static.shop.test/c.svg", 200, "image/svg+xml", json!({ "size": 9 })),
    ] } })
}

fn an_archive_is_a_page_of_all_its_hosts() {
    let browsers = browsers();
    let text = study("netns", &browsers, "page = './saved.har'\nplacement = 'lan'", VERSIONS);
    let Some(folder) = folder_with(&text, &[]).filter(|_| !browsers.is_empty()) else { return };
    fs::write(folder.path().join("saved.har"), archive().to_string()).unwrap();
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    let wanted = [
        ("https://static.shop.test/b.svg", 200),
        ("https://static.shop.test/s.css?v=2", 200),
        ("https://www.shop.test/?q=1", 200),
        ("https://www.shop.test/gone.png?x=1", 404),
        ("https://www.shop.test/old.svg", 302),
    ];
    for (cell, trial) in trials(folder.path()) {
        assert_eq!(cell["job"]["hosts"], json!(["www.shop.test", "static.shop.test"]));
        let right = cell["job"]["protocol"].as_str().unwrap().parse::<Protocol>().unwrap().alpn().unwrap();
        let load = loads(folder.path(), &trial).remove(0);
        let resources = load["resources"].as_array().unwrap();
        let found: BTreeSet<_> =
            resources.iter().map(|one| (one["url"].as_str().unwrap(), one["status"].as_u64().unwrap())).collect();
        assert_eq!(found, wanted.into(), "{cell}");
        assert!(resources.iter().all(|one| one["protocol"] == right), "{load}");
        let warnings = load["warnings"].as_array().unwrap();
        assert!(warnings.iter().any(|one| one.as_str().unwrap().contains("gone.png?x=1 answers 404")), "{warnings:?}");
    }
    let manifest = fs::read_to_string(only_run(folder.path()).join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let warnings = manifest["warnings"].as_array().unwrap();
    let left_out = warnings.iter().find(|warning| warning["warning"] == "archive_in_part").unwrap();
    assert_eq!(left_out["what"], json!(["1 not a GET", "1 without TLS (http://)", "1 without a body"]));
}

/// The page's server uses a free port, which no replayed archive has. Its host therefore gets a name.
fn a_page_that_was_saved_is_loaded_again() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let text = study("netns", &["chromium"], "page = './saved.har'\nplacement = 'lan'", "protocol = ['h1', 'h3']");
    let Some(folder) = folder_with(&text, &[]) else { return };
    let place = Place::new();
    let root = place.path("root");
    write_page(&root);
    let server = Builtin::start(&place, Serve { root: Some(&root), ..serve(Protocol::H2) });
    let here = format!("localhost:{}", server.port);
    let url = format!("https://{here}/index.html");
    let saving = ["--browsers", "chromium", "--protocols", "h2", "--loads", "1", "--save", "saved.har"];
    run(place.folder(), &[&["page", &url, "--ca", "ca.pem", "--quiet"], &saving[..]].concat()).with_status(0);
    let saved = fs::read_to_string(place.path("saved.har")).unwrap();
    fs::write(folder.path().join("saved.har"), saved.replace(&here, "shop.test")).unwrap();
    run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(0);
    for (cell, trial) in trials(folder.path()) {
        assert_eq!(cell["job"]["hosts"], json!(["shop.test"]));
        assert_eq!(trial["values"]["page_requests"], f64::from(REQUESTS), "{trial}");
    }
}

fn an_archive_that_is_no_page_is_refused_with_the_remedy() {
    let folder = tempdir().unwrap();
    let refused = |archive: Option<&Value>, words: &[&str]| {
        write(folder.path(), &study("loopback", &["builtin"], "page = './saved.har'", VERSIONS));
        if let Some(archive) = archive {
            fs::write(folder.path().join("saved.har"), archive.to_string()).unwrap();
        }
        run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(2).complains(words);
    };
    refused(None, &["the page `./saved.har`: cannot read the archive"]);
    let mut bare = archive();
    bare["log"]["entries"][0]["response"]["content"] = json!({ "size": 100, "mimeType": "text/html" });
    refused(Some(&bare), &["https://www.shop.test/?q=1, is without a body", "docs/pages.md"]);
    refused(Some(&archive()), &["the lab `loopback` has no addresses for the hosts of a page"]);
}

fn hosts_that_a_lab_or_a_page_does_not_have_are_refused_with_the_remedy() {
    let folder = tempdir().unwrap();
    let refused = |workload: &str, factors: &str, words: &[&str]| {
        // A setting that is refused before the start is refused for every client.
        let text = study("loopback", &["builtin"], workload, factors);
        write(folder.path(), &text);
        run(folder.path(), &["run", "study.toml", "--quiet"]).with_status(2).complains(words);
    };
    refused(
        "page = 'today'\nhosts = 2",
        VERSIONS,
        &["the lab `loopback` has no addresses for the hosts of a page", "use the lab `netns`"],
    );
    refused("page = 'today'\nhost = 2", VERSIONS, &["`host`", "did you mean `hosts`?"]);
    refused("page = 'today'\nhosts = 0", VERSIONS, &["`hosts` is 0, but must be from 1 to 20", "study.toml:"]);
    refused("page = 'large-2'", &format!("{VERSIONS}\nhosts = [1, 3]"), &["`large-2` has files for 2 hosts only"]);
    refused("hosts = 2", VERSIONS, &["`hosts` is set, which only a `page` has"]);
}

fn write(folder: &Path, text: &str) {
    fs::write(folder.join("study.toml"), text).unwrap();
}
