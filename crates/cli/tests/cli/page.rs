//! `wirelab page`: pages of built-in servers in the installed browsers.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use wirelab_browser::Browser;
use wirelab_model::page::PageName;
use wirelab_model::protocol::Protocol;
use wirelab_pages::corpus::{FileKind, files};
use wirelab_testkit::browsers::{browsers, is_here};
use wirelab_testkit::har;
use wirelab_testkit::page_command::{assert_blamed, assert_nothing_left, json, left, only_load, page, page_command};
use wirelab_testkit::pages::{REQUESTS, write_document, write_page};
use wirelab_testkit::servers::{Builtin, Conduct, Hostile, Place, Serve, closed_port, interrupt, serve};
use wirelab_testkit::{eventually, processes, said, skip};

use crate::peers::quic::relay::{Relay, Rule};

/// Certificates, and a document root with the page of fifty images.
fn site() -> (Place, PathBuf) {
    let place = Place::new();
    let root = place.path("root");
    fs::create_dir(&root).unwrap();
    write_page(&root);
    (place, root)
}

/// Checks a sample of the page of fifty images, resource by resource.
#[track_caller]
fn assert_is_whole(load: &Value, protocol: Protocol, most_connections: u64) {
    let right = protocol.alpn().unwrap();
    assert_eq!(load["outcome"], "ok", "{protocol}: {} {}", load["blame"], load["reason"]);
    assert_eq!(load["warnings"], serde_json::json!([]));
    let resources = load["resources"].as_array().unwrap();
    assert_eq!(resources.len(), REQUESTS as usize);
    for resource in resources {
        assert_eq!(resource["status"], 200, "{resource}");
        assert_eq!((&resource["protocol"], &resource["page_protocol"]), (&right.into(), &right.into()), "{resource}");
        assert!(resource["end_ms"].as_f64() >= resource["start_ms"].as_f64(), "{resource}");
        assert!(resource["received"].as_u64().unwrap() > 0, "{resource}");
    }
    let hosts = load["hosts"].as_object().unwrap();
    let [used] = hosts.values().collect::<Vec<_>>()[..] else { panic!("{hosts:?}") };
    let connections = used["connections"].as_u64().unwrap();
    assert!((1..=most_connections).contains(&connections), "{connections} connections over {protocol}");
    assert_eq!(load["values"]["connections"].as_f64(), Some(connections as f64));
    let value =
        |name: &str| load["values"][name].as_f64().unwrap_or_else(|| panic!("{name}: {}", load["values"][name]));
    // 50 images of 3 KB of noise each.
    assert!(value("received") > 150_000.0 && value("header_bytes") > 0.0, "{}", load["values"]);
    assert!(value("request_header_bytes") > 100.0 * REQUESTS as f64, "{}", load["values"]);
    // A browser without a processor paints after the load has ended, and then reports no paint.
    let painted = &load["values"]["first_paint"];
    match painted.as_f64() {
        Some(first) => assert!(first > 0.0 && value("largest_paint") >= first, "{}", load["values"]),
        None => assert_eq!(painted["code"], "no-paint", "{painted}"),
    }
    assert!(value("content_loaded") <= value("onload") && value("net") > 0.0);
}

/// The numbers that the browser gave to the connections of a load.
fn connection_numbers(load: &Value) -> BTreeSet<u64> {
    let number = |resource: &Value| resource["connection"].as_u64().unwrap_or_else(|| panic!("{resource}"));
    load["resources"].as_array().unwrap().iter().map(number).collect()
}

/// Checks all three versions in a browser: every resource came over the forced version, on at most six connections or
/// on one.
#[track_caller]
fn check_versions(browser: &str) {
    let (place, root) = site();
    let (tcp, udp) = Builtin::side_by_side_with(&place, Serve { root: Some(&root), ..serve(Protocol::H1) });
    let h2 = Builtin::start(&place, Serve { root: Some(&root), ..serve(Protocol::H2) });
    let expect = REQUESTS.to_string();
    let common = ["--browsers", browser, "--expect", &expect, "--json", "--har", "loads.har"];
    let both = page(&place, tcp.port, "index.html", &[&common[..], &["--protocols", "h1,h3", "--loads", "2"]].concat());
    let both = json(&both.with_status(0));
    for (number, protocol, connections) in [(0, Protocol::H1, 6), (1, Protocol::H3, 1)] {
        let cell = &both["cells"][number];
        let loads = cell["loads"].as_array().unwrap();
        let why: Vec<_> = loads.iter().map(|load| (&load["outcome"], &load["blame"], &load["reason"])).collect();
        assert_eq!((&cell["protocol"], &cell["samples"]), (&protocol.token().into(), &2.into()), "{why:?}");
        assert_eq!(cell["browser"], browser);
        assert!(
            cell["version"].as_str().unwrap().starts_with(|first: char| first.is_ascii_digit()),
            "{}",
            cell["version"]
        );
        for load in loads {
            assert_is_whole(load, protocol, connections);
        }
        let [first, second] = [0, 1].map(|number| connection_numbers(&loads[number]));
        assert!(first.is_disjoint(&second), "both loads are cold: {first:?} {second:?}");
        let onload = &cell["summary"]["onload"];
        assert!(
            onload["min"].as_f64() <= onload["median"].as_f64() && onload["median"].as_f64() <= onload["max"].as_f64()
        );
    }
    har::assert_is_valid(&place.path("loads.har"));
    let archive: Value = serde_json::from_str(&fs::read_to_string(place.path("loads.har")).unwrap()).unwrap();
    assert_eq!(archive["log"]["pages"].as_array().unwrap().len(), 4);
    assert_eq!(archive["log"]["entries"].as_array().unwrap().len(), 4 * REQUESTS as usize);

    let alone =
        page(&place, h2.port, "index.html", &[&common[..], &["--protocols", "h2", "--loads", "1", "--fresh"]].concat());
    assert_is_whole(&only_load(&alone.with_status(0)), Protocol::H2, 1);
    assert_nothing_left(&place);
    // The servers' counts equal the browsers', and include no other request.
    assert_eq!(
        (tcp.stop(), udp.stop(), h2.stop()),
        (2 * u64::from(REQUESTS), 2 * u64::from(REQUESTS), REQUESTS.into())
    );
}

#[test]
fn chromium_loads_every_resource_over_the_version_that_was_forced() {
    if is_here(Browser::Chromium) {
        check_versions("chromium");
    }
}

#[test]
fn firefox_loads_every_resource_over_the_version_that_was_forced() {
    if is_here(Browser::Firefox) {
        check_versions("firefox");
    }
}

#[test]
fn a_handshake_of_http3_that_takes_longer_than_one_over_tcp_is_awaited() {
    for browser in browsers() {
        let (place, root) = site();
        let udp = Builtin::start(&place, Serve { root: Some(&root), ..serve(Protocol::H3) });
        // The browser may fall back: HTTP/2 is there, too, and much nearer.
        let tcp = Builtin::start(&place, Serve { root: Some(&root), ..serve(Protocol::H2) });
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, tcp.port)).unwrap();
        Relay::start(front, (Ipv4Addr::LOCALHOST, udp.port).into(), vec![Rule::read("both 1..2 delay 400", 0)]);
        let once = ["--browsers", browser, "--protocols", "h3", "--loads", "1", "--json"];
        let load = only_load(&page(&place, tcp.port, "index.html", &once));
        assert_is_whole(&load, Protocol::H3, 1);
        assert!(load["values"]["first_byte"].as_f64().unwrap() > 400.0, "the handshake was delayed: {load}");
    }
}

#[test]
fn a_server_that_refuses_a_version_fails_the_load_and_is_blamed() {
    for browser in browsers() {
        let (place, root) = site();
        // TCP only: no server listens at the UDP port.
        let h2 = Builtin::start(&place, Serve { root: Some(&root), ..serve(Protocol::H2) });
        let h1 = Builtin::start(&place, Serve { root: Some(&root), ..serve(Protocol::H1) });
        let once =
            |protocol| ["--browsers", browser, "--protocols", protocol, "--loads", "1", "--json", "--timeout", "10 s"];
        let no_h3 =
            page(&place, h2.port, "index.html", &once("h3")).with_status(1).complains(&["no load gave a sample"]);
        assert_blamed(&only_load(&no_h3), "server", &["HTTP/3", "UDP port"]);
        // The browser falls back silently, which the check of every load finds.
        let no_h2 = page(&place, h1.port, "index.html", &once("h2")).with_status(1);
        assert_blamed(&only_load(&no_h2), "server", &["53 of 53", "http/1.1", "HTTP/2 was forced"]);
        assert_nothing_left(&place);
    }
}

#[test]
fn pages_that_never_load_miss_something_or_lead_elsewhere_say_so() {
    for browser in browsers() {
        let (place, root) = site();
        write_document(&root, "endless.html", "<img src=\"images/00.png\"><img src=\"/delay/600000000\">");
        write_document(&root, "gap.html", "<p>text</p><img src=\"missing.png\" alt=\"\">");
        let server = Builtin::start(&place, Serve { root: Some(&root), ..serve(Protocol::H2) });
        let once = ["--browsers", browser, "--protocols", "h2", "--loads", "1"];
        let load = |path: &str, more: &[&str]| page(&place, server.port, path, &[&once[..], more].concat());

        let endless = load("endless.html", &["--json", "--timeout", "6 s", "--har", "endless.har"]).with_status(1);
        assert_blamed(&only_load(&endless), "server", &["timed out", "6s", "/delay/600000000"]);
        let gap = only_load(&load("gap.html", &["--json", "--har", "gap.har"]).with_status(0));
        assert_eq!(gap["outcome"], "ok", "{gap}");
        let warning = gap["warnings"][0].as_str().unwrap();
        assert!(warning.contains("missing.png answers 404"), "{warning}");
        let gone = load("nowhere.html", &["--json", "--har", "gone.har"]).with_status(1);
        // For an error without a body, Chromium may not report the status.
        assert_blamed(&only_load(&gone), "server", &["nowhere.html answers", "Is the path right?"]);
        let other = load("gap.html", &["--json", "--expect", "3"]).with_status(1);
        assert_blamed(&only_load(&other), "server", &["requests where 3 were expected"]);
        let text = load("gap.html", &[]).with_status(0).out;
        ["endless.har", "gap.har", "gone.har"].iter().for_each(|name| har::assert_is_valid(&place.path(name)));
        for words in ["HTTP/2", "1 of 1", "Largest contentful paint", "Connections", "missing.png answers 404"] {
            assert!(text.contains(words), "`{words}` is missing in:\n{text}");
        }

        let elsewhere = Hostile::secure(&place, "good", Conduct::redirect());
        let away =
            page(&place, elsewhere.port, "", &["--browsers", browser, "--protocols", "h1", "--loads", "1", "--json"]);
        assert_blamed(&only_load(&away.with_status(1)), "server", &["https://elsewhere.example/page", "give that URL"]);
        assert_nothing_left(&place);
    }
}

/// A page that turns red after a second, by a timer that is never early. A pending request keeps its load open.
#[test]
fn a_film_shows_when_a_page_looks_complete_and_is_none_of_the_loads() {
    for browser in browsers() {
        let (place, root) = site();
        let turn = "<script>setTimeout(() => document.body.style.background = 'red', 1000)</script>";
        write_document(&root, "late.html", &format!("<p>text</p>{turn}<img src=\"/delay/1500000\" alt=\"\">"));
        let server = Builtin::start(&place, Serve { root: Some(&root), ..serve(Protocol::H2) });
        let once = ["--browsers", browser, "--protocols", "h2", "--loads", "1", "--filmstrip"];
        let filmed = page(&place, server.port, "late.html", &[&once[..], &["late", "--json"]].concat());
        let found = json(&filmed.with_status(0));
        let (cell, film_of) = (&found["cells"][0], &found["cells"][0]["film"]);
        assert_eq!(cell["loads"].as_array().unwrap().len(), 1, "the film is none of the loads");
        let number = |name: &str| film_of[name].as_f64().unwrap_or_else(|| panic!("{name}: {film_of}"));
        assert!(number("complete_ms") >= 1000.0, "{film_of}");
        let pictures = film_of["pictures"].as_array().unwrap();
        // The area above the curve: the sum of durations times the missing share of completeness.
        let mut seen = (0.0, 0.0);
        let area = pictures.iter().fold(0.0, |area, picture| {
            let (at, progress) = (picture["at_ms"].as_f64().unwrap(), picture["progress"].as_f64().unwrap());
            let (since, so_far) = std::mem::replace(&mut seen, (at, progress));
            area + (at - since) * (1.0 - so_far)
        });
        // Values are rounded to tenths of milliseconds and to thousandths.
        assert!((number("speed_index_ms") - area).abs() < 0.005 * number("complete_ms"), "{area} {film_of}");
        assert!(number("speed_index_ms") < number("complete_ms"), "{film_of}");
        assert!(pictures.len() >= 2 && pictures.last().unwrap()["progress"] == 1.0, "{film_of}");
        let folder = place.path("late");
        let strips = fs::read_to_string(folder.join("index.html")).unwrap();
        for picture in pictures {
            let file = Path::new(film_of["folder"].as_str().unwrap()).join(picture["file"].as_str().unwrap());
            let mut decoder = png::Decoder::new(std::io::BufReader::new(fs::File::open(folder.join(&file)).unwrap()));
            let info = decoder.read_header_info().unwrap();
            assert_eq!(info.width * 800, info.height * 1280, "the window's shape");
        }
        assert!(strips.contains("Speed Index") && strips.matches("class=\"changed\"").count() >= 2, "{strips}");

        // An empty page has no Speed Index, and the result gives the reason.
        write_document(&root, "empty.html", "");
        fs::write(root.join("style.css"), "").unwrap();
        let plain = Builtin::start(&place, Serve { root: Some(&root), ..serve(Protocol::H2) });
        let text = page(&place, plain.port, "empty.html", &[&once[..], &["empty"]].concat()).with_status(0).out;
        assert!(text.contains("Speed Index over HTTP/2: not measured: nothing was painted"), "{text}");
        assert_nothing_left(&place);
        wirelab_testkit::run(place.folder(), &["page", "https://localhost/", "--filmstrip", "late"])
            .with_status(2)
            .complains(&["--filmstrip late", "not empty"]);
    }
}

#[test]
fn a_page_is_saved_with_the_bodies_of_its_responses() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let (place, root) = site();
    let server = Builtin::start(&place, Serve { root: Some(&root), ..serve(Protocol::H2) });
    let args = ["--browsers", "chromium", "--protocols", "h2", "--loads", "1", "--save", "saved.har"];
    page(&place, server.port, "index.html", &args).with_status(0);
    let path = place.path("saved.har");
    har::assert_is_valid(&path);
    let archive: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let entries = archive["log"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), REQUESTS as usize);
    for entry in entries {
        let url = entry["request"]["url"].as_str().unwrap();
        let file = fs::read(root.join(url.splitn(4, '/').nth(3).unwrap())).unwrap();
        let content = &entry["response"]["content"];
        assert_eq!(content["size"].as_u64(), Some(file.len() as u64), "{url}");
        match url.ends_with(".png") {
            true => assert_eq!(content["encoding"], "base64", "{url}"),
            false => assert_eq!(content["text"].as_str().unwrap().as_bytes(), file, "{url}"),
        }
    }
    assert_nothing_left(&place);
}

/// The text of every file in a folder.
fn texts(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn logs_of_browsers_are_complete_after_their_end() {
    let browsers = browsers();
    for browser in &browsers {
        let (place, root) = site();
        let (tcp, _udp) = Builtin::side_by_side_with(&place, Serve { root: Some(&root), ..serve(Protocol::H2) });
        let own = if *browser == "chromium" { "--netlog" } else { "--qlog" };
        let args = ["--browsers", browser, "--protocols", "h2,h3", "--loads", "1", "--keys", "keys.log", own, "log"];
        let said = page(&place, tcp.port, "index.html", &args).with_status(0);
        assert!(said.out.contains("Written while pages loaded: keys"), "{}", said.out);
        let keys = fs::read_to_string(place.path("keys.log")).unwrap();
        // At least one handshake per version, each with a secret of its own.
        let secrets = keys.lines().filter(|line| line.starts_with("CLIENT_HANDSHAKE_TRAFFIC_SECRET "));
        assert!(secrets.collect::<std::collections::BTreeSet<_>>().len() >= 2, "{keys}");
        let logs = texts(&place.path("log"));
        if *browser == "chromium" {
            assert_eq!(logs.len(), 2, "one for each start");
            for log in logs {
                let netlog: Value = serde_json::from_str(&log).unwrap();
                assert!(netlog["events"].as_array().unwrap().len() > 100, "the whole load is in it");
            }
        } else {
            assert!(logs.iter().any(|log| log.contains("qlog_version") && log.contains("packet_sent")), "{logs:?}");
        }
        assert_nothing_left(&place);
    }
    let refused = |args: &[&str]| {
        let place = Place::new();
        wirelab_testkit::run(place.folder(), &[&["page", "https://localhost/"], args].concat()).with_status(2)
    };
    if browsers.contains(&"firefox") {
        refused(&["--browsers", "firefox", "--netlog", "log"]).complains(&["--netlog is written by Chromium only"]);
        refused(&["--browsers", "firefox", "--protocols", "h2", "--qlog", "log"]).complains(&["has no h3"]);
    }
    if browsers.contains(&"chromium") {
        refused(&["--browsers", "chromium", "--qlog", "log"]).complains(&["--qlog is written by Firefox only"]);
    }
}

/// Shows that the validator finds faults. Otherwise the other tests' archives could pass unchecked.
#[test]
fn the_validator_refuses_invalid_archives() {
    let place = Place::new();
    let whole = r#"{"log":{"version":"1.2","creator":{"name":"x","version":"1"},"entries":[]}}"#;
    fs::write(place.path("whole.har"), whole).unwrap();
    har::assert_is_valid(&place.path("whole.har"));
    fs::write(place.path("no-creator.har"), whole.replace("creator", "inventor")).unwrap();
    if har::is_there() {
        let faults = har::faults(&place.path("no-creator.har")).unwrap();
        assert!(faults.contains("creator"), "{faults}");
    } else {
        skip(har::missing());
    }
}

#[test]
fn the_header_of_a_request_has_as_many_bytes_as_its_server_hears() {
    for browser in browsers() {
        let place = Place::new();
        let document = "<link rel=\"icon\" href=\"data:,\"><p>text</p>";
        let fields = format!("content-type: text/html\r\ncontent-length: {}\r\n", document.len());
        let server =
            Hostile::secure(&place, "good", Conduct::Answer(format!("HTTP/1.1 200 OK\r\n{fields}\r\n{document}")));
        let args = ["--browsers", browser, "--protocols", "h1", "--loads", "1", "--json"];
        let load = only_load(&page(&place, server.port, "?a=b", &args).with_status(0));
        let heard: usize = server.heads().iter().map(String::len).sum();
        assert_eq!(
            load["values"]["request_header_bytes"].as_f64(),
            Some(heard as f64),
            "{browser}: {:?}",
            server.heads()
        );
    }
}

#[test]
fn an_untrusted_certificate_is_blamed_with_the_remedy() {
    for browser in browsers() {
        let (place, root) = site();
        place.stranger("other");
        for protocol in [Protocol::H2, Protocol::H3] {
            let server = Builtin::start(&place, Serve { root: Some(&root), ..serve(protocol) });
            let args =
                ["--ca", "other.pem", "--browsers", browser, "--protocols", protocol.token(), "--loads", "1", "--json"];
            let url = format!("https://localhost:{}/index.html", server.port);
            let refused =
                wirelab_testkit::run(place.folder(), &[&["page", &url, "--quiet"], &args[..]].concat()).with_status(1);
            let load = only_load(&refused);
            assert_eq!((&load["outcome"], &load["blame"]), (&"failed".into(), &"server".into()), "{load}");
            if protocol == Protocol::H2 {
                assert_blamed(&load, "server", &["--ca FILE"]);
            }
        }
    }
}

#[test]
fn nothing_is_left_after_an_interruption_or_a_kill() {
    for browser in browsers() {
        let (place, root) = site();
        let server = Builtin::start(&place, Serve { root: Some(&root), ..serve(Protocol::H2) });
        for signal in ["INT", "KILL"] {
            let args = ["--browsers", browser, "--protocols", "h2", "--loads", "1000", "--json"];
            let mut command = page_command(&place, server.port, "index.html", &args);
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let mut mark = None;
            eventually("a profile that a process has", || {
                // The profile is removed when its load has ended.
                let profiles = left(&place).into_iter().map(|path| path.to_string_lossy().into_owned());
                mark = profiles.into_iter().find(|profile| !processes(profile).is_empty());
                mark.is_some()
            });
            let mark = mark.unwrap();
            if signal == "INT" {
                interrupt(&child);
                said(child.wait_with_output().unwrap()).with_status(130).complains(&["interrupted"]);
                assert!(processes(&mark).is_empty() && left(&place).is_empty(), "{:?}", left(&place));
            } else {
                child.kill().unwrap();
                child.wait().unwrap();
                assert_nothing_left(&place);
            }
        }
    }
}

#[test]
fn browsers_that_are_missing_or_do_not_start_are_named_with_a_remedy() {
    let place = Place::new();
    let run = |programs: &[(&str, &Path)], args: &[&str]| {
        let mut command = page_command(&place, closed_port(), "", args);
        command.envs(programs.iter().copied());
        said(command.output().unwrap())
    };
    let nowhere = Path::new("/nowhere/browser");
    run(&[("WIRELAB_FIREFOX", nowhere)], &["--browsers", "firefox"]).with_status(1).complains(&[
        "Firefox is not installed",
        "/nowhere/browser",
        "apt-get install firefox-esr",
    ]);
    run(&[("WIRELAB_FIREFOX", nowhere), ("WIRELAB_CHROMIUM", nowhere)], &[]).with_status(1).complains(&[
        "no browser is installed",
        "apt-get install chromium",
        "apt-get install firefox-esr",
    ]);
    if browsers().is_empty() {
        return;
    }
    // Programs that are no browsers; the first one ends at once.
    let args = ["--browsers", "chromium", "--protocols", "h2", "--loads", "1", "--json"];
    let ended = run(&[("WIRELAB_CHROMIUM", Path::new("/bin/false"))], &args).with_status(1);
    assert_blamed(&only_load(&ended), "client", &["ended before it was ready", "exit status 1"]);
    assert_nothing_left(&place);
}

#[test]
fn wrong_input_is_answered_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = |args: &[&str], words: &[&str]| {
        wirelab_testkit::run(folder.path(), &[&["page"], args].concat()).with_status(2).complains(words);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was written");
    };
    wrong(&["http://localhost/"], &["https://"]);
    wrong(&["https://localhost/", "--protocols", "h2c"], &["h1, h2 or h3"]);
    wrong(&["https://localhost/", "--browsers", "chromum"], &["chromium"]);
    wrong(&["https://localhost/", "--ca", "nowhere.pem"], &["nowhere.pem"]);
    // The limit is checked before any request is sent.
    if !browsers().is_empty() {
        let one = ["https://192.0.2.1/", "--har", "loads.har"];
        wrong(&[&one[..], &["--loads", "31"]].concat(), &["192.0.2.1", "at most 30", "--i-may-load-these-hosts"]);
        wrong(&["https://localhost/", "https://localhost/b", "--save", "saved.har"], &["--save", "give one URL"]);
    }
}

/// Browsers silently ignore a font that they cannot read. The page therefore asks the browser whether it has the font,
/// and reports the answer by a request.
#[test]
fn every_browser_reads_the_fonts_that_pages_have() {
    const ASK: &str = "const fonts = [...document.fonts];
        Promise.allSettled(fonts.map(font => font.load())).then(() => fetch('said-' + fonts.map(font => font.status).join('-')));";
    let fonts = files(PageName::Today).into_iter().filter(|file| file.kind == FileKind::Font);
    let names: Vec<_> = fonts.map(|file| file.name).collect();
    let rule = |name: &String| format!("@font-face {{ font-family: 'f-{name}'; src: url({name}) format('woff2') }}");
    let rules: String = names.iter().map(rule).collect();
    for browser in browsers() {
        let place = Place::new();
        let root = place.path("root");
        fs::create_dir(&root).unwrap();
        wirelab_run::documents::made::write(&root, PageName::Today).unwrap();
        let document = format!(
            "<!doctype html><html lang=\"en\"><title>fonts</title><link rel=\"icon\" href=\"data:,\"><style>{rules}</style><script>{ASK}</script>"
        );
        fs::write(root.join("today/fonts.html"), document).unwrap();
        let server = Builtin::start(&place, Serve { root: Some(&root), ..serve(Protocol::H2) });
        let args = ["--browsers", browser, "--protocols", "h2", "--loads", "1", "--json"];
        let load = only_load(&page(&place, server.port, "today/fonts.html", &args));
        let urls: Vec<_> = load["resources"].as_array().unwrap().iter().map(|one| one["url"].to_string()).collect();
        let said = urls.iter().find(|url| url.contains("said-")).unwrap_or_else(|| panic!("{browser}: {load}"));
        assert!(said.contains("said-loaded-loaded-loaded-loaded"), "{browser}: {said}");
    }
}
