//! Streams of sockets, whose transport statistics are read when they end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use wirelab_engine::accounts::{Account, Accounts};

/// A stream with its account.
#[derive(Debug)]
pub struct Metered {
    /// The first field, because fields drop in order: it reads the socket, which must be open.
    _account: Account,
    stream: Socket,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    /// The kernel has no transport statistics of it, so its account has no value.
    Unix(UnixStream),
}

/// Calls a function of whichever stream it is.
macro_rules! of_either {
    ($socket:expr, |$stream:ident| $call:expr) => {
        match $socket {
            Socket::Tcp($stream) => $call,
            Socket::Unix($stream) => $call,
        }
    };
}

impl Metered {
    /// Opens the account of a connection over TCP.
    pub fn new(accounts: &Accounts, stream: TcpStream) -> Self {
        Self { _account: accounts.of_socket(&stream), stream: Socket::Tcp(stream) }
    }

    /// Opens the account of a connection over a Unix socket.
    pub fn unix(accounts: &Accounts, stream: UnixStream) -> Self {
        Self { _account: accounts.of_socket(&stream), stream: Socket::Unix(stream) }
    }
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        of_either!(&mut self.stream, |stream| Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        of_either!(&mut self.stream, |stream| Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        of_either!(&mut self.stream, |stream| Pin::new(stream).poll_write_vectored(cx, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        of_either!(&self.stream, |stream| stream.is_write_vectored())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_either!(&mut self.stream, |stream| Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_either!(&mut self.stream, |stream| Pin::new(stream).poll_shutdown(cx))
    }
}
