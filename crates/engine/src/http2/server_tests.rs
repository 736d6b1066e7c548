//! The client's machine against the server's: every request gets its answer, in any pieces and with any windows.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use wirelab_contract::pattern;

use super::*;
use crate::http2::Http2;
use crate::machine::{Event, Inbox, Machine};
use crate::null::testing::{Counted, content};
use crate::testing::{cases, client_spec, pieces};

fn server(content: &Arc<Counted>, windows: Windows) -> Http2Server {
    let content: Arc<dyn Content> = Arc::clone(content) as _;
    Http2Server::new(&content, windows)
}

/// Carries bytes between both until neither has any, in pieces of these sizes.
fn converse(client: &mut Http2, server: &mut Http2Server, sizes: &[usize], inbox: &mut Inbox) {
    let mut sizes = sizes.iter().cycle();
    let mut next = |length: usize| sizes.next().copied().unwrap_or(1).clamp(1, length);
    while !(client.output().is_empty() && server.output().is_empty()) {
        if !client.output().is_empty() {
            let count = next(client.output().len());
            server.receive(&client.output()[..count]).unwrap();
            client.sent(count);
        }
        if !server.output().is_empty() {
            let count = next(server.output().len());
            client.receive(&server.output()[..count], inbox).unwrap();
            server.sent(count).unwrap();
        }
    }
}

/// The status and the body of a response.
type Answer = (Option<u16>, Vec<u8>);

/// The statuses and bodies of these requests (method, path, size of body), all in flight at once.
fn answers(requests: &[(&str, String, u64)], windows: [(u32, u32); 2], sizes: &[usize]) -> (Vec<Answer>, u64) {
    let mut spec = client_spec("h2c");
    let request = |(method, path, size): &(&str, String, u64)| {
        let variant = serde_json::json!({
            "method": method, "path": path, "body_size": size,
        });
        serde_json::json!({"name": path, "weight": 1, "variants": [variant]})
    };
    spec.mix = serde_json::from_value(requests.iter().map(request).collect()).unwrap();
    spec.transport.stream_window = Some(windows[0].0.into());
    spec.transport.connection_window = Some(windows[0].1.into());
    let content = content();
    let mut client = Http2::new(&Rc::new(Http2::plan(&spec).unwrap()));
    let mut server = server(&content, Windows { stream: windows[1].0, connection: windows[1].1 });
    let mut inbox = Inbox::default();
    for slot in 0..requests.len() {
        inbox.begin_body(slot as u32, true);
        client.start(slot as u32, slot);
    }
    converse(&mut client, &mut server, sizes, &mut inbox);
    let mut found = vec![(None, Vec::new()); requests.len()];
    for event in std::mem::take(&mut inbox.events) {
        if let Event::Done { slot, status, .. } = event {
            found[slot as usize] = (status, inbox.kept(slot).to_vec());
        }
    }
    assert!(server.streams.is_empty(), "no stream is left");
    (found, content.0.load(Ordering::Relaxed))
}

fn requests(sizes: &[usize]) -> Vec<(&'static str, String, u64)> {
    let echo = |size: &usize| ("POST", "/echo".to_owned(), *size as u64);
    let bytes = |size: &usize| ("GET", format!("/bytes/{size}?x"), 0);
    let strange = [("GET", "/none".to_owned(), 0), ("PUT", "/bytes/1".to_owned(), 7)];
    sizes.iter().map(echo).chain(sizes.iter().map(bytes)).chain(strange).collect()
}

fn expected(sizes: &[usize]) -> Vec<(Option<u16>, Vec<u8>)> {
    let body = |size: &usize| (Some(200), pattern::body(*size));
    let strange = [(Some(404), Vec::new()), (Some(405), Vec::new())];
    sizes.iter().map(body).chain(sizes.iter().map(body)).chain(strange).collect()
}

#[test]
fn large_bodies_pass_in_both_directions_through_small_windows() {
    let sizes = [0, 1, 16_384, 16_385, 300_000];
    for windows in [[(1000, 65_535), (1000, 65_535)], [(1 << 20, 1 << 20), (1 << 20, 1 << 20)]] {
        for piece in [1000, 100_000] {
            let (found, count) = answers(&requests(&sizes), windows, &[piece]);
            assert!(found == expected(&sizes), "{windows:?}, {piece}");
            assert_eq!(count, 2 * sizes.len() as u64 + 2);
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_request_gets_its_answer_in_any_pieces(
        sizes in prop::collection::vec(0_usize..3000, 1..6),
        windows in [(1_u32..3000, 65_535_u32..70_000), (1_u32..3000, 65_535_u32..70_000)],
        pieces in pieces(),
    ) {
        let (found, _) = answers(&requests(&sizes), windows, &pieces);
        prop_assert!(found == expected(&sizes));
    }

    #[test]
    fn any_bytes_give_an_answer_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0_u8..11) {
        let mut machine = server(&content(), Windows::SMALLEST);
        machine.receive(PREFACE).unwrap();
        let mut framed = Vec::new();
        frame::head(&mut framed, bytes.len(), kind, bytes.first().copied().unwrap_or(0), 1);
        framed.extend(&bytes);
        let _ = machine.receive(&framed);
        let _ = machine.receive(&bytes);
    }
}

#[test]
fn what_breaks_the_protocol_breaks_the_connection() {
    let framed = |kind, flags, stream, payload: &[u8]| {
        let mut bytes = PREFACE.to_vec();
        frame::head(&mut bytes, payload.len(), kind, flags, stream);
        bytes.extend_from_slice(payload);
        bytes
    };
    for (name, bytes) in [
        ("another protocol", b"GET / HTTP/1.1\r\n".to_vec()),
        ("an even stream", framed(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 2, &[0x82, 0x84])),
        ("a body without a head", framed(kind::DATA, 0, 1, b"abc")),
        ("credit of nothing", framed(kind::WINDOW_UPDATE, 0, 0, &[0; 4])),
        ("too much credit", framed(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),
        (
            "interrupted fields",
            [framed(kind::HEADERS, 0, 1, &[0x82]), framed(kind::PING, 0, 0, &[0; 8])[24..].to_vec()].concat(),
        ),
        ("a wrong index", framed(kind::HEADERS, flag::END_HEADERS, 1, &[0xff, 0xff])),
    ] {
        assert!(server(&content(), Windows::SMALLEST).receive(&bytes).is_err(), "{name}");
    }
}

#[test]
fn an_abandoned_request_gets_nothing_more() {
    let content = content();
    let mut machine = server(&content, Windows::SMALLEST);
    let mut bytes = PREFACE.to_vec();
    // GET /bytes/100000, more than the window.
    let block = [&[0x82, 0x04, 13][..], b"/bytes/100000"].concat();
    frame::head(&mut bytes, block.len(), kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1);
    bytes.extend(block);
    machine.receive(&bytes).unwrap();
    machine.sent(machine.output().len()).unwrap();
    let mut reset = Vec::new();
    frame::with_number(&mut reset, kind::RST_STREAM, 1, 8);
    frame::with_number(&mut reset, kind::WINDOW_UPDATE, 0, 100_000);
    machine.receive(&reset).unwrap();
    assert!(machine.output().is_empty() && machine.streams.is_empty());
}
