//! HTTP/3 (RFC 9114) above the streams of QUIC, without input or output: the client's side, and in `server` that of the
//! null server.
//!
//! The table of QPACK stays empty in both directions: responses are decoded without state, and requests are encoded
//! once.

mod fields;
mod frame;
mod request;
pub mod server;
#[cfg(test)]
mod tests;

use wirelab_contract::error_kind::ErrorKind;

use crate::machine::{INTERIM_LIMIT, Inbox, Slot, interim_flood};
use crate::refusal::{Failure, Unreadable};

pub use fields::Decoder;
use fields::Fields;
use frame::{Frames, Piece, kind};
pub use request::Encoded;

/// Error codes of HTTP/3 (RFC 9114, section 8.1).
pub mod code {
    pub const NO_ERROR: u64 = 0x100;
    /// The peer broke the protocol.
    pub const GENERAL_PROTOCOL_ERROR: u32 = 0x101;
    /// The server did not process the request.
    pub const REQUEST_REJECTED: u64 = 0x10b;
    /// A message is malformed.
    pub const MESSAGE_ERROR: u32 = 0x10e;
}

/// The bytes of the client's control stream: the type of the stream, and settings without a value.
pub const CONTROL: [u8; 3] = [0, 4, 0];

/// Sets the capacity of QPACK's table to 0 (RFC 9204, section 4.3.1).
const SET_CAPACITY_0: u8 = 0x20;

/// A response as its stream arrives.
#[derive(Debug)]
pub struct Response {
    slot: Slot,
    is_head: bool,
    frames: Frames,
    began: bool,
    status: Option<u16>,
    length: Option<u64>,
    has_trailers: bool,
    interim: usize,
    bytes_in: u64,
}

impl Response {
    /// The response to the request of a slot; one to HEAD has no body.
    #[must_use]
    pub fn new(slot: Slot, is_head: bool) -> Self {
        Self {
            slot,
            is_head,
            frames: Frames::default(),
            began: false,
            status: None,
            length: None,
            has_trailers: false,
            interim: 0,
            bytes_in: 0,
        }
    }

    /// Takes bytes of the stream.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if it is malformed, or the server broke the protocol.
    pub fn receive(&mut self, mut bytes: &[u8], decoder: &mut Decoder, inbox: &mut Inbox) -> Result<(), Unreadable> {
        while !bytes.is_empty() {
            if !self.began {
                self.began = true;
                inbox.first_byte(self.slot);
            }
            let (piece, count) = self.frames.next(bytes, |frame| frame == kind::DATA)?;
            match piece {
                Piece::None => {}
                Piece::Part(body) => {
                    if self.status.is_none() || self.has_trailers {
                        return Err(broken("the server sent a body before its head, or after its trailers").into());
                    }
                    self.bytes_in += body.len() as u64;
                    inbox.body(self.slot, body);
                }
                Piece::Whole(kind::HEADERS, block) => {
                    let fields = decoder.decode(block)?;
                    let size = block.len();
                    self.headed(fields, size)?;
                }
                Piece::Whole(kind::DATA, _) if self.status.is_none() => {
                    return Err(broken("the server sent a body before its head").into());
                }
                // An empty body.
                Piece::Whole(kind::DATA, _) => {}
                Piece::Whole(kind::PUSH_PROMISE, _) => {
                    return Err(broken("the server pushed, which no setting allows").into());
                }
                Piece::Whole(kind, _) if kind::is_of_control_stream(kind) => {
                    return Err(broken("a frame is at a wrong place").into());
                }
                Piece::Whole(..) => {}
            }
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// A block of fields is complete: a head, an interim head, or trailers.
    fn headed(&mut self, fields: Fields, size: usize) -> Result<(), Unreadable> {
        let Fields { status, length, flaw } = fields;
        if let Some(flaw) = flaw {
            return Err(malformed(flaw));
        }
        if self.status.is_some() {
            if status.is_some() {
                return Err(malformed("its trailers have a status"));
            }
            if std::mem::replace(&mut self.has_trailers, true) {
                return Err(broken("the server sent trailers twice").into());
            }
            return Ok(());
        }
        let status = status.ok_or_else(|| malformed("it has no status"))?;
        if status == 101 {
            return Err(malformed("it switches protocols (status 101), which HTTP/3 lacks"));
        }
        if status < 200 {
            // The next head is another first byte.
            self.began = false;
            self.interim += size + 2;
            return if self.interim > INTERIM_LIMIT { Err(interim_flood().into()) } else { Ok(()) };
        }
        (self.status, self.length) = (Some(status), length);
        Ok(())
    }

    /// Takes the end of the stream, and reports the response.
    pub fn end(self, inbox: &mut Inbox) {
        let Self { slot, is_head, status, length, bytes_in, .. } = self;
        if status.is_none() || !self.frames.is_between() {
            let message = "the server ended the stream before the end of the response";
            return inbox.failed(slot, Failure::new(ErrorKind::Truncated, message));
        }
        let has_body = !is_head && !matches!(status, Some(204 | 304));
        match length.filter(|length| has_body && *length != bytes_in) {
            _ if !has_body && bytes_in > 0 => {
                let message = format!("the response has {bytes_in} bytes, and must not have a body");
                inbox.failed(slot, Failure::new(ErrorKind::Protocol, message));
            }
            Some(length) => {
                let kind = if bytes_in < length { ErrorKind::Truncated } else { ErrorKind::Protocol };
                let message = format!("the response has {bytes_in} bytes, and its head announced {length}");
                inbox.failed(slot, Failure::new(kind, message));
            }
            None => inbox.done(slot, status, bytes_in),
        }
    }
}

/// A unidirectional stream of the server.
#[derive(Debug, Default)]
pub struct Inward {
    partial: Vec<u8>,
    kind: Option<u64>,
    frames: Frames,
    has_settings: bool,
    /// The number of the last GOAWAY.
    goaway: Option<u64>,
}

impl Inward {
    /// Type of the control stream.
    const CONTROL: u64 = 0;
    const PUSH: u64 = 1;
    /// Types of QPACK's streams.
    const ENCODER: u64 = 2;
    const DECODER: u64 = 3;

    /// Takes bytes of the stream. Returns the number of the first request that a GOAWAY refuses, if one came.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the server broke the protocol.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Option<u64>, Failure> {
        let stored;
        let mut rest = bytes;
        if self.kind.is_none() {
            self.partial.extend_from_slice(bytes);
            let Some((kind, size)) = frame::integer(&self.partial) else { return Ok(None) };
            self.kind = Some(kind);
            stored = self.partial.split_off(size);
            rest = &stored;
        }
        match self.kind {
            Some(Self::CONTROL) => {}
            // Without a dynamic table, the encoder has nothing to say but its capacity 0 (RFC 9204, section 3.2.3).
            Some(Self::ENCODER) if rest.iter().any(|byte| *byte != SET_CAPACITY_0) => {
                return Err(broken("the server filled a table of header fields that the client does not have"));
            }
            Some(Self::PUSH) => return Err(broken("the server pushed, which no setting allows")),
            _ => return Ok(None),
        }
        let mut goaway = None;
        while !rest.is_empty() {
            let (piece, count) = self.frames.next(rest, |_| false)?;
            if let Piece::Whole(kind, payload) = piece {
                let is_settings = kind == kind::SETTINGS;
                if std::mem::replace(&mut self.has_settings, true) == is_settings {
                    return Err(broken("the settings of the server are not the first frame, or came twice"));
                }
                match kind {
                    kind::SETTINGS => settings(payload)?,
                    kind::GOAWAY => goaway = Some(goodbye(payload, &mut self.goaway)?),
                    kind::CANCEL_PUSH => {}
                    _ if kind::is_of_response(kind) || kind::is_of_control_stream(kind) => {
                        return Err(broken("a frame is at a wrong place"));
                    }
                    _ => {}
                }
            }
            rest = &rest[count..];
        }
        Ok(goaway)
    }

    /// The type of the stream, once it is known.
    #[must_use]
    pub const fn kind(&self) -> Option<u64> {
        self.kind
    }

    /// Whether a server has at most one stream of this type (RFC 9114, section 6.2.1; RFC 9204, section 4.2).
    #[must_use]
    pub const fn is_single(kind: u64) -> bool {
        matches!(kind, Self::CONTROL | Self::ENCODER | Self::DECODER)
    }

    /// Takes the end of the stream.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the connection needs it.
    pub fn end(&self) -> Result<(), Failure> {
        match self.kind {
            Some(kind) if Self::is_single(kind) => Err(broken("the server ended a stream that HTTP/3 needs")),
            _ => Ok(()),
        }
    }
}

/// The number of the first request that a GOAWAY refuses, at most that of the last one (RFC 9114, section 5.2).
fn goodbye(payload: &[u8], last: &mut Option<u64>) -> Result<u64, Failure> {
    let id = frame::integer(payload).filter(|(_, size)| *size == payload.len()).map(|(id, _)| id);
    let id = id.ok_or_else(|| broken("a frame has a wrong size"))?;
    // Requests have streams that the client opened for both directions (RFC 9000, section 2.1).
    if !id.is_multiple_of(4) || last.replace(id).is_some_and(|last| last < id) {
        return Err(broken("the server's GOAWAY names a wrong stream"));
    }
    Ok(id)
}

/// Checks settings (RFC 9114, section 7.2.4).
fn settings(mut payload: &[u8]) -> Result<(), Failure> {
    let mut seen = Vec::new();
    while !payload.is_empty() {
        let invalid = || broken("the settings of the server are not valid");
        let (id, first) = frame::integer(payload).ok_or_else(invalid)?;
        let (_, second) = frame::integer(&payload[first..]).ok_or_else(invalid)?;
        // Those of HTTP/2 are reserved (section 7.2.4.1).
        if matches!(id, 0 | 2..=5) || seen.contains(&id) {
            return Err(invalid());
        }
        seen.push(id);
        payload = &payload[first + second..];
    }
    Ok(())
}

fn malformed(flaw: &str) -> Unreadable {
    Unreadable::Response(Failure::new(ErrorKind::Protocol, format!("the response is malformed: {flaw}")))
}

fn broken(message: &str) -> Failure {
    Failure::new(ErrorKind::Protocol, message)
}
