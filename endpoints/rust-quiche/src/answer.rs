//! Answers of a server, and how far they were sent.

use bytes::{Buf, Bytes, BytesMut};
use quiche::h3::{self, Header};
use wirelab_endpoint::program::piece_slice;
use wirelab_quiche::response;

use crate::wire::Wire;

/// Bytes of an echo that are read ahead of what could be sent.
const AHEAD: usize = 65_536;

/// A response, or its remaining part.
pub struct Answer {
    /// The head of a response, until it is sent; raw answers have none.
    head: Option<Vec<Header>>,
    body: Body,
    sent: u64,
}

enum Body {
    Document(Bytes),
    Pattern(u64),
    /// Bytes read but not sent, and whether they are the last.
    Echo(BytesMut, bool),
}

impl Answer {
    /// A response without a body. `more` are further header fields.
    pub fn empty(status: u16, more: &[(&str, &str)]) -> Self {
        Self { head: Some(response(status, Some(0), more)), ..Self::raw(0) }
    }

    /// A response with a document.
    pub fn document(body: Bytes, more: &[(&str, &str)]) -> Self {
        Self { head: Some(response(200, Some(body.len() as u64), more)), body: Body::Document(body), sent: 0 }
    }

    /// A response with so many bytes of the pattern.
    pub fn pattern(size: u64) -> Self {
        Self { head: Some(response(200, Some(size), &[])), body: Body::Pattern(size), sent: 0 }
    }

    /// A response with the request's own body, whose length is known or not.
    pub fn echo(length: Option<u64>) -> Self {
        Self { head: Some(response(200, length, &[])), body: Body::Echo(BytesMut::new(), false), sent: 0 }
    }

    /// A raw answer.
    pub const fn raw(size: u64) -> Self {
        Self { head: None, body: Body::Pattern(size), sent: 0 }
    }

    /// The client has sent all of its request.
    pub const fn is_received(&mut self) {
        if let Body::Echo(_, all) = &mut self.body {
            *all = true;
        }
    }

    /// Whether the bytes of the request are part of it.
    pub const fn echoes(&self) -> bool {
        matches!(self.body, Body::Echo(..))
    }

    /// Sends as much as the connection takes. True: all of it was handed over.
    pub fn send(&mut self, wire: &mut Wire<'_>, stream: u64) -> Result<bool, ()> {
        if let (Some(head), Some(http)) = (&self.head, &mut wire.http) {
            let ends = self.body.is_empty();
            match http.send_response(wire.connection, stream, head, ends) {
                Ok(()) if ends => return Ok(true),
                Ok(()) => self.head = None,
                Err(h3::Error::StreamBlocked | h3::Error::Done) => return Ok(false),
                Err(_) => return Err(()),
            }
        }
        loop {
            let (piece, is_last): (&[u8], bool) = match &mut self.body {
                Body::Document(body) => (body, true),
                Body::Pattern(size) => {
                    let piece = piece_slice(self.sent, *size - self.sent);
                    (piece, self.sent + piece.len() as u64 == *size)
                }
                Body::Echo(read, all) => {
                    let is_all = read_ahead(read, wire, stream) && (*all || wire.connection.stream_finished(stream));
                    if read.is_empty() && !is_all {
                        return Ok(false);
                    }
                    (read, is_all)
                }
            };
            let wanted = piece.len();
            let Some(taken) = wire.send(stream, piece, is_last)? else { return Ok(false) };
            self.sent += taken as u64;
            match &mut self.body {
                Body::Document(body) => body.advance(taken),
                Body::Echo(read, _) => read.advance(taken),
                Body::Pattern(_) => {}
            }
            if taken < wanted {
                return Ok(false);
            }
            if is_last {
                return Ok(true);
            }
        }
    }
}

impl Body {
    fn is_empty(&self) -> bool {
        match self {
            Self::Document(body) => body.is_empty(),
            Self::Pattern(size) => *size == 0,
            Self::Echo(..) => false,
        }
    }
}

/// Reads the received part of a request's body. True: no more bytes are available now.
fn read_ahead(read: &mut BytesMut, wire: &mut Wire<'_>, stream: u64) -> bool {
    let Some(http) = &mut wire.http else { return true };
    while read.len() < AHEAD {
        match http.recv_body(wire.connection, stream, wire.scratch) {
            Ok(length) => read.extend_from_slice(&wire.scratch[..length]),
            Err(_) => return true,
        }
    }
    false
}
