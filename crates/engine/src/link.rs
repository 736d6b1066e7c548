//! A connection with its socket, as the load drives it, and what opens it.

use std::time::Instant;

use wirelab_contract::event::Configured;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::ClientSpec;

use crate::accounts::Accounts;
use crate::machine::{Inbox, Slot};
use crate::poller::{Poller, Readiness};
use crate::refusal::{Failure, Refusal};

/// Opens connections of one protocol. Each thread has its own.
pub trait Dialer: Sized {
    /// The connections.
    type Link: Link;

    /// Creates the dialer of a thread; refuses settings that it cannot honour.
    ///
    /// # Errors
    ///
    /// [`Refusal`].
    fn new(spec: &ClientSpec) -> Result<Self, Refusal>;

    /// Starts to open a connection, whose socket is watched under `token`. `Event::Opened` follows.
    ///
    /// # Errors
    ///
    /// [`Failure`] if it failed at once.
    fn dial(&mut self, poller: &Poller, token: u64) -> Result<Self::Link, Failure>;

    /// The effective settings, as far as known before or after the first connection.
    fn configured(&self) -> Configured;

    /// Number of stored session tickets, each for one resumed connection.
    fn tickets(&self) -> usize;

    /// Transport statistics of the connections; `None` if their transport has none.
    fn accounts(&self) -> Option<&Accounts>;
}

/// A connection. An error of one of its functions breaks it, and with it every request without a last event.
pub trait Link {
    /// Whether it takes another request, as far as known.
    fn is_open(&self) -> bool;

    /// Has its socket watched under another token.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the kernel refuses.
    fn rename(&self, poller: &Poller, token: u64) -> Result<(), Failure>;

    /// Starts the request with this number, which leaves with the next `flush`.
    fn start(&mut self, slot: Slot, number: usize);

    /// Abandons a request: no event of it follows. The next `flush` tells the peer, if the protocol can.
    fn cancel(&mut self, slot: Slot);

    /// Reads what arrived, and reports it.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the connection broke.
    fn receive(&mut self, ready: Readiness, inbox: &mut Inbox) -> Result<(), Failure>;

    /// Writes the output, as far as the kernel takes it; the rest follows when the socket is writable.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the connection broke.
    fn flush(&mut self) -> Result<(), Failure>;

    /// The time at which the connection itself has something to do, if any.
    fn timer(&self) -> Option<Instant> {
        None
    }

    /// Does what its timer says, and reports it.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the connection broke.
    fn tick(&mut self, _: Instant, _: &mut Inbox) -> Result<(), Failure> {
        Ok(())
    }

    /// What a connection that is not open waits for, in words, if it is not the server.
    fn awaits(&self) -> Option<String> {
        None
    }

    /// The proven kind of handshake, after a response; `None` without TLS.
    fn handshake(&self) -> Option<Handshake>;

    /// Whether closing should wait for a session ticket.
    fn lacks_ticket(&self) -> bool;

    /// Says goodbye to the peer; the connection is dropped next.
    fn close(&mut self);
}
