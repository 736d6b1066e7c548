//! `wirelab load` against built-in and hostile servers: exact counts, valid results, and errors with a remedy.

use std::collections::HashSet;
use std::fs;
use std::process::Stdio;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use wirelab_model::protocol::Protocol;
use wirelab_model::sample::{Handshake, Sample};
use wirelab_testkit::servers::{Builtin, Conduct, Hostile, Place, Serve, closed_port, interrupt, serve};
use wirelab_testkit::{Said, Skip, run, said, skip, wirelab};

const HTTP: [Protocol; 5] = [Protocol::H1c, Protocol::H1, Protocol::H2c, Protocol::H2, Protocol::H3];

fn url(protocol: Protocol, port: u16, path: &str) -> String {
    let scheme = if protocol.is_secure() { "https" } else { "http" };
    format!("{scheme}://localhost:{port}{path}")
}

/// Runs `wirelab load` with these arguments. With TLS, it trusts the place's authority.
#[track_caller]
fn load(place: &Place, protocol: Protocol, url: &str, args: &[&str]) -> Said {
    let mut all = vec!["load", "--protocol", protocol.token(), url, "--connect-timeout", "20s", "--timeout", "30s"];
    if protocol.is_secure() {
        all.extend(["--ca", "ca.pem"]);
    }
    all.extend(args);
    run(place.folder(), &all)
}

/// Runs `wirelab load` with HTTP/1.1 and these arguments.
#[track_caller]
fn load_with(place: &Place, url: &str, args: &[&str]) -> Said {
    run(place.folder(), &[&["load", "--protocol", "h1c", url], args].concat())
}

fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("not JSON ({error}):\n{}", said.out))
}

/// The valid records that a load wrote.
#[track_caller]
fn samples(place: &Place) -> Vec<Sample> {
    let text = fs::read_to_string(place.path("samples.jsonl")).unwrap();
    let samples: Vec<Sample> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for sample in &samples {
        sample.check().unwrap();
    }
    samples
}

#[test]
fn every_protocol_sends_exactly_as_many_requests_as_asked_and_the_histograms_hold_them_all() {
    let place = Place::new();
    for protocol in HTTP {
        let server = Builtin::start(&place, serve(protocol));
        let url = url(protocol, server.port, "/bytes/1000");
        let mut args = vec!["-n", "60", "-c", "2", "--warm-up", "10", "--json"];
        if protocol.multiplexes() {
            args.extend(["-m", "3"]);
        }
        let said = load(&place, protocol, &url, &args).with_status(0);
        let found = json(&said);
        assert_eq!(found["protocol"], protocol.token());
        assert_eq!(found["url"], url);
        assert_eq!((&found["requests"], &found["values"]["requests"]), (&Value::from(60), &Value::from(60.0)));
        assert_eq!(found["errors"], serde_json::json!({}));
        assert_eq!((&found["stopped"], &found["first_failure"]), (&Value::Bool(false), &Value::Null));
        let histograms = &found["histograms"];
        assert_eq!(histograms["bytes_in"], 60_000);
        let bytes = BASE64_STANDARD.decode(histograms["response"]["v2"].as_str().unwrap()).unwrap();
        let response: hdrhistogram::Histogram<u64> =
            hdrhistogram::serialization::Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!((response.len(), &histograms["response"]["count"]), (60, &Value::from(60)));
        assert!(response.min() > 0 && found["window_ns"].as_u64().unwrap() > 0);
        assert_eq!(server.stop(), 60 + 10 + 1, "{protocol}: with the warm-up and the request before everything");
    }
}

#[test]
fn a_warm_up_by_time_sends_requests_that_are_not_recorded() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H2));
    let url = url(Protocol::H2, server.port, "/bytes/1000");
    let found = json(&load(&place, Protocol::H2, &url, &["-n", "5", "--warm-up", "100ms", "--json"]).with_status(0));
    assert_eq!(found["requests"], 5);
    let answered = server.stop();
    assert!(answered > 5 + 1, "the server answered {answered} requests, none of them in a warm-up");
}

#[test]
fn a_warm_up_until_steady_says_how_it_ended_with_either_client() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H1c));
    let url = url(Protocol::H1c, server.port, "/bytes/1000");
    let mut sent = 0;
    for client in ["engine", "builtin"] {
        let args = ["-n", "5", "--warm-up", "until steady within 1 s", "--client", client, "--json"];
        let found = json(&load(&place, Protocol::H1c, &url, &args).with_status(0));
        assert_eq!(found["requests"], 5);
        let warmed_up = &found["warmed_up"];
        let took_ns = warmed_up["took_ns"].as_u64().unwrap();
        assert!(took_ns >= 500_000_000, "{client}: {warmed_up}");
        // On a busy machine it may reach its limit, which is a warning.
        let is_steady = warmed_up["steadiness"] == "steady";
        let warned = found["warnings"].to_string().contains("The warm-up ended at its longest time");
        assert_ne!(is_steady, warned, "{client}: {found}");
        sent += 5 + 1 + warmed_up["requests"].as_u64().unwrap();
    }
    assert_eq!(server.stop(), sent, "the judge saw each request of the warm-ups");
}

#[test]
fn an_open_loop_sends_the_arrivals_of_its_seed_whatever_the_server_does() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H2c));
    let url = url(Protocol::H2c, server.port, "/delay/2000");
    let arrivals = |more: &[&str]| -> Vec<u64> {
        let args = [&["-d", "500ms", "--rate", "200/s", "-m", "10", "--samples", "samples.jsonl"], more].concat();
        load(&place, Protocol::H2c, &url, &args).with_status(0);
        samples(&place).iter().map(|sample| sample.intended_ns).collect()
    };
    let uniform = arrivals(&["--arrivals", "uniform"]);
    assert_eq!(uniform, (0..100).map(|i| i * 5_000_000).collect::<Vec<_>>());
    let (seven, again, eight) = (arrivals(&["--seed", "7"]), arrivals(&["--seed", "7"]), arrivals(&["--seed", "8"]));
    assert_eq!(seven, again);
    assert_ne!(seven, eight);
    // A Poisson number with mean 100, within five standard deviations.
    assert!((50..150).contains(&seven.len()), "{}", seven.len());
    let sent = uniform.len() + seven.len() + again.len() + eight.len() + 4;
    assert_eq!(server.stop(), sent as u64);
}

#[test]
fn new_connections_are_new_and_their_handshakes_full() {
    let place = Place::new();
    for protocol in [Protocol::H1, Protocol::H2, Protocol::H3] {
        let server = Builtin::start(&place, serve(protocol));
        let url = url(protocol, server.port, "/bytes/10");
        let args = ["-n", "12", "-c", "3", "--new-connections", "--samples", "samples.jsonl"];
        let said = load(&place, protocol, &url, &args).with_status(0);
        assert!(said.out.contains("12 succeeded, 0 failed"), "{}", said.out);
        let samples = samples(&place);
        let connections: HashSet<_> = samples.iter().map(|sample| sample.connection).collect();
        assert_eq!((samples.len(), connections.len()), (12, 12), "{protocol}");
        for sample in samples {
            assert_eq!((sample.handshake, sample.status), (Some(Handshake::Full), Some(200)), "{protocol}");
            assert!(sample.handshake_ns.is_some() && sample.bytes_in == 10);
        }
        assert_eq!(server.stop(), 13);
    }
}

#[test]
fn resumption_and_early_data_are_proven_by_every_sample() {
    let place = Place::new();
    for protocol in [Protocol::H1, Protocol::H2, Protocol::H3] {
        for (how, expected) in [("resume", Handshake::Resumed), ("zero-rtt", Handshake::EarlyAccepted)] {
            let server = Builtin::start(&place, Serve { early_data: how == "zero-rtt", ..serve(protocol) });
            let url = url(protocol, server.port, "/bytes/10");
            let args = ["-n", "8", "--new-connections", "--resumption", how, "--samples", "samples.jsonl"];
            let said = load(&place, protocol, &url, &args).with_status(0);
            assert!(said.out.contains("resumed_share          100 %"), "{}", said.out);
            let samples = samples(&place);
            assert_eq!(samples.len(), 8);
            for sample in samples {
                assert_eq!(sample.handshake, Some(expected), "{protocol} {how}");
            }
        }
    }
}

#[test]
fn two_threads_share_the_requests() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H2));
    let url = url(Protocol::H2, server.port, "/bytes/10");
    let found =
        json(&load(&place, Protocol::H2, &url, &["-n", "101", "-c", "4", "--threads", "2", "--json"]).with_status(0));
    assert_eq!((&found["requests"], &found["configured"]["threads"]), (&Value::from(101), &Value::from(2)));
    assert_eq!(server.stop(), 102);
}

#[test]
fn a_body_is_posted_and_comes_back() {
    let place = Place::new();
    for protocol in HTTP {
        let server = Builtin::start(&place, serve(protocol));
        let url = url(protocol, server.port, "/echo");
        load(&place, protocol, &url, &["-n", "5", "--body-size", "100 KiB", "--samples", "samples.jsonl"])
            .with_status(0);
        for sample in samples(&place) {
            assert_eq!((sample.bytes_out, sample.bytes_in), (102_400, 102_400), "{protocol}");
        }
        // The body of the check request is not awaited, so it may have been cut short.
        assert!((5..=6).contains(&server.stop()), "{protocol}");
    }
}

#[test]
fn header_fields_are_sent_as_given_and_replace_those_of_wirelab() {
    let place = Place::new();
    let server = Hostile::plain(Conduct::ok());
    let url = url(Protocol::H1c, server.port, "/a?b=c");
    load(&place, Protocol::H1c, &url, &["-n", "1"]).with_status(0);
    let heads = server.heads();
    assert_eq!(heads.len(), 2);
    assert!(heads[1].starts_with("get /a?b=c http/1.1\r\n"), "{}", heads[1]);
    assert!(
        heads[1].contains(&format!("host: localhost:{}\r\n", server.port)) && heads[1].contains("user-agent: wirelab/")
    );
    let own = ["-n", "1", "-H", "User-Agent: mine", "-H", "Host: other.example", "-H", "X-A: 1", "-H", "X-A: 2"];
    load(&place, Protocol::H1c, &url, &own).with_status(0);
    let head = server.heads().pop().unwrap();
    for (field, times) in
        [("host: other.example\r\n", 1), ("host:", 1), ("user-agent: mine\r\n", 1), ("user-agent:", 1), ("x-a:", 2)]
    {
        assert_eq!(head.matches(field).count(), times, "{field} in {head}");
    }
}

#[test]
fn an_ipv6_address_is_connected_to_checked_and_named_in_brackets() {
    let place = Place::new();
    place.certificate("six", "::1", 2099);
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return skip(Skip::NoIpv6);
    }
    for protocol in [Protocol::H1, Protocol::H2, Protocol::H3] {
        let address = std::net::Ipv6Addr::LOCALHOST.into();
        let server = Builtin::start(&place, Serve { address, certificate: "six", ..serve(protocol) });
        let url = format!("https://[::1]:{}/bytes/10", server.port);
        let said = load(&place, protocol, &url, &["-n", "3"]).with_status(0);
        assert!(said.out.contains(&format!("([::1]:{})", server.port)), "{}", said.out);
        assert_eq!(server.stop(), 4, "{protocol}");
    }
    let server = Hostile::secure_at(&place, "::1", "six", Conduct::ok());
    load(&place, Protocol::H1, &format!("https://[::1]:{}/", server.port), &["-n", "1"]).with_status(0);
    assert!(server.heads()[0].contains(&format!("host: [::1]:{}\r\n", server.port)), "{:?}", server.heads());
}

#[test]
fn nothing_listening_is_an_error_that_names_attempt_and_remedy() {
    let place = Place::new();
    let port = closed_port();
    for protocol in HTTP {
        let url = url(protocol, port, "/");
        let carrier = format!("listen on {} port {port}", if protocol == Protocol::H3 { "UDP" } else { "TCP" });
        load(&place, protocol, &url, &[]).with_status(1).complains(&[protocol.title(), &url, "127.0.0.1", &carrier]);
    }
    let said = run(place.folder(), &["load", "http://no-such-host.invalid/"]).with_status(1);
    said.complains(&["no-such-host.invalid", "--connect-to"]);
}

#[test]
fn a_silent_server_ends_in_a_time_out_and_one_that_hangs_up_in_an_error() {
    let place = Place::new();
    let silent = Hostile::plain(Conduct::Silence);
    for protocol in ["h1c", "h2c"] {
        let url = url(Protocol::H1c, silent.port, "/");
        let said = run(place.folder(), &["load", "--protocol", protocol, "--timeout", "300ms", &url]).with_status(1);
        said.complains(&[&url, "300ms", "--timeout"]);
    }
    // The socket is bound, but no process reads it, so datagrams get no answer.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = url(Protocol::H3, socket.local_addr().unwrap().port(), "/");
    let args = ["load", "--protocol", "h3", "--ca", "ca.pem", "--connect-timeout", "300ms", &url];
    run(place.folder(), &args).with_status(1).complains(&["300ms", "--connect-timeout", "UDP"]);

    let rude = Hostile::plain(Conduct::Close);
    let url = self::url(Protocol::H1c, rude.port, "/");
    load(&place, Protocol::H1c, &url, &[]).with_status(1).complains(&[
        &url,
        "clos",
        "Does the server support HTTP/1.1",
    ]);
}

#[test]
fn a_correct_server_that_closes_after_each_response_is_measured() {
    let place = Place::new();
    let measured = |answer: &str, protocol: Protocol, server: &Hostile| {
        let said = load(&place, protocol, &url(protocol, server.port, "/"), &["-n", "5"]).with_status(0);
        assert!(said.out.contains("5 succeeded, 0 failed"), "{protocol} {answer:?}: {}", said.out);
    };
    for answer in [
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nconnection: close\r\n\r\n",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ] {
        let conduct = Conduct::AnswerAndClose(answer.to_owned());
        measured(answer, Protocol::H1c, &Hostile::plain(conduct.clone()));
        measured(answer, Protocol::H1, &Hostile::secure(&place, "good", conduct));
    }
    // Bodies that end with the connection. Within TLS this requires a `close_notify`, which this server does not send.
    for answer in ["HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nok", "HTTP/1.0 200 OK\r\n\r\nok"] {
        measured(answer, Protocol::H1c, &Hostile::plain(Conduct::AnswerAndClose(answer.to_owned())));
    }
}

#[test]
fn a_malformed_answer_is_named_in_the_error() {
    let place = Place::new();
    for (answer, cause) in [
        ("HTTP/1.1 ok\r\n\r\n", "invalid HTTP status-code"),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "invalid HTTP version"),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "invalid HTTP header"),
    ] {
        let server = Hostile::plain(Conduct::AnswerAndClose(answer.to_owned()));
        let url = url(Protocol::H1c, server.port, "/");
        load(&place, Protocol::H1c, &url, &["-n", "1"]).with_status(1).complains(&[&url, cause]);
    }
}

#[test]
fn a_flood_of_interim_responses_is_a_failed_request_and_no_time_out() {
    let place = Place::new();
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    // A few of them are correct.
    let few = format!("{}{}", interim.repeat(20), Conduct::response("200 OK", ""));
    let server = Hostile::plain(Conduct::AnswerThenFlood(few.clone(), interim.to_owned()));
    let url = url(Protocol::H1c, server.port, "/");
    let said = load(&place, Protocol::H1c, &url, &["-n", "1"]).with_status(1);
    said.complains(&["flooded with interim responses"]);
    // The second server floods the first request already, which only looks at the server.
    let server = Hostile::plain(Conduct::AnswerThenFlood(interim.repeat(100_000), interim.to_owned()));
    let url = self::url(Protocol::H1c, server.port, "/");
    load(&place, Protocol::H1c, &url, &["-n", "1"]).with_status(1).complains(&[&url, "flooded with interim responses"]);
}

#[test]
fn an_invalid_certificate_is_refused_unless_insecure_is_set() {
    let place = Place::new();
    place.stranger("stranger");
    place.certificate("elsewhere", "elsewhere.example", 2099);
    place.certificate("expired", "localhost", 2001);
    for protocol in [Protocol::H1, Protocol::H2, Protocol::H3] {
        for (certificate, ca, why) in [
            ("good", "stranger.pem", "UnknownIssuer"),
            ("elsewhere", "ca.pem", "elsewhere.example"),
            ("expired", "ca.pem", "expired"),
        ] {
            let server = Builtin::start(&place, Serve { certificate, ..serve(protocol) });
            let url = url(protocol, server.port, "/bytes/1");
            let args = ["load", "--protocol", protocol.token(), "-n", "2", &url];
            let said = run(place.folder(), &[&args[..], &["--ca", ca]].concat()).with_status(1);
            said.complains(&[&url, "certificate", why, "--ca", "--insecure"]);
            run(place.folder(), &[&args[..], &["--insecure"]].concat()).with_status(0);
            assert_eq!(server.stop(), 3, "{protocol} {certificate}: only the second attempt got through");
        }
    }
}

#[test]
fn a_certificate_of_an_authority_is_refused_with_its_own_remedy() {
    let place = Place::new();
    place.certificate_of_authority("authority", "localhost");
    for protocol in [Protocol::H1, Protocol::H2, Protocol::H3] {
        let server = Builtin::start(&place, Serve { certificate: "authority", ..serve(protocol) });
        let url = url(protocol, server.port, "/bytes/1");
        load(&place, protocol, &url, &["-n", "2"]).with_status(1).complains(&[
            "certificate",
            "--ca FILE",
            "--insecure",
        ]);
    }
}

#[test]
fn a_missing_page_and_a_redirect_are_not_measured() {
    let place = Place::new();
    for protocol in HTTP {
        let server = Builtin::start(&place, serve(protocol));
        let url = url(protocol, server.port, "/nothing-here");
        load(&place, protocol, &url, &["-n", "50"]).with_status(1).complains(&[&url, "404"]);
        assert_eq!(server.stop(), 1, "{protocol}: nothing was sent after the first answer");
    }
    let server = Hostile::plain(Conduct::redirect());
    let url = url(Protocol::H1c, server.port, "/");
    let said = load(&place, Protocol::H1c, &url, &["-n", "50"]).with_status(2);
    said.complains(&[&url, "302", "https://elsewhere.example/page", "not followed"]);
    assert_eq!(server.heads().len(), 1);
}

#[test]
fn redirects_are_followed_if_asked_for_and_shown() {
    let place = Place::new();
    let to = |target: &str| Conduct::response("307 Temporary Redirect", &format!("location: {target}\r\n"));
    let last = Hostile::plain(Conduct::AnswerThen(to("/b?x=1"), Conduct::response("200 OK", "")));
    let last_url = url(Protocol::H1c, last.port, "/b?x=1");
    let first = Hostile::plain(Conduct::Answer(to(&url(Protocol::H1c, last.port, "/a"))));
    let url = url(Protocol::H1c, first.port, "/");
    let follow = |more: &[&str]| load(&place, Protocol::H1c, &url, &[&["-n", "3", "--json"], more].concat());
    let refused = follow(&["--follow", "2", "-H", "authorization: Bearer 1"]).with_status(2);
    refused.complains(&["redirects to another server", "header fields"]);
    assert_eq!(last.heads().len(), 0, "a credential went to another server");
    let said = follow(&["--follow", "2"]).with_status(0);
    let found = json(&said);
    assert_eq!((&found["url"], &found["requests"]), (&Value::from(last_url.as_str()), &Value::from(3)));
    said.complains(&[&url, "answers 307", &format!("redirects to {last_url}")]);
    assert_eq!(last.heads().len(), 1 + 2 + 3, "a redirect, two requests before the load, and the load");

    let endless = Hostile::plain(Conduct::Answer(to("/again")));
    let url = self::url(Protocol::H1c, endless.port, "/");
    load(&place, Protocol::H1c, &url, &["--follow", "2"]).with_status(2).complains(&["after 2 redirects", "/again"]);
    assert_eq!(endless.heads().len(), 3);
}

#[test]
fn a_redirect_that_comes_later_is_a_failed_request() {
    let place = Place::new();
    let redirect = Conduct::response("302 Found", "location: /login\r\n");
    let server = Hostile::plain(Conduct::AnswerThen(Conduct::response("200 OK", ""), redirect));
    let url = url(Protocol::H1c, server.port, "/");
    let said = load(&place, Protocol::H1c, &url, &["-n", "5", "--json"]).with_status(1);
    let found = json(&said);
    assert_eq!((&found["requests"], &found["errors"]["status"]), (&Value::from(0), &Value::from(5)));
    said.complains(&["no request", "302", "redirect"]);
}

#[test]
fn the_intervals_of_a_load_have_all_its_requests_with_either_client() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H2c));
    let url = url(Protocol::H2c, server.port, "/bytes/100");
    for client in ["engine", "builtin"] {
        let args = ["--every", "100ms", "-d", "450ms", "-c", "2", "-t", "2", "--client", client, "--json"];
        let said = load(&place, Protocol::H2c, &url, &args).with_status(0);
        let mut lines: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let result = lines.pop().unwrap();
        let intervals: Vec<_> = lines.iter().map(|line| &line["interval"]).collect();
        assert!(intervals.len() >= 5, "{intervals:?}");
        for (number, interval) in intervals.iter().enumerate() {
            assert_eq!(interval["from_ns"], number * 100_000_000);
            let is_last = number + 1 == intervals.len();
            assert!(is_last || interval["length_ns"] == 100_000_000, "{interval}");
        }
        let end = |interval: &Value| interval["from_ns"].as_u64().unwrap() + interval["length_ns"].as_u64().unwrap();
        assert_eq!(end(intervals.last().unwrap()), result["window_ns"].as_u64().unwrap());
        let sum: u64 = intervals.iter().map(|interval| interval["requests"].as_u64().unwrap()).sum();
        assert!(sum > 0);
        assert_eq!(sum, result["requests"].as_u64().unwrap(), "{client}");
        let slowest = |values: &Value| values["response_max"].as_f64().unwrap_or(0.0);
        let of_intervals = intervals.iter().map(|interval| slowest(&interval["values"])).fold(0.0, f64::max);
        assert_eq!(of_intervals, slowest(&result["values"]));
    }
    let said = load(&place, Protocol::H2c, &url, &["--every", "100ms", "-d", "250ms"]).with_status(0);
    assert!(said.out.lines().filter(|line| line.contains("median")).count() >= 3, "{}", said.out);
}

#[test]
fn an_interval_in_which_nothing_ends_is_shown_and_failures_make_its_median_infinite() {
    let place = Place::new();
    let server = Hostile::plain(Conduct::AnswerThen(Conduct::response("200 OK", ""), String::new()));
    let url = url(Protocol::H1c, server.port, "/");
    // The request is sent once before the load, and gets the only answer.
    let args = ["--every", "100ms", "-n", "1", "--timeout", "1500ms", "--json"];
    let said = load_with(&place, &url, &args).with_status(1);
    let intervals: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let intervals: Vec<_> = intervals.iter().filter_map(|line| line.get("interval")).collect();
    assert!(intervals.len() >= 4, "{intervals:?}");
    assert_eq!((&intervals[0]["requests"], &intervals[0]["errors"]), (&Value::from(0), &serde_json::json!({})));
    let last = intervals.last().unwrap();
    assert_eq!(last["errors"]["timeout"], 1);
    assert!(last["values"]["response_median"]["infinite"].is_string(), "{last}");
}

#[test]
fn ctrl_c_ends_it_with_what_was_measured() {
    let place = Place::new();
    let server = Hostile::plain(Conduct::ok());
    let url = url(Protocol::H1c, server.port, "/");
    let mut command = wirelab(place.folder(), &["load", "-d", "1h", "--json", &url]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.wait_for(20);
    interrupt(&child);
    let said = said(child.wait_with_output().unwrap()).with_status(130).complains(&["interrupted", "until then"]);
    let found = json(&said);
    assert_eq!(found["stopped"], true);
    let counted = found["requests"].as_u64().unwrap();
    assert!(counted > 0 && counted < server.heads().len() as u64, "{counted}");
}

#[test]
fn ctrl_c_while_it_waits_for_the_first_answer_ends_it_too() {
    let place = Place::new();
    let server = Hostile::plain(Conduct::Silence);
    let url = url(Protocol::H1c, server.port, "/");
    let mut command = wirelab(place.folder(), &["load", "--timeout", "1h", &url]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.wait_for(1);
    interrupt(&child);
    let said = said(child.wait_with_output().unwrap()).with_status(130).complains(&["before anything was measured"]);
    assert_eq!(said.out, "");
}

#[test]
fn arguments_that_would_do_nothing_are_refused() {
    let place = Place::new();
    let check = |args: &[&str], words: &[&str]| {
        run(place.folder(), &[&["load"], args].concat()).with_status(2).complains(words);
    };
    check(&["https://localhost/", "-p", "h1", "-m", "2"], &["-c instead of -m"]);
    check(&["https://localhost/", "-m", "2", "--new-connections"], &["-c instead of -m"]);
    check(&["https://localhost/", "-c", "2", "--new-connections", "--rate", "5/s"], &["-c would limit nothing"]);
    check(&["https://localhost/", "--resumption", "resume"], &["--new-connections"]);
    check(&["http://localhost/", "-p", "h2"], &["https://"]);
    check(&["https://localhost/", "-p", "quic"], &["cannot request a URL"]);
    check(&["https://localhost/", "-p", "grpcc"], &["grpcc needs a URL that begins with http://"]);
    check(&["https://user:secret@localhost/"], &["user name"]);
    check(&["ftp://localhost/"], &["ftp", "https"]);
    check(&["https://localhost/", "-H", "nonsense"], &["NAME: VALUE"]);
    check(&["https://localhost/", "--steps", "100/s,fast"], &["--steps", "fast"]);
    check(&["https://localhost/", "--steps", "100/s", "--rate", "100/s"], &["--steps", "--rate"]);
    check(&["https://localhost/", "--every", "10ms"], &["the shortest interval is 100 ms"]);
    check(&["https://localhost/", "--max-udp-payload", "16 KB"], &["--max-udp-payload", "HTTP/2", "no datagrams"]);
    check(&["https://localhost/", "-p", "h3", "--max-udp-payload", "1 KB"], &["1200 B", "65527 B"]);
}

#[test]
fn the_largest_datagram_is_the_one_asked_for_with_either_client() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H3));
    let url = url(Protocol::H3, server.port, "/bytes/100000");
    for client in ["engine", "builtin"] {
        let more = ["-n", "3", "--client", client, "--max-udp-payload", "1300 B", "--json"];
        let found = json(&load(&place, Protocol::H3, &url, &more).with_status(0));
        let of = |name: &str| found["configured"][name].clone();
        assert_eq!((of("max_udp_payload"), of("udp_payload")), (1300.into(), 1300.into()), "{client}");
    }
}

#[test]
fn steps_have_their_rates_and_are_judged_one_by_one() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H2c));
    let url = url(Protocol::H2c, server.port, "/bytes/10");
    let steps = ["--steps", "20/s,100/s", "-d", "95ms", "--arrivals", "uniform"];
    let found = json(&load(&place, Protocol::H2c, &url, &[&steps[..], &["--json"]].concat()).with_status(0));
    let sent: Vec<_> =
        found["steps"].as_array().unwrap().iter().map(|step| (&step["rate_per_s"], &step["requests"])).collect();
    assert_eq!(sent, [(&Value::from(20.0), &Value::from(2)), (&Value::from(100.0), &Value::from(10))]);
    assert_eq!(server.stop(), 2 + 10 + 1);

    let server = Hostile::plain(Conduct::AnswerThen(Conduct::response("200 OK", ""), Conduct::response("503 No", "")));
    let url = format!("http://localhost:{}/", server.port);
    let bound = [&steps[..], &["--fail-on", "errors > 1 %"]].concat();
    load(&place, Protocol::H1c, &url, &bound).with_status(1).complains(&["no request", "succeeded"]);
    let server = Builtin::start(&place, serve(Protocol::H2c));
    let url = format!("http://localhost:{}/bytes/10", server.port);
    let bound = [&steps[..], &["--fail-on", "max > 1 ns"]].concat();
    let said =
        load(&place, Protocol::H2c, &url, &bound).with_status(3).complains(&["the step at 20.0 /s", "response_max"]);
    assert_eq!(said.out.matches("succeeded").count(), 2, "{}", said.out);
}

#[test]
fn a_ramp_sends_what_its_stages_plan_with_either_client() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H2c));
    let url = url(Protocol::H2c, server.port, "/bytes/10");
    let ramp = ["--ramp", "0..200/s in 400 ms, 0/s for 100 ms, 100/s for 100 ms", "--arrivals", "uniform", "-t", "2"];
    let by_engine = |more: &[&str]| load(&place, Protocol::H2c, &url, &[&ramp[..], &["-c", "4"], more].concat());
    // 250 t² arrivals until t, then none, then one every 10 ms.
    let rising = (0..40).map(|k| ((f64::from(k) / 250.0).sqrt() * 1e9).round() as u64);
    let expected: Vec<_> = rising.chain((0..10).map(|k| (500 + 10 * k) * 1_000_000)).collect();
    for client in ["engine", "builtin"] {
        let args = ["--client", client, "--samples", "samples.jsonl", "--every", "100ms", "--json"];
        let said = by_engine(&args).with_status(0);
        let mut intended: Vec<_> = samples(&place).iter().map(|sample| sample.intended_ns).collect();
        intended.sort_unstable();
        assert_eq!(intended, expected, "{client}");
        let mut lines: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let result = lines.pop().unwrap();
        assert_eq!(lines[0]["interval"]["planned_per_s"], 25.0, "{}", said.out);
        let intervals = result["ramp"]["intervals"].as_array().unwrap();
        let planned: Vec<_> = intervals.iter().map(|one| one["planned_per_s"].as_f64().unwrap().round()).collect();
        let sent: Vec<_> = intervals.iter().map(|one| one["requests"].as_u64().unwrap()).collect();
        assert_eq!(planned, [25.0, 75.0, 125.0, 175.0, 0.0, 100.0]);
        assert_eq!(sent, [3, 7, 13, 17, 0, 10]);
        let warning = result["warnings"][0]["meaning"].as_str().unwrap();
        assert!(warning.contains("mix rates from 0 /s to 200 /s"), "{warning}");
    }
    let said = by_engine(&["--fail-on", "max > 1 ns"]).with_status(3);
    let words = ["response_max at most 1 ns, first in the interval from 0 s at 83.3 /s", "in 1 of 1 intervals"];
    let said = said.complains(&words);
    assert!(said.out.contains("planned from") && said.out.contains("mix rates"), "{}", said.out);
}

#[test]
fn a_ramp_in_another_form_is_refused_with_the_nearest_valid_one() {
    let place = Place::new();
    let check = |args: &[&str], words: &[&str]| {
        let all = [&["load", "http://localhost:1/"], args].concat();
        run(place.folder(), &all).with_status(2).complains(words);
    };
    check(&["--ramp", "0..500 in 30s"], &["--ramp", "stage 1", "without a unit", "`0..500/s in 30 s`"]);
    check(&["--ramp", "1/s for 1 s, 30s:500"], &["stage 2", "`500/s for 30 s`"]);
    check(&["--ramp", "0/s for 1 s"], &["nothing is sent"]);
    check(&["--ramp", "1/s for 1 s", "-d", "5s"], &["--ramp", "--duration"]);
    check(&["--ramp", "1/s for 1 s", "--rate", "5/s"], &["--ramp", "--rate"]);
    check(&["--ramp", "1/s for 1 s", "-c", "2", "--new-connections"], &["-c would limit nothing"]);
}

#[test]
fn a_search_without_a_limit_ends_at_its_farthest_rate_and_says_so() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H2c));
    let url = url(Protocol::H2c, server.port, "/bytes/10");
    let args = ["--find-rate", "errors at most 50 %", "--rate", "0.05/s", "-d", "300ms", "--arrivals", "uniform"];
    let found = json(&load(&place, Protocol::H2c, &url, &[&args[..], &["--json"]].concat()).with_status(0));
    // A rate that a busy machine keeps up with.
    assert_eq!(found["highest_met_per_s"], 51.2);
    assert_eq!((&found["confirmed"], &found["lowest_unmet_per_s"]), (&Value::Bool(false), &Value::Null));
    let steps = found["steps"].as_array().unwrap();
    let sent: Vec<_> = steps.iter().map(|step| step["requests"].as_u64().unwrap()).collect();
    // The first request of a step is due at once, and the others at equal intervals within 300 ms.
    assert_eq!(sent, [1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 16]);
    assert_eq!(server.stop(), sent.iter().sum::<u64>() + 1);
}

#[test]
fn a_search_in_which_no_rate_meets_the_requirement_fails() {
    let place = Place::new();
    let ok = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned();
    let server = Hostile::plain(Conduct::AnswerThen(ok.clone(), ok.replace("200 OK", "503 No")));
    let url = format!("http://localhost:{}/", server.port);
    let args = ["--find-rate", "errors at most 1 %", "--rate", "1000/s", "-d", "50ms", "--arrivals", "uniform"];
    let said = load(&place, Protocol::H1c, &url, &args).with_status(3);
    assert!(said.out.contains("highest rate           none that was tried"), "{}", said.out);
    assert_eq!(said.out.matches("not met  error_share").count(), 11, "{}", said.out);
    said.complains(&["at most 24 steps of 50 ms", "no rate meets", "--rate"]);
}

#[test]
fn a_step_that_is_too_short_for_its_percentile_is_no_answer() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H1c));
    let url = url(Protocol::H1c, server.port, "/bytes/10");
    let args = ["--find-rate", "p99 at most 60 s", "-d", "50ms"];
    load(&place, Protocol::H1c, &url, &args).with_status(1).complains(&["response_p99", "P99 needs", "-d makes"]);
}

#[test]
fn a_distribution_file_has_all_successful_requests() {
    let place = Place::new();
    let server = Builtin::start(&place, serve(Protocol::H1c));
    let url = url(Protocol::H1c, server.port, "/bytes/10");
    for more in [&["--hdr", "d.hgrm"][..], &["--hdr", "d.hgrm", "--samples", "samples.jsonl"]] {
        load(&place, Protocol::H1c, &url, &[&["-n", "40"], more].concat()).with_status(0);
        let text = fs::read_to_string(place.path("d.hgrm")).unwrap();
        assert!(text.trim_start().starts_with("Value     Percentile TotalCount 1/(1-Percentile)"), "{text}");
        assert!(
            text.contains("Total count    =           40]") && text.contains("1.000000000000         40\n"),
            "{text}"
        );
    }
    load(&place, Protocol::H1c, &url, &["--hdr", "no/d.hgrm"]).with_status(1).complains(&["no/d.hgrm"]);
}
