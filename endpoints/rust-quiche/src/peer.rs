//! One connection of a server: its events, and the work for them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::time::Instant;

use quiche::h3::{self, Event};
use quiche::{Connection, ConnectionId, RecvInfo};
use wirelab_endpoint::program::{Account, Site};

use crate::outbox::{Outbox, Sent};
use crate::shared::Shared;
use crate::socket::Socket;
use crate::wire::Wire;
use crate::work::{Step, Work};

/// A client's connection.
pub struct Peer {
    connection: Shared,
    is_http: bool,
    http: Option<h3::Connection>,
    /// By stream, so that the older one of two blocked responses goes on first.
    works: BTreeMap<u64, Work>,
    outbox: Outbox,
    /// When its timer was last asked for; absent: not yet.
    pub armed: Option<Instant>,
    /// By which it is found.
    pub ids: Vec<ConnectionId<'static>>,
    _account: Account,
}

/// Responses due later: their moments and streams.
pub type Later = Vec<(Instant, u64)>;

impl Peer {
    /// A connection that was just accepted.
    pub fn new(connection: Shared, is_http: bool, ids: Vec<ConnectionId<'static>>, account: Account) -> Self {
        let (http, works, outbox) = Default::default();
        Self { connection, is_http, http, works, outbox, armed: None, ids, _account: account }
    }

    /// Takes a datagram.
    pub fn take(&self, datagram: &mut [u8], from: SocketAddr, to: SocketAddr) {
        // Bytes that are no packet of this connection are dropped, as QUIC demands.
        let _ = self.connection.lock().recv(datagram, RecvInfo { from, to });
    }

    /// Handles all arrived events, and continues all work.
    pub fn attend(&mut self, site: &Site, scratch: &mut [u8]) -> Later {
        let mut later = Later::new();
        let connection = &mut *self.connection.lock();
        if !connection.is_established() && !connection.is_in_early_data() {
            return later;
        }
        if self.is_http && self.http.is_none() {
            // A connection that allows no control streams is of no use; its client will say so.
            self.http = h3::Config::new().and_then(|config| h3::Connection::with_transport(connection, &config)).ok();
        }
        loop {
            let came = match &mut self.http {
                Some(http) => receive_http(connection, http, &mut self.works, &mut later, site),
                None if self.is_http => return later,
                None => receive_raw(connection, &mut self.works),
            };
            let mut wire = Wire { connection, http: self.http.as_mut(), scratch };
            self.works.retain(|stream, work| match work.go_on(&mut wire, *stream, site) {
                Step::Waits => true,
                Step::Until(at) => {
                    later.push((at, *stream));
                    true
                }
                Step::Over(answered) => {
                    if answered {
                        site.count();
                    }
                    false
                }
            });
            // Reading the bytes of an echo can show its end.
            if !came || !self.is_http {
                return later;
            }
        }
    }

    /// The time of a delayed answer has come.
    pub fn is_due(&mut self, stream: u64) {
        if let Some(work) = self.works.get_mut(&stream) {
            work.is_due();
        }
    }

    /// When its timer is due.
    pub fn timeout(&self) -> Option<Instant> {
        self.connection.lock().timeout_instant()
    }

    /// Its timer may have run out.
    pub fn on_timer(&self, now: Instant) {
        let mut connection = self.connection.lock();
        if connection.timeout_instant().is_some_and(|due| due <= now) {
            connection.on_timeout();
        }
    }

    /// Sends pending packets; an error of the socket loses them, and QUIC sends again.
    pub fn flush(&mut self, socket: &Socket) -> Sent {
        self.outbox.flush(&mut self.connection.lock(), socket).unwrap_or(Sent::All)
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.connection.lock().is_closed()
    }

    /// Says goodbye.
    pub fn close(&self, code: u64) {
        let _ = self.connection.lock().close(true, code, b"stop");
    }
}

/// Whether anything came.
fn receive_http(
    connection: &mut Connection,
    http: &mut h3::Connection,
    works: &mut BTreeMap<u64, Work>,
    later: &mut Later,
    site: &Site,
) -> bool {
    let mut came = false;
    // An error closes the connection, which is the client's to report.
    while let Ok((stream, event)) = http.poll(connection) {
        came = true;
        match event {
            Event::Headers { list, .. } => {
                // A second head has trailers, which are ignored.
                if let Entry::Vacant(place) = works.entry(stream) {
                    let (work, due) = Work::of_http(site, &list);
                    later.extend(due.map(|at| (at, stream)));
                    place.insert(work);
                }
            }
            Event::Data => {
                // An echo reads as it sends; anything else is not wanted.
                if !works.get(&stream).is_some_and(Work::echoes) {
                    let mut waste = [0; 4096];
                    while http.recv_body(connection, stream, &mut waste).is_ok() {}
                }
            }
            Event::Finished => {
                if let Some(work) = works.get_mut(&stream) {
                    work.is_received();
                }
            }
            Event::Reset(_) => {
                works.remove(&stream);
            }
            Event::PriorityUpdate | Event::GoAway => {}
        }
    }
    came
}

fn receive_raw(connection: &Connection, works: &mut BTreeMap<u64, Work>) -> bool {
    let mut came = false;
    for stream in connection.readable() {
        came = true;
        // Streams of clients in both directions (RFC 9000, section 2.1).
        if stream % 4 == 0 {
            works.entry(stream).or_insert_with(Work::of_raw);
        }
    }
    came
}
