//! `wirelab load`, `wirelab probe` and studies through proxies: real ones, scripted ones, and hostile ones.

use std::fs;
use std::net::ToSocketAddrs;

use serde_json::{Value, json};
use wirelab_model::protocol::Protocol;
use wirelab_testkit::proxies::{Manner, RealProxy, ScriptedProxy};
use wirelab_testkit::servers::{Builtin, Conduct, Hostile, Place, Serve, closed_port, serve};
use wirelab_testkit::{Said, run, said, wirelab};

const PASSWORD: &str = "s3cr3t-p4ss";

/// Runs the program with the password in its environment, which its output must not have.
#[track_caller]
fn with_password(place: &Place, args: &[&str]) -> Said {
    let mut command = wirelab(place.folder(), args);
    command.env("WIRELAB_TEST_PASSWORD", PASSWORD);
    let said = said(command.output().unwrap());
    assert!(!said.out.contains(PASSWORD) && !said.err.contains(PASSWORD), "{}{}", said.out, said.err);
    said
}

/// Sends requests for ten bytes through a proxy with both clients, on kept and on new connections.
#[track_caller]
fn passes(place: &Place, serve: Serve<'_>, proxy: &str, shown: &str) {
    let (server, protocol) = (Builtin::start(place, serve), serve.protocol);
    let scheme = if protocol.is_secure() { "https" } else { "http" };
    let url = format!("{scheme}://localhost:{}/bytes/10", server.port);
    let trust = if protocol.is_secure() { &["--ca", "ca.pem"][..] } else { &[] };
    for client in ["engine", "builtin"] {
        for more in [&["-c", "2"][..], &["--new-connections", "--samples", "samples.jsonl"]] {
            let base =
                ["load", &url, "-p", protocol.token(), "--client", client, "-n", "10", "--json", "--proxy", proxy];
            let found = json(&with_password(place, &[&base[..], trust, more].concat()).with_status(0));
            let case = format!("{protocol} {client} {more:?}: {found}");
            assert_eq!((&found["requests"], &found["errors"]), (&json!(10), &json!({})), "{case}");
            assert_eq!(found["configured"]["proxy"], shown, "{case}");
            assert_eq!(found["via"], format!("the proxy {shown}"), "{case}");
            if more[0] == "--new-connections" {
                let median = |metric: &str| found["values"][metric].as_f64().unwrap();
                assert!(median("connected_median") > 0.0, "{case}");
                assert!(!protocol.is_secure() || median("handshake_median") > median("connected_median"), "{case}");
            }
        }
    }
    assert!(server.stop() >= 40);
}

#[track_caller]
fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("not JSON ({error}):\n{}", said.out))
}

#[test]
fn tinyproxy_carries_all_protocols_over_tcp() {
    let place = Place::new();
    let Some(proxy) = RealProxy::tinyproxy(place.folder(), "") else { return };
    let url = format!("http://127.0.0.1:{}", proxy.port);
    for protocol in [Protocol::H1c, Protocol::H1, Protocol::H2c, Protocol::H2] {
        passes(&place, serve(protocol), &url, &url);
    }
    fs::write(place.path("two.bin"), [9, 0, 0, 0, 0, 0, 0, 0, 0x40]).unwrap();
    let server = Builtin::start(&place, serve(Protocol::Grpcc));
    let method = format!("http://localhost:{}/wirelab.Heron/SquareRoot", server.port);
    let args = ["load", &method, "-p", "grpcc", "--body", "@two.bin", "-n", "20", "-m", "4", "--proxy", &url, "--json"];
    assert_eq!(json(&run(place.folder(), &args).with_status(0))["requests"], 20);
}

#[test]
fn microsocks_looks_names_up_or_gets_addresses_from_a_client_that_signs_in() {
    let place = Place::new();
    let Some(proxy) = RealProxy::microsocks(&["-u", "ann", "-P", PASSWORD]) else { return };
    let port = proxy.port;
    // microsocks tries the first address of a name only.
    let first = ("localhost", 0).to_socket_addrs().unwrap().next().unwrap().ip();
    for (scheme, server) in
        [("socks5", serve(Protocol::H1c)), ("socks5h", Serve { address: first, ..serve(Protocol::H2) })]
    {
        let signed = format!("{scheme}://ann:{{{{env.WIRELAB_TEST_PASSWORD}}}}@localhost:{port}");
        passes(&place, server, &signed, &format!("{scheme}://localhost:{port}"));
    }
    let url = format!("http://localhost:{}/", closed_port());
    let refused = |proxy: &str, words: &[&str]| {
        with_password(&place, &["load", &url, "-n", "1", "--proxy", proxy]).with_status(1).complains(words);
    };
    refused(&format!("socks5h://localhost:{port}"), &["demands authentication", "{{env.PROXY_USER}}"]);
    refused(&format!("socks5h://ann:wrong@localhost:{port}"), &["does not accept this user and password"]);
    let signed = format!("socks5h://ann:{PASSWORD}@localhost:{port}");
    refused(&signed, &["the server refused the connection (reply 5)", "seen from the proxy"]);
}

#[test]
fn tinyproxy_demands_a_password_and_forbids_ports() {
    let place = Place::new();
    let lines = format!("BasicAuth ann {PASSWORD}\nConnectPort 443");
    let Some(proxy) = RealProxy::tinyproxy(place.folder(), &lines) else { return };
    let url = format!("http://localhost:{}/", closed_port());
    let refused = |sign_in: &str, words: &[&str]| {
        let proxy = format!("http://{sign_in}localhost:{}", proxy.port);
        with_password(&place, &["load", &url, "-n", "1", "--proxy", &proxy]).with_status(1).complains(words);
    };
    refused("", &["status 407", "{{env.PROXY_PASSWORD}}"]);
    refused("ann:{{env.WIRELAB_TEST_PASSWORD}}@", &["status 403", "many proxies allow port 443 only"]);
}

#[test]
fn sessions_are_resumed_through_a_tunnel_and_a_probe_compares_protocols() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H2));
    let proxy = ScriptedProxy::start(&[Manner::Connect]);
    let gate = format!("http://127.0.0.1:{}", proxy.port);
    let url = format!("https://localhost:{}/bytes/10", server.port);
    for client in ["engine", "builtin"] {
        let args = ["load", &url, "-n", "5", "--new-connections", "--resumption", "resume", "--ca", "ca.pem", "--json"];
        let found = json(&run(place.folder(), &[&args[..], &["--proxy", &gate, "--client", client]].concat()));
        assert_eq!(found["values"]["resumed_share"], 1.0, "{client}: {found}");
    }
    assert!(
        proxy.heads().iter().all(|head| head.starts_with(&format!("CONNECT localhost:{} HTTP/1.1\r\n", server.port)))
    );
    let before = proxy.heads().len();
    let args = ["probe", &url, "--ca", "ca.pem", "--blocks", "1", "--proxy", &gate, "--json", "--protocols", "h2"];
    let found = json(&run(place.folder(), &args).with_status(0));
    assert_eq!((&found["failed"], &found["via"]), (&json!({}), &format!("the proxy {gate}").into()), "{found}");
    // One for the first look, and for the protocol and its twin a new and a kept connection.
    assert_eq!(proxy.heads().len() - before, 5);
    let to = ["load", &url, "-n", "1", "--ca", "ca.pem", "--proxy", &gate, "--connect-to", "127.0.0.1"];
    run(place.folder(), &to).with_status(0);
    assert!(proxy.heads().last().unwrap().starts_with(&format!("CONNECT 127.0.0.1:{} ", server.port)));
}

#[test]
fn a_proxy_that_opens_no_tunnel_is_named_with_the_remedy() {
    let place = Place::new();
    for (scheme, manner, words) in [
        (
            "http",
            &[Manner::Answers(&[b"HTTP/1.1 502 Bad Gateway\r\n\r\n"])][..],
            &["status 502", "seen from the proxy"][..],
        ),
        ("http", &[Manner::Answers(&[b"\x15\x03\x01\x00\x02"])], &["not HTTP"]),
        ("http", &[Manner::Answers(&[b"\x05\xff"])], &["try socks5://"]),
        ("http", &[Manner::Close], &["closed the connection without an answer"]),
        ("socks5h", &[Manner::Answers(&[b"HTTP/1.1 400 Bad Request\r\n\r\n"])], &["try http://"]),
        ("socks5h", &[Manner::Answers(&[b"\x05\x00", b"\x05\x02"])], &["rules forbid", "reply 2"]),
        ("socks5", &[Manner::Answers(&[b"\x05\x00\x05\x00\x00\x01\0\0\0\0\0\0"])], &["before it was asked"]),
        ("socks5", &[Manner::Close], &["closed the connection without an answer"]),
    ] {
        let proxy = ScriptedProxy::start(manner);
        let gate = format!("{scheme}://localhost:{}", proxy.port);
        let said = run(place.folder(), &["load", "http://localhost:1/", "-n", "1", "--proxy", &gate]).with_status(1);
        said.complains(words).complains(&[&format!("the proxy {gate}"), "localhost:1"]);
    }
    let nothing = format!("http://localhost:{}", closed_port());
    let said = run(place.folder(), &["probe", "https://localhost:1/", "--proxy", &nothing, "--blocks", "1"]);
    said.with_status(1).complains(&["does the proxy run there?"]);
}

#[test]
fn requests_fail_with_their_kind_when_the_proxy_refuses_or_hangs_within_the_load() {
    let place = Place::new();
    let server = Hostile::plain(Conduct::ok());
    let url = format!("http://localhost:{}/", server.port);
    const REFUSES: &[Manner] = &[Manner::Connect, Manner::Answers(&[b"HTTP/1.1 403 Forbidden\r\n\r\n"])];
    const HANGS: &[Manner] = &[Manner::Connect, Manner::Answers(&[])];
    for client in ["engine", "builtin"] {
        for (manners, kind, words) in [(REFUSES, "proxy", "status 403"), (HANGS, "timeout", "took longer than 300ms")] {
            let proxy = ScriptedProxy::start(manners);
            let gate = format!("http://localhost:{}", proxy.port);
            let args = ["load", &url, "-n", "3", "--new-connections", "--connect-timeout", "300ms", "--json"];
            let said =
                run(place.folder(), &[&args[..], &["--proxy", &gate, "--client", client]].concat()).with_status(1);
            let found = json(&said);
            assert_eq!(found["errors"], json!({ kind: 3 }), "{client}: {found}");
            let first = found["first_failure"].as_str().unwrap();
            assert!(first.contains(words) && first.contains(&format!("the proxy {gate}")), "{client}: {first}");
        }
    }
}

#[test]
fn proxies_that_cannot_be_used_are_refused_with_the_remedy() {
    let place = Place::new();
    let check = |args: &[&str], words: &[&str]| {
        with_password(&place, args).with_status(2).complains(words);
    };
    let url = "https://localhost:1/";
    for (proxy, words) in [
        ("http://gate", &["no port", "http://HOST:PORT"][..]),
        ("socks4://gate:1080", &["scheme is unknown", "did you mean `socks5`"]),
        ("https://gate:443", &["does not speak TLS to proxies"]),
        ("gate:3128", &["no scheme"]),
        (&format!("ftp://ann:{PASSWORD}@gate:21"), &["`ftp://gate:21`"]),
        ("http://ann:{{env.WIRELAB_NOT_SET}}@localhost:1", &["WIRELAB_NOT_SET", "export"]),
    ] {
        check(&["load", url, "--proxy", proxy], words);
    }
    let proxy = ["--proxy", "socks5://localhost:1"];
    check(&[&["load", url, "-p", "h3"], &proxy[..]].concat(), &["HTTP/3 uses UDP", "use h1 or h2"]);
    check(&[&["probe", url, "--protocols", "h2,h3"], &proxy[..]].concat(), &["HTTP/3 uses UDP"]);
    check(&[&["load", url, "--unix-socket", "a"], &proxy[..]].concat(), &["cannot be used with"]);
    // The server behind a near proxy may be another owner's.
    check(
        &["load", "https://shop.example/", "--proxy", "http://localhost:1"],
        &["--i-may-load-these-hosts", "shop.example"],
    );
}

const STUDY: &str = r#"
name = "gate"
title = "Gate"
question = "What does the proxy cost?"
[workload]
protocol = "h1c"
site = "http://127.0.0.1:PORT/bytes/10"
requests = 5
connections = "per-request"
[factors.way]
direct = {}
proxy = { site_proxy = "PROXY" }
[compare]
factor = "way"
baseline = "direct"
[blocks]
min = 1
max = 1
"#;

#[test]
fn a_study_compares_the_direct_way_with_a_proxy_and_keeps_no_password() {
    let place = Place::new();
    let Some(proxy) = RealProxy::microsocks(&["-u", "ann", "-P", PASSWORD]) else { return };
    let server = Builtin::start(&place, serve(Protocol::H1c));
    let study = |proxy: &str| STUDY.replace("PORT", &server.port.to_string()).replace("PROXY", proxy);
    for scheme in ["socks5", "socks5h"] {
        let gate = format!("{scheme}://ann:{{{{env.WIRELAB_TEST_PASSWORD}}}}@localhost:{}", proxy.port);
        fs::write(place.path("study.toml"), study(&gate)).unwrap();
        with_password(&place, &["run", "study.toml", "-q", "--lab", "internet"]).with_status(0);
        let trials = wirelab_testkit::lab::trials(place.folder());
        let through = |(cell, _): &&(Value, Value)| cell["levels"]["way"] == "proxy";
        let of_proxy = trials.iter().find(through).unwrap();
        let shown = format!("{scheme}://localhost:{}", proxy.port);
        assert_eq!(of_proxy.1["client"]["proxy"], shown, "{}", of_proxy.1);
        run(place.folder(), &["report", "--format", "json"]).with_status(0);
        crate::requests::assert_no_secret(&place.path("wirelab-runs"), PASSWORD);
        fs::remove_dir_all(place.path("wirelab-runs")).unwrap();
    }
    fs::write(place.path("study.toml"), study(&format!("http://ann:{PASSWORD}@localhost:1"))).unwrap();
    let args = ["run", "study.toml", "-q", "--lab", "internet"];
    with_password(&place, &args).with_status(2).complains(&["{{env.PROXY_PASSWORD}}"]);
    assert!(!place.path("wirelab-runs").exists());
    fs::write(place.path("study.toml"), study("http://localhost")).unwrap();
    with_password(&place, &args).with_status(2).complains(&["study.toml:12:", "no port"]);
    with_password(&place, &[&args[..], &["--set", "protocol=h3"]].concat()).with_status(2);
}
