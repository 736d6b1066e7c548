//! Facts about a connection for other tasks than its driver, which alone can ask quiche.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_quiche::quic::QuicheConnection;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::sample::Handshake;
use wirelab_endpoint::program::{Configured, Failure, Meter, Reading};
use wirelab_quiche::{of_connection, reading, record};

/// The action that a failure names if no request was made.
const ATTEMPT: &str = "keeping a connection";

/// A connection, as its driver and its users share it.
#[derive(Debug)]
pub struct Line {
    expects: Option<Expects>,
    /// The code that closes it without an error.
    done: u64,
    reading: Mutex<Reading>,
    state: watch::Sender<State>,
    closing: Notify,
}

/// A client's expectations of its connection.
#[derive(Debug)]
pub struct Expects {
    /// The name of the server.
    pub server: String,
    /// The application protocol.
    pub alpn: &'static str,
    /// Whether to keep a session ticket.
    pub ticket: bool,
}

#[derive(Debug, Default)]
struct State {
    begun: Option<Begun>,
    ticket: Option<Vec<u8>>,
    over: Option<Failure>,
}

/// How a connection began.
#[derive(Debug, Clone)]
pub struct Begun {
    /// How, proven.
    pub handshake: Handshake,
    /// The negotiated values; empty at a server.
    pub configured: Configured,
}

impl Line {
    /// A connection that is about to begin; `expects` is a client's.
    pub fn new(done: u64, expects: Option<Expects>) -> Self {
        let (reading, state, closing) = Default::default();
        Self { expects, done, reading, state, closing }
    }

    /// Returns when requests can be sent.
    pub async fn begun(&self) -> Result<Begun, Failure> {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| state.begun.is_some() || state.over.is_some()).await;
        match state.map(|state| (state.begun.clone(), state.over.clone())) {
            Ok((_, Some(failure))) => Err(failure),
            Ok((Some(begun), None)) => Ok(begun),
            Ok((None, None)) | Err(_) => Err(closed()),
        }
    }

    /// How it began, if it did.
    pub fn handshake(&self) -> Option<Handshake> {
        self.state.borrow().begun.as_ref().map(|begun| begun.handshake)
    }

    /// Whether it can carry a further request.
    pub fn is_open(&self) -> bool {
        self.state.borrow().over.is_none()
    }

    /// The failure of the connection if it is over, else `otherwise`.
    pub fn failure_or(&self, otherwise: Failure) -> Failure {
        self.state.borrow().over.clone().unwrap_or(otherwise)
    }

    /// Waits for its end, and returns the reason.
    pub async fn over(&self) -> Failure {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| state.over.is_some()).await;
        state.ok().and_then(|state| state.over.clone()).unwrap_or_else(closed)
    }

    /// Returns the session ticket when it came, or nothing when none can come any more.
    pub async fn ticket(&self) -> Option<Vec<u8>> {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| state.ticket.is_some() || state.over.is_some()).await;
        state.ok().and_then(|state| state.ticket.clone())
    }

    /// The round trip of a packet.
    pub fn round_trip(&self) -> Duration {
        Duration::from_nanos(self.reading().round_trip.unwrap_or_default())
    }

    /// Asks its driver to close it.
    pub fn close(&self) {
        self.closing.notify_one();
    }

    /// For its driver: waits for the request to close, and returns the code.
    pub async fn is_to_close(&self) -> u64 {
        self.closing.notified().await;
        self.done
    }

    /// For its driver: the handshake is complete, or early data can be read.
    pub fn begin(&self, connection: &mut QuicheConnection) {
        let handshake = if connection.is_resumed() { Handshake::Resumed } else { Handshake::Full };
        let mut configured = Configured::new();
        let checked = match &self.expects {
            Some(expects) => record(connection, &expects.server, expects.alpn, &mut configured),
            None => Ok(()),
        };
        self.state.send_modify(|state| {
            state.begun = Some(Begun { handshake, configured });
            state.over = checked.err();
        });
    }

    /// For its driver: notes the counters and the fate of the connection. Called whenever no work is left, so
    /// it costs a request little.
    pub fn look(&self, connection: &QuicheConnection) {
        *self.reading() = reading(connection);
        let state = self.state.borrow();
        let wants_ticket = state.ticket.is_none() && self.expects.as_ref().is_some_and(|expects| expects.ticket);
        let ticket = if wants_ticket { connection.session().map(<[u8]>::to_vec) } else { None };
        let over = if state.over.is_none() { of_connection(ATTEMPT, connection) } else { None };
        drop(state);
        if ticket.is_some() || over.is_some() {
            self.state.send_modify(|state| {
                state.ticket = ticket.or_else(|| state.ticket.take());
                state.over = state.over.take().or(over);
            });
        }
    }

    /// For its driver: the connection has no driver any more.
    pub fn end(&self) {
        self.state.send_if_modified(|state| {
            let is_news = state.over.is_none();
            state.over.get_or_insert_with(closed);
            is_news
        });
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter for Line {
    fn read(&self) -> Reading {
        *self.reading()
    }
}

fn closed() -> Failure {
    Failure::new(ErrorKind::Reset, "the connection was closed")
}
