//! The protocols `h2c` (with prior knowledge) and `h2`.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hyper::body::{Body, Incoming};
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
use crate::client::http::Recipe;
use crate::client::http_body::PatternBody;
use crate::client::stream::{Dialed, Dialer, Proof, TICKET_PATIENCE};
use crate::client::transport::{Answer, Connection, Failure, Opened, Sink, Transport};
use crate::http2::Windows;
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

/// hyper's defaults for clients, which it does not export (hyper 1, `proto/h2/client.rs`).
const DEFAULT: Windows = Windows { stream: 2 << 20, connection: 5 << 20 };

/// How often a closing connection looks whether its ticket came.
const TICKET_LOOK: Duration = Duration::from_millis(1);

/// Opens connections of HTTP/2.
pub(crate) struct Http2Transport {
    dialer: Dialer,
    recipe: Rc<Recipe>,
    builder: Builder<LocalExecutor>,
    windows: Windows,
}

/// A handle to a connection of HTTP/2.
pub(crate) struct Http2Connection {
    sender: SendRequest<PatternBody>,
    shared: Rc<Shared>,
}

struct Shared {
    recipe: Rc<Recipe>,
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

impl Transport for Http2Transport {
    type Connection = Http2Connection;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        let windows = Windows::of(&spec.transport, DEFAULT)?;
        let mut builder = Builder::new(LocalExecutor);
        builder.initial_stream_window_size(windows.stream).initial_connection_window_size(windows.connection);
        Ok(Self { dialer: Dialer::new(spec)?, recipe: Rc::new(Recipe::new(spec)?), builder, windows })
    }

    async fn connect(&self) -> Result<Opened<Http2Connection>, Failure> {
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
        let shared = Shared {
            recipe: Rc::clone(&self.recipe),
            proof,
            wants_tickets: self.dialer.wants_tickets(),
            driver: RefCell::new(Some(driver)),
        };
        Ok(Opened { connection: Http2Connection { sender, shared: Rc::new(shared) }, connected, ready })
    }

    fn configured(&self) -> Configured {
        let mut configured = self.dialer.configured();
        configured.insert("stream_window".to_owned(), json!(self.windows.stream));
        configured.insert("connection_window".to_owned(), json!(self.windows.connection));
        configured
    }

    fn tickets(&self) -> usize {
        self.dialer.tickets()
    }

    fn accounts(&self) -> Option<&Accounts> {
        Some(self.dialer.accounts())
    }
}

impl Http2Connection {
    /// The class of an error. Where a reset meets a write, the library says of each stream only that its connection ended.
    fn failure(&self, attempt: &str, error: &hyper::Error) -> Failure {
        let failure = failure::http(attempt, error);
        if failure.kind == ErrorKind::Truncated && self.shared.proof.was_reset() {
            return Failure::new(ErrorKind::Reset, format!("{}; the server reset the connection", failure.message));
        }
        failure
    }
}

impl Connection for Http2Connection {
    async fn request(&mut self, mut sink: Option<Sink<'_>>) -> Result<Answer, Failure> {
        self.sender.ready().await.map_err(|error| self.failure("sending the request", &error))?;
        let sent = self.sender.send_request(self.shared.recipe.request());
        let response = sent.await.map_err(|error| self.failure("waiting for the response", &error))?;
        let first_byte = Instant::now();
        let status = response.status().as_u16();
        let mut body: Incoming = response.into_body();
        let mut bytes_in = 0;
        while !body.is_end_stream() {
            let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await else { break };
            let frame = frame.map_err(|error| self.failure("receiving the response", &error))?;
            if let Some(data) = frame.data_ref() {
                bytes_in += data.len() as u64;
                if let Some(sink) = &mut sink {
                    sink(data);
                }
            }
        }
        Ok(Answer { first_byte, last_byte: Instant::now(), bytes_in, status: Some(status) })
    }

    fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    fn another(&self) -> Option<Self> {
        Some(Self { sender: self.sender.clone(), shared: Rc::clone(&self.shared) })
    }

    fn handshake(&self) -> Option<Handshake> {
        self.shared.proof.handshake()
    }

    async fn close(self) {
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
