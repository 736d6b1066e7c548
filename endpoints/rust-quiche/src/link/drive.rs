//! The work of a connection: receipt, timers, sending.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use quiche::RecvInfo;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_endpoint::program::Failure;
use wirelab_quiche::of_connection;

use crate::link::{Link, State};
use crate::outbox::Sent;
use crate::speaker::Speaker;

/// When nothing is due: longer than any connection is idle.
pub(super) const NEVER: Duration = Duration::from_secs(86_400);

impl<S: Speaker> Link<S> {
    /// Sends pending packets, as far as the kernel accepts them.
    pub(super) fn flush(&self) {
        let mut state = self.state.borrow_mut();
        let mut connection = self.connection.lock();
        let was_blocked = state.outbox.is_blocked();
        match state.outbox.flush(&mut connection, &self.socket) {
            // The task knows already that it has to wait for the kernel.
            Ok(Sent::Blocked) if was_blocked => {}
            Ok(Sent::Blocked) => self.wake.notify_one(),
            Ok(Sent::All) => {}
            Err(error) => {
                state.note(&error);
                self.wake.notify_one();
            }
        }
        if connection.timeout_instant().is_some_and(|due| due < self.armed.get()) {
            self.wake.notify_one();
        }
    }

    /// Reads everything that is there, and tells the requests.
    fn receive(&self) {
        let mut state = self.state.borrow_mut();
        let mut connection = self.connection.lock();
        let to = self.socket.local();
        loop {
            let received = self.socket.receive(|datagram, from| {
                // Bytes that are no packet of this connection are dropped, as QUIC demands.
                let _ = connection.recv(datagram, RecvInfo { from, to });
            });
            match received {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    state.note(&error);
                    break;
                }
            }
        }
        let State { speaker, exchanges, scratch, failure, .. } = &mut *state;
        if let Some(speaker) = speaker {
            speaker.receive(&mut connection, exchanges, scratch);
        }
        let failure = failure.clone().or_else(|| of_connection(S::ATTEMPT, &connection));
        if let Some(failure) = failure {
            exchanges.fail_all(&failure);
        }
    }

    /// Runs until the connection ends or has no user any more.
    pub(super) async fn drive(self: Rc<Self>) {
        // The timer of QUIC (RFC 9002): armed below for the moment that the connection names, and not before.
        let timer = tokio::time::sleep_until(self.armed.get().into());
        tokio::pin!(timer);
        while !self.closing.get() && !self.connection.lock().is_closed() && self.state.borrow().failure.is_none() {
            // A timer that is armed too early costs one look at the clock; one that follows every packet costs more.
            let due = self.connection.lock().timeout_instant().unwrap_or_else(|| Instant::now() + NEVER);
            if due < self.armed.get() || timer.is_elapsed() {
                self.armed.set(due);
                timer.as_mut().reset(due.into());
            }
            let blocked = self.state.borrow().outbox.is_blocked();
            tokio::select! {
                _ = self.socket.readable() => self.receive(),
                () = timer.as_mut() => {
                    let mut connection = self.connection.lock();
                    if connection.timeout_instant().is_some_and(|due| due <= Instant::now()) {
                        connection.on_timeout();
                    }
                }
                _ = self.socket.writable(), if blocked => {}
                () = self.wake.notified() => {}
            }
            self.flush();
            self.arrived.notify_waiters();
        }
        let failure = self.failed(S::ATTEMPT).err();
        let failure = failure.unwrap_or_else(|| Failure::new(ErrorKind::Reset, "the connection was closed"));
        self.state.borrow_mut().exchanges.fail_all(&failure);
        self.arrived.notify_waiters();
    }
}

impl<S> State<S> {
    /// An error of the socket. QUIC treats every error but an absent peer as lost packets.
    fn note(&mut self, error: &io::Error) {
        if error.kind() == io::ErrorKind::ConnectionRefused {
            let message = "nothing listens there (ICMP port unreachable)";
            self.failure.get_or_insert_with(|| Failure::new(ErrorKind::Refused, message));
        }
    }
}
