//! A connection of MsQuic: its handle, the events from MsQuic's thread, and the tasks that wait for them.
//!
//! MsQuic calls back from a thread of its own, one event of a connection after the other, and never again once the
//! handle is closed. A connection keeps itself alive until MsQuic reports its end, so that its goodbye is sent even if
//! no task uses it any more. Then the last owner closes the handle.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_void};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use msquic::ffi::{
    HQUIC, QUIC_BUFFER, QUIC_CONNECTION_EVENT, QUIC_CONNECTION_SHUTDOWN_FLAGS_QUIC_CONNECTION_SHUTDOWN_FLAG_NONE,
    QUIC_HANDSHAKE_INFO, QUIC_PARAM_CONN_LOCAL_ADDRESS, QUIC_PARAM_CONN_REMOTE_ADDRESS,
    QUIC_PARAM_CONN_RESUMPTION_TICKET, QUIC_PARAM_CONN_TLS_SECRETS, QUIC_PARAM_TLS_HANDSHAKE_INFO,
    QUIC_SEND_RESUMPTION_FLAGS_QUIC_SEND_RESUMPTION_FLAG_FINAL, QUIC_TLS_SECRETS,
};
use msquic::{Addr, Api, Configuration, ConnectionEvent, Status, StatusCode, StreamOpenFlags};
use rustls_pki_types::ServerName;
use tokio::sync::{Notify, mpsc};
use wirelab_endpoint::program::Reading;

use crate::failure::{Broken, Closed};
use crate::key_log::KeyLog;
use crate::library::{Open, call, registration};
use crate::stream::{Inward, Outward, Stream};
use crate::{certificate, statistics};

/// The settings of a connection.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Where its secrets are logged.
    pub keys: Option<KeyLog>,
    /// A client's: the name that the server's certificate has to be for. Absent: any.
    pub subject: Option<ServerName<'static>>,
    /// A server's: whether it gives a ticket.
    pub gives_ticket: bool,
    /// The code with which streams that are not wanted any more are given up.
    pub abandon: u64,
}

/// Where a client connects.
pub struct Target<'a> {
    /// The address.
    pub server: SocketAddr,
    /// The name to send.
    pub name: &'a CStr,
    /// A ticket of an earlier connection.
    pub ticket: Option<&'a [u8]>,
}

/// The negotiated values: numbers of IANA's registries.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// The cipher suite.
    pub cipher: u32,
    /// The group of the key exchange.
    pub group: u32,
}

/// An open connection.
pub struct Connection {
    raw: HQUIC,
    /// MsQuic has a pointer to it until the handle is closed.
    state: Arc<State>,
    _open: Open,
}

// SAFETY: MsQuic's handles may be used from any thread, and everything else is shared by locks.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

/// A connection, and the streams that its peer opens.
pub struct Line {
    pub connection: Arc<Connection>,
    /// In both directions.
    pub both: mpsc::UnboundedReceiver<Stream>,
    /// From the peer alone.
    pub one: mpsc::UnboundedReceiver<Inward>,
}

impl Connection {
    /// Opens a connection to a server. It is there when [`Self::connected`] returns.
    pub fn open(configuration: &Configuration, target: &Target<'_>, wishes: Wishes) -> Result<Line, Status> {
        let registration = registration().map_err(|_| StatusCode::QUIC_STATUS_INTERNAL_ERROR)?;
        let (state, both, one) = State::new(wishes, 0, None);
        let mut raw: HQUIC = std::ptr::null_mut();
        // SAFETY: the context is the state, which lives as long as the handle that is made here.
        let status =
            unsafe { call!(ConnectionOpen(registration.as_raw(), Some(on_event), state.context(), &raw mut raw)) };
        Status::ok_from_raw(status)?;
        let connection = Arc::new(Self { raw, state, _open: Open::one() });
        connection.set_up(target)?;
        connection.state.keep(&connection);
        // SAFETY: both handles are open, and the name lives through the call, which copies it.
        let status = unsafe {
            call!(ConnectionStart(raw, configuration.as_raw(), 0, target.name.as_ptr(), target.server.port()))
        };
        if let Err(status) = Status::ok_from_raw(status) {
            // It never began, so MsQuic will not report its end.
            connection.state.let_go();
            return Err(status);
        }
        Ok(Line { connection, both, one })
    }

    fn set_up(&self, target: &Target<'_>) -> Result<(), Status> {
        let server = Addr::from(target.server);
        // SAFETY: the handle is open, the parameters have these types, and MsQuic copies them within the calls, but for
        // the secrets, which it writes to as long as the handle is open; they are part of the state, which lives
        // longer.
        unsafe {
            // With an address the name is only sent; without one MsQuic would resolve it.
            Api::set_param(
                self.raw,
                QUIC_PARAM_CONN_REMOTE_ADDRESS,
                size_of::<Addr>() as u32,
                (&raw const server).cast::<c_void>(),
            )?;
            if let Some(ticket) = target.ticket {
                // A ticket that MsQuic does not take makes a full handshake, and the record says so.
                let _ = Api::set_param(
                    self.raw,
                    QUIC_PARAM_CONN_RESUMPTION_TICKET,
                    ticket.len() as u32,
                    ticket.as_ptr().cast::<c_void>(),
                );
            }
            self.state.log_secrets(self.raw)
        }
    }

    /// Accepts a connection that MsQuic announced to a listener, from within that announcement. When it can be used it
    /// is handed over: at once with `early`, else after its handshake.
    pub fn accept(
        raw: HQUIC,
        configuration: &Configuration,
        wishes: Wishes,
        early: bool,
        acceptor: mpsc::UnboundedSender<Line>,
    ) -> Result<(), Status> {
        let (state, both, one) = State::new(wishes, 1, Some(acceptor));
        state.inner().arrival = Some((both, one));
        let connection = Arc::new(Self { raw, state, _open: Open::one() });
        connection.state.keep(&connection);
        // SAFETY: MsQuic gives the handle to the side that accepts the connection; the context is the state, which
        // lives as long as the handle. As for the secrets: see `set_up`.
        let accepted = unsafe {
            call!(SetCallbackHandler(raw, on_event as *mut c_void, connection.state.context()));
            connection
                .state
                .log_secrets(raw)
                .and_then(|()| Status::ok_from_raw(call!(ConnectionSetConfiguration(raw, configuration.as_raw()))))
        };
        if accepted.is_err() {
            // MsQuic closes the handle of a connection that was refused.
            connection.state.let_go();
            std::mem::forget(connection);
            return accepted;
        }
        if early {
            connection.state.hand_over();
        }
        Ok(())
    }

    /// The handle.
    pub const fn raw(&self) -> HQUIC {
        self.raw
    }

    /// Returns when its handshake is complete.
    pub async fn connected(&self) -> Result<(), Closed> {
        let decided = |inner: &Inner| match (&inner.closed, inner.connected) {
            (Some(closed), _) => Some(Err(closed.clone())),
            (None, connected) => connected.then_some(Ok(())),
        };
        self.state.until(decided).await
    }

    /// Returns when MsQuic is done with it.
    pub async fn over(&self) {
        self.state.until(|inner| inner.over.then_some(())).await;
    }

    /// Returns when a ticket is there, or none can come any more, and gives it.
    pub async fn ticket(&self) -> Option<Vec<u8>> {
        self.state.until(|inner| (inner.ticket.is_some() || inner.closed.is_some()).then_some(())).await;
        self.take_ticket()
    }

    /// A ticket, if any.
    pub fn take_ticket(&self) -> Option<Vec<u8>> {
        self.state.inner().ticket.take()
    }

    /// Why it cannot be used any more; absent while it can.
    pub fn closed(&self) -> Option<Closed> {
        self.state.inner().closed.clone()
    }

    /// Whether its handshake resumed an earlier session.
    pub fn is_resumed(&self) -> bool {
        self.state.inner().resumed
    }

    /// The negotiated values, once known.
    pub fn facts(&self) -> Option<Facts> {
        self.state.inner().facts
    }

    /// Its counters at its end.
    pub fn last_reading(&self) -> Option<Reading> {
        self.state.inner().last
    }

    /// The local port, if MsQuic knows it.
    pub fn local_port(&self) -> Option<u16> {
        // SAFETY: the handle is open, and the parameter is of this type.
        let local = unsafe { Api::get_param_auto::<Addr>(self.raw, QUIC_PARAM_CONN_LOCAL_ADDRESS) };
        local.ok().map(|local| local.port())
    }

    /// Its smoothed round trip; zero without a sample.
    pub fn smoothed_round_trip(&self) -> Duration {
        let reading = self.last_reading().unwrap_or_else(|| statistics::of(self.raw));
        Duration::from_nanos(reading.round_trip.unwrap_or_default())
    }

    /// The code with which streams are given up.
    pub fn abandon(&self) -> u64 {
        self.state.wishes.abandon
    }

    /// Closes it with a code of the application. The first code counts.
    pub fn shut_down(&self, code: u64) {
        self.state.is_closing(Closed::Here);
        // SAFETY: the handle is open.
        unsafe {
            call!(ConnectionShutdown(
                self.raw,
                QUIC_CONNECTION_SHUTDOWN_FLAGS_QUIC_CONNECTION_SHUTDOWN_FLAG_NONE,
                code
            ));
        }
    }

    /// Opens a stream in both directions. If the peer allows no further one, bytes sent on it wait.
    pub fn open_both(self: &Arc<Self>) -> Result<Stream, Broken> {
        // Numbers follow the order of the calls to MsQuic, so the lock covers both.
        let mut opened = self.state.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = Stream::open(self, opened[0] * 4 + self.state.side)?;
        opened[0] += 1;
        Ok(stream)
    }

    /// Opens a stream to the peer alone.
    pub fn open_one(self: &Arc<Self>) -> Result<Outward, Broken> {
        let mut opened = self.state.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = Outward::open(self, opened[1] * 4 + 2 + self.state.side)?;
        opened[1] += 1;
        Ok(stream)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the handle is open and this is the last one who knows it. MsQuic does not call back after this, so
        // the state may go.
        unsafe { call!(ConnectionClose(self.raw)) };
    }
}

/// Events from MsQuic's thread.
struct State {
    inner: Mutex<Inner>,
    changed: Notify,
    /// The connection itself, from its beginning until MsQuic is done with it.
    kept: Mutex<Option<Arc<Connection>>>,
    /// The number of streams that this side has opened: in both directions, in one.
    opened: Mutex<[u64; 2]>,
    /// The bit of stream numbers that names the opener (RFC 9000, section 2.1).
    side: u64,
    wishes: Wishes,
    secrets: Secrets,
    acceptor: Option<mpsc::UnboundedSender<Line>>,
}

#[derive(Default)]
struct Inner {
    connected: bool,
    resumed: bool,
    over: bool,
    closed: Option<Closed>,
    facts: Option<Facts>,
    ticket: Option<Vec<u8>>,
    last: Option<Reading>,
    both: Option<mpsc::UnboundedSender<Stream>>,
    one: Option<mpsc::UnboundedSender<Inward>>,
    /// The streams of a connection that no caller has taken yet.
    arrival: Option<(mpsc::UnboundedReceiver<Stream>, mpsc::UnboundedReceiver<Inward>)>,
}

/// Where MsQuic writes the secrets of the handshake.
struct Secrets(Box<UnsafeCell<QUIC_TLS_SECRETS>>);

// SAFETY: only MsQuic's thread of the connection reads and writes them.
unsafe impl Sync for Secrets {}
// SAFETY: as above.
unsafe impl Send for Secrets {}

type Made = (Arc<State>, mpsc::UnboundedReceiver<Stream>, mpsc::UnboundedReceiver<Inward>);

impl State {
    fn new(wishes: Wishes, side: u64, acceptor: Option<mpsc::UnboundedSender<Line>>) -> Made {
        let (both_sender, both) = mpsc::unbounded_channel();
        let (one_sender, one) = mpsc::unbounded_channel();
        let inner = Inner { both: Some(both_sender), one: Some(one_sender), ..Inner::default() };
        let state = Self {
            inner: Mutex::new(inner),
            changed: Notify::new(),
            kept: Mutex::new(None),
            opened: Mutex::new([0; 2]),
            side,
            wishes,
            // SAFETY: it consists of integers only, for which zeros are values.
            secrets: Secrets(Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() }))),
            acceptor,
        };
        (Arc::new(state), both, one)
    }

    /// The context that MsQuic returns with every event.
    fn context(self: &Arc<Self>) -> *mut c_void {
        Arc::as_ptr(self).cast_mut().cast()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Each event is a whole; a panic elsewhere leaves nothing torn.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, connection: &Arc<Connection>) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(connection));
    }

    fn let_go(&self) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(kept);
    }

    fn kept(&self) -> Option<Arc<Connection>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks for the secrets, where they are wanted.
    ///
    /// # Safety
    ///
    /// `raw` is the handle of this state's connection.
    unsafe fn log_secrets(&self, raw: HQUIC) -> Result<(), Status> {
        if self.wishes.keys.is_none() {
            return Ok(());
        }
        let size = size_of::<QUIC_TLS_SECRETS>() as u32;
        // SAFETY: the handle is open, and MsQuic writes there only until it is closed.
        unsafe { Api::set_param(raw, QUIC_PARAM_CONN_TLS_SECRETS, size, self.secrets.0.get().cast::<c_void>()) }
    }

    async fn until<T>(&self, decided: impl Fn(&Inner) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no news is missed.
            changed.as_mut().enable();
            if let Some(result) = decided(&self.inner()) {
                return result;
            }
            changed.await;
        }
    }

    /// Takes an event. An error is MsQuic's to deal with.
    fn hear(&self, raw: HQUIC, event: ConnectionEvent<'_>) -> Result<(), StatusCode> {
        match event {
            ConnectionEvent::Connected { session_resumed, .. } => self.is_connected(raw, session_resumed),
            ConnectionEvent::ShutdownInitiatedByTransport { status, error_code } => {
                self.is_closing(Closed::ByTransport(status, error_code));
            }
            ConnectionEvent::ShutdownInitiatedByPeer { error_code } => self.is_closing(Closed::ByPeer(error_code)),
            ConnectionEvent::ShutdownComplete { .. } => self.is_over(raw),
            ConnectionEvent::PeerStreamStarted { stream, flags } => {
                // SAFETY: MsQuic gives the handle to the side that accepts the stream.
                let handle = unsafe { stream.as_raw() };
                std::mem::forget(stream);
                self.takes(handle, flags.contains(StreamOpenFlags::UNIDIRECTIONAL));
            }
            ConnectionEvent::ResumptionTicketReceived { resumption_ticket } => {
                self.inner().ticket = Some(resumption_ticket.to_vec());
                self.changed.notify_waiters();
            }
            ConnectionEvent::PeerCertificateReceived { certificate, .. } => {
                // SAFETY: with the flag for portable certificates it is a buffer, valid within the event.
                let encoded = unsafe { bytes_of(certificate.cast::<QUIC_BUFFER>()) };
                let subject = self.wishes.subject.as_ref();
                if subject.is_some_and(|name| !certificate::is_for(encoded, name)) {
                    return Err(StatusCode::QUIC_STATUS_BAD_CERTIFICATE);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn is_connected(&self, raw: HQUIC, resumed: bool) {
        if let Some(keys) = &self.wishes.keys {
            // SAFETY: MsQuic has written them, and this is its thread.
            keys.append(unsafe { &*self.secrets.0.get() });
        }
        // SAFETY: the handle is open, and the parameter is of this type. On this thread it is answered at once.
        let facts = unsafe { Api::get_param_auto::<QUIC_HANDSHAKE_INFO>(raw, QUIC_PARAM_TLS_HANDSHAKE_INFO) };
        {
            let mut inner = self.inner();
            (inner.connected, inner.resumed) = (true, resumed);
            inner.facts = facts.ok().map(|facts| Facts { cipher: facts.CipherSuite, group: facts.TlsGroup });
        }
        if self.wishes.gives_ticket {
            let last = QUIC_SEND_RESUMPTION_FLAGS_QUIC_SEND_RESUMPTION_FLAG_FINAL;
            // SAFETY: the handle is open, and no data of the application are given.
            let status = unsafe { call!(ConnectionSendResumptionTicket(raw, last, 0, std::ptr::null())) };
            if let Err(status) = Status::ok_from_raw(status) {
                eprintln!("giving a session ticket: {status}");
            }
        }
        self.changed.notify_waiters();
        self.hand_over();
    }

    /// Hands a connection of a server over, unless that was done.
    fn hand_over(&self) {
        let arrival = self.inner().arrival.take();
        if let (Some((both, one)), Some(connection), Some(acceptor)) = (arrival, self.kept(), &self.acceptor) {
            // A server that stops accepts no more; its registration's end closes the connection.
            let _ = acceptor.send(Line { connection, both, one });
        }
    }

    /// Takes a stream that the peer opened.
    fn takes(&self, stream: HQUIC, in_one_direction: bool) {
        let Some(connection) = self.kept() else { return };
        // A stream whose receiver is gone is given up as it is dropped.
        if in_one_direction {
            let taken = Inward::accept(stream, &connection);
            let sender = self.inner().one.clone();
            drop(sender.map(|sender| sender.send(taken)));
        } else {
            let taken = Stream::accept(stream, &connection);
            let sender = self.inner().both.clone();
            drop(sender.map(|sender| sender.send(taken)));
        }
    }

    /// The first reason counts.
    fn is_closing(&self, closed: Closed) {
        {
            let mut inner = self.inner();
            inner.closed.get_or_insert(closed);
            (inner.both, inner.one) = (None, None);
        }
        self.changed.notify_waiters();
    }

    fn is_over(&self, raw: HQUIC) {
        let last = statistics::of(raw);
        self.is_closing(Closed::Here);
        let arrival = {
            let mut inner = self.inner();
            (inner.over, inner.last) = (true, Some(last));
            inner.arrival.take()
        };
        // Outside the lock, because dropping untaken streams takes it.
        drop(arrival);
        self.changed.notify_waiters();
        self.let_go();
    }
}

/// The bytes of a buffer of MsQuic; none if it is absent.
///
/// # Safety
///
/// It is null, or valid as long as the result is used.
unsafe fn bytes_of<'a>(buffer: *const QUIC_BUFFER) -> &'a [u8] {
    // SAFETY: the caller's.
    match unsafe { buffer.as_ref() } {
        // SAFETY: the caller's.
        Some(buffer) if buffer.Length > 0 => unsafe {
            std::slice::from_raw_parts(buffer.Buffer, buffer.Length as usize)
        },
        _ => &[],
    }
}

unsafe extern "C" fn on_event(raw: HQUIC, context: *mut c_void, event: *mut QUIC_CONNECTION_EVENT) -> u32 {
    let state = context.cast_const().cast::<State>();
    // SAFETY: the context is a state in an `Arc` that lives as long as the handle. This is a share of its own, because
    // the connection, and with it the last other share, may go within the event.
    let state = unsafe {
        Arc::increment_strong_count(state);
        Arc::from_raw(state)
    };
    // SAFETY: the event is valid within this call.
    let event = ConnectionEvent::from(unsafe { &*event });
    match state.hear(raw, event) {
        Ok(()) => StatusCode::QUIC_STATUS_SUCCESS as u32,
        Err(code) => code as u32,
    }
}
