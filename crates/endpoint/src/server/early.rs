//! A server's TLS stream that gives out 0-RTT data as it arrives.
//!
//! tokio-rustls completes the handshake before anything can be read, and leaves early data where nobody looks for it;
//! the answer would then come a round trip later than 0-RTT promises. This stream begins with the first byte: what is
//! read from it may be early data, and what is written to it may leave right after the server's own Finished.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::{ServerConfig, ServerConnection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport_accounts::Metered;

/// A TLS stream on the server's side; the handshake goes on while it is read and written.
pub struct EarlyStream {
    tcp: Metered,
    session: ServerConnection,
    closing: bool,
}

impl EarlyStream {
    /// A stream whose handshake has not begun.
    pub fn new(tcp: Metered, config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self { tcp, session: ServerConnection::new(config)?, closing: false })
    }

    /// Writes what the session has ready to leave.
    fn poll_write_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut Blocking { tcp: &mut self.tcp, cx }) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes in what has arrived. False: the client has closed its side.
    fn poll_read_in(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        match self.session.read_tls(&mut Blocking { tcp: &mut self.tcp, cx }) {
            Ok(0) => return Poll::Ready(Ok(false)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) => return Poll::Ready(Err(error)),
        }
        if let Err(error) = self.session.process_new_packets() {
            // The alert that says why; the connection is lost either way.
            let _ = self.poll_write_out(cx);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        Poll::Ready(Ok(true))
    }

    /// Bytes that were decrypted; `None`: none at the moment. Zero: the client has closed its side.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        // Early data comes before everything else, and some may be left when the handshake is over.
        if let Some(mut early) = self.session.early_data()
            && let Ok(count @ 1..) = early.read(buffer)
        {
            return Ok(Some(count));
        }
        match self.session.reader().read(buffer) {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsyncRead for EarlyStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            // The handshake's answers must not wait for the application's.
            if let Poll::Ready(result) = this.poll_write_out(cx) {
                result?;
            }
            if let Some(count) = this.take(buffer.initialize_unfilled())? {
                buffer.advance(count);
                return Poll::Ready(Ok(()));
            }
            if !ready!(this.poll_read_in(cx))? {
                return Poll::Ready(if this.session.is_handshaking() {
                    Err(io::ErrorKind::UnexpectedEof.into())
                } else {
                    Ok(())
                });
            }
        }
    }
}

impl AsyncWrite for EarlyStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        loop {
            let count = this.session.writer().write(bytes)?;
            let written = this.poll_write_out(cx)?;
            if count > 0 || bytes.is_empty() {
                return Poll::Ready(Ok(count));
            }
            // The session's buffer was full: it empties once the socket takes more, or once the handshake goes on.
            ready!(written);
            if this.session.is_handshaking() && !ready!(this.poll_read_in(cx))? {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_write_out(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.closing {
            this.closing = true;
            this.session.send_close_notify();
        }
        ready!(this.poll_write_out(cx))?;
        Pin::new(&mut this.tcp).poll_shutdown(cx)
    }
}

/// The socket as rustls wants it: an operation that would wait says so, and wakes the task when it need not any more.
struct Blocking<'a, 'b> {
    tcp: &'a mut Metered,
    cx: &'a mut Context<'b>,
}

impl Read for Blocking<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(buffer);
        match Pin::new(&mut *self.tcp).poll_read(self.cx, &mut buffer) {
            Poll::Ready(result) => result.map(|()| buffer.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for Blocking<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match Pin::new(&mut *self.tcp).poll_write(self.cx, bytes) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn write_vectored(&mut self, bytes: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match Pin::new(&mut *self.tcp).poll_write_vectored(self.cx, bytes) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
