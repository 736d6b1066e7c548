//! HTTP/2 (RFC 9113), without input or output. `server` has the server's side, `fields`, `frame`, `huffman` and
//! `windows` belong to both, the rest to the client.

mod call;
#[cfg(test)]
mod call_tests;
mod fields;
mod frame;
pub(crate) mod huffman;
mod request;
pub mod server;
mod status;
mod streams;
#[cfg(test)]
mod tests;
pub(crate) mod valid;
pub mod windows;

use std::collections::VecDeque;
use std::rc::Rc;

use serde_json::json;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::spec::ClientSpec;

use crate::machine::{INTERIM_LIMIT, Inbox, Machine, Slot, interim_flood};
use crate::refusal::{Failure, Refusal};

pub use call::as_http;
use fields::Decoder;
pub(crate) use fields::{encode_integer, integer};
use frame::{HEADER, Header, LARGEST, code, flag, kind, setting};
pub use request::Encoded;
use request::Form;
pub(crate) use request::Head;
pub use status::refusal;
use streams::{Stream, Streams};

/// Concurrent requests before the peer has said how many it allows; it should allow a hundred (section 6.5.2).
const FIRST_STREAMS: u32 = 100;

/// Body bytes that are prepared ahead of the socket.
const AHEAD: usize = 64 * 1024;

/// Largest block of header fields in bytes.
const LARGEST_BLOCK: usize = 256 * 1024;

/// A connection.
#[derive(Debug)]
pub struct Http2 {
    requests: Rc<Encoded>,
    out: Vec<u8>,
    /// Bytes of `out` that were sent.
    sent: usize,
    /// The beginning of an incomplete frame.
    partial: Vec<u8>,
    /// The DATA frame whose payload is arriving.
    data: Option<Data>,
    /// The block of header fields that is not complete: its stream, and whether it ends the stream.
    block: Option<(u32, bool)>,
    block_bytes: Vec<u8>,
    decoder: Decoder,
    streams: Streams,
    /// Requests that wait until the peer allows more streams.
    queued: VecDeque<(Slot, usize)>,
    allowed: u32,
    /// Whether the peer's table has the fields that all requests share; absent: it is too small for them.
    indexed: Option<bool>,
    /// Whether the next block has to say that the peer's table is not used.
    shrinks: bool,
    peer_frame: usize,
    peer_window: i64,
    /// Credit for bodies on the whole connection.
    credit: i64,
    /// Body bytes that were received and not credited again.
    owed: u32,
    has_settings: bool,
    open: bool,
}

/// The payload of a DATA frame.
#[derive(Debug, Clone, Copy)]
struct Data {
    stream: u32,
    /// Bytes of body to come.
    left: usize,
    /// Bytes of padding after them.
    padding: usize,
    ends: bool,
}

impl Machine for Http2 {
    type Plan = Encoded;

    fn plan(spec: &ClientSpec) -> Result<Encoded, Refusal> {
        Encoded::new(spec)
    }

    fn configured(plan: &Encoded) -> Configured {
        Configured::from([
            ("stream_window".to_owned(), json!(plan.windows.stream)),
            ("connection_window".to_owned(), json!(plan.windows.connection)),
        ])
    }

    fn new(plan: &Rc<Encoded>) -> Self {
        Self {
            requests: Rc::clone(plan),
            out: plan.preface.clone(),
            sent: 0,
            partial: Vec::new(),
            data: None,
            block: None,
            block_bytes: Vec::new(),
            decoder: Decoder::default(),
            streams: Streams::default(),
            queued: VecDeque::new(),
            allowed: FIRST_STREAMS,
            indexed: (plan.table <= 4096).then_some(false),
            shrinks: false,
            peer_frame: LARGEST,
            peer_window: 65_535,
            credit: 65_535,
            owed: 0,
            has_settings: false,
            open: true,
        }
    }

    fn is_open(&self) -> bool {
        self.open
    }

    fn start(&mut self, slot: Slot, number: usize) {
        if self.streams.len() < self.allowed as usize {
            self.begin(slot, number);
        } else {
            self.queued.push_back((slot, number));
        }
    }

    fn cancel(&mut self, slot: Slot) {
        self.queued.retain(|queued| queued.0 != slot);
        if let Some(stream) = self.streams.take_slot(slot) {
            frame::with_number(&mut self.out, kind::RST_STREAM, stream.id, code::CANCEL);
            self.begin_queued();
        }
    }

    fn receive(&mut self, mut bytes: &[u8], inbox: &mut Inbox) -> Result<(), Failure> {
        while !bytes.is_empty() {
            if self.data.is_some() {
                let count = self.take_data(bytes, inbox)?;
                bytes = &bytes[count..];
            } else if self.partial.is_empty() {
                match self.take_frame(bytes, inbox)? {
                    Some(count) => bytes = &bytes[count..],
                    None => {
                        self.partial.extend_from_slice(bytes);
                        break;
                    }
                }
            } else {
                bytes = self.complete_partial(bytes, inbox)?;
            }
        }
        self.credit_again();
        Ok(())
    }

    fn end(&mut self, _: bool, _: &mut Inbox) -> Result<(), Failure> {
        self.open = false;
        if self.streams.is_empty() && self.queued.is_empty() {
            return Ok(());
        }
        Err(Failure::new(ErrorKind::Truncated, "the server closed the connection before the end of the response"))
    }

    fn output(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    fn sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
            self.send_bodies();
        }
    }

    fn close(&mut self) {
        frame::head(&mut self.out, 8, kind::GOAWAY, 0, 0);
        self.out.extend_from_slice(&0_u32.to_be_bytes());
        self.out.extend_from_slice(&code::NO_ERROR.to_be_bytes());
    }
}

impl Http2 {
    /// Sends the head of a request, and what may follow of its body.
    fn begin(&mut self, slot: Slot, number: usize) {
        let requests = Rc::clone(&self.requests);
        let (body, window) = (requests.payload(number).size(), self.peer_window);
        let id = self.streams.add(slot, number, body, window);
        if id > i32::MAX as u32 - 2 {
            self.open = false;
        }
        let form = match self.indexed {
            Some(true) => Form::Repeated,
            Some(false) => {
                self.indexed = Some(true);
                Form::First
            }
            None => Form::Plain,
        };
        let prefix: &[u8] = if std::mem::take(&mut self.shrinks) { &[0x20] } else { &[] };
        let block = requests.block(number, form, prefix);
        request::headers(&mut self.out, &block, self.peer_frame, id, body == 0);
        if body > 0 {
            self.send_bodies();
        }
    }

    fn begin_queued(&mut self) {
        while self.streams.len() < self.allowed as usize
            && let Some((slot, number)) = self.queued.pop_front()
        {
            self.begin(slot, number);
        }
    }

    /// Prepares pieces of bodies, as far as the peer's credit goes.
    fn send_bodies(&mut self) {
        let (largest, requests) = (self.peer_frame as u64, Rc::clone(&self.requests));
        for stream in self.streams.with_body() {
            while stream.unsent > 0 && self.credit > 0 && stream.credit > 0 {
                if self.out.len() - self.sent > AHEAD {
                    return;
                }
                let credit = self.credit.min(stream.credit) as u64;
                let payload = requests.payload(stream.number);
                let piece = payload.slice(payload.size() - stream.unsent, largest.min(credit));
                stream.unsent -= piece.len() as u64;
                stream.credit -= piece.len() as i64;
                self.credit -= piece.len() as i64;
                let flags = if stream.unsent == 0 { flag::END_STREAM } else { 0 };
                frame::head(&mut self.out, piece.len(), kind::DATA, flags, stream.id);
                self.out.extend_from_slice(piece);
            }
        }
    }

    /// Grants the peer credit for what was received, when half of it is used.
    fn credit_again(&mut self) {
        if self.owed > self.requests.windows.connection / 2 {
            frame::with_number(&mut self.out, kind::WINDOW_UPDATE, 0, self.owed);
            self.owed = 0;
        }
    }

    /// Completes the stored beginning of a frame. Returns the bytes after it.
    fn complete_partial<'a>(&mut self, bytes: &'a [u8], inbox: &mut Inbox) -> Result<&'a [u8], Failure> {
        let missing = match Header::read(&self.partial) {
            None => HEADER - self.partial.len(),
            Some(header) => HEADER + header.length - self.partial.len(),
        };
        let (now, later) = bytes.split_at(missing.min(bytes.len()));
        self.partial.extend_from_slice(now);
        let frame = std::mem::take(&mut self.partial);
        match self.take_frame(&frame, inbox)? {
            Some(count) => {
                // The rest of a DATA frame with padding.
                let mut rest = &frame[count..];
                while !rest.is_empty() {
                    let count = self.take_data(rest, inbox)?;
                    rest = &rest[count..];
                }
                // Its memory is used again.
                self.partial = frame;
                self.partial.clear();
            }
            None => self.partial = frame,
        }
        Ok(later)
    }

    /// Takes the frame at the beginning of `bytes`, or the part of a DATA frame that is there. Returns the number of
    /// its bytes; `None` if more are needed.
    fn take_frame(&mut self, bytes: &[u8], inbox: &mut Inbox) -> Result<Option<usize>, Failure> {
        let Some(header) = Header::read(bytes) else { return Ok(None) };
        if header.length > LARGEST {
            return Err(broken("the server sent a frame that is too large"));
        }
        if !self.has_settings && (header.kind != kind::SETTINGS || header.flags & flag::ACK != 0) {
            return Err(broken("the server did not begin with its settings"));
        }
        if self.block.is_some_and(|(stream, _)| header.kind != kind::CONTINUATION || header.stream != stream) {
            return Err(broken("the server interrupted header fields"));
        }
        let payload = &bytes[HEADER..];
        if header.kind == kind::DATA && header.flags & flag::PADDED == 0 {
            self.begin_data(header, header.length, 0, inbox)?;
            return Ok(Some(HEADER));
        }
        let Some(payload) = payload.get(..header.length) else { return Ok(None) };
        if header.kind == kind::DATA {
            let padding = usize::from(*payload.first().ok_or_else(|| broken("a frame lacks its padding"))?);
            let left = (header.length - 1).checked_sub(padding).ok_or_else(|| broken("a frame is all padding"))?;
            self.begin_data(header, left, padding, inbox)?;
            return Ok(Some(HEADER + 1));
        }
        self.control(header, payload, inbox)?;
        Ok(Some(HEADER + header.length))
    }

    fn begin_data(&mut self, header: Header, left: usize, padding: usize, inbox: &mut Inbox) -> Result<(), Failure> {
        self.check_stream(header.stream)?;
        // The whole frame counts, with its padding (section 6.9.1).
        self.owed += header.length as u32;
        let ends = header.flags & flag::END_STREAM != 0;
        self.data = Some(Data { stream: header.stream, left, padding, ends });
        if let Some(stream) = self.streams.find(header.stream) {
            if stream.status.is_none() {
                return Err(broken("the server sent a body before its head"));
            }
            stream.owed += header.length as u32;
            // A stream that ends needs no credit.
            if stream.owed > self.requests.windows.stream / 2 && !ends {
                frame::with_number(&mut self.out, kind::WINDOW_UPDATE, header.stream, stream.owed);
                stream.owed = 0;
            }
        }
        if left + padding == 0 {
            self.take_data(&[], inbox)?;
        }
        Ok(())
    }

    /// Takes bytes of the current DATA frame, and returns their number.
    fn take_data(&mut self, bytes: &[u8], inbox: &mut Inbox) -> Result<usize, Failure> {
        let Some(mut data) = self.data.take() else { return Ok(0) };
        let body = &bytes[..data.left.min(bytes.len())];
        if let Some(stream) = self.streams.find(data.stream) {
            match self.requests.call(stream.number) {
                Some(call) => stream.reply.take(call, body, |judged| inbox.body(stream.slot, judged)),
                None => inbox.body(stream.slot, body),
            }
            stream.bytes_in += body.len() as u64;
        }
        data.left -= body.len();
        let padding = data.padding.min(bytes.len() - body.len());
        data.padding -= padding;
        if data.left + data.padding > 0 {
            self.data = Some(data);
        } else if data.ends {
            self.complete(data.stream, inbox);
        }
        Ok(body.len() + padding)
    }

    /// Takes a frame that is complete and no DATA frame.
    fn control(&mut self, header: Header, payload: &[u8], inbox: &mut Inbox) -> Result<(), Failure> {
        match header.kind {
            kind::HEADERS => {
                self.check_stream(header.stream)?;
                let mut block = payload;
                if header.flags & flag::PADDED != 0 {
                    let (padding, rest) = block.split_first().ok_or_else(|| broken("a frame lacks its padding"))?;
                    let size = rest.len().checked_sub(usize::from(*padding));
                    block = &rest[..size.ok_or_else(|| broken("a frame is all padding"))?];
                }
                if header.flags & flag::PRIORITY != 0 {
                    block = block.get(5..).ok_or_else(|| broken("a frame lacks its priority"))?;
                }
                let ends = header.flags & flag::END_STREAM != 0;
                if header.flags & flag::END_HEADERS != 0 {
                    return self.headed(header.stream, ends, block, inbox);
                }
                self.block = Some((header.stream, ends));
                self.block_bytes.clear();
                self.block_bytes.extend_from_slice(block);
            }
            kind::CONTINUATION => {
                let Some((stream, ends)) = self.block else {
                    return Err(broken("the server continued header fields that it did not begin"));
                };
                if self.block_bytes.len() + payload.len() > LARGEST_BLOCK {
                    return Err(broken("the header fields of a response are too large"));
                }
                self.block_bytes.extend_from_slice(payload);
                if header.flags & flag::END_HEADERS != 0 {
                    self.block = None;
                    let block = std::mem::take(&mut self.block_bytes);
                    return self.headed(stream, ends, &block, inbox);
                }
            }
            kind::RST_STREAM => {
                self.check_stream(header.stream)?;
                if payload.len() != 4 {
                    return Err(broken("a frame has a wrong size"));
                }
                if let Some(stream) = self.streams.take(header.stream) {
                    let code = frame::number(payload);
                    let message = format!("the server reset the stream with error code {code}");
                    let failure = Failure::new(ErrorKind::Reset, message);
                    match code {
                        code::REFUSED_STREAM => inbox.turned_away(stream.slot, failure),
                        _ => inbox.failed(stream.slot, failure),
                    }
                    self.begin_queued();
                }
            }
            kind::SETTINGS => self.settings(header, payload)?,
            kind::PING if payload.len() != 8 => return Err(broken("a frame has a wrong size")),
            kind::PING | kind::GOAWAY if header.stream != 0 => return Err(broken("a frame is at a wrong place")),
            kind::PRIORITY if header.stream == 0 => return Err(broken("a frame is at a wrong place")),
            kind::PRIORITY if payload.len() != 5 => return Err(broken("a frame has a wrong size")),
            kind::PING if header.flags & flag::ACK == 0 => {
                frame::head(&mut self.out, 8, kind::PING, flag::ACK, 0);
                self.out.extend_from_slice(payload);
            }
            kind::GOAWAY => self.goaway(payload, inbox)?,
            kind::WINDOW_UPDATE => self.window_update(header.stream, payload)?,
            kind::PUSH_PROMISE => return Err(broken("the server pushed, which the settings forbid")),
            kind::PRIORITY | kind::PING | 10.. => {}
            kind::DATA => return Err(broken("a frame is at a wrong place")),
        }
        Ok(())
    }

    /// A block of fields is complete: a head, an interim head, or trailers.
    fn headed(&mut self, id: u32, ends: bool, block: &[u8], inbox: &mut Inbox) -> Result<(), Failure> {
        // Decoded even for a stream that is gone: the table is shared.
        let fields = self.decoder.decode(block)?;
        let Some(stream) = self.streams.find(id) else { return Ok(()) };
        let flaw = match (stream.status, fields.status) {
            _ if fields.flaw.is_some() => fields.flaw,
            _ if fields.is_request => Some(valid::UNKNOWN),
            (Some(_), Some(_)) => Some("its trailers have a status"),
            (Some(_), None) if !ends => Some("it has two heads"),
            (None, None) => Some("it has no status"),
            (None, Some(101)) => Some("it switches protocols (status 101), which HTTP/2 lacks"),
            (None, Some(100..200)) if ends => Some("an interim response ended the stream"),
            _ => None,
        };
        if let Some(flaw) = flaw {
            self.refuse(id, flaw, inbox);
            return Ok(());
        }
        if let (None, Some(status)) = (stream.status, fields.status) {
            inbox.first_byte(stream.slot);
            if status < 200 {
                // A head in one frame has at least the frame's header.
                stream.interim += HEADER + block.len();
                return if stream.interim > INTERIM_LIMIT { Err(interim_flood()) } else { Ok(()) };
            }
            stream.status = Some(status);
            stream.length = fields.length;
        }
        stream.reply.status = fields.grpc_status;
        if ends {
            // Its message is that of this block, which is judged at once.
            stream.reply.has_message = fields.has_message;
            self.complete(id, inbox);
        }
        Ok(())
    }

    /// Fails the request of a stream whose response is malformed (RFC 9113, section 8.1.1). The others go on.
    fn refuse(&mut self, id: u32, flaw: &str, inbox: &mut Inbox) {
        if let Some(stream) = self.streams.take(id) {
            let message = format!("the response is malformed: {flaw}");
            inbox.failed(stream.slot, Failure::new(ErrorKind::Protocol, message));
            frame::with_number(&mut self.out, kind::RST_STREAM, id, code::PROTOCOL_ERROR);
            self.begin_queued();
        }
    }

    /// The peer ended a stream.
    fn complete(&mut self, id: u32, inbox: &mut Inbox) {
        let Some(stream) = self.streams.take(id) else { return };
        let Stream { slot, number, status, bytes_in, length, unsent, reply, .. } = stream;
        let has_body = !self.requests.is_head(number) && !matches!(status, Some(204 | 304));
        let wrong = match length {
            _ if !has_body && bytes_in > 0 => {
                Some(format!("the response has {bytes_in} bytes, and must not have a body"))
            }
            Some(length) if has_body && length != bytes_in => {
                Some(format!("the response has {bytes_in} bytes, and its head announced {length}"))
            }
            _ => None,
        };
        match wrong {
            Some(message) => inbox.failed(slot, Failure::new(ErrorKind::Protocol, message)),
            None => match self.requests.call(number).map(|call| call.judge(status, &reply, &self.decoder.message)) {
                None => inbox.done(slot, status, bytes_in),
                Some(Ok(size)) => inbox.done(slot, None, size),
                Some(Err(failure)) => inbox.failed(slot, failure),
            },
        }
        if unsent > 0 {
            frame::with_number(&mut self.out, kind::RST_STREAM, id, code::CANCEL);
        }
        self.begin_queued();
    }

    fn settings(&mut self, header: Header, payload: &[u8]) -> Result<(), Failure> {
        if header.stream != 0 || !payload.len().is_multiple_of(6) {
            return Err(broken("the settings of the server are not valid"));
        }
        if header.flags & flag::ACK != 0 {
            return if payload.is_empty() { Ok(()) } else { Err(broken("a frame has a wrong size")) };
        }
        let is_first = !std::mem::replace(&mut self.has_settings, true);
        let mut allowed = if is_first { u32::MAX } else { self.allowed };
        for setting in payload.chunks_exact(6) {
            let (name, value) = (u16::from_be_bytes([setting[0], setting[1]]), frame::number(&setting[2..]));
            match name {
                setting::HEADER_TABLE_SIZE if value < self.requests.table => {
                    self.indexed = None;
                    self.shrinks = true;
                }
                // The peer's table may be smaller now than when the fields entered it, and they still fit.
                setting::HEADER_TABLE_SIZE if value < 4096 => {
                    self.indexed = None;
                    self.shrinks = true;
                }
                // A server must not set it to 1 (section 6.5.2).
                setting::ENABLE_PUSH if value != 0 => {
                    return Err(broken("the settings of the server are not valid"));
                }
                setting::MAX_CONCURRENT_STREAMS => allowed = value,
                setting::INITIAL_WINDOW_SIZE => {
                    if value > i32::MAX as u32 {
                        return Err(broken("the settings of the server are not valid"));
                    }
                    let change = i64::from(value) - self.peer_window;
                    self.peer_window = value.into();
                    self.streams.all().for_each(|stream| stream.credit += change);
                }
                setting::MAX_FRAME_SIZE => {
                    if !(16_384..1 << 24).contains(&value) {
                        return Err(broken("the settings of the server are not valid"));
                    }
                    // Larger frames would only delay the frames of other streams.
                    self.peer_frame = LARGEST;
                }
                _ => {}
            }
        }
        self.allowed = allowed;
        frame::head(&mut self.out, 0, kind::SETTINGS, flag::ACK, 0);
        self.begin_queued();
        self.send_bodies();
        Ok(())
    }

    fn goaway(&mut self, payload: &[u8], inbox: &mut Inbox) -> Result<(), Failure> {
        if payload.len() < 8 {
            return Err(broken("a frame has a wrong size"));
        }
        self.open = false;
        let (last, code) = (frame::number(payload) & 0x7fff_ffff, frame::number(&payload[4..]));
        let message =
            format!("the server closed the connection (GOAWAY with error code {code}) and refused the request");
        let failure = Failure::new(ErrorKind::Reset, message);
        let mut refuse = |slot| match code {
            code::NO_ERROR => inbox.turned_away(slot, failure.clone()),
            _ => inbox.failed(slot, failure.clone()),
        };
        while let Some(stream) = self.streams.take_above(last) {
            refuse(stream.slot);
        }
        self.queued.drain(..).for_each(|(slot, _)| refuse(slot));
        Ok(())
    }

    fn window_update(&mut self, id: u32, payload: &[u8]) -> Result<(), Failure> {
        let increment = i64::from(frame::number(payload) & 0x7fff_ffff);
        if payload.len() != 4 || increment == 0 {
            return Err(broken("the credit of the server is not valid"));
        }
        if id != 0 {
            self.check_stream(id)?;
        }
        let credit = match id {
            0 => Some(&mut self.credit),
            _ => self.streams.find(id).map(|stream| &mut stream.credit),
        };
        if let Some(credit) = credit {
            *credit += increment;
            if *credit > i64::from(i32::MAX) {
                return Err(broken("the credit of the server is not valid"));
            }
        }
        self.send_bodies();
        Ok(())
    }

    /// Refuses a frame of a stream that was never opened.
    fn check_stream(&self, id: u32) -> Result<(), Failure> {
        if self.streams.was_opened(id) { Ok(()) } else { Err(broken("the server used a stream that is not open")) }
    }
}

fn broken(message: &str) -> Failure {
    Failure::new(ErrorKind::Protocol, message)
}
