//! The server's side of HTTP/1.1, without input or output. A head that repeats the last one is not parsed again.

use std::sync::Arc;

use httparse::{EMPTY_HEADER, Header, Request, Status};
use wirelab_contract::error_kind::ErrorKind;

use super::chunked::Chunks;
use super::head::number;
use crate::http2::windows::Windows;
use crate::null::{Answer, Body, Content, Outbox, ServerMachine};
use crate::refusal::Failure;

/// Largest head in bytes.
const LARGEST: usize = 64 * 1024;

/// Largest number of fields.
const FIELDS: usize = 128;

/// A connection of a server.
pub struct Http1Server {
    content: Arc<dyn Content>,
    /// Bytes that wait: an incomplete head, or requests behind a body that is being sent.
    waiting: Vec<u8>,
    /// The last head, and what follows from it.
    last: Vec<u8>,
    known: Option<Known>,
    arriving: Option<Arriving>,
    out: Outbox,
    closing: bool,
}

/// A request body that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// Bytes to come.
    Length(u64),
    Chunked,
}

struct Arriving {
    left: Left,
    /// Its body is the answer, whose head is sent.
    echoed: bool,
}

enum Left {
    Length(u64),
    Chunks(Chunks),
}

/// The facts that follow from a request head.
#[derive(Debug, Clone)]
struct Known {
    framing: Framing,
    persists: bool,
    /// The encoded head of the answer.
    head: Vec<u8>,
    body: Body,
}

impl ServerMachine for Http1Server {
    fn new(content: &Arc<dyn Content>, _: Windows) -> Self {
        Self {
            content: Arc::clone(content),
            waiting: Vec::new(),
            last: Vec::new(),
            known: None,
            arriving: None,
            out: Outbox::default(),
            closing: false,
        }
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.waiting.is_empty() {
            let used = self.take(bytes)?;
            self.waiting.extend_from_slice(&bytes[used..]);
            return self.check_waiting();
        }
        self.waiting.extend_from_slice(bytes);
        self.take_waiting()
    }

    fn output(&self) -> &[u8] {
        self.out.output()
    }

    fn sent(&mut self, count: usize) -> Result<(), Failure> {
        let was_busy = self.out.has_body();
        self.out.sent(count);
        if was_busy && !self.out.has_body() && !self.waiting.is_empty() { self.take_waiting() } else { Ok(()) }
    }

    fn is_closing(&self) -> bool {
        self.closing && self.arriving.is_none()
    }
}

impl Http1Server {
    fn take_waiting(&mut self) -> Result<(), Failure> {
        let waiting = std::mem::take(&mut self.waiting);
        let used = self.take(&waiting)?;
        // Its memory is used again.
        self.waiting = waiting;
        self.waiting.drain(..used);
        self.check_waiting()
    }

    /// Answers requests, and returns the number of bytes that were used.
    fn take(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        let mut at = 0;
        while at < bytes.len() && !self.out.has_body() {
            if let Some(mut arriving) = self.arriving.take() {
                let (used, ended) = self.take_body(&mut arriving, &bytes[at..])?;
                at += used;
                if !ended {
                    self.arriving = Some(arriving);
                }
            } else if self.closing {
                return Ok(bytes.len());
            } else {
                match self.take_head(&bytes[at..])? {
                    Some(used) => at += used,
                    None => break,
                }
            }
        }
        Ok(at)
    }

    /// Takes the head at the beginning of `bytes`. Returns its size; `None` if it is incomplete.
    fn take_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Failure> {
        let known = match self.known.take() {
            Some(known) if bytes.starts_with(&self.last) => known,
            _ => {
                let Some((known, size)) = self.parse(bytes)? else { return Ok(None) };
                self.last.clear();
                self.last.extend_from_slice(&bytes[..size]);
                known
            }
        };
        self.closing = !known.persists;
        self.begin(&known);
        self.known = Some(known);
        Ok(Some(self.last.len()))
    }

    /// Sends the answer to a head, or its beginning.
    fn begin(&mut self, known: &Known) {
        let echoed = matches!(known.body, Body::Echo);
        let left = match known.framing {
            Framing::Length(0) => None,
            Framing::Length(length) => Some(Left::Length(length)),
            Framing::Chunked => Some(Left::Chunks(Chunks::default())),
        };
        self.out.push(&known.head);
        if let Body::Known(payload) = &known.body {
            self.out.body(payload);
        }
        self.arriving = left.map(|left| Arriving { left, echoed });
        if self.arriving.is_none() || !echoed {
            self.content.count();
        }
    }

    /// Takes bytes of a request body. Returns their number, and whether the body is complete.
    fn take_body(&mut self, arriving: &mut Arriving, bytes: &[u8]) -> Result<(usize, bool), Failure> {
        let echoed = arriving.echoed;
        let (used, ended) = match &mut arriving.left {
            Left::Length(left) => {
                let used = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                if echoed {
                    self.out.push(&bytes[..used]);
                }
                *left -= used as u64;
                (used, *left == 0)
            }
            Left::Chunks(chunks) => {
                let out = &mut self.out;
                let echo = |data: &[u8]| {
                    if echoed {
                        out.push(format!("{:x}\r\n", data.len()).as_bytes());
                        out.push(data);
                        out.push(b"\r\n");
                    }
                };
                let used = chunks.read(bytes, echo)?;
                if chunks.ended() && echoed {
                    self.out.push(b"0\r\n\r\n");
                }
                (used, chunks.ended())
            }
        };
        if ended && echoed {
            self.content.count();
        }
        Ok((used, ended))
    }

    /// The facts from the head at the beginning of `bytes`, and its size; `None` if it is incomplete.
    fn parse(&self, bytes: &[u8]) -> Result<Option<(Known, usize)>, Failure> {
        let mut fields = [EMPTY_HEADER; FIELDS];
        let mut request = Request::new(&mut fields);
        let size = match request.parse(bytes) {
            Ok(Status::Partial) => return Ok(None),
            Ok(Status::Complete(size)) => size,
            Err(error) => return Err(broken(&format!("the head of a request is not valid: {error}"))),
        };
        let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
        let path = target.split('?').next().unwrap_or_default();
        let (framing, persists) = framing(request.version == Some(1), request.headers)?;
        let answer = self.content.answer(method, path);
        let head = encode(&answer, framing, persists);
        Ok(Some((Known { framing, persists, head, body: answer.body }, size)))
    }

    fn check_waiting(&self) -> Result<(), Failure> {
        let is_head = self.arriving.is_none() && !self.out.has_body();
        if is_head && self.waiting.len() > LARGEST {
            return Err(broken(&format!("the head of a request is larger than {LARGEST} bytes")));
        }
        Ok(())
    }
}

/// How the body of a request ends (RFC 9112, section 6.3), and whether the connection persists (section 9.3).
fn framing(persists: bool, fields: &[Header<'_>]) -> Result<(Framing, bool), Failure> {
    let (mut length, mut chunked, mut persists) = (None, false, persists);
    for field in fields {
        if field.name.eq_ignore_ascii_case("content-length") {
            let value = number(field.value.trim_ascii());
            let value = value.ok_or_else(|| broken("the field `content-length` is no number"))?;
            if length.replace(value).is_some_and(|other| other != value) {
                return Err(broken("the fields `content-length` contradict each other"));
            }
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            if !field.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                return Err(broken("the coding of a request is not `chunked`"));
            }
            chunked = true;
        } else if field.name.eq_ignore_ascii_case("connection") {
            for item in field.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                persists &= !item.eq_ignore_ascii_case(b"close");
            }
        }
    }
    match (chunked, length) {
        // A way to smuggle requests (RFC 9112, section 6.1).
        (true, Some(_)) => Err(broken("a request has a length and a coding")),
        (true, None) => Ok((Framing::Chunked, persists)),
        (false, length) => Ok((Framing::Length(length.unwrap_or(0)), persists)),
    }
}

/// Encodes the head of an answer.
fn encode(answer: &Answer, framing: Framing, persists: bool) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} {}\r\n", answer.status, reason(answer.status));
    let length = match (&answer.body, framing) {
        (Body::Known(payload), _) => Some(payload.size()),
        (Body::Echo, Framing::Length(length)) => Some(length),
        (Body::Echo, Framing::Chunked) => None,
    };
    head += &length.map_or("transfer-encoding: chunked\r\n".to_owned(), |n| format!("content-length: {n}\r\n"));
    if let Some((name, value)) = answer.field {
        head += &format!("{}: {value}\r\n", name.text());
    }
    if !persists {
        head += "connection: close\r\n";
    }
    (head + "\r\n").into_bytes()
}

/// The reason phrase, which no recipient may depend on (RFC 9112, section 4).
const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        302 => "Found",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        _ => "",
    }
}

fn broken(message: &str) -> Failure {
    Failure::new(ErrorKind::Protocol, message)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use proptest::prelude::*;

    use super::*;
    use crate::null::testing::content;
    use crate::testing::cases;

    /// Answers these bytes, in pieces of this size.
    fn answered(request: &[u8], piece: usize) -> (Result<Vec<u8>, Failure>, u64, bool) {
        let content = content();
        let erased: Arc<dyn Content> = Arc::clone(&content) as _;
        let mut machine = Http1Server::new(&erased, Windows::SMALLEST);
        let mut sent = Vec::new();
        for piece in request.chunks(piece) {
            let received = machine.receive(piece);
            while !machine.output().is_empty() {
                let count = machine.output().len().min(4096);
                sent.extend_from_slice(&machine.output()[..count]);
                machine.sent(count).unwrap();
            }
            if let Err(failure) = received {
                return (Err(failure), content.0.load(Ordering::Relaxed), false);
            }
        }
        (Ok(sent), content.0.load(Ordering::Relaxed), machine.is_closing())
    }

    const GET: &str = "GET /bytes/3?x HTTP/1.1\r\nhost: a\r\n\r\n";
    const THREE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n\x00\x01\x02";

    #[test]
    fn requests_in_a_pipeline_are_answered_in_order_wherever_reads_end() {
        let large = "GET /bytes/100000 HTTP/1.1\r\nhost: a\r\n\r\n";
        let echo = "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello";
        let chunked = "POST /echo HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
        let last = "GET /none HTTP/1.1\r\nconnection: close\r\n\r\n";
        let requests = [GET, GET, large, echo, GET, chunked, last, "ignored"].concat();
        for piece in [1, 7, 50, 10_000] {
            let (sent, count, closing) = answered(requests.as_bytes(), piece);
            let sent = sent.unwrap();
            let mut expected =
                [THREE, THREE, "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"].concat().into_bytes();
            expected.extend(wirelab_contract::pattern::body(100_000));
            let echoed = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
            expected.extend([echoed, THREE, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"].concat().bytes());
            assert!(sent.starts_with(&expected), "pieces of {piece}");
            let end = "0\r\n\r\nHTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            assert!(sent.ends_with(end.as_bytes()), "pieces of {piece}");
            assert_eq!((count, closing), (7, true));
        }
    }

    #[test]
    fn requests_that_smuggle_or_have_no_end_break_the_connection() {
        for wrong in [
            "POST /echo HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n".to_owned(),
            "POST /echo HTTP/1.1\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n".to_owned(),
            "POST /echo HTTP/1.1\r\ncontent-length: -3\r\n\r\n".to_owned(),
            "POST /echo HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n".to_owned(),
            "GET /\r\n\r\n\r\n".to_owned(),
            format!("GET / HTTP/1.1\r\na: {}", "b".repeat(LARGEST)),
        ] {
            assert!(answered(wrong.as_bytes(), 1000).0.is_err(), "{wrong:.60}");
        }
        let (sent, count, _) = answered([GET, "\0\0\r\n\r\n"].concat().as_bytes(), 1000);
        assert!(sent.is_err());
        assert_eq!(count, 1, "what was asked before is answered");
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn any_bytes_give_an_answer_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), piece in 1..50usize) {
            let _ = answered(&[GET.as_bytes(), &bytes].concat(), piece);
        }
    }
}
