//! A byte stream with an outbox for interim responses, because hyper's HTTP/1.1 servers cannot send them.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// Bytes to send as soon as hyper has no output of its own pending.
#[derive(Clone, Default)]
pub struct Outbox(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    bytes: Bytes,
    gone: Option<oneshot::Sender<()>>,
}

impl Outbox {
    /// Sends bytes between two responses; returns when the stream has accepted them.
    pub async fn send(&self, bytes: Vec<u8>) {
        let (gone, is_gone) = oneshot::channel();
        *self.waiting() = Waiting { bytes: bytes.into(), gone: Some(gone) };
        // An error means that the connection is gone, and the caller will end with it.
        let _ = is_gone.await;
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that sends the outbox on flush. hyper flushes a stream exactly when it has written all its output, so the
/// bytes never split or overtake a response.
pub struct WithOutbox<S> {
    stream: S,
    outbox: Outbox,
}

impl<S> WithOutbox<S> {
    /// Returns the stream and its outbox.
    pub fn new(stream: S) -> (Self, Outbox) {
        let outbox = Outbox::default();
        (Self { stream, outbox: outbox.clone() }, outbox)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WithOutbox<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WithOutbox<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, outbox } = self.get_mut();
        let mut waiting = outbox.waiting();
        while waiting.bytes.has_remaining() {
            let count = ready!(Pin::new(&mut *stream).poll_write(cx, &waiting.bytes))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            waiting.bytes.advance(count);
        }
        ready!(Pin::new(stream).poll_flush(cx))?;
        if let Some(gone) = waiting.gone.take() {
            let _ = gone.send(());
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
