//! The null server: answers at once, and does nothing that an answer does not need.
//!
//! Against it a client shows what it costs itself. It shares the reactor, the streams of TLS, the frames and the
//! compression of header fields with the load engine. A head that repeats on a connection is recognised and not parsed
//! again; its answer is encoded already.

mod connection;
mod outbox;
#[cfg(test)]
pub(crate) mod testing;
mod worker;

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustls::ServerConfig;

use crate::accounts::Accounts;
use crate::http1::server::Http1Server;
use crate::http2::server::Http2Server;
use crate::http2::windows::Windows;
use crate::payload::Payload;
use crate::poller::Poller;
use crate::raw::server::RawServer;
use crate::refusal::Failure;

pub(crate) use outbox::Outbox;

/// The answers of the server, computed once for each distinct request head of a connection.
pub trait Content: Send + Sync + 'static {
    /// The answer to a request; `path` is without the query.
    fn answer(&self, method: &str, path: &str) -> Answer;

    /// Counts an answered request.
    fn count(&self);

    /// Whether requests over HTTP/2 are calls of gRPC, which [`Self::call`] answers.
    fn is_grpc(&self) -> bool {
        false
    }

    /// The outcome of a call; `request` is its messages behind their prefixes.
    fn call(&self, _path: &str, _request: &[u8]) -> Result<Vec<u8>, Status> {
        Err(Status::UNIMPLEMENTED)
    }
}

/// The status of a failed call of gRPC (gRPC, `statuscodes.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    pub const INVALID_ARGUMENT: Self = Self(3);
    pub const UNIMPLEMENTED: Self = Self(12);
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// A field besides `content-length`.
    pub field: Option<(Name, &'static str)>,
    pub body: Body,
}

/// The name of a field of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    ContentType,
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

/// The server's side of one connection, above a stream of bytes. An error breaks the connection.
pub trait ServerMachine: Sized {
    /// A machine for a new connection.
    fn new(content: &Arc<dyn Content>, windows: Windows) -> Self;

    /// Takes bytes from the peer.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the peer broke the protocol.
    fn receive(&mut self, bytes: &[u8]) -> Result<(), Failure>;

    /// Bytes to send; empty if there are none.
    fn output(&self) -> &[u8];

    /// Removes the first `count` bytes of the output, which were sent.
    ///
    /// # Errors
    ///
    /// [`Failure`] if bytes that waited for this broke the protocol.
    fn sent(&mut self, count: usize) -> Result<(), Failure>;

    /// Whether the server closes the connection after its output.
    fn is_closing(&self) -> bool;
}

/// The protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 with these windows for requests; with it gRPC.
    Http2(Windows),
    /// The requests of raw TCP and TLS.
    Raw,
}

/// A running server. Drop ends its threads and closes its connections.
#[derive(Debug)]
pub struct NullServer {
    /// Its end wakes all threads.
    stop: Option<UnixStream>,
    threads: Vec<JoinHandle<()>>,
}

impl NullServer {
    /// Serves the connections of a listener, which does not block, with this number of threads.
    ///
    /// # Errors
    ///
    /// Those of the kernel, for example if no descriptor is left.
    pub fn start(
        listener: TcpListener,
        tls: Option<Arc<ServerConfig>>,
        (speaks, content): (Speaks, Arc<dyn Content>),
        accounts: Accounts,
        threads: usize,
    ) -> io::Result<Self> {
        let (stop, stopped) = UnixStream::pair()?;
        let mut server = Self { stop: Some(stop), threads: Vec::new() };
        let shared = Arc::new(worker::Shared { listener, stopped, tls, content, accounts });
        for number in 0..threads {
            let poller = Poller::new()?;
            shared.watch(&poller)?;
            let shared = Arc::clone(&shared);
            let run = move || match speaks {
                Speaks::Http1 => worker::run::<Http1Server>(&shared, poller, Windows::SMALLEST),
                Speaks::Http2(windows) => worker::run::<Http2Server>(&shared, poller, windows),
                Speaks::Raw => worker::run::<RawServer>(&shared, poller, Windows::SMALLEST),
            };
            server.threads.push(thread::Builder::new().name(format!("null-{number}")).spawn(run)?);
        }
        Ok(server)
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.stop = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so on standard error.
            let _ = thread.join();
        }
    }
}
