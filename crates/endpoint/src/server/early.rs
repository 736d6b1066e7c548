//! A server's TLS stream that returns 0-RTT data as it arrives.
//!
//! tokio-rustls completes the handshake before the first read, and gives no access to early data; the answer would come
//! one round trip later than 0-RTT allows. This stream starts with the first byte: reads may return early data, and
//! writes may leave right after the server's own Finished.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::{ServerConfig, ServerConnection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::metered::Metered;

/// A server's TLS stream; the handshake continues during reads and writes.
pub struct EarlyStream {
    tcp: Metered,
    session: ServerConnection,
    closing: bool,
}

impl EarlyStream {
    /// Creates a stream before its handshake.
    pub fn new(tcp: Metered, config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self { tcp, session: ServerConnection::new(config)?, closing: false })
    }

    /// Writes the session's pending output.
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

    /// Reads received data into the session. Returns false if the client has closed its side.
    fn poll_read_in(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        match self.session.read_tls(&mut Blocking { tcp: &mut self.tcp, cx }) {
            Ok(0) => return Poll::Ready(Ok(false)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) => return Poll::Ready(Err(error)),
        }
        if let Err(error) = self.session.process_new_packets() {
            // Sends the alert with the reason; the connection is lost either way.
            let _ = self.poll_write_out(cx);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        Poll::Ready(Ok(true))
    }

    /// Returns decrypted bytes; `None` if none are available, zero if the client has closed its side.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        // Early data comes first, and some may be left after the handshake.
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
            // The handshake's messages must not wait for the application's answer.
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
            // The session's buffer was full; it empties when the socket accepts more, or when the handshake continues.
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

/// Adapts the socket to rustls: a pending operation returns `WouldBlock` and registers the task's waker.
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
