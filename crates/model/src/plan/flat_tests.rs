use serde_json::{Value, json};

use super::*;
use crate::page::host_names;

/// A job as wirelab has written it since the first version of the format.
fn old() -> Value {
    json!({
        "protocol": "h2", "server": "a", "client": "b", "placement": "local", "exchange": "echo",
        "request_size": "1 KiB", "response_size": "1 KiB", "delay": "0 ns",
        "connections": { "policy": "persistent", "connections": 2, "streams": 3 },
        "schedule": { "loop": "closed", "workers": 6 }, "extent": { "requests": 100 }, "warm_up": null,
        "resumption": "none", "timeouts": { "connect_ns": 1, "request_ns": 2 }, "recording": "samples",
        "transport": {}, "server_threads": null, "client_threads": 4,
    })
}

/// The old job with these keys.
fn with(keys: &Value) -> Value {
    let mut job = old();
    for (key, value) in keys.as_object().unwrap() {
        job[key] = value.clone();
    }
    job
}

fn site() -> Value {
    json!({ "url": "https://example.org/a", "host": "example.org", "port": 443, "path": "/a" })
}

fn read(job: &Value) -> Result<Job, String> {
    serde_json::from_value(job.clone()).map_err(|error| error.to_string())
}

#[test]
fn a_job_of_an_old_run_is_read_with_the_defaults_of_its_time() {
    let job = read(&old()).unwrap();
    let servers = OwnServers { endpoint: "a".to_owned(), ..OwnServers::one("a") };
    assert_eq!((&job.client, &job.target, &job.course), (&"b".to_owned(), &Target::Servers(servers), &Course::Steady));
    assert_eq!(job.topology, Topology::at("local"));
    let requests = Requests { exchange: Exchange::Echo, request_size: Size(1024), ..Requests::document(Size(1024)) };
    assert_eq!(job.work, Work::Requests(requests));
    assert_eq!((job.load.clients, job.load.threads, job.load.stall_timeout), (1, Some(4), ten_minutes()));
    assert_eq!(read(&with(&json!({ "patience": "7 s" }))).unwrap().load.stall_timeout, Span::from_secs(7));
}

/// Every target beside every work and course that it allows.
fn every_kind() -> Vec<Job> {
    let reaches = [
        Reach::Server,
        Reach::Service,
        Reach::Headless { resolves_again: false },
        Reach::Headless { resolves_again: true },
        Reach::NodePort,
        Reach::Mesh("proxy".to_owned()),
        Reach::Mesh("linkerd".to_owned()),
        Reach::ControlPlane("plane".to_owned()),
    ];
    let servers = |reach| {
        let places = Servers { near: 1, far: 2 };
        let (threads, max_connection_age) = (Some(2), Some(Span::from_secs(3)));
        let protocol = Some(Protocol::H2);
        Target::Servers(OwnServers { places, reach, threads, protocol, max_connection_age, ..OwnServers::one("a") })
    };
    let site = Target::Site(serde_json::from_value(site()).unwrap());
    let page = LoadedPage {
        hosts: host_names(3),
        delay: Span::from_millis(5),
        early_hints: Some(false),
        priorities: Some(Priorities::Obeyed),
        ..LoadedPage::plain(PageName::Today, Size(9))
    };
    let delayed = Requests { exchange: Exchange::Delay, delay: Span(7), ..Requests::document(Size(0)) };
    let works = [Work::Requests(delayed), Work::Page(page)];
    let timeline = json!({ "actions": [{ "name": "T2", "at": "50 %", "clients": 3 }] });
    let courses = [Course::Steady, Course::Timeline(serde_json::from_value(timeline).unwrap())];
    let mut jobs = vec![Job { target: site, ..Job::plain(Protocol::H3) }];
    for reach in reaches {
        for work in &works {
            for course in &courses {
                let (target, work, course) = (servers(reach.clone()), work.clone(), course.clone());
                jobs.push(Job { target, work, course, ..Job::plain(Protocol::H3) });
            }
        }
    }
    jobs
}

#[test]
fn every_kind_of_job_is_read_as_it_was_written() {
    for job in every_kind() {
        let written = serde_json::to_value(&job).unwrap();
        assert_eq!(read(&written).unwrap(), job, "{written}");
    }
}

#[test]
fn a_file_has_the_flat_keys_of_all_versions() {
    let keys = |job: &Job| match serde_json::to_value(job) {
        Ok(Value::Object(job)) => job,
        other => panic!("{other:?}"),
    };
    let plain = keys(&Job::plain(Protocol::H1));
    let written: Vec<_> = plain.keys().map(String::as_str).collect();
    let expected = [
        "protocol",
        "server",
        "client",
        "placement",
        "network",
        "servers",
        "address",
        "exchange",
        "request_size",
        "response_size",
        "delay",
        "connections",
        "schedule",
        "extent",
        "warm_up",
        "resumption",
        "timeouts",
        "stall_timeout",
        "recording",
        "transport",
        "server_threads",
        "client_threads",
    ];
    assert_eq!(written, expected);
    assert_eq!(
        (&plain["server"], &plain["servers"], &plain["address"]),
        (&"builtin".into(), &"far".into(), &"server".into())
    );
    let meshed = OwnServers { reach: Reach::Mesh("proxy".to_owned()), ..OwnServers::one("a") };
    let meshed = keys(&Job { target: Target::Servers(meshed), ..Job::plain(Protocol::H1) });
    assert_eq!((&meshed["mesh"], &meshed["address"]), (&"proxy".into(), &"service".into()));
}

#[test]
fn a_file_that_contradicts_itself_is_refused_with_the_key() {
    let timeline = json!({ "actions": [{ "name": "T2", "at": "50 %", "clients": 3 }] });
    for (keys, words) in [
        (json!({ "site": site(), "mesh": "proxy" }), "`mesh` beside `site` (https://example.org/a)"),
        (json!({ "site": site(), "control_plane": "plane" }), "`control_plane` beside `site`"),
        (json!({ "site": site(), "server_protocol": "h1" }), "`server_protocol` beside `site`"),
        (json!({ "site": site(), "server_threads": 2 }), "`server_threads` beside `site`"),
        (json!({ "site": site(), "timeline": timeline }), "`timeline` beside `site`"),
        (json!({ "site": site(), "page": "today", "exchange": "files" }), "`page` beside `site`"),
        (json!({ "mesh": "proxy", "control_plane": "plane" }), "`mesh` (proxy) and `control_plane` (plane)"),
        (json!({ "mesh": "proxy", "address": "headless" }), "`address` other than a service"),
        (json!({ "resolves_again": true }), "`resolves_again`, but its clients connect to an address"),
        (json!({ "hosts": ["a.test"] }), "`hosts`, but no `page`"),
        (json!({ "early_hints": true }), "`early_hints`, but no `page`"),
        (json!({ "priorities": "obeyed" }), "`priorities`, but no `page`"),
        (json!({ "page": "today" }), "the exchange `echo` beside the page `today`"),
    ] {
        let why = read(&with(&keys)).unwrap_err();
        assert!(why.contains(words), "{keys}: {why}");
    }
}
