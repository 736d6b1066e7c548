//! HTTP/1.1 (RFC 9112), without input or output. `server` has the server's side, the rest the client's.

mod chunked;
mod head;
mod request;
pub mod server;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::ClientSpec;

use crate::machine::{INTERIM_LIMIT, Inbox, Machine, Slot, interim_flood};
use crate::refusal::{Failure, Refusal};
use crate::requests::prepare;

use chunked::Chunks;
use head::{Framing, Head, Heads, Parsed};
pub use request::Encoded;
pub(crate) use request::{checked_authority, has_body};

/// A connection, which carries one request at a time.
#[derive(Debug)]
pub struct Http1 {
    requests: Rc<Vec<Encoded>>,
    /// The number of the request.
    number: usize,
    /// Bytes of the request that were sent.
    sent: u64,
    /// Bytes of the request to send; 0 between requests.
    total: u64,
    slot: Slot,
    state: State,
    heads: Heads,
    status: u16,
    bytes_in: u64,
    /// Bytes of interim responses before this response.
    interim: usize,
    open: bool,
    /// Whether it has carried a request.
    was_used: bool,
    /// Whether the connection may carry another request after this response.
    persists: bool,
}

#[derive(Debug)]
enum State {
    /// No request was sent.
    Idle,
    /// The head is incomplete; the flag says whether its first byte has come.
    Head(bool),
    /// The body has this number of further bytes.
    Length(u64),
    /// The body is chunked.
    Chunked(Chunks),
    /// The body ends with the connection.
    UntilEnd,
}

impl Machine for Http1 {
    type Plan = Vec<Encoded>;

    fn plan(spec: &ClientSpec) -> Result<Vec<Encoded>, Refusal> {
        prepare(spec, Encoded::new)
    }

    fn new(plan: &Rc<Vec<Encoded>>) -> Self {
        Self {
            requests: Rc::clone(plan),
            number: 0,
            sent: 0,
            total: 0,
            slot: 0,
            state: State::Idle,
            heads: Heads::default(),
            status: 0,
            bytes_in: 0,
            interim: 0,
            open: true,
            was_used: false,
            persists: true,
        }
    }

    fn is_open(&self) -> bool {
        self.open
    }

    fn start(&mut self, slot: Slot, number: usize) {
        (self.slot, self.number) = (slot, number);
        self.was_used = true;
        self.sent = 0;
        self.total = self.requests[number].size();
        self.bytes_in = 0;
        self.interim = 0;
        self.state = State::Head(false);
    }

    fn cancel(&mut self, _: Slot) {
        // A late response would be taken for the response to the next request.
        self.open = false;
        self.state = State::Idle;
        self.total = self.sent;
    }

    fn receive(&mut self, mut bytes: &[u8], inbox: &mut Inbox) -> Result<(), Failure> {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Idle if !self.was_used => {
                    let message = "the server spoke before the first request; is this another protocol?";
                    return Err(Failure::new(ErrorKind::Protocol, message));
                }
                State::Idle => {
                    // Bytes that no request asked for must not become the next response.
                    self.open = false;
                    return Ok(());
                }
                State::Head(began) => {
                    if !*began {
                        *began = true;
                        inbox.first_byte(self.slot);
                    }
                    match self.heads.read(bytes)? {
                        Parsed::Incomplete => return Ok(()),
                        Parsed::Complete(head, count) => {
                            bytes = &bytes[count..];
                            self.headed(head, inbox)?;
                        }
                    }
                }
                State::Length(left) => {
                    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    inbox.body(self.slot, &bytes[..count]);
                    bytes = &bytes[count..];
                    self.bytes_in += count as u64;
                    *left -= count as u64;
                    if *left == 0 {
                        self.complete(inbox);
                    }
                }
                State::Chunked(chunks) => {
                    let mut size = 0;
                    let count = chunks.read(bytes, |piece| {
                        size += piece.len() as u64;
                        inbox.body(self.slot, piece);
                    })?;
                    let ended = chunks.ended();
                    bytes = &bytes[count..];
                    self.bytes_in += size;
                    if ended {
                        self.complete(inbox);
                    }
                }
                State::UntilEnd => {
                    inbox.body(self.slot, bytes);
                    self.bytes_in += bytes.len() as u64;
                    bytes = &[];
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, in_order: bool, inbox: &mut Inbox) -> Result<(), Failure> {
        self.open = false;
        let message = match &self.state {
            State::Idle => return Ok(()),
            State::UntilEnd if in_order => {
                self.complete(inbox);
                return Ok(());
            }
            State::UntilEnd => "the server closed the connection without a goodbye of TLS".to_owned(),
            State::Head(false) => "the server closed the connection without a response".to_owned(),
            State::Head(true) => "the server closed the connection within the head of the response".to_owned(),
            State::Length(left) => format!(
                "the server closed the connection after {} of {} bytes of response",
                self.bytes_in,
                self.bytes_in + left
            ),
            State::Chunked(_) => {
                format!("the server closed the connection after {} bytes, before the last chunk", self.bytes_in)
            }
        };
        Err(Failure::new(ErrorKind::Truncated, message))
    }

    fn output(&self) -> &[u8] {
        if self.sent == self.total { &[] } else { self.requests[self.number].from(self.sent) }
    }

    fn sent(&mut self, count: usize) {
        self.sent += count as u64;
    }
}

impl Http1 {
    /// The head of a response is complete.
    fn headed(&mut self, head: Head, inbox: &mut Inbox) -> Result<(), Failure> {
        if head.status == 101 {
            let message = "the server switched protocols (status 101), which no request asked for";
            return Err(Failure::new(ErrorKind::Protocol, message));
        }
        if head.status < 200 {
            self.state = State::Head(false);
            self.interim += head.size;
            return if self.interim > INTERIM_LIMIT { Err(interim_flood()) } else { Ok(()) };
        }
        self.status = head.status;
        self.persists = head.persists;
        let framing = if self.requests[self.number].has_no_response_body() { Framing::Length(0) } else { head.framing };
        self.state = match framing {
            Framing::Length(0) => {
                self.complete(inbox);
                return Ok(());
            }
            Framing::Length(size) => State::Length(size),
            Framing::Chunked => State::Chunked(Chunks::default()),
            Framing::UntilEnd => {
                self.persists = false;
                State::UntilEnd
            }
        };
        Ok(())
    }

    fn complete(&mut self, inbox: &mut Inbox) {
        // The rest of an unsent request would be taken for the next request.
        self.open &= self.persists && self.sent == self.total;
        self.total = self.sent;
        self.state = State::Idle;
        inbox.done(self.slot, Some(self.status), self.bytes_in);
    }
}
