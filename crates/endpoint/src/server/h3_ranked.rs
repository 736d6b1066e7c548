//! An adapter of quinn for the crate `h3` that sends responses by priority. The usual adapter `h3-quinn` gives no
//! access to quinn's streams, and so to their priorities.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, OpenStreams, StreamErrorIncoming, StreamId, WriteBuf};
use quinn::{ConnectionError, ReadError, VarInt, WriteError};

use crate::server::priority::StreamPriorities;

/// Maximum bytes per read of a request; a page's requests have no bodies.
const READ: usize = 4096;

type Streams = (quinn::SendStream, quinn::RecvStream);
type Accepting = Pin<Box<dyn Future<Output = Result<Streams, ConnectionError>> + Send>>;

/// A connection whose control streams `h3-quinn` opens and accepts.
pub struct Ranked {
    connection: quinn::Connection,
    control: h3_quinn::Connection,
    accepting: Option<Accepting>,
    stream_priorities: Arc<StreamPriorities>,
}

impl Ranked {
    /// Wraps a connection; `stream_priorities` holds the priority of each stream before its response begins.
    pub fn new(connection: quinn::Connection, stream_priorities: Arc<StreamPriorities>) -> Self {
        Self { control: h3_quinn::Connection::new(connection.clone()), connection, accepting: None, stream_priorities }
    }
}

impl quic::Connection<Bytes> for Ranked {
    type RecvStream = h3_quinn::RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        quic::Connection::<Bytes>::poll_accept_recv(&mut self.control, cx)
    }

    fn poll_accept_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        let connection = &self.connection;
        let accepting = self.accepting.get_or_insert_with(|| {
            let connection = connection.clone();
            Box::pin(async move { connection.accept_bi().await })
        });
        let accepted = ready!(accepting.as_mut().poll(cx));
        self.accepting = None;
        let (send, receive) = accepted.map_err(lost)?;
        let send = Sending { stream: send, writing: None, stream_priorities: Arc::clone(&self.stream_priorities) };
        Poll::Ready(Ok(Exchange { send, receive: Receiving(receive) }))
    }

    fn opener(&self) -> Opener {
        Opener(quic::Connection::<Bytes>::opener(&self.control))
    }
}

/// Opens control streams. Servers send no requests, so it opens no other streams.
pub struct Opener(h3_quinn::OpenStreams);

impl OpenStreams<Bytes> for Opener {
    type BidiStream = Exchange;
    type SendStream = h3_quinn::SendStream<Bytes>;

    fn poll_open_bidi(&mut self, _: &mut Context<'_>) -> Poll<Result<Exchange, StreamErrorIncoming>> {
        Poll::Ready(Err(no_requests()))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        OpenStreams::<Bytes>::poll_open_send(&mut self.0, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        OpenStreams::<Bytes>::close(&mut self.0, code, reason);
    }
}

impl OpenStreams<Bytes> for Ranked {
    type BidiStream = Exchange;
    type SendStream = h3_quinn::SendStream<Bytes>;

    fn poll_open_bidi(&mut self, _: &mut Context<'_>) -> Poll<Result<Exchange, StreamErrorIncoming>> {
        Poll::Ready(Err(no_requests()))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        OpenStreams::<Bytes>::poll_open_send(&mut self.control, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        OpenStreams::<Bytes>::close(&mut self.control, code, reason);
    }
}

/// A request and its response.
pub struct Exchange {
    send: Sending,
    receive: Receiving,
}

impl quic::BidiStream<Bytes> for Exchange {
    type SendStream = Sending;
    type RecvStream = Receiving;

    fn split(self) -> (Sending, Receiving) {
        (self.send, self.receive)
    }
}

impl quic::SendStream<Bytes> for Exchange {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, code: u64) {
        self.send.reset(code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl quic::RecvStream for Exchange {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.receive.poll_data(cx)
    }

    fn stop_sending(&mut self, code: u64) {
        self.receive.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

/// The response.
pub struct Sending {
    stream: quinn::SendStream,
    writing: Option<WriteBuf<Bytes>>,
    stream_priorities: Arc<StreamPriorities>,
}

impl quic::SendStream<Bytes> for Sending {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(data) = &mut self.writing {
            if !data.has_remaining() {
                self.writing = None;
                break;
            }
            let count = ready!(Pin::new(&mut self.stream).poll_write(cx, data.chunk())).map_err(unwritten)?;
            data.advance(count);
        }
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if let Some(priority) = self.stream_priorities.take(self.send_id()) {
            // Set before the first byte, from which it takes effect.
            let ranked = self.stream.set_priority(priority.rank(self.stream.id().into()));
            ranked.map_err(|error| StreamErrorIncoming::Unknown(Box::new(error)))?;
        }
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Poll::Ready(self.stream.finish().map_err(|error| StreamErrorIncoming::Unknown(Box::new(error))))
    }

    fn reset(&mut self, code: u64) {
        // A closed stream needs no reset.
        let _ = self.stream.reset(VarInt::from_u64(code).unwrap_or(VarInt::MAX));
    }

    fn send_id(&self) -> StreamId {
        number(self.stream.id())
    }
}

/// The request.
pub struct Receiving(quinn::RecvStream);

impl quic::RecvStream for Receiving {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let mut buffer = [0; READ];
        let count = ready!(self.0.poll_read(cx, &mut buffer)).map_err(unread)?;
        Poll::Ready(Ok((count > 0).then(|| Bytes::copy_from_slice(&buffer[..count]))))
    }

    fn stop_sending(&mut self, code: u64) {
        let _ = self.0.stop(VarInt::from_u64(code).unwrap_or(VarInt::MAX));
    }

    fn recv_id(&self) -> StreamId {
        number(self.0.id())
    }
}

fn number(stream: quinn::StreamId) -> StreamId {
    // Both are 62-bit numbers (RFC 9000, section 2.1).
    u64::from(stream).try_into().expect("a stream of QUIC has a number of QUIC")
}

fn no_requests() -> StreamErrorIncoming {
    StreamErrorIncoming::Unknown("a server of HTTP/3 sends no requests".into())
}

fn lost(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose { error_code: close.error_code.into() }
        }
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

fn unwritten(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() },
        WriteError::ConnectionLost(error) => {
            StreamErrorIncoming::ConnectionErrorIncoming { connection_error: lost(error) }
        }
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}

fn unread(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() },
        ReadError::ConnectionLost(error) => {
            StreamErrorIncoming::ConnectionErrorIncoming { connection_error: lost(error) }
        }
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}
