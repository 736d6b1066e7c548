//! The null server: answers at once, and does nothing that an answer does not need.
//!
//! Against it a client shows what it costs itself. It shares the reactor, the streams of TLS, the frames and the
//! compression of header fields with the load engine. A head that repeats on a connection is recognised and not parsed
//! again; its answer is encoded already.

mod outbox;
#[cfg(test)]
pub(crate) mod testing;

use std::sync::Arc;

use crate::http2::windows::Windows;
use crate::payload::Payload;
use crate::refusal::Failure;

pub(crate) use outbox::Outbox;

/// What the server answers. Asked once for each distinct request head of a connection.
pub trait Content: Send + Sync + 'static {
    /// The answer to a request; `path` is without the query.
    fn answer(&self, method: &str, path: &str) -> Answer;

    /// Counts an answered request.
    fn count(&self);
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// A field besides `content-length`.
    pub field: Option<(Name, &'static str)>,
    /// The body.
    pub body: Body,
}

/// The name of a field of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// `content-type`.
    ContentType,
    /// `location`.
    Location,
}

impl Name {
    /// The name, in lower case.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ContentType => "content-type",
            Self::Location => "location",
        }
    }
}

/// The body of an answer.
#[derive(Debug, Clone)]
pub enum Body {
    /// These bytes.
    Known(Payload),
    /// The body of the request.
    Echo,
}

impl Answer {
    /// An answer without a body.
    #[must_use]
    pub const fn empty(status: u16) -> Self {
        Self { status, field: None, body: Body::Known(Payload::Pattern(0)) }
    }
}

/// The server's side of one connection, above a stream of bytes. An error of `receive` breaks the connection.
pub(crate) trait ServerMachine: Sized {
    /// A machine for a new connection.
    fn new(content: &Arc<dyn Content>, windows: Windows) -> Self;

    /// Takes bytes from the peer.
    fn receive(&mut self, bytes: &[u8]) -> Result<(), Failure>;

    /// Bytes to send; empty if there are none.
    fn output(&self) -> &[u8];

    /// Removes the first `count` bytes of the output, which were sent.
    fn sent(&mut self, count: usize) -> Result<(), Failure>;

    /// Whether the server closes the connection after its output.
    fn is_closing(&self) -> bool;
}
