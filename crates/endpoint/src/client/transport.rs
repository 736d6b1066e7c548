//! The interface between engine and protocol: open a connection, send a request, close the connection.
//!
//! One file per protocol implements these two traits; the engine is independent of the protocol. Futures need not be
//! `Send`: each of the client's threads runs its own single-threaded runtime.

use std::time::Instant;

use wirelab_contract::event::Configured;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::ClientSpec;

pub use crate::refusal::Failure;
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

/// Opens connections of one protocol to one server. Each of the client's threads has its own.
pub trait Transport: Sized + 'static {
    /// A connection, or a handle to one.
    type Connection: Connection;

    /// Whether it prepares every request of a mix, with its body. Otherwise the engine refuses specs with a mix.
    const OWN_REQUESTS: bool = false;

    /// Creates the transport of one thread, once inside that thread's runtime. Refuses settings that it cannot honour.
    fn build(spec: &ClientSpec) -> Result<Self, Refusal>;

    /// Opens a connection; the engine enforces the deadline.
    ///
    /// With 0-RTT it returns as soon as early data can be sent.
    fn connect(&self) -> impl Future<Output = Result<Opened<Self::Connection>, Failure>>;

    /// The effective settings on the connections, as far as known before or after the first of them.
    fn configured(&self) -> Configured;

    /// Number of stored session tickets, each for one resumed connection. The engine collects tickets before it
    /// measures.
    fn tickets(&self) -> usize {
        0
    }

    /// Transport statistics of its connections; `None` without a transport connection (UDP).
    fn accounts(&self) -> Option<&Accounts> {
        None
    }
}

/// An opened connection.
#[derive(Debug)]
pub struct Opened<C> {
    pub connection: C,
    /// Time of the transport's connection; absent for QUIC and UDP.
    pub connected: Option<Instant>,
    /// Time from which a request could be sent; absent if the protocol has no handshake after `connected`.
    pub ready: Option<Instant>,
}

/// An open connection. If the protocol multiplexes, [`Connection::another`] returns further handles to it.
pub trait Connection: 'static {
    /// Sends a request and receives the whole response. The engine compares its size and status with the spec; an
    /// implementation fails only if no complete response came.
    ///
    /// `number` counts the requests of a mix with all their variants, in the order of the spec; it is 0 without a mix.
    ///
    /// The engine enforces the deadline by dropping the future. A protocol that multiplexes must then cancel the
    /// stream; with other protocols the engine drops the connection as well.
    ///
    /// `body`, if given, receives the bytes of the response as they arrive (for checks of their content).
    fn request(&mut self, number: usize, body: Option<Sink<'_>>) -> impl Future<Output = Result<Answer, Failure>>;

    /// Whether the server certainly did not process the last request, because it closes the connection in an orderly
    /// way (RFC 9113, section 6.8). The engine then sends that request again on a new connection.
    fn was_turned_away(&self) -> bool {
        false
    }

    /// Whether it accepts further requests, as far as known without a test: false after the peer closed it.
    fn is_open(&self) -> bool {
        true
    }

    /// Another handle to the same connection, if the protocol multiplexes.
    fn another(&self) -> Option<Self>
    where
        Self: Sized;

    /// The proven kind of handshake; called after the first request, so that 0-RTT is decided. `None` without TLS.
    fn handshake(&self) -> Option<Handshake>;

    /// Closes the connection cleanly (close-notify, CONNECTION_CLOSE), outside the measured time of a request. With
    /// resumption it waits briefly for a session ticket first.
    fn close(self) -> impl Future<Output = ()>;
}

/// Receives the bytes of a response body, piece by piece.
pub type Sink<'a> = &'a mut dyn FnMut(&[u8]);

/// A response.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// Arrival of its first byte.
    pub first_byte: Instant,
    /// Arrival of its last byte.
    pub last_byte: Instant,
    /// Size of its body in bytes.
    pub bytes_in: u64,
    /// Its HTTP status.
    pub status: Option<u16>,
}
