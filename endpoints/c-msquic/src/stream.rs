//! Streams of MsQuic: received bytes wait for a reader; bytes to send belong to MsQuic until it has sent them.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use msquic::ffi::{
    HQUIC, QUIC_BUFFER, QUIC_PARAM_STREAM_ID, QUIC_SEND_FLAGS_QUIC_SEND_FLAG_FIN, QUIC_SEND_FLAGS_QUIC_SEND_FLAG_NONE,
    QUIC_STREAM_EVENT, QUIC_STREAM_OPEN_FLAGS_QUIC_STREAM_OPEN_FLAG_NONE,
    QUIC_STREAM_OPEN_FLAGS_QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL,
    QUIC_STREAM_SHUTDOWN_FLAGS_QUIC_STREAM_SHUTDOWN_FLAG_ABORT_RECEIVE,
    QUIC_STREAM_SHUTDOWN_FLAGS_QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND,
    QUIC_STREAM_SHUTDOWN_FLAGS_QUIC_STREAM_SHUTDOWN_FLAG_GRACEFUL,
    QUIC_STREAM_START_FLAGS_QUIC_STREAM_START_FLAG_SHUTDOWN_ON_FAIL,
};
use msquic::{Api, BufferRef, ReceiveFlags, Status, StatusCode, StreamEvent};

use crate::connection::Connection;
use crate::failure::{Broken, Closed};
use crate::library::{Open, call};

/// The largest number of bytes that wait for a reader, or for MsQuic's thread. Above it, the other side waits.
const AHEAD: usize = 128 * 1024;

/// A stream in both directions.
pub struct Stream {
    /// The direction to the peer.
    pub outward: Outward,
    /// The direction from the peer.
    pub inward: Inward,
}

/// The direction to the peer.
pub struct Outward {
    handle: Arc<Handle>,
    /// Whether its end was said, well or not.
    ended: bool,
}

/// The direction from the peer.
pub struct Inward {
    handle: Arc<Handle>,
    stopped: bool,
}

impl Stream {
    /// Opens a stream with this number.
    pub fn open(connection: &Arc<Connection>, id: u64) -> Result<Self, Broken> {
        let handle = Handle::open(connection, id, QUIC_STREAM_OPEN_FLAGS_QUIC_STREAM_OPEN_FLAG_NONE)?;
        Ok(Self::of(handle))
    }

    /// A stream that the peer opened, from within MsQuic's announcement.
    pub fn accept(raw: HQUIC, connection: &Arc<Connection>) -> Self {
        Self::of(Handle::accept(raw, connection))
    }

    fn of(handle: Arc<Handle>) -> Self {
        let inward = Inward { handle: Arc::clone(&handle), stopped: false };
        Self { outward: Outward { handle, ended: false }, inward }
    }
}

impl Outward {
    /// Opens a stream to the peer alone, with this number.
    pub fn open(connection: &Arc<Connection>, id: u64) -> Result<Self, Broken> {
        let handle = Handle::open(connection, id, QUIC_STREAM_OPEN_FLAGS_QUIC_STREAM_OPEN_FLAG_UNIDIRECTIONAL)?;
        Ok(Self { handle, ended: false })
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.handle.id
    }

    /// Ready when it takes more bytes.
    pub fn poll_ready(&self, cx: &Context<'_>) -> Poll<Result<(), Broken>> {
        let mut inner = self.handle.state.inner();
        if let Some(code) = inner.stopped {
            return Poll::Ready(Err(Broken::Stopped(code)));
        }
        if inner.over {
            drop(inner);
            return Poll::Ready(Err(self.handle.lost()));
        }
        if inner.in_flight < AHEAD {
            return Poll::Ready(Ok(()));
        }
        inner.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Hands bytes to MsQuic, and the end of this direction with `is_last`.
    pub fn send(&mut self, data: Bytes, is_last: bool) -> Result<(), Broken> {
        if data.is_empty() {
            return if is_last { self.finish() } else { Ok(()) };
        }
        self.ended |= is_last;
        self.handle.send(data, is_last)
    }

    /// Ends this direction; the bytes sent before still arrive.
    pub fn finish(&mut self) -> Result<(), Broken> {
        self.ended = true;
        self.handle.shut_down(QUIC_STREAM_SHUTDOWN_FLAGS_QUIC_STREAM_SHUTDOWN_FLAG_GRACEFUL, 0)
    }

    /// Gives this direction up.
    pub fn reset(&mut self, code: u64) {
        self.ended = true;
        // A stream that has ended cannot be given up.
        let _ = self.handle.shut_down(QUIC_STREAM_SHUTDOWN_FLAGS_QUIC_STREAM_SHUTDOWN_FLAG_ABORT_SEND, code);
    }
}

impl Drop for Outward {
    fn drop(&mut self) {
        if !self.ended {
            self.reset(self.handle.connection.abandon());
        }
    }
}

impl Inward {
    /// A stream from the peer alone, from within MsQuic's announcement.
    pub fn accept(raw: HQUIC, connection: &Arc<Connection>) -> Self {
        Self { handle: Handle::accept(raw, connection), stopped: false }
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.handle.id
    }

    /// The next bytes, in order; none: the peer has ended.
    pub fn poll_receive(&self, cx: &Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        let mut inner = self.handle.state.inner();
        if let Some(piece) = inner.inbox.pop_front() {
            inner.waiting -= piece.len();
            let resumes = inner.paused && inner.waiting < AHEAD;
            inner.paused &= !resumes;
            drop(inner);
            if resumes {
                // SAFETY: the handle is open.
                unsafe { call!(StreamReceiveSetEnabled(self.handle.raw, 1)) };
            }
            return Poll::Ready(Ok(Some(piece)));
        }
        if inner.ended {
            return Poll::Ready(Ok(None));
        }
        if let Some(code) = inner.reset {
            return Poll::Ready(Err(Broken::Reset(code)));
        }
        if inner.over {
            drop(inner);
            return Poll::Ready(Err(self.handle.lost()));
        }
        inner.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Tells the peer that its bytes are not wanted any more.
    pub fn stop(&mut self, code: u64) {
        self.stopped = true;
        // A stream that has ended cannot be stopped.
        let _ = self.handle.shut_down(QUIC_STREAM_SHUTDOWN_FLAGS_QUIC_STREAM_SHUTDOWN_FLAG_ABORT_RECEIVE, code);
    }
}

impl Drop for Inward {
    fn drop(&mut self) {
        let came_to_its_end = {
            let inner = self.handle.state.inner();
            inner.ended || inner.reset.is_some() || inner.over
        };
        if !self.stopped && !came_to_its_end {
            self.stop(self.handle.connection.abandon());
        }
    }
}

/// A stream's handle.
struct Handle {
    raw: HQUIC,
    id: u64,
    /// MsQuic has a pointer to it until the handle is closed.
    state: Arc<State>,
    /// A connection is closed after its streams.
    connection: Arc<Connection>,
    _open: Open,
}

// SAFETY: MsQuic's handles may be used from any thread, and everything else is shared by locks.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    fn open(connection: &Arc<Connection>, id: u64, flags: u32) -> Result<Arc<Self>, Broken> {
        let state = Arc::new(State::default());
        let refused = |status| connection.closed().map_or(Broken::Refused(status), Broken::Connection);
        let mut raw: HQUIC = std::ptr::null_mut();
        // SAFETY: the connection's handle is open; the context is the state, which lives as long as the handle made
        // here.
        let status =
            unsafe { call!(StreamOpen(connection.raw(), flags, Some(on_event), state.context(), &raw mut raw)) };
        Status::ok_from_raw(status).map_err(refused)?;
        let handle = Arc::new(Self { raw, id, state, connection: Arc::clone(connection), _open: Open::one() });
        handle.state.keep(&handle);
        let flags = QUIC_STREAM_START_FLAGS_QUIC_STREAM_START_FLAG_SHUTDOWN_ON_FAIL;
        // SAFETY: the handle is open.
        let status = unsafe { call!(StreamStart(raw, flags)) };
        Status::ok_from_raw(status).map_err(|status| {
            // It never began, so MsQuic will not report its end.
            handle.state.let_go();
            refused(status)
        })?;
        Ok(handle)
    }

    fn accept(raw: HQUIC, connection: &Arc<Connection>) -> Arc<Self> {
        let state = Arc::new(State::default());
        // SAFETY: the handle is open, and the parameter is of this type. On MsQuic's thread it is answered at once.
        let id = unsafe { Api::get_param_auto::<u64>(raw, QUIC_PARAM_STREAM_ID) }.unwrap_or_default();
        let handle = Arc::new(Self { raw, id, state, connection: Arc::clone(connection), _open: Open::one() });
        handle.state.keep(&handle);
        // SAFETY: the handle is open; the context is the state, which lives as long.
        unsafe { call!(SetCallbackHandler(raw, on_event as *mut c_void, handle.state.context())) };
        handle
    }

    fn send(&self, data: Bytes, is_last: bool) -> Result<(), Broken> {
        let length = data.len();
        let buffer = QUIC_BUFFER { Length: length as u32, Buffer: data.as_ptr().cast_mut() };
        let parcel = Box::into_raw(Box::new(Parcel { buffer, data }));
        // Before the call, because MsQuic may be done with it before the call returns.
        self.state.inner().in_flight += length;
        let flags = if is_last { QUIC_SEND_FLAGS_QUIC_SEND_FLAG_FIN } else { QUIC_SEND_FLAGS_QUIC_SEND_FLAG_NONE };
        // SAFETY: the handle is open. The parcel, with the buffer and its bytes, is MsQuic's until it gives it back
        // with the event that it was sent; MsQuic only reads the bytes.
        let status = unsafe { call!(StreamSend(self.raw, &raw const (*parcel).buffer, 1, flags, parcel.cast())) };
        Status::ok_from_raw(status).map_err(|status| {
            // SAFETY: MsQuic did not take it.
            drop(unsafe { Box::from_raw(parcel) });
            let stopped = {
                let mut inner = self.state.inner();
                inner.in_flight -= length;
                inner.stopped
            };
            stopped.map_or_else(|| self.refused(status), Broken::Stopped)
        })
    }

    fn shut_down(&self, flags: u32, code: u64) -> Result<(), Broken> {
        // SAFETY: the handle is open.
        let status = unsafe { call!(StreamShutdown(self.raw, flags, code)) };
        Status::ok_from_raw(status).map_err(|status| self.refused(status))
    }

    fn refused(&self, status: Status) -> Broken {
        self.connection.closed().map_or(Broken::Refused(status), Broken::Connection)
    }

    /// The reason for the end of a stream that did not end regularly.
    fn lost(&self) -> Broken {
        Broken::Connection(self.connection.closed().unwrap_or(Closed::Here))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is open and this is the last one who knows it. MsQuic does not call back after this, so
        // the state may go.
        unsafe { call!(StreamClose(self.raw)) };
    }
}

/// Bytes that MsQuic has to send.
struct Parcel {
    buffer: QUIC_BUFFER,
    /// Kept until MsQuic is done with the buffer, which points there.
    data: Bytes,
}

/// Events from MsQuic's thread.
#[derive(Default)]
struct State {
    inner: Mutex<Inner>,
    /// The stream itself, from its beginning until MsQuic releases it: sent bytes still have to arrive.
    kept: Mutex<Option<Arc<Handle>>>,
}

#[derive(Default)]
struct Inner {
    inbox: VecDeque<Bytes>,
    /// Bytes in it.
    waiting: usize,
    /// MsQuic waits for the reader.
    paused: bool,
    ended: bool,
    reset: Option<u64>,
    stopped: Option<u64>,
    over: bool,
    /// Bytes that MsQuic has not given back.
    in_flight: usize,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl State {
    fn context(self: &Arc<Self>) -> *mut c_void {
        Arc::as_ptr(self).cast_mut().cast()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Each event is a whole; a panic elsewhere leaves nothing torn.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, handle: &Arc<Handle>) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(handle));
    }

    fn let_go(&self) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(kept);
    }

    /// Changes the state, and wakes the affected reader or writer.
    fn change(&self, change: impl FnOnce(&mut Inner)) {
        let (reader, writer) = {
            let mut inner = self.inner();
            change(&mut inner);
            let has_news = !inner.inbox.is_empty() || inner.ended || inner.reset.is_some() || inner.over;
            let takes_more = inner.in_flight < AHEAD || inner.stopped.is_some() || inner.over;
            let reader = if has_news { inner.reader.take() } else { None };
            (reader, if takes_more { inner.writer.take() } else { None })
        };
        for waker in reader.into_iter().chain(writer) {
            waker.wake();
        }
    }

    fn hear(&self, event: StreamEvent<'_>) {
        match event {
            StreamEvent::Receive { total_buffer_length, buffers, flags, .. } => {
                let is_last = flags.contains(ReceiveFlags::FIN);
                self.change(|inner| *total_buffer_length = inner.take_in(buffers, is_last));
            }
            StreamEvent::SendComplete { client_context, .. } => {
                // SAFETY: it is a parcel that `Handle::send` gave, and it is given back once.
                let parcel = unsafe { Box::from_raw(client_context.cast_mut().cast::<Parcel>()) };
                self.change(|inner| inner.in_flight -= parcel.data.len());
            }
            StreamEvent::PeerSendShutdown => self.change(|inner| inner.ended = true),
            StreamEvent::PeerSendAborted { error_code } => self.change(|inner| inner.reset = Some(error_code)),
            StreamEvent::PeerReceiveAborted { error_code } => self.change(|inner| inner.stopped = Some(error_code)),
            StreamEvent::ShutdownComplete { .. } => {
                self.change(|inner| inner.over = true);
                self.let_go();
            }
            _ => {}
        }
    }
}

impl Inner {
    /// Takes all received bytes or, if the reader is behind, none. Returns the number of bytes taken.
    fn take_in(&mut self, buffers: &[BufferRef], is_last: bool) -> u64 {
        let came: usize = buffers.iter().map(|buffer| buffer.as_bytes().len()).sum();
        if self.waiting >= AHEAD && came > 0 {
            self.paused = true;
            return 0;
        }
        let pieces = buffers.iter().map(BufferRef::as_bytes).filter(|piece| !piece.is_empty());
        self.inbox.extend(pieces.map(Bytes::copy_from_slice));
        self.waiting += came;
        self.ended |= is_last;
        came as u64
    }
}

unsafe extern "C" fn on_event(_: HQUIC, context: *mut c_void, event: *mut QUIC_STREAM_EVENT) -> u32 {
    let state = context.cast_const().cast::<State>();
    // SAFETY: the context is a state in an `Arc` that lives as long as the handle. This is a share of its own, because
    // the stream, and with it the last other share, may go within the event.
    let state = unsafe {
        Arc::increment_strong_count(state);
        Arc::from_raw(state)
    };
    // SAFETY: the event is valid within this call, and no other code has it.
    state.hear(StreamEvent::from(unsafe { &mut *event }));
    StatusCode::QUIC_STATUS_SUCCESS as u32
}
