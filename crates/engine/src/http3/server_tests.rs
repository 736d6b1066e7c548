//! The client's requests against the server: each gets its answer, in any pieces.

use std::sync::atomic::Ordering;

use proptest::prelude::*;
use wirelab_contract::pattern;

use super::*;
use crate::http3::{Decoder, Encoded, Response};
use crate::machine::{Event, Inbox};
use crate::null::testing::content;
use crate::testing::{cases, client_spec, pieces};

/// The request of a client.
fn request(method: &str, path: &str, size: u64) -> Vec<u8> {
    let mut spec = client_spec("h3");
    spec.request =
        serde_json::from_value(serde_json::json!({"method": method, "path": path, "body_size": size})).unwrap();
    let [encoded] = &Encoded::all(&spec).unwrap()[..] else { panic!("one request") };
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < encoded.size() {
        bytes.extend_from_slice(encoded.from(bytes.len() as u64));
    }
    bytes
}

/// The answer to the bytes of a stream that arrive in pieces of these sizes.
fn answer(bytes: &[u8], sizes: &[usize], answers: &mut Answers) -> Result<Vec<u8>, Failure> {
    let (mut exchange, mut sizes, mut rest, mut out) = (Exchange::default(), sizes.iter().cycle(), bytes, Vec::new());
    let send = |exchange: &mut Exchange, out: &mut Vec<u8>| {
        while !exchange.output().is_empty() {
            let count = exchange.output().len().min(1000);
            out.extend_from_slice(&exchange.output()[..count]);
            exchange.sent(count);
        }
    };
    while !rest.is_empty() {
        let (now, later) = rest.split_at(sizes.next().copied().unwrap_or(1).clamp(1, rest.len()));
        exchange.receive(now, answers)?;
        send(&mut exchange, &mut out);
        rest = later;
    }
    assert!(!exchange.is_complete());
    exchange.end(answers)?;
    send(&mut exchange, &mut out);
    assert!(exchange.is_complete());
    Ok(out)
}

/// The status and the body that a client reads.
fn read(bytes: &[u8]) -> (Option<u16>, Vec<u8>) {
    let (mut response, mut inbox) = (Response::new(0, false), Inbox::default());
    inbox.begin_body(0, true);
    response.receive(bytes, &mut Decoder::default(), &mut inbox).unwrap();
    response.end(&mut inbox);
    match inbox.events.last() {
        Some(Event::Done { status, .. }) => (*status, inbox.kept(0).to_vec()),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_request_is_answered_in_any_pieces(sizes in pieces(), body in 0_usize..40_000) {
        let content = content();
        let mut answers = Answers::new(&(Arc::clone(&content) as _));
        let known = (Some(200), pattern::body(body));
        let asked = [
            ("GET", format!("/bytes/{body}?x"), 0, known.clone()),
            ("GET", format!("/bytes/{body}?x"), 0, known.clone()),
            ("POST", "/echo".to_owned(), body, known),
            ("GET", "/none".to_owned(), 0, (Some(404), Vec::new())),
            ("PUT", "/bytes/1".to_owned(), 7, (Some(405), Vec::new())),
        ];
        for (method, path, size, expected) in &asked {
            let bytes = answer(&request(method, path, *size as u64), &sizes, &mut answers).unwrap();
            prop_assert!(read(&bytes) == *expected, "{method} {path}");
        }
        prop_assert_eq!(content.0.load(Ordering::Relaxed), asked.len() as u64);
    }

    #[test]
    fn any_bytes_are_answered_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), sizes in pieces()) {
        let mut answers = Answers::new(&(content() as _));
        let whole = answer(&bytes, &[usize::MAX], &mut answers).map_err(|failure| failure.message);
        let parts = answer(&bytes, &sizes, &mut answers).map_err(|failure| failure.message);
        prop_assert_eq!(whole.is_ok(), parts.is_ok());
    }
}

#[test]
fn what_breaks_the_protocol_is_refused() {
    let framed = |kind: u64, payload: &[u8]| [&[kind as u8, payload.len() as u8], payload].concat();
    let head = request("GET", "/bytes/3", 0);
    for (bytes, why) in [
        (vec![], "before it was complete"),
        (framed(kind::DATA, b"x"), "before its head"),
        (framed(kind::SETTINGS, b""), "wrong place"),
        // A dynamic table that the server does not have.
        (framed(kind::HEADERS, &[1, 0, 0x80]), "not valid"),
        (framed(kind::HEADERS, &[0, 0, 0x51, 9, b'/']), "not valid"),
        (head[..head.len() - 1].to_vec(), "before it was complete"),
        ([&head[..], &[0, 5, 1]].concat(), "before it was complete"),
    ] {
        let mut answers = Answers::new(&(content() as _));
        let failure = answer(&bytes, &[1, 2], &mut answers).unwrap_err();
        assert!(failure.message.contains(why), "{bytes:?}: {failure:?}");
    }
}
