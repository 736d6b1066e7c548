//! Converts a client's spec to page loads. Settings that a browser cannot honour are refused; none is ignored.

use std::path::PathBuf;
use std::time::Duration;

use url::Url;
use wirelab_model::CONTRACT_VERSION;
use wirelab_model::page::{ExpectedPage, PageHost};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{
    ClientSpec, ConnectionPolicy, Extent, Pause, Recording, Resumption, Schedule, TlsVersion, Transport,
};

use crate::endpoint::Refusal;
use crate::page::{Origin, Page, Setup, Viewport};
use crate::{Browser, Logs};

/// The page loads of a trial.
#[derive(Debug)]
pub struct Order {
    /// The configuration of the browser.
    pub setup: Setup,
    /// The page to load.
    pub page: Page,
    /// The expected requests and bodies.
    pub expected: ExpectedPage,
    /// Number of loads before the window.
    pub warm_up: u64,
    /// The end of the window: a number of loads or a duration.
    pub extent: Extent,
    /// The file for the records.
    pub results: PathBuf,
}

impl Order {
    /// Reads a spec.
    pub fn read(browser: Browser, text: &str) -> Result<Self, Refusal> {
        let spec: ClientSpec = serde_json::from_str(text).map_err(|error| {
            let message = format!("reading the spec: {error}");
            // Unknown values are unsupported; a spec that cannot be parsed is an error.
            if wirelab_model::is_unknown(&error) { Refusal::Unsupported(message) } else { Refusal::Failed(message) }
        })?;
        if let Some(what) = foreign(&spec) {
            return Err(Refusal::Unsupported(format!("{what}; a browser cannot do that")));
        }
        let Some(expected) = spec.page else {
            return Err(Refusal::Unsupported("`page` is absent, and a browser loads pages only".to_owned()));
        };
        if expected.early_hints && (browser, spec.protocol) == (Browser::Chromium, Protocol::H1) {
            let why = "Chromium takes no early hints over HTTP/1.1".to_owned();
            return Err(Refusal::Unsupported(why));
        }
        let logs = Logs {
            keys: spec.tls.as_ref().and_then(|tls| tls.key_log.clone()),
            netlog: expected.netlog_dir.clone(),
            qlog: spec.qlog_dir.clone(),
        };
        if let Some(why) = logs.refused_by(browser) {
            return Err(Refusal::Unsupported(why.to_owned()));
        }
        let program = browser.find().map_err(|error| Refusal::Failed(error.to_string()))?;
        let url = format!("https://{}:{}{}", spec.server_name, spec.port, spec.request.path);
        let url = Url::parse(&url).map_err(|error| Refusal::Unsupported(format!("`{url}` is no URL: {error}")))?;
        let host = url.host_str().unwrap_or(&spec.server_name).to_owned();
        let origins = match expected.hosts.as_slice() {
            [] => vec![Origin { host, port: spec.port, address: spec.address }],
            hosts => hosts.iter().map(|host| origin(host, spec.port)).collect(),
        };
        Ok(Self {
            setup: Setup {
                browser,
                program,
                protocol: spec.protocol,
                origins,
                authority: spec.tls.and_then(|tls| tls.trust_anchor),
                logs,
            },
            page: Page {
                url,
                requests: expected.requests,
                viewport: Viewport::DEFAULT,
                timeout: Duration::from_nanos(spec.timeouts.request_ns.saturating_add(spec.timeouts.connect_ns)),
                film: expected.film.is_some(),
                bodies: false,
            },
            expected,
            warm_up: match spec.warm_up {
                Some(Extent::Requests(loads)) => loads,
                _ => 0,
            },
            extent: spec.extent,
            results: spec.results,
        })
    }
}

fn origin(host: &PageHost, port: u16) -> Origin {
    Origin { host: host.name.clone(), port, address: host.address }
}

/// A setting of the spec that no browser supports.
fn foreign(spec: &ClientSpec) -> Option<String> {
    let one_after_the_other = Schedule::Closed { workers: 1, pause: Pause::None };
    let request = &spec.request;
    let found = [
        (spec.contract != CONTRACT_VERSION, format!("`contract` {}", spec.contract)),
        (!matches!(spec.protocol, Protocol::H1 | Protocol::H2 | Protocol::H3), format!("`protocol` {}", spec.protocol)),
        (spec.recording != Recording::Loads, "`recording` is not `loads`".to_owned()),
        (!spec.addresses.is_empty(), "several `addresses`".to_owned()),
        (spec.discovers, "`discovers`".to_owned()),
        (
            spec.tls.as_ref().is_some_and(|tls| tls.identity.is_some() || tls.version != TlsVersion::Tls13),
            "`identity` or another `version` than 1.3 of `tls`".to_owned(),
        ),
        (request.method != "GET" || request.body_size > 0, "a `request` that is not a plain GET".to_owned()),
        (!request.headers.is_empty() || request.expect.is_some(), "`headers` or `expect` of a request".to_owned()),
        (spec.connections == ConnectionPolicy::PerRequest, "`connections` per request".to_owned()),
        (spec.schedule != one_after_the_other, "a `schedule` other than one load after the other".to_owned()),
        (!spec.ramp.is_empty(), "a `ramp`".to_owned()),
        (matches!(spec.warm_up, Some(Extent::DurationNs(_))), "`warm_up` by time".to_owned()),
        (spec.resumption != Resumption::None, "`resumption`".to_owned()),
        (spec.tls.as_ref().is_some_and(|tls| !tls.verify), "`verify` false".to_owned()),
        (spec.threads.is_some(), "`threads`".to_owned()),
        (spec.exposition.is_some(), "`exposition`".to_owned()),
        (spec.transport != Transport::default(), "settings of the `transport`".to_owned()),
    ];
    found.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec() -> Value {
        json!({
            "contract": 1, "protocol": "h3", "address": "192.0.2.1", "port": 8443, "server_name": "a.test",
            "tls": { "trust_anchor": "/ca.pem", "verify": true },
            "request": { "method": "GET", "path": "/small-10/index.html", "body_size": 0 },
            "page": { "requests": 11, "body_bytes": 109700 },
            "connections": { "policy": "persistent", "connections": 1, "streams": 1 },
            "schedule": { "loop": "closed", "workers": 1 },
            "extent": { "requests": 3 },
            "timeouts": { "connect_ns": 1_000_000_000_u64, "request_ns": 2_000_000_000_u64 },
            "seed": 1, "recording": "loads", "results": "/results"
        })
    }

    #[test]
    fn what_a_browser_cannot_do_is_refused_by_name() {
        for (key, value, words) in [
            ("recording", json!("samples"), "`recording`"),
            ("connections", json!({ "policy": "per_request" }), "`connections`"),
            ("schedule", json!({ "loop": "closed", "workers": 2 }), "`schedule`"),
            ("protocol", json!("quic"), "`protocol` quic"),
            ("resumption", json!("zero_rtt"), "`resumption`"),
            ("threads", json!(2), "`threads`"),
            ("discovers", json!(true), "`discovers`"),
            ("exposition", json!({ "socket": "/s", "labels": {} }), "`exposition`"),
            ("transport", json!({ "congestion": "bbr" }), "`transport`"),
            ("qlog_dir", json!("/q"), "`qlog_dir`"),
            ("page", json!({ "requests": 1, "body_bytes": 1, "colour": 1 }), "colour"),
            ("page", Value::Null, "`page` is absent"),
            ("colour", json!("red"), "colour"),
        ] {
            let mut spec = spec();
            spec[key] = value;
            match Order::read(Browser::Chromium, &spec.to_string()) {
                Err(Refusal::Unsupported(message)) => assert!(message.contains(words), "{message}"),
                other => panic!("{key}: {other:?}"),
            }
        }
    }

    #[test]
    fn chromium_takes_no_hints_over_http_1() {
        let mut spec = spec();
        (spec["protocol"], spec["page"]["early_hints"]) = (json!("h1"), json!(true));
        match Order::read(Browser::Chromium, &spec.to_string()) {
            Err(Refusal::Unsupported(message)) => {
                assert!(message.contains("no early hints over HTTP/1.1"), "{message}")
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_page_is_found_by_the_servers_name() {
        // Without an installed browser, the message has the remedy.
        match Order::read(Browser::Chromium, &spec().to_string()) {
            Ok(order) => {
                assert_eq!(order.page.url.as_str(), "https://a.test:8443/small-10/index.html");
                assert_eq!((order.page.requests, order.page.timeout), (Some(11), Duration::from_secs(3)));
                assert_eq!(order.setup.origins[0].host, "a.test");
                let mut spec = spec();
                let hosts = ["a.test", "b.test"].map(|name| json!({ "name": name, "address": "192.0.2.1" }));
                spec["page"]["hosts"] = hosts.into_iter().collect();
                let order = Order::read(Browser::Chromium, &spec.to_string()).unwrap();
                // The protocol is forced on all hosts.
                let origins: Vec<_> = order.setup.origins.iter().map(|one| (one.host.as_str(), one.port)).collect();
                assert_eq!(origins, [("a.test", 8443), ("b.test", 8443)]);
            }
            Err(refusal) => assert!(matches!(&refusal, Refusal::Failed(why) if why.contains("Remedy")), "{refusal:?}"),
        }
    }
}
