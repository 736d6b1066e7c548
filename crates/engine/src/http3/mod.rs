//! The client's side of HTTP/3 (RFC 9114) above the streams of QUIC, without input or output.
//!
//! The table of QPACK stays empty in both directions: responses are decoded without state, and requests are encoded
//! once.

mod fields;
mod frame;
mod request;
#[cfg(test)]
mod tests;

use wirelab_contract::error_kind::ErrorKind;

use crate::machine::{INTERIM_LIMIT, Inbox, Slot, interim_flood};
use crate::refusal::Failure;

pub use fields::Decoder;
use frame::{Frames, Piece, kind};
pub use request::Encoded;

/// Error codes of HTTP/3 (RFC 9114, section 8.1).
pub mod code {
    /// No error.
    pub const NO_ERROR: u64 = 0x100;
    /// The peer broke the protocol.
    pub const GENERAL_PROTOCOL_ERROR: u32 = 0x101;
    /// The server did not process the request.
    pub const REQUEST_REJECTED: u64 = 0x10b;
}

/// What the client sends on its control stream: the type of the stream, and settings without a value.
pub const CONTROL: [u8; 3] = [0, 4, 0];

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
    /// [`Failure`] if the server broke the protocol, which ends the connection.
    pub fn receive(&mut self, mut bytes: &[u8], decoder: &mut Decoder, inbox: &mut Inbox) -> Result<(), Failure> {
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
                        return Err(broken("the server sent a body before its head, or after its trailers"));
                    }
                    self.bytes_in += body.len() as u64;
                    inbox.body(self.slot, body);
                }
                Piece::Whole(kind::HEADERS, block) => {
                    let fields = decoder.decode(block)?;
                    let size = block.len();
                    self.headed(fields.status, fields.length, size)?;
                }
                Piece::Whole(kind::DATA, _) if self.status.is_none() => {
                    return Err(broken("the server sent a body before its head"));
                }
                // An empty body.
                Piece::Whole(kind::DATA, _) => {}
                Piece::Whole(kind::PUSH_PROMISE, _) => {
                    return Err(broken("the server pushed, which no setting allows"));
                }
                Piece::Whole(kind, _) if kind::is_of_control_stream(kind) => {
                    return Err(broken("a frame is at a wrong place"));
                }
                Piece::Whole(..) => {}
            }
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// A block of fields is complete: a head, an interim head, or trailers.
    fn headed(&mut self, status: Option<u16>, length: Option<u64>, size: usize) -> Result<(), Failure> {
        if self.status.is_some() {
            if std::mem::replace(&mut self.has_trailers, true) {
                return Err(broken("the server sent trailers twice"));
            }
            return Ok(());
        }
        let status = status.ok_or_else(|| broken("a response has no status"))?;
        if status < 200 {
            // The next head is another first byte.
            self.began = false;
            self.interim += size + 2;
            return if self.interim > INTERIM_LIMIT { Err(interim_flood()) } else { Ok(()) };
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
}

impl Inward {
    /// Type of the control stream.
    const CONTROL: u64 = 0;
    const PUSH: u64 = 1;

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
                if matches!(kind, kind::DATA | kind::HEADERS | kind::PUSH_PROMISE) {
                    return Err(broken("a frame is at a wrong place"));
                }
                if kind == kind::GOAWAY {
                    let (id, _) = frame::integer(payload).ok_or_else(|| broken("a frame has a wrong size"))?;
                    goaway = Some(id);
                }
            }
            rest = &rest[count..];
        }
        Ok(goaway)
    }

    /// Takes the end of the stream.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the connection needs it.
    pub fn end(&self) -> Result<(), Failure> {
        // The streams of QPACK are critical, too (RFC 9204, section 4.2).
        match self.kind {
            Some(Self::CONTROL | 2 | 3) => Err(broken("the server ended a stream that HTTP/3 needs")),
            _ => Ok(()),
        }
    }
}

fn broken(message: &str) -> Failure {
    Failure::new(ErrorKind::Protocol, message)
}
