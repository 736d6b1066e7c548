//! A connection of HTTP/2, whoever sends what on it: opened, watched and closed in one way for HTTP and gRPC.

use std::cell::RefCell;
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
use wirelab_model::event::Configured;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::sample::Handshake;
use wirelab_model::spec::ClientSpec;

use crate::client::failure;
use crate::client::stream::{Dialed, Dialer, Proof, TICKET_PATIENCE};
use crate::client::transport::{Failure, Opened};
use crate::http2::Windows;
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

/// hyper's defaults for clients, which it does not export (hyper 1, `proto/h2/client.rs`).
const DEFAULT: Windows = Windows { stream: 2 << 20, connection: 5 << 20 };

/// How often a closing connection looks whether its ticket came.
const TICKET_LOOK: Duration = Duration::from_millis(1);

/// Opens connections of HTTP/2.
pub(crate) struct Channels {
    dialer: Dialer,
    builder: Builder<LocalExecutor>,
    windows: Windows,
}

/// A handle to a connection of HTTP/2 that sends bodies `B`.
pub(crate) struct Channel<B> {
    /// What sends requests on it.
    pub sender: SendRequest<B>,
    shared: Rc<Shared>,
}

struct Shared {
    proof: Rc<Proof>,
    wants_tickets: bool,
    /// The task that moves the bytes of all streams; it ends when no sender is left.
    driver: RefCell<Option<JoinHandle<()>>>,
}

/// Spawns on the thread's own task set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalExecutor;

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

impl Channels {
    /// By the spec; refuses what HTTP/2 or this machine cannot honour.
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
        let driver = tokio::task::spawn_local(async move {
            // Its error reaches the requests that it breaks.
            let _ = driver.await;
        });
        let shared = Shared { proof, wants_tickets: self.dialer.wants_tickets(), driver: RefCell::new(Some(driver)) };
        Ok(Opened { connection: Channel { sender, shared: Rc::new(shared) }, connected, ready })
    }

    /// What is in force.
    pub fn configured(&self) -> Configured {
        let mut configured = self.dialer.configured();
        configured.insert("stream_window".to_owned(), json!(self.windows.stream));
        configured.insert("connection_window".to_owned(), json!(self.windows.connection));
        configured
    }

    /// Session tickets in store.
    pub fn tickets(&self) -> usize {
        self.dialer.tickets()
    }

    /// What the connections say of their transport.
    pub const fn accounts(&self) -> &Accounts {
        self.dialer.accounts()
    }
}

impl<B> Channel<B> {
    /// The class of an error. Where a reset meets a write, the library says of each stream only that its connection ended.
    pub fn failure(&self, attempt: &str, error: &hyper::Error) -> Failure {
        let failure = failure::http(attempt, error);
        if failure.kind == ErrorKind::Truncated && self.shared.proof.was_reset() {
            return Failure::new(ErrorKind::Reset, format!("{}; the server reset the connection", failure.message));
        }
        failure
    }

    /// Whether it can carry a further request.
    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Another handle to it.
    pub fn another(&self) -> Self {
        Self { sender: self.sender.clone(), shared: Rc::clone(&self.shared) }
    }

    /// How it began.
    pub fn handshake(&self) -> Option<Handshake> {
        self.shared.proof.handshake()
    }

    /// Closes it, after its ticket has come where one is wanted.
    pub async fn close(self) {
        let Self { sender, shared } = self;
        if shared.wants_tickets {
            let arrived = async {
                while !shared.proof.has_ticket() && !sender.is_closed() {
                    tokio::time::sleep(TICKET_LOOK).await;
                }
            };
            // Without a ticket the next connection begins with a full handshake, and its sample says so.
            let _ = timeout(TICKET_PATIENCE, arrived).await;
        }
        drop(sender);
        // The driver ends with the last handle; the others only let go of theirs.
        if let Ok(shared) = Rc::try_unwrap(shared)
            && let Some(driver) = shared.driver.take()
        {
            let _ = timeout(TICKET_PATIENCE, driver).await;
        }
    }
}
