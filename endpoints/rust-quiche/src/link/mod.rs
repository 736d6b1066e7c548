//! One connection of a client: a task reads, keeps its timers and wakes the requests; requests send by themselves, so
//! that none waits for the task's turn.

mod drive;
mod request;

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use wirelab_contract::sample::Handshake;
use wirelab_endpoint::program::{Account, Failure, ticket_timeout};
use wirelab_quiche::of_connection;

use crate::exchange::Exchanges;
use crate::outbox::Outbox;
use crate::shared::Shared;
use crate::socket::Socket;
use crate::speaker::Speaker;

/// BoringSSL's reason code for accepted early data (`ssl_early_data_accepted`).
const EARLY_DATA_ACCEPTED: u32 = 2;

/// An open connection.
pub struct Link<S> {
    connection: Shared,
    socket: Socket,
    state: RefCell<State<S>>,
    /// The task has to look at what changed: a timer, packets that the kernel did not take, the end.
    wake: Notify,
    /// Something arrived, which requests and others may wait for.
    arrived: Notify,
    /// When the task wakes at the latest.
    armed: Cell<Instant>,
    closing: Cell<bool>,
    early: Cell<bool>,
    /// Ends when the connection is closed, not when its task hears of that.
    account: Cell<Option<Account>>,
}

struct State<S> {
    speaker: Option<S>,
    exchanges: Exchanges,
    outbox: Outbox,
    /// An error of the socket that QUIC does not know.
    failure: Option<Failure>,
    scratch: Vec<u8>,
}

/// A user of a connection. When the last user is gone, the connection is closed and its task ends.
pub struct Handle<S: Speaker>(Rc<Link<S>>);

impl<S: Speaker> Deref for Handle<S> {
    type Target = Link<S>;

    fn deref(&self) -> &Link<S> {
        &self.0
    }
}

impl<S: Speaker> Drop for Handle<S> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<S: Speaker> Link<S> {
    /// Takes over a connection that has sent nothing yet, and sends its first flight.
    pub fn start(connection: Shared, socket: Socket, account: Account) -> Handle<S> {
        let state = State {
            speaker: None,
            exchanges: Exchanges::default(),
            outbox: Outbox::default(),
            failure: None,
            scratch: Vec::new(),
        };
        let link = Rc::new(Self {
            connection,
            socket,
            state: RefCell::new(state),
            wake: Notify::new(),
            arrived: Notify::new(),
            armed: Cell::new(Instant::now() + drive::NEVER),
            closing: Cell::new(false),
            early: Cell::new(false),
            account: Cell::new(Some(account)),
        });
        link.flush();
        tokio::task::spawn_local(Rc::clone(&link).drive());
        Handle(link)
    }

    /// The connection itself.
    pub const fn connection(&self) -> &Shared {
        &self.connection
    }

    /// Returns when requests can be sent: at once where early data can be, else after the handshake.
    pub async fn ready(&self, attempt: &str) -> Result<(), Failure> {
        loop {
            {
                let mut connection = self.connection.lock();
                let early = connection.is_in_early_data();
                if connection.is_established() || early {
                    self.early.set(early);
                    self.state.borrow_mut().speaker = Some(S::begin(&mut connection)?);
                    return Ok(());
                }
            }
            self.failed(attempt)?;
            self.arrived.notified().await;
        }
    }

    /// Returns when early data, if any was sent, is decided.
    pub async fn decided(&self) {
        while self.early.get() && !self.connection.lock().is_established() && self.failed("").is_ok() {
            self.arrived.notified().await;
        }
    }

    /// How it began; absent while that is not decided.
    pub fn handshake(&self) -> Option<Handshake> {
        let connection = self.connection.lock();
        if !connection.is_established() {
            return None;
        }
        Some(match (self.early.get(), connection.early_data_reason()) {
            (true, EARLY_DATA_ACCEPTED) => Handshake::EarlyAccepted,
            (true, _) => Handshake::EarlyRejected,
            (false, _) if connection.is_resumed() => Handshake::Resumed,
            (false, _) => Handshake::Full,
        })
    }

    /// Whether it can carry a further request.
    pub fn is_open(&self) -> bool {
        self.failed("").is_ok()
    }

    /// Closes the connection; before that waits for a session ticket, briefly, where one is wanted.
    pub async fn close(&self, wants_ticket: bool) -> Option<Vec<u8>> {
        let ticket = if wants_ticket { self.ticket().await } else { None };
        self.end();
        ticket
    }

    fn end(&self) {
        if !self.closing.replace(true) {
            let _ = self.connection.lock().close(true, S::DONE, b"");
            self.flush();
            self.wake.notify_one();
            drop(self.account.take());
        }
    }

    async fn ticket(&self) -> Option<Vec<u8>> {
        let limit = {
            let connection = self.connection.lock();
            let trip = connection.path_stats().next().map_or(Duration::ZERO, |path| path.rtt);
            ticket_timeout(trip)
        };
        let came = async {
            while self.connection.lock().session().is_none() && self.is_open() {
                self.arrived.notified().await;
            }
        };
        let _ = tokio::time::timeout(limit, came).await;
        self.connection.lock().session().map(<[u8]>::to_vec)
    }

    /// Why it cannot go on, if so.
    fn failed(&self, attempt: &str) -> Result<(), Failure> {
        if let Some(failure) = &self.state.borrow().failure {
            return Err(failure.clone());
        }
        of_connection(attempt, &self.connection.lock()).map_or(Ok(()), Err)
    }
}
