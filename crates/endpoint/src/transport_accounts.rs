//! Transport statistics of all connections of a server, or of one thread of a client. Each connection is read once,
//! when it ends, or at the report if it is still open. No reading happens while requests are in flight.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::transport_reading::{Reading, Totals};

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
    /// An open TCP socket.
    Tcp(RawFd),
    /// The library that carries the connection.
    Library(Arc<dyn Meter>),
}

impl Source {
    fn read(&self) -> Reading {
        match self {
            Self::Tcp(socket) => Reading::of_tcp(*socket),
            Self::Library(connection) => connection.read(),
        }
    }
}

impl Accounts {
    /// Opens an account of a TCP connection, kept with its stream.
    pub fn tcp(&self, stream: TcpStream) -> Metered {
        Metered { _account: self.enter(Source::Tcp(stream.as_raw_fd())), stream }
    }

    /// Opens an account of a connection with counters in its library; drop it when the connection ends.
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
    pub fn totals(&self) -> Totals {
        let book = self.book();
        let mut totals = book.ended;
        for entry in book.open.values() {
            totals.add(&entry.source.read(), entry.before.as_ref());
        }
        totals
    }

    /// Number of open connections.
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

/// A TCP stream with its account.
#[derive(Debug)]
pub struct Metered {
    /// The first field, because fields drop in order: it reads the socket, which must be open.
    _account: Account,
    stream: TcpStream,
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
