//! A listener of MsQuic, which accepts connections on MsQuic's threads.

use std::ffi::c_void;
use std::net::SocketAddr;

use msquic::ffi::{
    HQUIC, QUIC_ADDR, QUIC_BUFFER, QUIC_LISTENER_EVENT, QUIC_LISTENER_EVENT_TYPE_QUIC_LISTENER_EVENT_NEW_CONNECTION,
    QUIC_PARAM_LISTENER_LOCAL_ADDRESS,
};
use msquic::{Addr, Api, BufferRef, Status, StatusCode};
use tokio::sync::mpsc;
use wirelab_endpoint::program::Refusal;

use crate::connection::{Connection, Line, Wishes};
use crate::library::{Open, call, registration};
use crate::settings::Settings;

/// How connections are received.
pub struct Reception {
    /// The configuration of the connections.
    pub settings: Settings,
    /// The settings of each connection.
    pub wishes: Wishes,
    /// Whether they are handed over before their handshakes are complete.
    pub early: bool,
    /// The receiver of the connections.
    pub acceptor: mpsc::UnboundedSender<Line>,
}

/// An open listener.
pub struct Listener {
    raw: HQUIC,
    /// MsQuic has a pointer to it until the handle is closed.
    _reception: Box<Reception>,
    port: u16,
    _open: Open,
}

// SAFETY: MsQuic's handles may be used from any thread.
unsafe impl Send for Listener {}

impl Listener {
    /// Listens at `address` for connections of the protocol `alpn`.
    pub fn open(address: SocketAddr, alpn: &str, reception: Reception) -> Result<Self, Refusal> {
        let failed = |status: Status| Refusal::failed(format!("listening at {address} with MsQuic: {status}"));
        let reception = Box::new(reception);
        let context = (&raw const *reception).cast_mut().cast::<c_void>();
        let mut raw: HQUIC = std::ptr::null_mut();
        // SAFETY: the context is the reception, which lives as long as the handle that is made here.
        let status = unsafe { call!(ListenerOpen(registration()?.as_raw(), Some(on_event), context, &raw mut raw)) };
        Status::ok_from_raw(status).map_err(failed)?;
        let mut listener = Self { raw, _reception: reception, port: 0, _open: Open::one() };
        let (local, alpn) = (Addr::from(address), [BufferRef::from(alpn)]);
        // SAFETY: the handle is open, and MsQuic copies the name of the protocol and the address within the call.
        let status = unsafe {
            call!(ListenerStart(
                raw,
                alpn.as_ptr().cast::<QUIC_BUFFER>(),
                alpn.len() as u32,
                (&raw const local).cast::<QUIC_ADDR>()
            ))
        };
        Status::ok_from_raw(status).map_err(failed)?;
        // SAFETY: the handle is open, and the parameter is of this type.
        let bound = unsafe { Api::get_param_auto::<Addr>(raw, QUIC_PARAM_LISTENER_LOCAL_ADDRESS) }.map_err(failed)?;
        listener.port = bound.port();
        Ok(listener)
    }

    /// The port that it listens at.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // SAFETY: the handle is open. It is stopped by this, and MsQuic does not call back after it, so the reception
        // may go.
        unsafe { call!(ListenerClose(self.raw)) };
    }
}

unsafe extern "C" fn on_event(_: HQUIC, context: *mut c_void, event: *mut QUIC_LISTENER_EVENT) -> u32 {
    // SAFETY: the event is valid within this call.
    let event = unsafe { &*event };
    if event.Type != QUIC_LISTENER_EVENT_TYPE_QUIC_LISTENER_EVENT_NEW_CONNECTION {
        return StatusCode::QUIC_STATUS_SUCCESS as u32;
    }
    // SAFETY: an event of this type has this part.
    let connection = unsafe { event.__bindgen_anon_1.NEW_CONNECTION.Connection };
    // SAFETY: the context is the reception, which lives until the listener is closed. MsQuic may announce connections
    // on several threads at a time; it is only read.
    let reception = unsafe { &*context.cast_const().cast::<Reception>() };
    let Reception { settings, wishes, early, acceptor } = reception;
    match Connection::accept(connection, settings.configuration(), wishes.clone(), *early, acceptor.clone()) {
        Ok(()) => StatusCode::QUIC_STATUS_SUCCESS as u32,
        Err(Status(status)) => status,
    }
}
