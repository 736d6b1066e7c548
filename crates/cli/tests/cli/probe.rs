//! `wirelab probe` against built-in and hostile servers: limits, order, and messages for failures.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use wirelab_model::protocol::Protocol;
use wirelab_testkit::servers::{Builtin, Conduct, Hostile, Place, Serve, closed_port, interrupt, serve};
use wirelab_testkit::{FOREIGN, Said, Skip, enter_foreign_network, run, said, skip, wirelab};

#[track_caller]
fn probe(place: &Place, port: u16, path: &str, args: &[&str]) -> Said {
    let url = format!("https://localhost:{port}{path}");
    run(place.folder(), &[&["probe", &url, "--ca", "ca.pem"], args].concat())
}

/// A server in a network of the test's own, with the address of another owner's host; `None` if the test is skipped.
#[track_caller]
fn foreign(conduct: Conduct) -> Option<(Place, Hostile)> {
    enter_foreign_network().then(|| {
        let place = Place::new();
        let server = Hostile::secure_at(&place, &FOREIGN.to_string(), "good", conduct);
        (place, server)
    })
}

/// Probes a server in the network of [`enter_foreign_network`].
#[track_caller]
fn probe_foreign(place: &Place, port: u16, path: &str, args: &[&str]) -> Said {
    probe(place, port, path, &[&["--connect-to", &FOREIGN.to_string()], args].concat())
}

fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("not JSON ({error}):\n{}", said.out))
}

/// The estimate of a metric for a cell.
fn median(found: &Value, protocol: &str, connection: &str, metric: &str) -> Option<f64> {
    let cells = found["cells"].as_array().unwrap();
    let is_it = |cell: &Value| cell["levels"]["protocol"] == protocol && cell["levels"]["connection"] == connection;
    let number = cells.iter().position(is_it)?;
    found["analysis"]["cells"][number]["estimates"][metric]["median"].as_f64()
}

#[test]
fn the_users_host_is_compared_over_both_transports_with_a_noise_floor() {
    let place = Place::new();
    let (tcp, udp) = Builtin::side_by_side(&place);
    let args = ["--protocols", "h1,h3", "--i-own-this-host"];
    let said = probe(&place, tcp.port, "/bytes/100", &[&args[..], &["--json"]].concat()).with_status(0);
    let found = json(&said);
    assert_eq!((&found["baseline"], &found["failed"]), (&Value::from("h1"), &serde_json::json!({})));
    assert_eq!(found["analysis"]["complete_blocks"], 10);
    assert_eq!(found["client"], "engine");
    for protocol in ["h1", "h3"] {
        for connection in ["new", "kept"] {
            assert!(median(&found, protocol, connection, "response_median").unwrap() > 0.0);
            assert!(median(&found, protocol, connection, "first_byte_median").unwrap() > 0.0);
        }
        assert!(median(&found, protocol, "new", "handshake_median").unwrap() > 0.0);
        assert_eq!(median(&found, protocol, "kept", "handshake_median"), None);
    }
    assert!(median(&found, "h1", "new", "connected_median").is_some());
    assert_eq!(median(&found, "h3", "new", "connected_median"), None, "QUIC has no such moment");
    let comparisons = found["analysis"]["comparisons"].as_array().unwrap();
    let compared = comparisons.iter().filter(|c| c["metric"] == "response_median" && c["aa"] == false);
    for comparison in compared {
        assert!(comparison["ratio"].is_number() && comparison["noise_floor"]["low"].is_number(), "{comparison}");
    }
    // Per block: one request on a new connection and one on a kept one, twice for the baseline. One request comes
    // before the measurement.
    assert_eq!((tcp.stop(), udp.stop()), (10 * 2 * 2 + 1, 10 * 2));
}

#[test]
fn a_stranger_is_sent_no_more_than_announced_and_one_request_at_a_time() {
    let alt_svc = Conduct::response("200 OK", "server: test\r\nalt-svc: h3=\":443\"; ma=86400, h2=\"other:8443\"\r\n");
    let Some((place, server)) = foreign(Conduct::Answer(alt_svc)) else { return };
    let began = Instant::now();
    let args = ["--protocols", "h1", "--blocks", "2", "--requests", "3"];
    let said = probe_foreign(&place, server.port, "/", &args).with_status(0);
    let took = began.elapsed();
    assert_eq!(server.heads().len(), 2 * 3 + 1);
    assert_eq!(server.most_at_once(), 1);
    // A lower bound, valid on the busiest machine: the pause lies between any two requests.
    assert!(took >= 6 * Duration::from_millis(500), "{took:?}");
    for words in [
        "server            test",
        "h3 at :443, h2 at other:8443",
        "not measured: the name localhost has no DNS records",
    ] {
        assert!(said.out.contains(words), "{words} in {}", said.out);
    }
    for words in [
        "Response time, median",
        "Transport connected, median",
        "Handshake done, median",
        "noise floor is not measured",
        "client engine",
    ] {
        assert!(said.out.contains(words), "{words} in {}", said.out);
    }
}

#[test]
fn a_stranger_gets_no_twins_and_no_check_requests() {
    if !enter_foreign_network() {
        return;
    }
    let place = Place::new();
    let (tcp, udp) = Builtin::side_by_side_with(&place, Serve { address: FOREIGN, ..serve(Protocol::H1) });
    let args = ["--protocols", "h1,h3", "--blocks", "2", "--json"];
    let said = probe_foreign(&place, tcp.port, "/bytes/100", &args).with_status(0);
    let found = json(&said);
    assert_eq!(found["cells"].as_array().unwrap().len(), 4);
    assert_eq!(found["analysis"]["complete_blocks"], 2);
    assert_eq!(found["analysis"]["comparisons"][0]["noise_floor"], Value::Null);
    assert_eq!(found["analysis"]["comparisons"][0]["verdict"]["why"], "too_few_blocks");
    assert_eq!((tcp.stop(), udp.stop()), (2 * 2 + 1, 2 * 2));
}

#[test]
fn more_than_is_polite_is_refused_before_anything_is_sent() {
    let Some((place, server)) = foreign(Conduct::ok()) else { return };
    let said = probe_foreign(&place, server.port, "/", &["--blocks", "15"]).with_status(2);
    said.complains(&["31 per protocol", "at most 30", "--i-may-load-these-hosts"]);
    assert!(server.heads().is_empty());
}

#[test]
fn the_limits_hold_over_all_commands_of_a_user() {
    let Some((place, server)) = foreign(Conduct::ok()) else { return };
    let args = ["--protocols", "h1", "--blocks", "1", "--requests", "9"];
    for _ in 0..3 {
        probe_foreign(&place, server.port, "/", &args).with_status(0);
    }
    let said = probe_foreign(&place, server.port, "/", &args).with_status(2);
    said.complains(&["localhost got 30 requests of HTTP/1.1", "10 more", "in 60 min", "--i-may-load-these-hosts"]);
    assert_eq!(server.heads().len(), 30);
    // The user is free to say otherwise.
    probe_foreign(&place, server.port, "/", &[&args[..], &["--i-may-load-these-hosts"]].concat()).with_status(0);

    // A load is for hosts of one's own.
    let url = format!("https://localhost:{}/", server.port);
    let load = ["load", &url, "--ca", "ca.pem", "--connect-to", &FOREIGN.to_string(), "--protocol", "h1", "-n", "5"];
    let before = server.heads().len();
    run(place.folder(), &load).with_status(2).complains(&["203.0.113.7", "--i-may-load-these-hosts", "wirelab probe"]);
    assert_eq!(server.heads().len(), before);
    run(place.folder(), &[&load[..], &["--i-may-load-these-hosts"]].concat()).with_status(0);
}

#[test]
fn a_protocol_that_fails_is_named_and_the_others_are_compared() {
    let place = Place::new();
    let server = Hostile::secure(&place, "good", Conduct::ok());
    let own = ["--i-own-this-host", "--timeout", "20s"];
    // HTTP/2 is refused by ALPN, and no server listens at the UDP port.
    let said = probe(&place, server.port, "/", &own).with_status(0);
    for words in ["h2                failed", "h3                failed", "nothing listens", "h1   new"] {
        assert!(said.out.contains(words), "{words} in {}", said.out);
    }
    // The baseline is the first protocol that works.
    let found = json(
        &probe(&place, server.port, "/", &[&own[..], &["--protocols", "h3,h1", "--json"]].concat()).with_status(0),
    );
    assert_eq!(found["baseline"], "h1");
    assert_eq!(found["discovery"]["protocol"], "h1");
    assert_eq!(found["discovery"]["https_record"]["not_measured"], "the name localhost has no DNS records");
    assert_eq!(found["analysis"]["complete_blocks"], 10);
    assert!(found["failed"]["h3"].as_str().unwrap().contains("nothing listens"), "{found}");
    assert!(median(&found, "h1", "new", "response_median").unwrap() > 0.0);
}

#[test]
fn a_server_that_cannot_be_measured_is_an_error_that_says_why() {
    let place = Place::new();
    let server = Hostile::secure(&place, "good", Conduct::redirect());
    let said = probe(&place, server.port, "/", &[]).with_status(2);
    said.complains(&["302", "https://elsewhere.example/page", "not followed"]);
    assert_eq!(server.heads().len(), 1, "a redirect is asked for once");

    let silent = Hostile::secure(&place, "good", Conduct::Silence);
    let said = probe(&place, silent.port, "/", &["--protocols", "h1", "--timeout", "3s"]).with_status(1);
    said.complains(&["HTTP/1.1", "within 3s", "--timeout"]);

    place.certificate("expired", "localhost", 2001);
    let expired = Hostile::secure(&place, "expired", Conduct::ok());
    let said = probe(&place, expired.port, "/", &["--protocols", "h1"]).with_status(1);
    said.complains(&["certificate", "expired", "--ca"]);
    assert!(expired.heads().is_empty());

    let said = probe(&place, closed_port(), "/", &[]).with_status(1);
    said.complains(&["HTTP/1.1", "HTTP/2", "HTTP/3", "listen on TCP port", "listen on UDP port"]);
    run(place.folder(), &["probe", "http://localhost/"]).with_status(2).complains(&["https://"]);
}

#[test]
fn an_ipv6_address_is_probed_under_its_name() {
    let place = Place::new();
    place.certificate("six", "::1", 2099);
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return skip(Skip::NoIpv6);
    }
    let server = Hostile::secure_at(&place, "::1", "six", Conduct::ok());
    let url = format!("https://[::1]:{}/", server.port);
    let args = ["probe", &url, "--ca", "ca.pem", "--protocols", "h1", "--blocks", "1", "--i-own-this-host"];
    let said = run(place.folder(), &args).with_status(0);
    assert!(said.out.contains("not measured: an address has no DNS records"), "{}", said.out);
    for head in server.heads() {
        assert!(head.contains(&format!("host: [::1]:{}\r\n", server.port)), "{head}");
    }
}

#[test]
fn ctrl_c_ends_a_probe_with_what_was_measured() {
    let place = Place::new();
    let server = Hostile::secure(&place, "good", Conduct::ok());
    let url = format!("https://localhost:{}/", server.port);
    let args = ["probe", &url, "--ca", "ca.pem", "--protocols", "h1", "--json"];
    let child = wirelab(place.folder(), &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.wait_for(4);
    interrupt(&child);
    let said = said(child.wait_with_output().unwrap()).with_status(130).complains(&["interrupted", "until then"]);
    assert!(median(&json(&said), "h1", "new", "response_median").is_some());
    assert!(server.heads().len() < 21);
}
