//! An HTTP/2 connection, with the same opening, supervision and closing for HTTP and gRPC.

use std::cell::{Cell, OnceCell, RefCell};
use std::error::Error;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::ClientSpec;

use crate::client::failure;
use crate::client::stream::{Dialed, Dialer, Proof, TICKET_WAIT};
use crate::client::transport::{Failure, Opened};
use crate::http2::Windows;
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

/// hyper's defaults for clients, which it does not export (hyper 1, `proto/h2/client.rs`).
const DEFAULT: Windows = Windows { stream: 2 << 20, connection: 5 << 20 };

/// Interval at which a closing connection checks for its ticket.
const TICKET_POLL: Duration = Duration::from_millis(1);

/// Opens HTTP/2 connections.
pub(crate) struct Channels {
    dialer: Dialer,
    builder: Builder<LocalExecutor>,
    windows: Windows,
}

/// A handle to an HTTP/2 connection that sends bodies `B`.
pub(crate) struct Channel<B> {
    /// The sender of requests.
    pub sender: SendRequest<B>,
    shared: Rc<Shared>,
}

struct Shared {
    proof: Rc<Proof>,
    wants_tickets: bool,
    /// The task that moves the bytes of all streams; it ends with the last sender.
    driver: RefCell<Option<JoinHandle<()>>>,
    /// How the connection ended.
    end: Rc<OnceCell<Result<(), hyper::Error>>>,
    /// Whether the server has turned a request away.
    is_closing: Cell<bool>,
}

/// Spawns tasks on the thread's own task set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalExecutor;

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

impl Channels {
    /// Creates it from the spec; refuses settings that HTTP/2 or this machine cannot honour.
    pub fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let windows = Windows::of(&spec.transport, DEFAULT)?;
        let mut builder = Builder::new(LocalExecutor);
        builder.initial_stream_window_size(windows.stream).initial_connection_window_size(windows.connection);
        Ok(Self { dialer: Dialer::new(spec)?, builder, windows })
    }

    /// Opens a connection.
    pub async fn open<B>(&self) -> Result<Opened<Channel<B>>, Failure>
    where
        B: Body<Data = Bytes> + Unpin + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let Dialed { stream, connected, ready } = self.dialer.dial().await?;
        let proof = stream.proof();
        let (sender, driver) = self
            .builder
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failure::http("beginning HTTP/2", &error))?;
        let end = Rc::new(OnceCell::new());
        let ended = Rc::clone(&end);
        let driver = tokio::task::spawn_local(async move {
            // Requests that were sent get its error. Without one, a GOAWAY or the last handle ended it.
            let _ = ended.set(driver.await);
        });
        let shared = Shared {
            proof,
            wants_tickets: self.dialer.wants_tickets(),
            driver: RefCell::new(Some(driver)),
            end,
            is_closing: Cell::new(false),
        };
        Ok(Opened { connection: Channel { sender, shared: Rc::new(shared) }, connected, ready })
    }

    /// The effective settings.
    pub fn configured(&self) -> Configured {
        let mut configured = self.dialer.configured();
        configured.insert("stream_window".to_owned(), json!(self.windows.stream));
        configured.insert("connection_window".to_owned(), json!(self.windows.connection));
        configured
    }

    /// Number of stored session tickets.
    pub fn tickets(&self) -> usize {
        self.dialer.tickets()
    }

    /// Transport statistics of the connections.
    pub const fn accounts(&self) -> &Accounts {
        self.dialer.accounts()
    }
}

impl<B> Channel<B> {
    /// Converts an error. A request that was not sent learns only that the connection ended; if a reset coincides with
    /// a write, all requests do.
    pub fn failure(&self, attempt: &str, error: &hyper::Error) -> Failure {
        let cause = match self.shared.end.get() {
            Some(Err(cause)) if error.is_canceled() => cause,
            _ => error,
        };
        let failure = failure::http(attempt, cause);
        if failure.kind == ErrorKind::Truncated && self.shared.proof.was_reset() {
            return Failure::new(ErrorKind::Reset, format!("{}; the server reset the connection", failure.message));
        }
        failure
    }

    /// Whether an error means that the server did not process the request: it refused the stream, or closes the
    /// connection in an orderly way. Its GOAWAY without an error then names an earlier request as the last one, or came
    /// before this request was sent (RFC 9113, sections 6.8 and 8.7).
    pub fn turns_away(&self, error: &hyper::Error) -> bool {
        let because = |applies: fn(&h2::Error) -> bool| {
            let mut causes = std::iter::successors(error.source(), |&cause| cause.source());
            causes.any(|cause| cause.downcast_ref::<h2::Error>().is_some_and(|h2| h2.is_remote() && applies(h2)))
        };
        if because(|h2| h2.is_reset() && h2.reason() == Some(h2::Reason::REFUSED_STREAM)) {
            return true;
        }
        // A request that was not sent is cancelled.
        let unsent = error.is_canceled() && matches!(self.shared.end.get(), Some(Ok(())));
        let by_goaway = || because(|h2| h2.is_go_away() && h2.reason() == Some(h2::Reason::NO_ERROR));
        let turns_away = !self.shared.proof.was_reset() && (unsent || by_goaway());
        self.shared.is_closing.set(self.shared.is_closing.get() || turns_away);
        turns_away
    }

    /// Whether it accepts further requests.
    pub fn is_open(&self) -> bool {
        !self.shared.is_closing.get() && !self.sender.is_closed()
    }

    /// Another handle to the same connection.
    pub fn another(&self) -> Self {
        Self { sender: self.sender.clone(), shared: Rc::clone(&self.shared) }
    }

    /// The kind of handshake.
    pub fn handshake(&self) -> Option<Handshake> {
        self.shared.proof.handshake()
    }

    /// Closes it, after the arrival of its ticket if one is wanted.
    pub async fn close(self) {
        let Self { sender, shared } = self;
        if shared.wants_tickets {
            let arrived = async {
                while !shared.proof.has_ticket() && !sender.is_closed() {
                    tokio::time::sleep(TICKET_POLL).await;
                }
            };
            // Without a ticket the next connection has a full handshake, and its sample says so.
            let _ = timeout(TICKET_WAIT, arrived).await;
        }
        drop(sender);
        // The driver ends with the last handle; other handles are only dropped.
        if let Ok(shared) = Rc::try_unwrap(shared)
            && let Some(driver) = shared.driver.take()
        {
            let _ = timeout(TICKET_WAIT, driver).await;
        }
    }
}
