//! The server's side of HTTP/2, and of gRPC on it, without input or output. A path that repeats the last one is not
//! looked up again.

use std::collections::VecDeque;
use std::sync::Arc;

use wirelab_contract::error_kind::ErrorKind;

use super::fields::{Decoder, LENGTH, STATUS, encode_integer, encode_named};
use super::frame::{self, HEADER, Header, LARGEST, flag, kind, setting};
use super::windows::Windows;
use super::{AHEAD, LARGEST_BLOCK};
use crate::grpc;
use crate::null::{Answer, Body, Content, Name, ServerMachine, Status};
use crate::payload::Payload;
use crate::refusal::Failure;

/// The first bytes of a client (section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Concurrent requests of a connection; above that of any load, so that no request waits for it.
const STREAMS: u32 = 100_000;

/// Indices of names in the static table of HPACK.
const CONTENT_TYPE: usize = 31;
const LOCATION: usize = 46;

/// The index of `:status: 200` in the static table, as a field.
const STATUS_200: u8 = 0x80 | STATUS as u8;

/// The largest request of a call of gRPC that the server keeps, in bytes.
const LARGEST_CALL: usize = 64 * 1024;

/// Window of a connection before any update (section 6.9.2), and largest window (section 6.9.1).
const FIRST_WINDOW: i64 = 65_535;
const LARGEST_WINDOW: i64 = i32::MAX as i64;

/// A connection of a server.
pub struct Http2Server {
    content: Arc<dyn Content>,
    windows: Windows,
    out: Vec<u8>,
    /// Bytes of `out` that were sent.
    sent: usize,
    /// The beginning of an incomplete frame, or of the preface.
    partial: Vec<u8>,
    begun: bool,
    /// The block of header fields that is not complete: its stream, and whether it ends the stream.
    block: Option<(u32, bool)>,
    block_bytes: Vec<u8>,
    decoder: Decoder,
    /// The last request, and its answer.
    last: Option<(Vec<u8>, Vec<u8>, Answer)>,
    /// Streams whose request arrives, or whose answer waits for credit.
    streams: Vec<Stream>,
    /// Those of them that have something to send, in turns.
    ready: VecDeque<u32>,
    /// The newest stream, to tell old streams from streams that the client has not opened.
    newest: u32,
    /// The largest frame that the peer takes.
    peer_frame: usize,
    /// Credit of a new stream.
    first_credit: i64,
    /// Credit for bodies on the whole connection.
    credit: i64,
    /// Body bytes that were received and not credited again.
    owed: u32,
}

/// A stream that is not complete.
struct Stream {
    id: u32,
    credit: i64,
    owed: u32,
    /// Whether the request is complete.
    asked: bool,
    sending: Sending,
    /// Whether the status of a call follows the body.
    has_trailers: bool,
}

enum Sending {
    /// Nothing yet: the answer follows the request.
    Later(Answer),
    /// Nothing yet: the answer follows from the path and the body of this call.
    Call(Vec<u8>, Vec<u8>),
    /// A body from this offset on.
    Known(Payload, u64),
    /// The body of the request, as far as it is there.
    Echo(VecDeque<u8>),
}

impl ServerMachine for Http2Server {
    fn new(content: &Arc<dyn Content>, windows: Windows) -> Self {
        let mut out = Vec::new();
        frame::head(&mut out, 12, kind::SETTINGS, 0, 0);
        frame::set(&mut out, setting::MAX_CONCURRENT_STREAMS, STREAMS);
        frame::set(&mut out, setting::INITIAL_WINDOW_SIZE, windows.stream);
        let more = i64::from(windows.connection) - FIRST_WINDOW;
        if more > 0 {
            frame::with_number(&mut out, kind::WINDOW_UPDATE, 0, more as u32);
        }
        Self {
            content: Arc::clone(content),
            windows,
            out,
            sent: 0,
            partial: Vec::new(),
            begun: false,
            block: None,
            block_bytes: Vec::new(),
            decoder: Decoder::default(),
            last: None,
            streams: Vec::new(),
            ready: VecDeque::new(),
            newest: 0,
            peer_frame: LARGEST,
            first_credit: FIRST_WINDOW,
            credit: FIRST_WINDOW,
            owed: 0,
        }
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.partial.is_empty() {
            let used = self.take(bytes)?;
            self.partial.extend_from_slice(&bytes[used..]);
        } else {
            self.partial.extend_from_slice(bytes);
            let mut partial = std::mem::take(&mut self.partial);
            let used = self.take(&partial)?;
            partial.drain(..used);
            // Its memory is used again.
            self.partial = partial;
        }
        if self.owed > self.windows.connection / 2 {
            frame::with_number(&mut self.out, kind::WINDOW_UPDATE, 0, self.owed);
            self.owed = 0;
        }
        self.send_bodies();
        Ok(())
    }

    fn output(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    fn sent(&mut self, count: usize) -> Result<(), Failure> {
        self.sent += count;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
            self.send_bodies();
        }
        Ok(())
    }

    fn is_closing(&self) -> bool {
        false
    }
}

impl Http2Server {
    /// Takes whole frames, and returns the number of their bytes.
    fn take(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        let mut at = 0;
        if !self.begun {
            let size = bytes.len().min(PREFACE.len());
            if bytes[..size] != PREFACE[..size] {
                return Err(broken("the client did not begin with the preface of HTTP/2"));
            }
            if size < PREFACE.len() {
                return Ok(0);
            }
            self.begun = true;
            at = size;
        }
        while let Some(header) = Header::read(&bytes[at..]) {
            if header.length > LARGEST {
                return Err(broken("the client sent a frame that is too large"));
            }
            let Some(payload) = bytes.get(at + HEADER..at + HEADER + header.length) else { break };
            self.frame(header, payload)?;
            at += HEADER + header.length;
        }
        Ok(at)
    }

    fn frame(&mut self, header: Header, payload: &[u8]) -> Result<(), Failure> {
        if self.block.is_some_and(|(stream, _)| header.kind != kind::CONTINUATION || header.stream != stream) {
            return Err(broken("the client interrupted header fields"));
        }
        let ends = header.flags & flag::END_STREAM != 0;
        match header.kind {
            kind::HEADERS => {
                let mut block = unpadded(header, payload)?;
                if header.flags & flag::PRIORITY != 0 {
                    block = block.get(5..).ok_or_else(|| broken("a frame lacks its priority"))?;
                }
                if header.flags & flag::END_HEADERS != 0 {
                    return self.headed(header.stream, ends, block);
                }
                self.block = Some((header.stream, ends));
                self.block_bytes.clear();
                self.block_bytes.extend_from_slice(block);
            }
            kind::CONTINUATION => {
                let (stream, ends) = self.block.ok_or_else(|| broken("header fields continue without a beginning"))?;
                if self.block_bytes.len() + payload.len() > LARGEST_BLOCK {
                    return Err(broken("the header fields of a request are too large"));
                }
                self.block_bytes.extend_from_slice(payload);
                if header.flags & flag::END_HEADERS != 0 {
                    self.block = None;
                    let block = std::mem::take(&mut self.block_bytes);
                    return self.headed(stream, ends, &block);
                }
            }
            kind::DATA => return self.data(header, unpadded(header, payload)?, ends),
            kind::RST_STREAM => self.streams.retain(|stream| stream.id != header.stream),
            kind::SETTINGS => self.settings(header, payload)?,
            kind::PING if payload.len() != 8 => return Err(broken("a frame has a wrong size")),
            kind::PING if header.flags & flag::ACK == 0 => {
                frame::head(&mut self.out, 8, kind::PING, flag::ACK, 0);
                self.out.extend_from_slice(payload);
            }
            kind::WINDOW_UPDATE => self.window_update(header.stream, payload)?,
            kind::PUSH_PROMISE => return Err(broken("the client pushed")),
            kind::PRIORITY | kind::PING | kind::GOAWAY | 10.. => {}
        }
        Ok(())
    }

    /// A block of fields is complete: a head, or trailers.
    fn headed(&mut self, id: u32, ends: bool, block: &[u8]) -> Result<(), Failure> {
        let fields = self.decoder.decode(block)?;
        if let Some(place) = self.streams.iter().position(|stream| stream.id == id) {
            return self.asked(place);
        }
        if id <= self.newest {
            // Trailers of a stream that is gone.
            return Ok(());
        }
        if id.is_multiple_of(2) {
            return Err(broken("the client opened a stream with an even number"));
        }
        self.newest = id;
        let credit = self.first_credit;
        if self.content.is_grpc() {
            let sending = Sending::Call(self.decoder.path.clone(), Vec::new());
            self.streams.push(Stream { id, credit, owed: 0, asked: false, sending, has_trailers: false });
            return if ends { self.asked(self.streams.len() - 1) } else { Ok(()) };
        }
        let answer = self.answer();
        let sending = match (&answer.body, ends) {
            (Body::Known(payload), true) => {
                self.respond(id, credit, &answer, payload);
                return Ok(());
            }
            (Body::Known(_), false) => Sending::Later(answer),
            (Body::Echo, true) => {
                self.head(id, &answer, Some(0), true);
                self.content.count();
                return Ok(());
            }
            (Body::Echo, false) => {
                self.head(id, &answer, fields.length, false);
                Sending::Echo(VecDeque::new())
            }
        };
        self.streams.push(Stream { id, credit, owed: 0, asked: false, sending, has_trailers: false });
        Ok(())
    }

    /// The answer to the request of the decoder.
    fn answer(&mut self) -> Answer {
        let (method, path) = (&self.decoder.method, &self.decoder.path);
        if let Some((last_method, last_path, answer)) = &self.last
            && last_path == path
            && last_method == method
        {
            return answer.clone();
        }
        let without_query = path.split(|byte| *byte == b'?').next().unwrap_or_default();
        let answer = match (std::str::from_utf8(method), std::str::from_utf8(without_query)) {
            (Ok(method), Ok(path)) => self.content.answer(method, path),
            _ => Answer::empty(400),
        };
        self.last = Some((method.clone(), path.clone(), answer.clone()));
        answer
    }

    /// Sends an answer, as far as the peer's credit goes.
    fn respond(&mut self, id: u32, credit: i64, answer: &Answer, payload: &Payload) {
        let size = payload.size();
        self.head(id, answer, Some(size), size == 0);
        self.content.count();
        let at_once = credit.min(self.credit).min(self.peer_frame as i64).max(0) as u64;
        if size == 0 {
            return;
        }
        if size <= at_once && self.ready.is_empty() {
            frame::head(&mut self.out, size as usize, kind::DATA, flag::END_STREAM, id);
            self.out.extend_from_slice(payload.slice(0, size));
            self.credit -= size as i64;
        } else {
            self.ready.push_back(id);
            let sending = Sending::Known(payload.clone(), 0);
            self.streams.push(Stream { id, credit, owed: 0, asked: true, sending, has_trailers: false });
        }
    }

    /// Sends the outcome of a call.
    fn conclude(&mut self, id: u32, credit: i64, outcome: Result<Vec<u8>, Status>) -> Result<(), Failure> {
        self.content.count();
        let message = match outcome {
            Ok(message) => message,
            Err(status) => {
                self.grpc_head(id, Some(status));
                return Ok(());
            }
        };
        let mut framed = Vec::new();
        grpc::frame(&mut framed, &message).map_err(|_| broken("the answer to a call is too long"))?;
        self.grpc_head(id, None);
        // It goes with other bodies, and mostly at once.
        self.ready.push_back(id);
        let sending = Sending::Known(Payload::Own(framed.into()), 0);
        self.streams.push(Stream { id, credit, owed: 0, asked: true, sending, has_trailers: true });
        Ok(())
    }

    /// Sends the head of the answer to a call, which is all of it if the call failed.
    fn grpc_head(&mut self, id: u32, failed: Option<Status>) {
        let flags = flag::END_HEADERS | if failed.is_some() { flag::END_STREAM } else { 0 };
        self.fields(id, flags, |block| {
            block.push(STATUS_200);
            encode_named(block, false, CONTENT_TYPE, b"application/grpc");
            if let Some(Status(status)) = failed {
                encode_status(block, status);
            }
        });
    }

    /// Sends a block of fields.
    fn fields(&mut self, id: u32, flags: u8, encode: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        frame::head(&mut self.out, 0, kind::HEADERS, flags, id);
        encode(&mut self.out);
        let size = (self.out.len() - start - HEADER) as u32;
        self.out[start..start + 3].copy_from_slice(&size.to_be_bytes()[1..]);
    }

    /// Sends the head of an answer.
    fn head(&mut self, id: u32, answer: &Answer, length: Option<u64>, ends: bool) {
        let flags = flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 };
        self.fields(id, flags, |block| {
            match answer.status {
                200 => block.push(STATUS_200),
                status => encode_named(block, false, STATUS, status.to_string().as_bytes()),
            }
            if let Some(length) = length {
                encode_named(block, false, LENGTH, length.to_string().as_bytes());
            }
            if let Some((name, value)) = answer.field {
                let index = match name {
                    Name::ContentType => CONTENT_TYPE,
                    Name::Location => LOCATION,
                };
                encode_named(block, false, index, value.as_bytes());
            }
        });
    }

    fn data(&mut self, header: Header, body: &[u8], ends: bool) -> Result<(), Failure> {
        if header.stream == 0 || header.stream > self.newest {
            return Err(broken("the client sent a body on a stream that is not open"));
        }
        // The whole frame counts, with its padding (section 6.9.1).
        self.owed += header.length as u32;
        let Some(place) = self.streams.iter().position(|stream| stream.id == header.stream) else { return Ok(()) };
        let stream = &mut self.streams[place];
        stream.owed += header.length as u32;
        if stream.owed > self.windows.stream / 2 && !ends {
            frame::with_number(&mut self.out, kind::WINDOW_UPDATE, header.stream, stream.owed);
            stream.owed = 0;
        }
        if let Sending::Echo(bytes) = &mut stream.sending {
            if bytes.is_empty() {
                self.ready.push_back(stream.id);
            }
            bytes.extend(body);
        }
        if let Sending::Call(_, bytes) = &mut stream.sending {
            if bytes.len() + body.len() > LARGEST_CALL {
                return Err(broken("the request of a call is too long"));
            }
            bytes.extend_from_slice(body);
        }
        if ends { self.asked(place) } else { Ok(()) }
    }

    /// The request of a stream is complete.
    fn asked(&mut self, place: usize) -> Result<(), Failure> {
        let stream = &mut self.streams[place];
        if std::mem::replace(&mut stream.asked, true) {
            return Err(broken("the client sent more after the end of a request"));
        }
        match &stream.sending {
            Sending::Later(answer) => {
                let answer = answer.clone();
                let Stream { id, credit, .. } = self.streams.swap_remove(place);
                if let Body::Known(payload) = &answer.body {
                    self.respond(id, credit, &answer, payload);
                }
            }
            Sending::Echo(bytes) => {
                if bytes.is_empty() {
                    self.ready.push_back(stream.id);
                }
                self.content.count();
            }
            Sending::Call(path, request) => {
                let path = std::str::from_utf8(path).unwrap_or_default();
                let outcome = self.content.call(path, request);
                let Stream { id, credit, .. } = self.streams.swap_remove(place);
                return self.conclude(id, credit, outcome);
            }
            Sending::Known(..) => {}
        }
        Ok(())
    }

    /// Sends pieces of bodies in turns, as far as the peer's credit and the buffer go.
    fn send_bodies(&mut self) {
        let mut blocked = 0;
        while blocked < self.ready.len() && self.out.len() - self.sent <= AHEAD {
            let Some(id) = self.ready.pop_front() else { return };
            let Some(place) = self.streams.iter().position(|stream| stream.id == id) else { continue };
            let stream = &mut self.streams[place];
            let credit = self.credit.min(stream.credit).clamp(0, self.peer_frame as i64) as usize;
            let (size, is_last) = match &stream.sending {
                Sending::Known(payload, at) => {
                    let size = ((payload.size() - at).min(credit as u64)) as usize;
                    (size, at + size as u64 == payload.size())
                }
                Sending::Echo(bytes) => {
                    let size = bytes.len().min(credit);
                    (size, stream.asked && size == bytes.len())
                }
                Sending::Later(_) | Sending::Call(..) => continue,
            };
            if size == 0 && !is_last {
                // An echo without bytes is ready again with the next ones.
                if !matches!(&stream.sending, Sending::Echo(bytes) if bytes.is_empty()) {
                    self.ready.push_back(id);
                    blocked += 1;
                }
                continue;
            }
            let has_trailers = is_last && stream.has_trailers;
            let flags = if is_last && !has_trailers { flag::END_STREAM } else { 0 };
            frame::head(&mut self.out, size, kind::DATA, flags, id);
            match &mut stream.sending {
                Sending::Known(payload, at) => {
                    self.out.extend_from_slice(payload.slice(*at, size as u64));
                    *at += size as u64;
                }
                Sending::Echo(bytes) => self.out.extend(bytes.drain(..size)),
                Sending::Later(_) | Sending::Call(..) => {}
            }
            stream.credit -= size as i64;
            self.credit -= size as i64;
            if is_last {
                self.streams.swap_remove(place);
                if has_trailers {
                    self.fields(id, flag::END_HEADERS | flag::END_STREAM, |block| encode_status(block, 0));
                }
            } else if !matches!(&stream.sending, Sending::Echo(bytes) if bytes.is_empty()) {
                self.ready.push_back(id);
            }
            blocked = 0;
        }
    }

    fn settings(&mut self, header: Header, payload: &[u8]) -> Result<(), Failure> {
        if header.flags & flag::ACK != 0 {
            return Ok(());
        }
        if !payload.len().is_multiple_of(6) {
            return Err(broken("a frame has a wrong size"));
        }
        for entry in payload.chunks_exact(6) {
            let value = frame::number(&entry[2..]);
            match u16::from_be_bytes([entry[0], entry[1]]) {
                setting::INITIAL_WINDOW_SIZE => {
                    if i64::from(value) > LARGEST_WINDOW {
                        return Err(broken("the client set a window that is too large"));
                    }
                    let change = i64::from(value) - self.first_credit;
                    self.first_credit += change;
                    self.streams.iter_mut().for_each(|stream| stream.credit += change);
                }
                setting::MAX_FRAME_SIZE => self.peer_frame = (value as usize).max(LARGEST),
                _ => {}
            }
        }
        frame::head(&mut self.out, 0, kind::SETTINGS, flag::ACK, 0);
        Ok(())
    }

    fn window_update(&mut self, id: u32, payload: &[u8]) -> Result<(), Failure> {
        let more = i64::from(frame::number(payload) & 0x7fff_ffff);
        if payload.len() != 4 || more == 0 {
            return Err(broken("the client sent an invalid credit"));
        }
        let window = match id {
            0 => &mut self.credit,
            id => match self.streams.iter_mut().find(|stream| stream.id == id) {
                Some(stream) => &mut stream.credit,
                None => return Ok(()),
            },
        };
        *window += more;
        if *window > LARGEST_WINDOW {
            return Err(broken("the client granted too much credit"));
        }
        Ok(())
    }
}

/// Appends the field `grpc-status`, whose name is in no table.
fn encode_status(block: &mut Vec<u8>, status: u32) {
    block.push(0);
    for text in ["grpc-status", &status.to_string()] {
        encode_integer(block, 0, 7, text.len());
        block.extend_from_slice(text.as_bytes());
    }
}

/// The payload of a frame without its padding.
fn unpadded(header: Header, payload: &[u8]) -> Result<&[u8], Failure> {
    if header.flags & flag::PADDED == 0 {
        return Ok(payload);
    }
    let (padding, rest) = payload.split_first().ok_or_else(|| broken("a frame lacks its padding"))?;
    let size = rest.len().checked_sub(usize::from(*padding));
    Ok(&rest[..size.ok_or_else(|| broken("a frame is all padding"))?])
}

fn broken(message: &str) -> Failure {
    Failure::new(ErrorKind::Protocol, message)
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
