//! What the engine needs of a protocol: to open a connection, to send a request on it, to close it.
//!
//! One file per protocol implements these two traits; the engine knows no protocol. Futures need not be `Send`: each of the
//! client's threads runs its own single-threaded runtime.

use std::time::Instant;

use wirelab_model::event::Configured;
use wirelab_model::sample::Handshake;
use wirelab_model::spec::ClientSpec;

pub use crate::refusal::Failure;
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

/// Opens connections by one protocol to one server. Each of the client's threads has its own.
pub trait Transport: Sized + 'static {
    /// A connection, or a handle to one.
    type Connection: Connection;

    /// The transport for one thread, called once inside that thread's runtime. It refuses what it cannot honour.
    fn build(spec: &ClientSpec) -> Result<Self, Refusal>;

    /// Opens a connection; the engine watches the deadline.
    ///
    /// Where 0-RTT is asked for and possible it returns as soon as early data can be sent.
    fn connect(&self) -> impl Future<Output = Result<Opened<Self::Connection>, Failure>>;

    /// What is in force on the connections, as far as it is known before or after the first of them.
    fn configured(&self) -> Configured;

    /// Session tickets in store, each good for one resumed connection. The engine primes the store before it measures.
    fn tickets(&self) -> usize {
        0
    }

    /// What its connections say of their transport; absent where there is nothing that could say something (UDP).
    fn accounts(&self) -> Option<&Accounts> {
        None
    }
}

/// A connection that was opened.
#[derive(Debug)]
pub struct Opened<C> {
    /// The connection.
    pub connection: C,
    /// When the transport was connected; absent for QUIC and UDP.
    pub connected: Option<Instant>,
    /// When a request could be sent; absent where the protocol has no handshake beyond `connected`.
    pub ready: Option<Instant>,
}

/// An open connection. A clone is a handle to the same connection where the protocol multiplexes.
pub trait Connection: 'static {
    /// Sends the request of the spec and receives the whole response. The engine compares its size and status with the
    /// spec; an implementation fails only where no complete response came.
    ///
    /// The engine watches the deadline. Where it passes, the future is dropped: a protocol that multiplexes must then
    /// cancel the stream; with any other the engine drops the connection as well.
    ///
    /// `body`, where given, is shown the response's bytes as they come (for the digest of the check request).
    fn request(&mut self, body: Option<Sink<'_>>) -> impl Future<Output = Result<Answer, Failure>>;

    /// Whether it can carry a further request, as far as is known without trying: false once the peer closed it.
    fn is_open(&self) -> bool {
        true
    }

    /// Another handle to the same connection, if it multiplexes.
    fn another(&self) -> Option<Self>
    where
        Self: Sized;

    /// How the connection began, proven; asked after its first request, so that 0-RTT is decided. Absent without TLS.
    fn handshake(&self) -> Option<Handshake>;

    /// Closes the connection properly (close-notify, CONNECTION_CLOSE). Not part of the measured time of a request.
    /// Where a session ticket is still to come and resumption is asked for, it is waited for first (briefly).
    fn close(self) -> impl Future<Output = ()>;
}

/// Is shown the bytes of a response body, piece by piece.
pub type Sink<'a> = &'a mut dyn FnMut(&[u8]);

/// A response.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// When its first byte arrived.
    pub first_byte: Instant,
    /// When its last byte arrived.
    pub last_byte: Instant,
    /// Bytes of its body.
    pub bytes_in: u64,
    /// Its HTTP status.
    pub status: Option<u16>,
}
