//! What servers send to the load engine: HTTP/1.1, HTTP/2, gRPC, HTTP/3 and raw streams.

use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wirelab_contract::spec::ClientSpec;
use wirelab_engine::http1::Http1;
use wirelab_engine::http2::Http2;
use wirelab_engine::http3::{self, Inward, Response};
use wirelab_engine::machine::{Event, Inbox, Machine};
use wirelab_engine::raw::RawStream;
use wirelab_engine::refusal::Unreadable;
use wirelab_engine::requests::Requests;
use wirelab_engine::schedule::Share;

use crate::Target;
use crate::bytes::{part, pieces, with_part};
use crate::machine::{mix, run, spec};
use crate::requests::descriptors;

pub const TARGETS: &[Target] = &[
    Target { name: "http1", seeds: http1_seeds, read: http1 },
    Target { name: "http2", seeds: http2_seeds, read: http2 },
    Target { name: "hpack", seeds: hpack_seeds, read: hpack },
    Target { name: "grpc", seeds: grpc_seeds, read: grpc },
    Target { name: "grpc-messages", seeds: message_seeds, read: messages },
    Target { name: "http3", seeds: http3_seeds, read: http3 },
    Target { name: "http3-control", seeds: control_seeds, read: control },
    Target { name: "qpack", seeds: qpack_seeds, read: qpack },
    Target { name: "raw", seeds: raw_seeds, read: raw },
];

/// Steps for [`run`]: requests at once and pieces of 3 bytes, or one request after the other.
fn with_steps(peer: &[u8]) -> [Vec<u8>; 2] {
    [with_part(&[3, 3], peer), with_part(&[0x80, 0x20, 0xdf, 0x20, 0xdf, 0x85, 0x7f], peer)]
}

/// Declares the prepared requests of a thread.
macro_rules! plan {
    ($machine:ty, $spec:expr) => {{
        thread_local!(static PLAN: Rc<<$machine as Machine>::Plan> =
            Rc::new(<$machine>::plan(&$spec).expect("the requests are valid")));
        PLAN.with(Rc::clone)
    }};
}

fn http1_seeds() -> Vec<Vec<u8>> {
    let responses: [&[u8]; 4] = [
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ndate: Mon, 23 Nov 2026 21:00:00 GMT\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;a=b\r\nab\r\n0\r\nx: y\r\n\r\n",
        b"HTTP/1.1 103 Hints\r\nlink: a\r\n\r\nHTTP/1.0 200 OK\r\nconnection: keep-alive\r\n\r\nabc",
        b"HTTP/1.1 204 No\r\nconnection: close, x\r\n\r\n",
    ];
    responses.into_iter().flat_map(with_steps).collect()
}

fn http1(input: &[u8]) {
    run::<Http1>(&plan!(Http1, spec("h1c", &mix())), input, 3, true);
}

/// A frame of HTTP/2.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u32;
    [&length.to_be_bytes()[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn http2_seeds() -> Vec<Vec<u8>> {
    let settings = frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 2, 0, 4, 0, 1, 0, 0, 0, 5, 0, 0, 0x40, 0]);
    let head = |stream| frame(HEADERS, END_HEADERS, stream, &[0x88, 0x5c, 1, b'3', 0x40, 1, b'a', 1, b'b']);
    let answers = [head(1), frame(DATA, 8, 1, &[1, b'a', b'b', 0]), frame(DATA, END_STREAM, 1, b"c")].concat();
    let late = [frame(3, 0, 3, &[0, 0, 0, 7]), frame(8, 0, 0, &[0, 1, 0, 0]), frame(6, 0, 0, b"12345678")].concat();
    let split = [frame(HEADERS, END_STREAM, 5, &[0x88]), frame(9, END_HEADERS, 5, &[0xbe])].concat();
    let goodbye = frame(7, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]);
    let parts: [&[&[u8]]; 3] = [&[&settings, &answers, &late], &[&settings, &head(1), &split], &[&settings, &goodbye]];
    parts.into_iter().flat_map(|parts| with_steps(&parts.concat())).collect()
}

fn http2(input: &[u8]) {
    run::<Http2>(&plan!(Http2, spec("h2c", &mix())), input, 3, false);
}

fn hpack_seeds() -> Vec<Vec<u8>> {
    let blocks: [&[u8]; 6] = [
        &[0x88, 0x5c, 1, b'3'],
        &[0x48, 0x82, 0x64, 0x02, 0x58, 0x85, 0xae, 0xc3, 0x77, 0x1a, 0x4b],
        &[0x88, 0x40, 1, b'a', 1, b'b', 0xbe],
        &[0x3f, 0xe1, 0x1f, 0x20, 0x8d, 0x10, 1, b'a', 0],
        &[0x40, 11, b'g', b'r', b'p', b'c', b'-', b's', b't', b'a', b't', b'u', b's', 1, b'0', 0xbe, 0xbf],
        &[0x88, 0xbe],
    ];
    let all: Vec<u8> = blocks.iter().flat_map(|block| with_part(block, &[])).collect();
    vec![all.clone(), [all.clone(), all].concat()]
}

/// Blocks of header fields, each as the response to a request of its own.
fn hpack(mut input: &[u8]) {
    const MOST: u32 = 40;
    let plan = plan!(Http2, spec("h2c", &json!({})));
    let (mut machine, mut inbox) = (Http2::new(&plan), Inbox::default());
    machine.receive(&frame(SETTINGS, 0, 0, &[]), &mut inbox).expect("settings are valid");
    let mut failed = false;
    for number in 0..MOST {
        let Some((block, rest)) = part(input) else { break };
        input = rest;
        machine.start(0, 0);
        failed = machine.receive(&frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, block), &mut inbox).is_err();
        if failed {
            break;
        }
        let last = inbox.events.drain(..).filter(|event| !matches!(event, Event::FirstByte { .. })).count();
        // An interim head ends no stream, and a response that ends with one is malformed.
        assert_eq!(last, 1, "a complete response has one last event");
        machine.sent(machine.output().len());
    }
    assert!(machine.end(true, &mut inbox).is_ok() || failed, "a request is left");
}

fn grpc_seeds() -> Vec<Vec<u8>> {
    let settings = frame(SETTINGS, 0, 0, &[]);
    let trailers = |status: u8| {
        let block = [&[0, 11][..], b"grpc-status", &[1, status, 0, 12], b"grpc-message", b"\x03a%20"].concat();
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &block)
    };
    let body = frame(DATA, 0, 1, &[0, 0, 0, 0, 9, 9, 0xcc, 0x3b, 0x7f, 0x66, 0x9e, 0xa0, 0xf6, 0x3f]);
    let head = frame(HEADERS, END_HEADERS, 1, &[0x88]);
    let replies = [[&settings[..], &head, &body, &trailers(b'0')].concat(), [&settings[..], &trailers(b'7')].concat()];
    let own = |kind: u8| move |steps: Vec<u8>| [vec![kind], steps].concat();
    (0..2).flat_map(|kind| replies.iter().flat_map(|reply| with_steps(reply)).map(own(kind))).collect()
}

/// A call of a method of a user, with one message as the answer or a stream of them.
fn call(streams_response: bool, expect: &Value) -> Value {
    json!({
        "name": "x", "weight": 1, "expect": expect,
        "variants": [{"method": "POST", "path": "/shop.Orders/Get", "body_size": 0}],
        "method": {"streams_response": streams_response, "response_type": "shop.Order",
                   "descriptors": STANDARD.encode(descriptors())},
    })
}

fn known_call() -> ClientSpec {
    spec("grpcc", &json!({"request": {"method": "GET", "path": "/heron/2", "body_size": 9}}))
}

fn own_calls() -> ClientSpec {
    spec("grpcc", &json!({"mix": [call(false, &json!({})), call(true, &json!({"messages": 2}))]}))
}

/// A call whose answer is known, or calls of a user.
fn grpc(input: &[u8]) {
    match input.split_first() {
        Some((first, rest)) if first & 1 == 0 => run::<Http2>(&plan!(Http2, known_call()), rest, 1, false),
        Some((_, rest)) => run::<Http2>(&plan!(Http2, own_calls()), rest, 2, false),
        None => {}
    }
}

fn message_seeds() -> Vec<Vec<u8>> {
    let order: &[u8] =
        &[0x0a, 1, b'a', 0x12, 2, 7, 8, 0x1a, 3, 0x0a, 1, b'b', 0x21, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0x2a, 1, 0];
    let framed = [&[0, 0, 0, 0, order.len() as u8][..], order].concat();
    vec![framed.clone(), [framed.clone(), framed].concat(), vec![0; 5]]
}

/// Messages of gRPC, judged by their JSON.
fn messages(input: &[u8]) {
    thread_local!(static REQUESTS: [Requests; 2] = [false, true].map(|streams| {
        let mix = json!({"mix": [call(streams, &json!({"json": {"$.name": "a", "$..itemSku[0]": "7"}}))]});
        Requests::of(&spec("grpcc", &mix), Share { index: 0, of: 1 }).expect("the requests are valid")
    }));
    REQUESTS.with(|both| {
        for requests in both {
            let _ = requests.judge(requests.pick(), None, input.len() as u64, input);
        }
    });
}

/// A frame of HTTP/3.
fn framed(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind, payload.len() as u8][..], payload].concat()
}

fn http3_seeds() -> Vec<Vec<u8>> {
    let head = framed(1, &[0, 0, 0xc0 | 25, 0x54, 1, b'3', 0x21, b'a', 1, b'b']);
    let interim = framed(1, &[0, 0, 0xc0 | 24]);
    let trailers = framed(1, &[0, 0, 0x21, b'z', 0]);
    let parts: [&[&[u8]]; 3] = [
        &[&head, &framed(0, b"abc"), &trailers],
        &[&interim, &head, &framed(0x21, b"grease"), &framed(0, b"")],
        &[&head],
    ];
    parts.into_iter().map(|parts| with_part(&[0, 5], &parts.concat())).collect()
}

/// A response has one last event, wherever its pieces end.
fn http3(input: &[u8]) {
    let Some((steps, bytes)) = part(input) else { return };
    let Some((first, sizes)) = steps.split_first() else { return };
    let outcome = |sizes: &[u8]| {
        let (mut decoder, mut inbox) = (http3::Decoder::default(), Inbox::default());
        let mut response = Response::new(4, first & 1 != 0);
        let mut refused = None;
        for piece in pieces(bytes, sizes) {
            if let Err(error) = response.receive(piece, &mut decoder, &mut inbox) {
                refused = Some(match error {
                    Unreadable::Response(failure) => (false, failure.message),
                    Unreadable::Connection(failure) => (true, failure.message),
                });
                break;
            }
        }
        if refused.is_none() {
            response.end(&mut inbox);
        }
        let events: Vec<_> = inbox.events.iter().map(described).collect();
        let last = events.iter().filter(|(is_last, ..)| *is_last).count();
        assert_eq!(last, usize::from(refused.is_none()), "{events:?}");
        (events, refused)
    };
    assert_eq!(outcome(&[0]), outcome(sizes), "the result depends on the pieces of the input");
}

/// Whether an event is the last one of its request, its status and size, and the kind of failure.
fn described(event: &Event) -> (bool, Option<u16>, u64, String) {
    match event {
        Event::FirstByte { slot: 4, .. } => (false, None, 0, String::new()),
        Event::Done { slot: 4, status, bytes_in, .. } => (true, *status, *bytes_in, String::new()),
        Event::Failed { slot: 4, failure, .. } => (true, None, 0, failure.message.clone()),
        other => panic!("a response has no such event: {other:?}"),
    }
}

fn control_seeds() -> Vec<Vec<u8>> {
    let control = [&[0][..], &framed(4, &[1, 0, 6, 0x40, 0x64]), &framed(0x21, b"grease"), &framed(7, &[8])].concat();
    let streams: [&[u8]; 4] = [&control, &[2, 0x20, 0x20], &[3, 1, 2], &[0x21, 0, 0]];
    streams.map(|stream| with_part(&[1], stream)).to_vec()
}

/// A stream of the server alone, whose result does not depend on its pieces.
fn control(input: &[u8]) {
    let Some((sizes, bytes)) = part(input) else { return };
    let outcome = |sizes: &[u8]| {
        let (mut stream, mut goaway) = (Inward::default(), None);
        for piece in pieces(bytes, sizes) {
            match stream.receive(piece) {
                Ok(refused) => goaway = refused.or(goaway),
                Err(failure) => return Err(failure.message),
            }
        }
        Ok((goaway, stream.kind(), stream.end().is_ok()))
    };
    assert_eq!(outcome(&[0]), outcome(sizes), "the result depends on the pieces of the input");
}

fn qpack_seeds() -> Vec<Vec<u8>> {
    let blocks: [&[u8]; 5] = [
        &[0, 0, 0xc0 | 25, 0x54, 1, b'3'],
        &[0, 0, 0xc0 | 63, 0xff, 0],
        &[
            0, 0, 0x21, b'a', 1, b'b', 0x27, 7, b'c', b'o', b'n', b't', b'e', b'n', b't', b'-', b'l', b'e', b'n', b'g',
            b't', b'h', 1, b'0',
        ],
        &[0, 0, 0x5f, 9, 0x83, 0x64, 0x02, 0x7f],
        &[0, 0, 0x80],
    ];
    vec![blocks.iter().flat_map(|block| with_part(block, &[])).collect()]
}

/// Without a dynamic table, a block means the same to every decoder.
fn qpack(mut input: &[u8]) {
    let mut decoder = http3::Decoder::default();
    while let Some((block, rest)) = part(input) {
        let fresh = http3::Decoder::default().decode(block).map_err(|failure| failure.message);
        for _ in 0..2 {
            let known = decoder.decode(block).map_err(|failure| failure.message);
            assert_eq!(known, fresh, "the fields depend on earlier blocks");
        }
        input = rest;
    }
}

fn raw_seeds() -> Vec<Vec<u8>> {
    with_steps(&[7; 25]).to_vec()
}

fn raw(input: &[u8]) {
    run::<RawStream>(&plan!(RawStream, spec("tcp", &json!({}))), input, 1, true);
}
