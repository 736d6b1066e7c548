//! MsQuic's streams as the crate `h3` wants them.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{
    BidiStream, Connection as H3Connection, ConnectionErrorIncoming, OpenStreams, RecvStream, SendStream,
    StreamErrorIncoming, StreamId, WriteBuf,
};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::connection::{Connection, Line};
use crate::failure::Closed;
use crate::stream::{Inward, Outward, Stream};

/// A connection that carries HTTP/3.
pub struct Adapter(Line);

impl Adapter {
    /// HTTP/3 on this connection.
    pub const fn new(line: Line) -> Self {
        Self(line)
    }
}

/// Opens streams on a connection.
#[derive(Clone)]
pub struct Opener(Arc<Connection>);

impl<B: Buf> H3Connection<B> for Adapter {
    type RecvStream = Inward;
    type OpenStreams = Opener;

    fn poll_accept_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Inward, ConnectionErrorIncoming>> {
        poll_accept(&mut self.0.one, &self.0.connection, cx)
    }

    fn poll_accept_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Stream, ConnectionErrorIncoming>> {
        poll_accept(&mut self.0.both, &self.0.connection, cx)
    }

    fn opener(&self) -> Opener {
        Opener(Arc::clone(&self.0.connection))
    }
}

fn poll_accept<S>(
    streams: &mut UnboundedReceiver<S>,
    connection: &Connection,
    cx: &mut Context<'_>,
) -> Poll<Result<S, ConnectionErrorIncoming>> {
    let stream = ready!(streams.poll_recv(cx));
    // No further stream comes when the connection is closed.
    Poll::Ready(stream.ok_or_else(|| connection.closed().unwrap_or(Closed::Here).into()))
}

impl<B: Buf> OpenStreams<B> for Opener {
    type BidiStream = Stream;
    type SendStream = Outward;

    fn poll_open_bidi(&mut self, _: &mut Context<'_>) -> Poll<Result<Stream, StreamErrorIncoming>> {
        Poll::Ready(self.0.open_both().map_err(Into::into))
    }

    fn poll_open_send(&mut self, _: &mut Context<'_>) -> Poll<Result<Outward, StreamErrorIncoming>> {
        Poll::Ready(self.0.open_one().map_err(Into::into))
    }

    fn close(&mut self, code: Code, _: &[u8]) {
        self.0.shut_down(code.value());
    }
}

impl<B: Buf> OpenStreams<B> for Adapter {
    type BidiStream = Stream;
    type SendStream = Outward;

    fn poll_open_bidi(&mut self, _: &mut Context<'_>) -> Poll<Result<Stream, StreamErrorIncoming>> {
        Poll::Ready(self.0.connection.open_both().map_err(Into::into))
    }

    fn poll_open_send(&mut self, _: &mut Context<'_>) -> Poll<Result<Outward, StreamErrorIncoming>> {
        Poll::Ready(self.0.connection.open_one().map_err(Into::into))
    }

    fn close(&mut self, code: Code, _: &[u8]) {
        self.0.connection.shut_down(code.value());
    }
}

impl<B: Buf> SendStream<B> for Outward {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Self::poll_ready(self, cx).map_err(Into::into)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        let mut data: WriteBuf<B> = data.into();
        let whole = data.copy_to_bytes(data.remaining());
        self.send(whole, false).map_err(Into::into)
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Poll::Ready(self.finish().map_err(Into::into))
    }

    fn reset(&mut self, code: u64) {
        Self::reset(self, code);
    }

    fn send_id(&self) -> StreamId {
        number(self.id())
    }
}

impl RecvStream for Inward {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.poll_receive(cx).map_err(Into::into)
    }

    fn stop_sending(&mut self, code: u64) {
        self.stop(code);
    }

    fn recv_id(&self) -> StreamId {
        number(self.id())
    }
}

impl<B: Buf> SendStream<B> for Stream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        SendStream::<B>::poll_ready(&mut self.outward, cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        SendStream::<B>::send_data(&mut self.outward, data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        SendStream::<B>::poll_finish(&mut self.outward, cx)
    }

    fn reset(&mut self, code: u64) {
        self.outward.reset(code);
    }

    fn send_id(&self) -> StreamId {
        number(self.outward.id())
    }
}

impl RecvStream for Stream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.inward.poll_data(cx)
    }

    fn stop_sending(&mut self, code: u64) {
        self.inward.stop(code);
    }

    fn recv_id(&self) -> StreamId {
        self.inward.recv_id()
    }
}

impl<B: Buf> BidiStream<B> for Stream {
    type SendStream = Outward;
    type RecvStream = Inward;

    fn split(self) -> (Outward, Inward) {
        (self.outward, self.inward)
    }
}

fn number(id: u64) -> StreamId {
    // Numbers of streams are those of QUIC, which are smaller than 2^62.
    id.try_into().expect("a number of a stream")
}
