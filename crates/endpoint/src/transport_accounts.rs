//! The accounts of all connections of a server, or of one thread of a client: each connection is read once, when it ends,
//! and those that are still open when the report is made. Nothing is read while requests go on.

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

/// A connection that says what it has counted so far.
pub trait Meter: fmt::Debug + Send + Sync + 'static {
    /// What it says now. Called from any thread, never while the measured window is open.
    fn read(&self) -> Reading;
}

/// The accounts; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Accounts(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    next: u64,
    open: HashMap<u64, Entry>,
    ended: Totals,
}

/// A connection that is open.
#[derive(Debug)]
struct Entry {
    source: Source,
    /// What it had counted when the period began, if it was open then.
    before: Option<Reading>,
}

/// Where a connection is read.
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
    /// An account of a TCP connection, kept with its stream.
    pub fn tcp(&self, stream: TcpStream) -> Metered {
        Metered { _account: self.enter(Source::Tcp(stream.as_raw_fd())), stream }
    }

    /// An account of a connection that its library can say something of, to be dropped when it ends.
    pub fn of(&self, connection: Arc<dyn Meter>) -> Account {
        self.enter(Source::Library(connection))
    }

    /// Begins the period of the report: what was counted so far does not count.
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

    /// How many connections are open now.
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
        // Numbers are whole between any two statements, so that a panic elsewhere leaves nothing torn.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The account of an open connection. Dropped, it reads the connection for the last time.
#[derive(Debug)]
pub struct Account {
    accounts: Accounts,
    number: u64,
    source: Source,
}

impl Drop for Account {
    fn drop(&mut self) {
        // Outside the lock, which other connections wait for.
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
    /// The first field, because fields are dropped in order: it reads the socket, which must be open.
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
