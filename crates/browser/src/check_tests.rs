use std::time::Duration;

use super::*;
use crate::page::{Origin, Viewport};
use crate::timeline::{Entry, Timeline};
use crate::{Browser, Moments};

fn setup(protocol: Protocol) -> Setup {
    let origins = vec![Origin { host: "localhost".to_owned(), port: 8443, address: "127.0.0.1".parse().unwrap() }];
    Setup {
        browser: Browser::Chromium,
        program: "chromium".into(),
        protocol,
        origins,
        authority: None,
        logs: Default::default(),
    }
}

fn page() -> Page {
    Page {
        url: "https://localhost:8443/".parse().unwrap(),
        requests: None,
        viewport: Viewport::DEFAULT,
        timeout: Duration::from_secs(30),
        film: false,
        bodies: false,
    }
}

fn resource(path: &str, protocol: &str) -> Resource {
    Resource {
        url: format!("https://localhost:8443/{path}"),
        status: Some(200),
        protocol: Some(protocol.to_owned()),
        moments: Moments { end: Some(1.0), ..Moments::default() },
        ..Resource::default()
    }
}

/// A load whose timeline agrees with its events.
fn seen(resources: Vec<Resource>) -> Observed {
    let entry = |resource: &Resource| Entry {
        url: resource.url.clone(),
        protocol: resource.protocol.clone().unwrap_or_default(),
        ..Entry::default()
    };
    let entries = resources.iter().map(entry).collect();
    let timeline = Some(Timeline { entries, ..Timeline::default() });
    Observed { resources, timeline, loaded: true, ..Observed::default() }
}

#[track_caller]
fn fails(protocol: Protocol, page: &Page, mut seen: Observed, blame: Blame, words: &[&str]) {
    second_opinion(&mut seen);
    match judge(&setup(protocol), page, &seen) {
        Outcome::Failed { blame: found, reason } => {
            assert_eq!(found, blame, "{reason}");
            for word in words {
                assert!(reason.to_string().contains(word), "`{word}` is missing in: {reason}");
            }
        }
        outcome => panic!("{outcome:?}"),
    }
}

fn good() -> Vec<Resource> {
    vec![resource("", "h3"), resource("a.png", "h3")]
}

#[test]
fn a_load_over_the_forced_protocol_is_a_sample() {
    let mut seen = seen(good());
    second_opinion(&mut seen);
    assert_eq!(seen.resources[1].page_protocol.as_deref(), Some("h3"));
    assert_eq!(judge(&setup(Protocol::H3), &page(), &seen), Outcome::Ok);
}

#[test]
fn one_resource_over_another_version_spoils_the_load() {
    let mut resources = good();
    resources.push(resource("late.png", "h2"));
    fails(
        Protocol::H3,
        &page(),
        seen(resources),
        Blame::Server,
        &["1 of 3", "over h2", "HTTP/3 was forced", "late.png", "UDP"],
    );
    fails(Protocol::H1, &page(), seen(vec![resource("", "http/1.0")]), Blame::Server, &["over http/1.0"]);
    // Only a browser's error can lead to HTTP/2 where it was disabled.
    fails(Protocol::H1, &page(), seen(vec![resource("", "h2")]), Blame::Client, &["HTTP/1.1 was forced"]);
}

#[test]
fn two_opinions_that_differ_spoil_the_load() {
    let mut seen = seen(good());
    seen.timeline.as_mut().unwrap().entries[1].protocol = "h2".to_owned();
    fails(Protocol::H3, &page(), seen, Blame::Client, &["contradicts itself", "a.png"]);
}

#[test]
fn what_only_the_timeline_knows_counts_too_and_what_it_hides_does_not() {
    let mut more = seen(good());
    let hidden = Entry { url: "https://other.test/x".to_owned(), ..Entry::default() };
    more.timeline.as_mut().unwrap().entries.push(hidden);
    assert_eq!(judge(&setup(Protocol::H3), &page(), &more), Outcome::Ok);
    let unseen = Entry { url: "https://other.test/y".to_owned(), protocol: "h2".to_owned(), ..Entry::default() };
    more.timeline.as_mut().unwrap().entries.push(unseen);
    fails(Protocol::H3, &page(), more, Blame::Server, &["other.test/y", "h2"]);
}

#[test]
fn a_page_that_does_not_come_to_an_end_names_what_is_missing() {
    let mut resources = good();
    resources.push(Resource {
        status: None,
        protocol: None,
        moments: Moments::default(),
        ..resource("never.png", "h3")
    });
    let mut load = seen(resources);
    fails(Protocol::H3, &page(), load.clone(), Blame::Server, &["1 requests had no answer", "never.png"]);
    load.loaded = false;
    load.timeline = None;
    fails(Protocol::H3, &page(), load.clone(), Blame::Server, &["timed out", "30s", "1 of 3", "never.png"]);
    load.resources.drain(..2);
    fails(Protocol::H3, &page(), load, Blame::Server, &["timed out", "1 of 1", "HTTP/3 on UDP port 8443?"]);
}

#[test]
fn a_server_that_does_not_answer_is_blamed_with_a_remedy() {
    let refused = |words: &str| Observed { refused: Some(words.to_owned()), ..Observed::default() };
    let check = |protocol, words, remedy: &[&str]| fails(protocol, &page(), refused(words), Blame::Server, remedy);
    check(Protocol::H3, "net::ERR_QUIC_PROTOCOL_ERROR", &["HTTP/3 on UDP port 8443?"]);
    check(Protocol::H2, "net::ERR_CONNECTION_REFUSED", &["HTTP/2 on TCP port 8443?"]);
    check(Protocol::H2, "net::ERR_CERT_AUTHORITY_INVALID", &["--ca FILE"]);
    check(Protocol::H1, "SEC_ERROR_UNKNOWN_ISSUER", &["--ca FILE"]);
}

#[test]
fn redirects_errors_and_other_numbers_of_requests_are_no_samples() {
    let mut moved = good();
    moved[0].redirect = Some("https://other.test/".to_owned());
    fails(Protocol::H3, &page(), seen(moved), Blame::Server, &["https://other.test/", "give that URL"]);
    let gone = vec![Resource { status: Some(404), ..resource("", "h3") }];
    fails(Protocol::H3, &page(), seen(gone), Blame::Server, &["answers 404"]);
    let mut broken = good();
    broken[1] = Resource { status: None, error: Some("net::ERR_FAILED".to_owned()), ..resource("a.png", "h3") };
    fails(Protocol::H3, &page(), seen(broken), Blame::Server, &["1 resources failed", "net::ERR_FAILED"]);
    let expecting = Page { requests: Some(3), ..page() };
    fails(Protocol::H3, &expecting, seen(good()), Blame::Server, &["2 requests where 3 were expected"]);
}

#[test]
fn a_missing_resource_is_a_warning_and_no_failure() {
    let mut resources = good();
    resources.push(Resource { status: Some(404), ..resource("missing.png", "h3") });
    resources.push(Resource { error: Some("blocked: corp".to_owned()), withdrawn: true, ..resource("kept", "h3") });
    let load = seen(resources);
    assert_eq!(judge(&setup(Protocol::H3), &page(), &load), Outcome::Ok);
    let expected =
        ["https://localhost:8443/missing.png answers 404", "https://localhost:8443/kept was given up: blocked: corp"];
    assert_eq!(warnings(&load.resources), expected);
}
