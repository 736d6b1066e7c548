//! An HTTP Archive of invented loads. After a deliberate change, look at the difference and accept it with
//! `INSTA_UPDATE=always cargo test -p wirelab-browser`.

use wirelab_browser::har::{Titled, har};
use wirelab_browser::{Body, Load, Moments, Resource, Timeline};
use wirelab_model::outcome::{Blame, Outcome};

fn document() -> Resource {
    Resource {
        url: "https://localhost:8443/index.html?a=b%20c".to_owned(),
        host: "localhost:8443".to_owned(),
        method: "GET".to_owned(),
        kind: "document".to_owned(),
        status: Some(200),
        mime: Some("text/html".to_owned()),
        protocol: Some("h3".to_owned()),
        page_protocol: Some("h3".to_owned()),
        connection: Some(17),
        moments: Moments {
            start: 0.0,
            dns: Some((1.0, 2.0)),
            connect: Some((2.5, 32.5)),
            tls: Some((2.5, 32.5)),
            request: Some(33.0),
            response: Some(83.25),
            end: Some(90.0),
        },
        received: Some(1200),
        header_bytes: Some(200),
        request_headers: vec![("accept".to_owned(), "text/html".to_owned())],
        response_headers: vec![("content-length".to_owned(), "1000".to_owned())],
        ..Resource::default()
    }
}

/// An image with few values from the browser, and a failed one.
fn others() -> [Resource; 2] {
    let image = Resource {
        url: "https://localhost:8443/a.png".to_owned(),
        kind: "image".to_owned(),
        connection: None,
        moments: Moments { start: 90.0, request: Some(91.0), end: Some(99.5), ..Moments::default() },
        received: None,
        header_bytes: None,
        request_headers: Vec::new(),
        response_headers: Vec::new(),
        ..document()
    };
    let failed = Resource {
        url: "https://localhost:8443/gone.png".to_owned(),
        status: None,
        mime: None,
        protocol: None,
        error: Some("net::ERR_CONNECTION_REFUSED".to_owned()),
        moments: Moments { start: 90.5, end: Some(95.5), ..Moments::default() },
        ..image.clone()
    };
    [image, failed]
}

fn load(resources: Vec<Resource>) -> Load {
    let timeline = Timeline { content_loaded: 95.0, loaded: 120.5, ..Timeline::default() };
    let zero = 1_700_000_000_000.25;
    Load { resources, zero, timeline: Some(timeline), ..Load::not_begun(Outcome::Ok) }
}

#[test]
fn an_archive_is_as_agreed() {
    let good = load([vec![document()], others().to_vec()].concat());
    let mut bad = load(vec![document()]);
    bad.outcome = Outcome::failed(Blame::Server, "timed out");
    bad.timeline = None;
    let nothing = Load::not_begun(Outcome::failed(Blame::Client, "it did not start"));
    let titled = [("first", &good), ("second", &nothing), ("third", &bad)].map(|(title, load)| Titled { title, load });
    let text = serde_json::to_string_pretty(&har("0.0.0", &titled)).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn a_kept_body_is_in_the_archive_with_its_size() {
    let content = |text: &str, is_base64| {
        let body = Some(Body { text: text.to_owned(), is_base64 });
        let load = load(vec![Resource { body, ..document() }]);
        let archive = har("0.0.0", &[Titled { title: "saved", load: &load }]);
        archive["log"]["entries"][0]["response"]["content"].clone()
    };
    let (text, style) = (content("<p>é", false), content("Ym9keXt9", true));
    assert_eq!(text, serde_json::json!({ "size": 5, "mimeType": "text/html", "text": "<p>é" }));
    assert_eq!((&style["size"], &style["text"], &style["encoding"]), (&6.into(), &"Ym9keXt9".into(), &"base64".into()));
    assert_eq!(["YQ==", "YWI=", ""].map(|text| content(text, true)["size"].as_u64()), [Some(1), Some(2), Some(0)]);
}

#[test]
fn the_phases_of_every_entry_add_up_to_its_time() {
    let archive = har("0.0.0", &[Titled { title: "t", load: &load([vec![document()], others().to_vec()].concat()) }]);
    for entry in archive["log"]["entries"].as_array().unwrap() {
        let phase = |name: &str| entry["timings"][name].as_f64().unwrap().max(0.0);
        // In HAR 1.2, `ssl` is a part of `connect`.
        let sum: f64 = ["blocked", "dns", "connect", "send", "wait", "receive"].into_iter().map(phase).sum();
        assert!((sum - entry["time"].as_f64().unwrap()).abs() < 0.01, "{entry}");
        assert!(phase("ssl") <= phase("connect"));
    }
}
