//! What clients send to the null server: HTTP/1.1, HTTP/2, and requests on streams of QUIC.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wirelab_engine::http1::server::Http1Server;
use wirelab_engine::http2::server::Http2Server;
use wirelab_engine::http2::windows::Windows;
use wirelab_engine::http3;
use wirelab_engine::null::{Answer, Body, Content, Name, ServerMachine};
use wirelab_engine::payload::Payload;
use wirelab_engine::raw;

use crate::Target;
use crate::bytes::{part, pieces, with_part};
use crate::machines::frame;

pub const TARGETS: &[Target] = &[
    Target { name: "http1-server", seeds: http1_seeds, read: http1 },
    Target { name: "http2-server", seeds: http2_seeds, read: http2 },
    Target { name: "http3-server", seeds: http3_seeds, read: http3 },
    Target { name: "raw-server", seeds: raw_seeds, read: raw },
];

/// How much of an answer is read: a raw request may ask for any size.
const MOST: usize = 200_000;

/// Patterns and echoes, with the number of answered requests.
#[derive(Default)]
struct Counted(AtomicU64);

impl Content for Counted {
    fn answer(&self, method: &str, path: &str) -> Answer {
        let size = path.strip_prefix("/bytes/").and_then(|size| size.parse::<u64>().ok());
        match (method, size) {
            ("POST", _) if path == "/echo" => Answer { body: Body::Echo, ..Answer::empty(200) },
            ("GET", Some(size)) => Answer {
                body: Body::Known(Payload::Pattern(size.min(100_000))),
                field: Some((Name::ContentType, "text/plain")),
                ..Answer::empty(200)
            },
            _ => Answer::empty(404),
        }
    }

    fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Feeds a server, and takes its output after each piece. Returns whether it broke the connection, and the number of
/// answered requests.
fn served<M: ServerMachine>(bytes: &[u8], sizes: &[u8], most: usize) -> (bool, u64) {
    let content = Arc::new(Counted::default());
    let mut machine = M::new(&(Arc::clone(&content) as Arc<dyn Content>), Windows::SMALLEST);
    let mut result = Ok(());
    for piece in pieces(bytes, sizes) {
        result = machine.receive(piece);
        while result.is_ok() && !machine.output().is_empty() {
            result = machine.sent(machine.output().len().min(most));
        }
        if result.is_err() || machine.is_closing() {
            break;
        }
    }
    (result.is_err(), content.0.load(Ordering::Relaxed))
}

fn http1_seeds() -> Vec<Vec<u8>> {
    let requests: [&[u8]; 3] = [
        b"GET /bytes/3?x HTTP/1.1\r\nhost: a\r\n\r\nGET /bytes/3?x HTTP/1.1\r\nhost: a\r\n\r\n",
        b"POST /echo HTTP/1.1\r\ncontent-length: 5\r\n\r\nhelloGET /bytes/40000 HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\nGET / HTTP/1.1\r\nconnection: close\r\n\r\n",
    ];
    requests.map(|requests| with_part(&[7], requests)).to_vec()
}

fn http1(input: &[u8]) {
    let Some((sizes, bytes)) = part(input) else { return };
    let whole = served::<Http1Server>(bytes, &[0], usize::MAX);
    let parts = served::<Http1Server>(bytes, sizes, 4096);
    assert_eq!(whole, parts, "the answers depend on the pieces of the input");
}

fn http2_seeds() -> Vec<Vec<u8>> {
    let begin = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, &[0, 4, 0, 0, 0, 9])].concat();
    let get = |stream| frame(1, 5, stream, &[0x82, 0x86, 0x44, 8, b'/', b'b', b'y', b't', b'e', b's', b'/', b'9']);
    let large = frame(1, 5, 3, &[&[0x82, 0x04, 12][..], b"/bytes/70000"].concat());
    let echo = [frame(1, 4, 5, &[0x83, 0x04, 5, b'/', b'e', b'c', b'h', b'o', 0x5c, 1, b'2']), frame(0, 1, 5, b"ab")];
    let credit = [frame(8, 0, 0, &[0, 1, 0, 0]), frame(8, 0, 3, &[0, 1, 0, 0]), frame(3, 0, 3, &[0, 0, 0, 8])];
    let all = [&begin[..], &get(1), &large, &echo.concat(), &credit.concat(), &frame(6, 0, 0, b"12345678")].concat();
    vec![with_part(&[9], &all), with_part(&[1], &[begin, get(1)].concat())]
}

/// What a stream means may depend on the pieces: it is gone as soon as its answer is sent.
fn http2(input: &[u8]) {
    let Some((sizes, bytes)) = part(input) else { return };
    served::<Http2Server>(bytes, sizes, 4096);
}

fn http3_seeds() -> Vec<Vec<u8>> {
    // Frames with lengths below 64; the fields are of the static table of QPACK, or have a name from there.
    let frame = |kind: u8, payload: &[u8]| [&[kind, payload.len() as u8], payload].concat();
    let get = frame(1, &[&[0, 0, 0xd1, 0x51, 8][..], b"/bytes/9"].concat());
    let echo = [frame(1, &[&[0, 0, 0xd4, 0x51, 5][..], b"/echo"].concat()), frame(0, b"hello"), frame(0x21, b"x")];
    vec![with_part(&[3], &get), with_part(&[2, 9], &echo.concat())]
}

/// Reads a request in pieces of these sizes. Returns whether it was answered.
fn is_answered(bytes: &[u8], sizes: &[u8], answers: &mut http3::server::Answers) -> bool {
    let mut exchange = http3::server::Exchange::default();
    let received = pieces(bytes, sizes).try_for_each(|piece| exchange.receive(piece, answers));
    let is_answered = received.and_then(|()| exchange.end(answers)).is_ok();
    while !exchange.output().is_empty() {
        exchange.sent(exchange.output().len().min(4096));
    }
    is_answered
}

/// A head that repeats the last one of its connection has the same answer. The frames of an echo depend on the pieces.
fn http3(input: &[u8]) {
    let Some((sizes, bytes)) = part(input) else { return };
    let mut answers = http3::server::Answers::new(&(Arc::new(Counted::default()) as Arc<dyn Content>));
    let first = is_answered(bytes, &[0], &mut answers);
    assert_eq!(first, is_answered(bytes, sizes, &mut answers), "the answer depends on the pieces of the request");
}

fn raw_seeds() -> Vec<Vec<u8>> {
    let request = |wanted: u64, body: &[u8], delay: u64| {
        let numbers = [wanted, body.len() as u64, delay].map(u64::to_be_bytes);
        with_part(&[5], &[numbers.as_flattened(), body].concat())
    };
    vec![request(10, b"", 0), request(70_000, b"body", 0), request(1, b"", 1)]
}

fn raw(input: &[u8]) {
    let Some((sizes, bytes)) = part(input) else { return };
    let answer = |sizes: &[u8]| {
        let mut exchange = raw::server::Exchange::default();
        let received = pieces(bytes, sizes).try_for_each(|piece| exchange.receive(piece));
        received.and_then(|()| exchange.end(&Counted::default())).ok()?;
        let mut answer = Vec::new();
        while !exchange.output().is_empty() && answer.len() < MOST {
            answer.extend_from_slice(exchange.output());
            exchange.sent(exchange.output().len());
        }
        Some(answer)
    };
    assert!(answer(&[0]) == answer(sizes), "the answer depends on the pieces of the request");
}
