//! Transport statistics of all connections of a server, or of one thread of a client. Each connection is read once,
//! when it ends, or at the report if it is still open. No reading happens while requests are in flight.

use std::collections::HashMap;
use std::fmt;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::reading::{Reading, Totals};

/// A connection with transport counters.
pub trait Meter: fmt::Debug + Send + Sync + 'static {
    /// Reads the counters. Called from any thread, never during the measured window.
    fn read(&self) -> Reading;
}

/// The statistics; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Accounts(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    next: u64,
    open: HashMap<u64, Entry>,
    ended: Totals,
}

/// An open connection.
#[derive(Debug)]
struct Entry {
    source: Source,
    /// Counters at the beginning of the period, if it was open then.
    before: Option<Reading>,
}

/// The source of a connection's counters.
#[derive(Debug, Clone)]
enum Source {
    /// An open socket.
    Socket(RawFd),
    /// The library that carries the connection.
    Library(Arc<dyn Meter>),
}

impl Source {
    fn read(&self) -> Reading {
        match self {
            Self::Socket(socket) => Reading::of_socket(*socket),
            Self::Library(connection) => connection.read(),
        }
    }
}

impl Accounts {
    /// Opens an account of a connection over a socket; drop it before the socket. Only TCP has counters.
    #[must_use]
    pub fn of_socket(&self, socket: &impl AsRawFd) -> Account {
        self.enter(Source::Socket(socket.as_raw_fd()))
    }

    /// Opens an account of a connection with counters in its library; drop it when the connection ends.
    #[must_use]
    pub fn of(&self, connection: Arc<dyn Meter>) -> Account {
        self.enter(Source::Library(connection))
    }

    /// Starts the period of the report: earlier counts are excluded.
    pub fn begin(&self) {
        let book = &mut *self.book();
        book.ended = Totals::default();
        for entry in book.open.values_mut() {
            entry.before = Some(entry.source.read());
        }
    }

    /// The sum over the connections that ended in the period or are open now.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let book = self.book();
        let mut totals = book.ended;
        for entry in book.open.values() {
            totals.add(&entry.source.read(), entry.before.as_ref());
        }
        totals
    }

    /// Number of open connections.
    #[must_use]
    pub fn open(&self) -> usize {
        self.book().open.len()
    }

    fn enter(&self, source: Source) -> Account {
        let mut book = self.book();
        let number = book.next;
        book.next += 1;
        book.open.insert(number, Entry { source: source.clone(), before: None });
        Account { accounts: self.clone(), number, source }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Every statement leaves the numbers consistent, so a panic elsewhere does not corrupt them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The account of an open connection. Dropping it reads the connection for the last time.
#[derive(Debug)]
pub struct Account {
    accounts: Accounts,
    number: u64,
    source: Source,
}

impl Drop for Account {
    fn drop(&mut self) {
        // Reads outside the lock, which other connections wait for.
        let reading = self.source.read();
        let mut book = self.accounts.book();
        if let Some(entry) = book.open.remove(&self.number) {
            book.ended.add(&reading, entry.before.as_ref());
        }
    }
}
