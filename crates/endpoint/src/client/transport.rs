//! What the engine needs of a protocol: to open a connection, to send a request on it, to close it.
//!
//! One file per protocol implements these two traits; the engine knows no protocol. Futures need not be `Send`: each of the
//! client's threads runs its own single-threaded runtime.

use std::time::Instant;

use wirelab_model::event::Configured;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::sample::Handshake;

/// Opens connections by one protocol to one server.
pub trait Transport: 'static {
    /// A connection, or a handle to one.
    type Connection: Connection;

    /// Opens a connection; the engine watches the deadline.
    ///
    /// Where 0-RTT is asked for and possible it returns as soon as early data can be sent.
    fn connect(&self) -> impl Future<Output = Result<Opened<Self::Connection>, Failure>>;

    /// What is in force on the connections, as far as it is known before or after the first of them.
    fn configured(&self) -> Configured;
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
    /// Sends the request of the spec and receives the whole response. Size and status are checked against the spec.
    ///
    /// `body`, where given, receives the response's bytes (for the digest of the check request).
    fn request(&mut self, body: Option<&mut Vec<u8>>) -> impl Future<Output = Result<Answer, Failure>>;

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

/// Why a connection or a request failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The class.
    pub kind: ErrorKind,
    /// What was attempted and what happened.
    pub message: String,
}
