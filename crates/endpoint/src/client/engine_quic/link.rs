//! A QUIC connection with an application on it.

mod streams;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, Event as QuicEvent, Transmit, VarInt,
};
use rustls::HandshakeKind;
use serde_json::json;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::Resumption;
use wirelab_engine::link::Link;
use wirelab_engine::machine::{Event, Inbox, Slot};
use wirelab_engine::poller::{Poller, Readiness};

use super::Common;
use super::application::Application;
use super::exchange::Exchanges;
use crate::client::dial::{negotiated, nothing_listens};
use crate::client::transport::Failure;
use crate::quic_batches::{Got, Scratch, Socket};
use crate::quic_config::failure;
use crate::quic_contract::{done_code, given_up_code};
use crate::quic_meter::Shared;
use crate::quic_session::{SessionFacts, Tickets};
use crate::transport_accounts::{Account, Accounts};

/// A connection.
pub(crate) struct QuicLink<A: Application> {
    /// The first field, because fields drop in order: it reads the connection.
    _account: Account,
    common: Rc<Common<A>>,
    socket: Socket,
    server: SocketAddr,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Shared,
    phase: Phase,
    handshake: Option<Handshake>,
    tickets: Option<Arc<Tickets>>,
    exchanges: Exchanges<A>,
    /// Requests that wait until the server allows more streams.
    queued: VecDeque<(Slot, usize)>,
    application: A,
    /// A transmission that the kernel did not take yet; its bytes are in `out`.
    pending: Option<Transmit>,
    out: Vec<u8>,
    timer: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It can send early data, and has sent nothing.
    New,
    /// Requests are early data.
    Early,
    Connecting,
    Open,
    /// The server takes no further requests.
    Closing,
    Ended,
}

impl<A: Application> QuicLink<A> {
    pub(super) fn new(
        common: Rc<Common<A>>,
        (socket, server): (Socket, SocketAddr),
        endpoint: Endpoint,
        (handle, connection): (ConnectionHandle, Connection),
        accounts: &Accounts,
    ) -> Self {
        let phase = if connection.has_0rtt() { Phase::New } else { Phase::Connecting };
        let connection = Shared::new(connection);
        Self {
            _account: accounts.of(Arc::new(connection.clone())),
            common,
            socket,
            server,
            endpoint,
            handle,
            connection,
            phase,
            handshake: None,
            tickets: None,
            exchanges: Exchanges::default(),
            queued: VecDeque::new(),
            application: A::default(),
            pending: None,
            out: Vec::new(),
            timer: None,
        }
    }
}

impl<A: Application> Link for QuicLink<A> {
    fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Early | Phase::Open)
    }

    fn rename(&self, poller: &Poller, token: u64) -> Result<(), Failure> {
        let failed = |error| Failure::new(ErrorKind::Other, format!("watching a connection that ends: {error}"));
        self.socket.rename(poller, token).map_err(failed)
    }

    fn start(&mut self, slot: Slot, number: usize) {
        let shared = self.connection.clone();
        if !self.queued.is_empty() || !self.begin(&mut shared.lock(), slot, number) {
            self.queued.push_back((slot, number));
        }
    }

    fn cancel(&mut self, slot: Slot) {
        self.queued.retain(|queued| queued.0 != slot);
        if let Some(exchange) = self.exchanges.take_slot(slot) {
            exchange.abandon(&mut self.connection.lock(), given_up_code(A::PROTOCOL).into());
        }
    }

    fn receive(&mut self, ready: Readiness, inbox: &mut Inbox) -> Result<(), Failure> {
        let shared = self.connection.clone();
        let connection = &mut *shared.lock();
        if self.phase == Phase::New {
            self.phase = Phase::Early;
            self.application.begin(connection);
            inbox.events.push(Event::Opened { connected: None, ready: Some(Instant::now()) });
        }
        if ready.readable {
            self.read_socket(connection, inbox)?;
        }
        self.settle(connection, inbox)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        if matches!(self.phase, Phase::New | Phase::Ended) {
            return Ok(());
        }
        let shared = self.connection.clone();
        self.transmit(&mut shared.lock())
    }

    fn timer(&self) -> Option<Instant> {
        self.timer
    }

    fn tick(&mut self, now: Instant, inbox: &mut Inbox) -> Result<(), Failure> {
        let shared = self.connection.clone();
        let connection = &mut *shared.lock();
        connection.handle_timeout(now);
        self.settle(connection, inbox)
    }

    fn handshake(&self) -> Option<Handshake> {
        self.handshake
    }

    fn lacks_ticket(&self) -> bool {
        let is_open = matches!(self.phase, Phase::Open);
        let wants = is_open && self.common.resumption != Resumption::None;
        wants && !self.tickets.as_ref().is_some_and(|tickets| tickets.has_any())
    }

    fn close(&mut self) {
        let shared = self.connection.clone();
        let connection = &mut *shared.lock();
        self.report(connection);
        connection.close(Instant::now(), done_code(A::PROTOCOL).into(), Bytes::new());
        // Nothing depends on the goodbye.
        let _ = self.transmit(connection);
        self.phase = Phase::Ended;
    }
}

impl<A: Application> QuicLink<A> {
    fn is_established(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Closing)
    }

    fn attempt(&self) -> String {
        match self.phase {
            Phase::New | Phase::Connecting => {
                format!("connecting to {} at {} by QUIC", self.common.name, self.server)
            }
            Phase::Early => "sending a request as early data".to_owned(),
            Phase::Open | Phase::Closing | Phase::Ended => A::ATTEMPT.to_owned(),
        }
    }

    /// Hands all datagrams that arrived to QUIC.
    fn read_socket(&mut self, connection: &mut Connection, inbox: &mut Inbox) -> Result<(), Failure> {
        let common = Rc::clone(&self.common);
        let scratch = &mut *common.scratch.borrow_mut();
        loop {
            let (count, is_last) = match self.socket.receive(scratch) {
                // Later reports may come from a server that just ended; QUIC finds out by itself.
                Got::Refused if self.is_established() => continue,
                Got::Refused => {
                    inbox.now = Instant::now();
                    return Err(nothing_listens(&self.attempt()));
                }
                Got::Messages(count) => (count, false),
                Got::Last(count) => (count, true),
            };
            if count > 0 {
                inbox.now = Instant::now();
            }
            for number in 0..count {
                self.take_message(connection, scratch, number, inbox.now);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn take_message(&mut self, connection: &mut Connection, scratch: &Scratch, number: usize, now: Instant) {
        let (bytes, meta) = scratch.message(number);
        let ecn = meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
        let mut rest = BytesMut::from(bytes);
        let mut answer = Vec::new();
        while !rest.is_empty() {
            let datagram = rest.split_to(meta.stride.clamp(1, rest.len()));
            match self.endpoint.handle(now, meta.addr, None, ecn, datagram, &mut answer) {
                Some(DatagramEvent::ConnectionEvent(_, event)) => connection.handle_event(event),
                Some(DatagramEvent::Response(transmit)) => {
                    // A datagram of no connection; nothing depends on the answer.
                    let _ = self.socket.send(&transmit, &answer);
                    answer.clear();
                }
                // The endpoint is no server.
                Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
                None => {}
            }
        }
    }

    /// Handles what QUIC reports. A failure ends the connection.
    fn settle(&mut self, connection: &mut Connection, inbox: &mut Inbox) -> Result<(), Failure> {
        let handled = self.handle(connection, inbox);
        if let Err(failure) = &handled {
            let reason = Bytes::copy_from_slice(failure.message.as_bytes());
            connection.close(Instant::now(), VarInt::from_u32(A::CODES.broken), reason);
            let _ = self.transmit(connection);
            self.phase = Phase::Ended;
        }
        handled
    }

    fn handle(&mut self, connection: &mut Connection, inbox: &mut Inbox) -> Result<(), Failure> {
        loop {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                    connection.handle_event(event);
                }
            }
            let Some(event) = connection.poll() else { return Ok(()) };
            match event {
                QuicEvent::Connected => self.established(connection, inbox)?,
                QuicEvent::ConnectionLost { reason } => return Err(failure(&self.attempt(), &reason)),
                QuicEvent::Stream(event) => self.stream(connection, &event, inbox)?,
                QuicEvent::HandshakeDataReady | QuicEvent::DatagramReceived | QuicEvent::DatagramsUnblocked => {}
            }
        }
    }

    /// The handshake is complete.
    fn established(&mut self, connection: &mut Connection, inbox: &mut Inbox) -> Result<(), Failure> {
        let facts = connection.crypto_session().handshake_data();
        if let Some(facts) = facts.and_then(|facts| facts.downcast::<SessionFacts>().ok()) {
            let Common { alpn, name, configured, .. } = &*self.common;
            negotiated(&facts, alpn, name, &mut configured.borrow_mut())?;
            self.handshake = facts.kind.map(|kind| match kind {
                HandshakeKind::Resumed => Handshake::Resumed,
                _ => Handshake::Full,
            });
            self.tickets = Some(facts.tickets);
        }
        let was_early = std::mem::replace(&mut self.phase, Phase::Open) == Phase::Early;
        if !was_early {
            self.application.begin(connection);
            inbox.events.push(Event::Opened { connected: None, ready: Some(Instant::now()) });
            return Ok(());
        }
        if connection.accepted_0rtt() {
            self.handshake = Some(Handshake::EarlyAccepted);
            return Ok(());
        }
        // All streams are gone, and their content must be sent again (RFC 9001, section 4.6.2).
        self.handshake = Some(Handshake::EarlyRejected);
        self.application.begin(connection);
        let sent: Vec<_> = self.exchanges.drain().map(|exchange| (exchange.slot, exchange.number)).collect();
        let waiting = std::mem::take(&mut self.queued);
        for (slot, number) in sent.into_iter().chain(waiting) {
            if !self.begin(connection, slot, number) {
                self.queued.push_back((slot, number));
            }
        }
        Ok(())
    }

    /// Sends what QUIC has to say, as far as the kernel takes it.
    fn transmit(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        let now = Instant::now();
        loop {
            if let Some(transmit) = &self.pending {
                match self.socket.send(transmit, &self.out) {
                    Ok(true) => self.pending = None,
                    Ok(false) => break,
                    Err(_) if self.is_established() => self.pending = None,
                    Err(_) => return Err(nothing_listens(&self.attempt())),
                }
            }
            self.out.clear();
            self.pending = connection.poll_transmit(now, self.socket.most_segments(), &mut self.out);
            if self.pending.is_none() {
                break;
            }
        }
        self.timer = connection.poll_timeout();
        Ok(())
    }

    /// Records what is known only now.
    fn report(&self, connection: &mut Connection) {
        let mut configured = self.common.configured.borrow_mut();
        // quinn disables segmentation offload at the kernel's first error.
        if !self.socket.segments() {
            configured.insert("gso".to_owned(), json!(false));
        }
        let stats = connection.stats();
        configured.insert("udp_payload".to_owned(), json!(stats.path.current_mtu));
        // Requests waited because the server allows fewer concurrent streams than the spec wants.
        if stats.frame_tx.streams_blocked_bidi > 0 {
            configured.insert("stream_limit_reached".to_owned(), json!(true));
        }
    }
}
