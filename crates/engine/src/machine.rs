//! A protocol as a state machine: bytes in, events and bytes out. A machine opens no socket and reads no clock, so that
//! tests can feed it any bytes in any pieces.

use std::time::Instant;

use ring::digest::Context;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::spec::ClientSpec;

use crate::refusal::{Failure, Refusal};

/// The number of a request on its connection, chosen by its starter and free again after its last event.
pub type Slot = u32;

/// An event on a connection.
#[derive(Debug, Clone)]
pub enum Event {
    /// The connection can send requests.
    Opened {
        /// Time of the transport's connection, if it has one of its own.
        connected: Option<Instant>,
        /// Time of the end of the handshake; absent without a handshake above the transport.
        ready: Option<Instant>,
    },
    /// The first byte of the response arrived. A later event of the same slot replaces it: the earlier response was an
    /// interim one (RFC 9110, section 15.2).
    FirstByte {
        /// The request.
        slot: Slot,
        /// Time of arrival.
        at: Instant,
    },
    /// The response is complete.
    Done {
        /// The request.
        slot: Slot,
        /// Time of arrival of the last byte.
        at: Instant,
        /// The HTTP status.
        status: Option<u16>,
        /// Size of the response body in bytes.
        bytes_in: u64,
    },
    /// The request failed, and the connection did not.
    Failed {
        /// The request.
        slot: Slot,
        /// Time of the failure.
        at: Instant,
        /// The cause.
        failure: Failure,
    },
    /// The server certainly did not process the request, and refused it in an orderly way (RFC 9113, section 8.7), so
    /// that it can be sent again.
    TurnedAway {
        /// The request.
        slot: Slot,
        /// Time of the refusal.
        at: Instant,
        /// The failure if no further attempt follows.
        failure: Failure,
    },
}

/// Collects what connections report. One per thread; its memory is used again.
pub struct Inbox {
    /// Time of the last read. Events get it as their time.
    pub now: Instant,
    /// The events that nothing has handled yet.
    pub events: Vec<Event>,
    /// Hashes the response bodies, for the check request.
    pub digest: Option<Context>,
    /// The bodies of responses, by slot; a thread whose responses are judged without them has none.
    bodies: Vec<Body>,
}

/// The body of a response.
#[derive(Default)]
struct Body {
    is_kept: bool,
    bytes: Vec<u8>,
}

impl Default for Inbox {
    fn default() -> Self {
        Self { now: Instant::now(), events: Vec::with_capacity(256), digest: None, bodies: Vec::new() }
    }
}

impl Inbox {
    /// Reports the first byte of a response.
    pub fn first_byte(&mut self, slot: Slot) {
        self.events.push(Event::FirstByte { slot, at: self.now });
    }

    /// Reports a complete response.
    pub fn done(&mut self, slot: Slot, status: Option<u16>, bytes_in: u64) {
        self.events.push(Event::Done { slot, at: self.now, status, bytes_in });
    }

    /// Reports a failed request.
    pub fn failed(&mut self, slot: Slot, failure: Failure) {
        self.events.push(Event::Failed { slot, at: self.now, failure });
    }

    /// Reports a request that the server refused before any processing.
    pub fn turned_away(&mut self, slot: Slot, failure: Failure) {
        self.events.push(Event::TurnedAway { slot, at: self.now, failure });
    }

    /// Begins a response, whose body is kept or only counted.
    pub fn begin_body(&mut self, slot: Slot, is_kept: bool) {
        let place = slot as usize;
        if is_kept && place >= self.bodies.len() {
            self.bodies.resize_with(place + 1, Body::default);
        }
        if let Some(body) = self.bodies.get_mut(place) {
            body.is_kept = is_kept;
            body.bytes.clear();
        }
    }

    /// Takes bytes of a response body.
    pub fn body(&mut self, slot: Slot, bytes: &[u8]) {
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
        if let Some(body) = self.bodies.get_mut(slot as usize).filter(|body| body.is_kept) {
            body.bytes.extend_from_slice(bytes);
        }
    }

    /// The body of a response that is kept; empty for others.
    #[must_use]
    pub fn kept(&self, slot: Slot) -> &[u8] {
        self.bodies.get(slot as usize).map_or(&[], |body| &body.bytes)
    }
}

/// Limit of the bytes of interim responses (1xx) before a response, which a server may send without end.
pub const INTERIM_LIMIT: usize = 512 * 1024;

/// The failure of a server that passed that limit.
#[must_use]
pub fn interim_flood() -> Failure {
    let message = format!("flooded with interim responses (1xx): {INTERIM_LIMIT} bytes without a final response");
    Failure::new(ErrorKind::Protocol, message)
}

/// The client's side of one connection, above a stream of bytes.
///
/// An error of `receive` or `end` breaks the connection, and with it every request without a last event.
pub trait Machine: Sized + 'static {
    /// The encoded requests, which all connections share.
    type Plan: 'static;

    /// Encodes the requests of the spec, once.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the protocol cannot express it.
    fn plan(spec: &ClientSpec) -> Result<Self::Plan, Refusal>;

    /// Settings of the protocol in use, under the names of `configured`.
    fn configured(_: &Self::Plan) -> Configured {
        Configured::new()
    }

    /// A machine for a new connection. What it has to say before the first request is its first output.
    fn new(plan: &std::rc::Rc<Self::Plan>) -> Self;

    /// Whether the connection takes another request, as far as its bytes tell.
    fn is_open(&self) -> bool;

    /// Starts the request with this number, in the order of [`prepare`](crate::requests::prepare). Its bytes are in the
    /// output at once, or as soon as the peer allows another request.
    fn start(&mut self, slot: Slot, number: usize);

    /// Abandons a request: no event of it follows. A protocol without streams is no longer open then.
    fn cancel(&mut self, slot: Slot);

    /// Takes bytes from the peer.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the peer broke the protocol or gave the connection up.
    fn receive(&mut self, bytes: &[u8], inbox: &mut Inbox) -> Result<(), Failure>;

    /// Takes the end of the peer's stream. Without a goodbye of TLS it is not `in_order`: it may be that of an
    /// attacker, and ends no body.
    ///
    /// # Errors
    ///
    /// [`Failure`] if a response is incomplete.
    fn end(&mut self, in_order: bool, inbox: &mut Inbox) -> Result<(), Failure>;

    /// Bytes to send; empty if there are none.
    fn output(&self) -> &[u8];

    /// Removes the first `count` bytes of the output, which were sent.
    fn sent(&mut self, count: usize);

    /// Says goodbye, if the protocol can. The last output of the machine.
    fn close(&mut self) {}
}
