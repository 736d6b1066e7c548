//! One thread of the null server over QUIC: reads datagrams, answers, keeps the timers of QUIC.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use quinn_proto::{ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, Incoming, Transmit};
use wirelab_engine::poller::Poller;

use super::Common;
use super::connection::Served;
use crate::quic_batches::{Got, Scratch, Socket};
use crate::quic_contract::SERVER_IDLE;
use crate::quic_meter::Shared;
use crate::refusal::Refusal;
use crate::server::null_threads::failed;
use crate::stderr::write_line;

/// Tokens of the poller.
const SOCKET: u64 = 0;
const STOPPED: u64 = 1;

/// A connection by its handle, and the time in `timers`.
struct Place {
    served: Served,
    timer: Option<Instant>,
}

/// A thread's state.
pub(super) struct Worker {
    common: Arc<Common>,
    socket: Socket,
    endpoint: Endpoint,
    poller: Poller,
    scratch: Scratch,
    places: Vec<Option<Place>>,
    /// Connections to which something happened.
    touched: Vec<ConnectionHandle>,
    /// When connections want to be called, at the latest.
    timers: BTreeSet<(Instant, usize)>,
    /// A transmission that the kernel did not take yet; its bytes are in `out`.
    pending: Option<Transmit>,
    out: Vec<u8>,
    /// Connections that wait for it.
    blocked: Vec<ConnectionHandle>,
}

impl Worker {
    pub fn new(common: Arc<Common>, socket: Socket) -> Result<Self, Refusal> {
        let poller = Poller::new().map_err(failed)?;
        socket.watch(&poller, SOCKET).map_err(failed)?;
        poller.add(&common.stopped, STOPPED).map_err(failed)?;
        let settings = Arc::new(common.settings.endpoint_config()?);
        let endpoint = Endpoint::new(settings, Some(Arc::clone(&common.config)), !socket.may_fragment(), None);
        Ok(Self {
            common,
            socket,
            endpoint,
            poller,
            scratch: Scratch::default(),
            places: Vec::new(),
            touched: Vec::new(),
            timers: BTreeSet::new(),
            pending: None,
            out: Vec::new(),
            blocked: Vec::new(),
        })
    }

    /// Serves until the stop.
    pub fn run(mut self) {
        loop {
            let limit = self.timers.first().map(|(at, _)| at.saturating_duration_since(Instant::now()));
            if self.poller.wait(limit).is_err() {
                return;
            }
            for index in 0..self.poller.count() {
                let event = self.poller.event(index);
                match event.token {
                    // It is writable, too, from the start.
                    STOPPED if event.ended => return self.stop(),
                    STOPPED => {}
                    _ => {
                        self.touched.append(&mut self.blocked);
                        if event.readable {
                            self.read();
                        }
                    }
                }
            }
            self.expire();
            self.settle();
        }
    }

    fn stop(&mut self) {
        for place in self.places.iter().flatten() {
            place.served.close();
        }
        self.touched.extend((0..self.places.len()).map(ConnectionHandle));
        self.settle();
    }

    /// Takes all datagrams that arrived, and answers after each batch.
    fn read(&mut self) {
        loop {
            let (count, is_last) = match self.socket.receive(&mut self.scratch) {
                // Reports about clients that have gone; QUIC finds out by itself.
                Got::Refused => continue,
                Got::Messages(count) => (count, false),
                Got::Last(count) => (count, true),
            };
            for number in 0..count {
                self.take(number);
            }
            self.settle();
            if is_last {
                return;
            }
        }
    }

    fn take(&mut self, number: usize) {
        let (bytes, meta) = self.scratch.message(number);
        let (address, own, stride) = (meta.addr, meta.dst_ip, meta.stride);
        let ecn = meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
        let mut rest = BytesMut::from(bytes);
        let now = Instant::now();
        while !rest.is_empty() {
            let datagram = rest.split_to(stride.clamp(1, rest.len()));
            let mut answer = Vec::new();
            match self.endpoint.handle(now, address, own, ecn, datagram, &mut answer) {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    if let Some(Some(place)) = self.places.get(handle.0) {
                        place.served.connection.lock().handle_event(event);
                        self.touched.push(handle);
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => self.accept(incoming, now),
                Some(DatagramEvent::Response(transmit)) => self.answer(&transmit, &answer),
                None => {}
            }
        }
    }

    fn accept(&mut self, incoming: Incoming, now: Instant) {
        let config = match self.common.settings.logged(SERVER_IDLE) {
            Ok(None) => None,
            Ok(Some(logged)) => {
                let mut config = (*self.common.config).clone();
                config.transport_config(logged);
                Some(Arc::new(config))
            }
            Err(refusal) => {
                // Without the requested log the connection would differ from the specified one.
                write_line(format_args!("refusing a connection: {refusal}"));
                let mut answer = Vec::new();
                let transmit = self.endpoint.refuse(incoming, &mut answer);
                return self.answer(&transmit, &answer);
            }
        };
        let mut answer = Vec::new();
        match self.endpoint.accept(incoming, now, &mut answer, config) {
            Ok((handle, connection)) => {
                let served = Served::new(handle, connection, &self.common);
                if self.places.len() <= handle.0 {
                    self.places.resize_with(handle.0 + 1, || None);
                }
                self.places[handle.0] = Some(Place { served, timer: None });
                self.touched.push(handle);
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.answer(&transmit, &answer);
                }
            }
        }
    }

    /// Sends a datagram of no connection. One that the kernel does not take is lost.
    fn answer(&self, transmit: &Transmit, bytes: &[u8]) {
        let _ = self.socket.send(transmit, bytes);
    }

    /// Calls the connections whose time has come.
    fn expire(&mut self) {
        let now = Instant::now();
        while let Some((at, number)) = self.timers.first().copied()
            && at <= now
        {
            self.timers.pop_first();
            if let Some(place) = &mut self.places[number] {
                place.timer = None;
                place.served.connection.lock().handle_timeout(now);
                self.touched.push(ConnectionHandle(number));
            }
        }
    }

    /// Answers on the connections to which something happened, and sends.
    fn settle(&mut self) {
        while let Some(handle) = self.touched.pop() {
            let Some(Some(place)) = self.places.get_mut(handle.0) else { continue };
            place.served.proceed(&mut self.endpoint);
            let shared = place.served.connection.clone();
            self.transmit(handle, &shared);
            self.schedule(handle, &shared);
        }
    }

    /// Sends what a connection has to say, as far as the kernel takes it.
    fn transmit(&mut self, handle: ConnectionHandle, shared: &Shared) {
        let connection = &mut *shared.lock();
        let now = Instant::now();
        loop {
            if let Some(transmit) = &self.pending {
                match self.socket.send(transmit, &self.out) {
                    // An error is the report of a client that has gone.
                    Ok(true) | Err(_) => self.pending = None,
                    Ok(false) => return self.blocked.push(handle),
                }
            }
            self.out.clear();
            self.pending = connection.poll_transmit(now, self.socket.most_segments(), &mut self.out);
            if self.pending.is_none() {
                return;
            }
        }
    }

    /// Notes when a connection wants to be called, or removes one that has ended.
    fn schedule(&mut self, handle: ConnectionHandle, shared: &Shared) {
        let (timer, is_over) = {
            let mut connection = shared.lock();
            (connection.poll_timeout(), connection.is_drained())
        };
        let Some(Some(place)) = self.places.get_mut(handle.0) else { return };
        // A call that comes too early does no harm, and a later time is the usual change.
        let is_kept = place.timer.is_some_and(|old| timer.is_some_and(|new| old <= new));
        if !is_over && is_kept {
            return;
        }
        if let Some(old) = place.timer.take() {
            self.timers.remove(&(old, handle.0));
        }
        if is_over {
            self.places[handle.0] = None;
        } else if let Some(new) = timer {
            place.timer = Some(new);
            self.timers.insert((new, handle.0));
        }
    }
}
