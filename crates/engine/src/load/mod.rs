//! Requests of one thread: connections, schedule, time-outs, records.
//!
//! A thread waits in one place, for sockets and for times. What arrives on a connection is read, understood and
//! answered with the next request before the next connection is looked at, so that the time between two requests is not
//! the client's.

mod book;
mod pace;
mod seat;
mod spare;
mod turn;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use ring::digest::{Context, SHA256};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{ClientSpec, ConnectionPolicy, Resumption, Schedule};

use crate::accounts::Accounts;
use crate::link::{Dialer, Link};
use crate::machine::Inbox;
use crate::poller::Poller;
use crate::progress::{Progress, Timeouts};
use crate::refusal::{Failure, Refusal};
use crate::requests::{Pick, Requests};
use crate::results::ThreadResults;
use crate::schedule::{Limit, Phase, Share};

use book::Book;
use pace::{Pace, Pending};
use seat::{Lane, LaneId, LaneState, Opening, Seat};

/// Number of tickets to collect for an open loop, whose number of concurrent connections is unknown.
const TICKETS_FOR_OPEN_LOOP: usize = 64;

/// Number of persistent connections that open at the same time; more would overflow the queues of servers.
const OPENING_AT_ONCE: usize = 64;

/// The reason for the early end of a step.
#[derive(Debug)]
pub enum Ended {
    /// `halt` said so.
    Halted,
    /// An error.
    Failed(Failure),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Asked about ten times a second whether to give up.
pub type Halt<'a> = &'a mut dyn FnMut() -> bool;

/// The load of one thread.
pub struct Load<D: Dialer> {
    spec: Arc<ClientSpec>,
    share: Share,
    dialer: D,
    poller: Poller,
    inbox: Inbox,
    timeouts: Timeouts,
    requests: Requests,
    per_request: bool,
    book: Book,
    pace: Pace,
    seats: Vec<Seat<D::Link>>,
    /// Seats for connections that complete their last requests, without a connection now.
    spares: Vec<u32>,
    lanes: Vec<Lane>,
    /// Lanes without a request, the longest free one first.
    free: VecDeque<LaneId>,
    /// Lanes with a request.
    busy: u32,
    /// Seats with output that was not flushed.
    dirty: Vec<u32>,
    /// The earliest time at which a deadline may have passed.
    next_scan: Instant,
    /// The time that the schedule waits for, and when polling for it begins.
    awaited: Option<(Instant, Instant)>,
    /// Whether `dispatch` left work, to look at sockets in between.
    again: bool,
    /// Whether the request under way is the only one, and part of no period: no record, no number.
    is_single: bool,
    /// The outcome of that request.
    single: Option<Result<(), Failure>>,
    /// Why a persistent connection could not be opened.
    not_opened: Option<Failure>,
}

impl<D: Dialer> Load<D> {
    /// Prepares the load of one thread, without connections. `numbers` numbers the connections of all threads.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the spec cannot be honoured.
    pub fn new(
        spec: Arc<ClientSpec>,
        share: Share,
        numbers: Arc<AtomicU32>,
        progress: Arc<Progress>,
    ) -> Result<Self, Refusal> {
        let poller = Poller::new().map_err(|error| Refusal::failed(format!("creating an epoll instance: {error}")))?;
        let now = Instant::now();
        Ok(Self {
            dialer: D::new(&spec)?,
            poller,
            inbox: Inbox::default(),
            timeouts: Timeouts::of(&spec),
            requests: Requests::of(&spec, share)?,
            per_request: spec.connections == ConnectionPolicy::PerRequest,
            book: Book::new(&spec, share, numbers, progress),
            pace: Pace::idle(),
            seats: Vec::new(),
            spares: Vec::new(),
            lanes: Vec::new(),
            free: VecDeque::new(),
            busy: 0,
            dirty: Vec::new(),
            next_scan: now,
            awaited: None,
            again: false,
            is_single: false,
            single: None,
            not_opened: None,
            spec,
            share,
        })
    }

    /// The known effective settings.
    pub fn configured(&self) -> Configured {
        self.dialer.configured()
    }

    /// The transport statistics of its connections.
    pub fn accounts(&self) -> Option<&Accounts> {
        self.dialer.accounts()
    }

    /// Sends each request whose response is known, on a connection of its own, and compares status, size, content and
    /// negotiated protocol with what the spec expects.
    ///
    /// # Errors
    ///
    /// [`Ended`] if one of them is wrong.
    pub fn check(&mut self, halt: Halt<'_>) -> Result<(), Ended> {
        let named = self.requests.to_check().into_iter().map(|(pick, name)| (pick, name.map(str::to_owned)));
        for (pick, name) in named.collect::<Vec<_>>() {
            self.inbox.digest = Some(Context::new(&SHA256));
            let sent = self.send_single(pick, halt);
            let digest = self.inbox.digest.take();
            let checked = sent.and_then(|()| Ok(self.compare(digest)?));
            checked.map_err(|ended| match ended {
                Ended::Halted => Ended::Halted,
                Ended::Failed(Failure { kind, message }) => {
                    let ClientSpec { request, protocol, .. } = &*self.spec;
                    let what = match &name {
                        Some(name) => format!("`{name}`"),
                        None => format!("{} {}", request.method, request.path),
                    };
                    let what = format!("{what} from {} over {protocol}", self.spec.place());
                    Failure::new(kind, format!("the check request ({what}) failed: {message}")).into()
                }
            })?;
        }
        Ok(())
    }

    fn compare(&self, digest: Option<Context>) -> Result<(), Failure> {
        if let (Some(digest), Some(expect)) = (digest, &self.spec.request.expect) {
            let sha256: String = digest.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            if !sha256.eq_ignore_ascii_case(&expect.sha256) {
                let message = format!("the SHA-256 of the response is {sha256} instead of {}", expect.sha256);
                return Err(Failure::new(ErrorKind::Digest, message));
            }
        }
        let configured = self.dialer.configured();
        let negotiated = configured.get("alpn").and_then(|alpn| alpn.as_str());
        match self.spec.protocol.alpn() {
            Some(wanted) if negotiated != Some(wanted) => {
                let negotiated = negotiated.unwrap_or("nothing");
                let message = format!("the server negotiated {negotiated} (ALPN) instead of {wanted}");
                Err(Failure::new(ErrorKind::Protocol, message))
            }
            _ => Ok(()),
        }
    }

    /// Collects tickets, opens persistent connections, warms up.
    ///
    /// # Errors
    ///
    /// [`Ended`] if a connection could not be opened.
    pub fn open(&mut self, halt: Halt<'_>) -> Result<(), Ended> {
        self.collect_tickets(halt)?;
        if let ConnectionPolicy::Persistent { connections, streams } = self.spec.connections {
            self.open_connections(self.share.part32(connections), streams, halt)?;
        }
        if let Some(extent) = self.spec.warm_up {
            let now = Instant::now();
            let limit = Limit::of_warm_up(extent, self.share, now, self.book.judge());
            self.pace = Pace::new(&self.spec, self.share, Phase::WarmUp, limit, now);
            self.run(halt)?;
        }
        // Read now, while no request is in flight: reading must not be part of the window.
        if let Some(accounts) = self.dialer.accounts() {
            accounts.begin();
        }
        Ok(())
    }

    /// Runs the measured window from `zero` on. Returns the end of its last request, if any; `halt` cuts it short.
    pub fn measure(&mut self, zero: Instant, halt: Halt<'_>) -> Result<Option<Instant>, Failure> {
        self.book.begin();
        let limit = Limit::of(self.spec.extent, self.share, zero);
        self.pace = Pace::new(&self.spec, self.share, Phase::Measured, limit, zero);
        let result = self.run(halt);
        let last = self.book.end();
        match result {
            Ok(()) | Err(Ended::Halted) => Ok(last),
            Err(Ended::Failed(failure)) => Err(failure),
        }
    }

    /// Closes the connections and returns the results.
    pub fn finish(mut self) -> ThreadResults {
        let transport = self.dialer.accounts().map(Accounts::totals);
        for seat in &mut self.seats {
            if let Some(link) = &mut seat.link {
                link.close();
            }
        }
        let (recorder, first_failure) = self.book.take();
        let sent_again = self.book.sent_again();
        ThreadResults { recorder, first_failure, sent_again, configured: self.dialer.configured(), transport }
    }

    /// Opens persistent connections. Successive lanes belong to different connections, to distribute requests over all
    /// of them.
    fn open_connections(&mut self, connections: u32, streams: u32, halt: Halt<'_>) -> Result<(), Ended> {
        if connections == 0 {
            let message = "a client without connections cannot send anything";
            return Err(Failure::new(ErrorKind::Other, message).into());
        }
        self.seats.extend((0..connections).map(|_| Seat::new()));
        for _ in 0..streams {
            for seat in 0..connections {
                self.add_lane(seat);
            }
        }
        let mut next = 0;
        loop {
            let mut opening = self.seats.iter().filter(|seat| seat.opening.is_some()).count();
            while next < connections && opening < OPENING_AT_ONCE {
                self.dial(next, None);
                next += 1;
                opening += 1;
            }
            if let Some(failure) = self.not_opened.take() {
                return Err(failure.into());
            }
            if next == connections && self.seats.iter().all(|seat| seat.opening.is_none()) {
                return Ok(());
            }
            self.flush();
            self.turn(None, halt)?;
        }
    }

    /// Opens and closes connections until each concurrent connection has a ticket.
    ///
    /// A server without tickets is no failure here: each sample records its connection's handshake.
    fn collect_tickets(&mut self, halt: Halt<'_>) -> Result<(), Ended> {
        if self.spec.resumption == Resumption::None {
            return Ok(());
        }
        let wanted = match (self.spec.connections, self.spec.schedule) {
            (ConnectionPolicy::Persistent { connections, .. }, _) => self.share.part32(connections) as usize,
            (ConnectionPolicy::PerRequest, Schedule::Closed { workers, .. }) => self.share.part32(workers) as usize,
            (ConnectionPolicy::PerRequest, Schedule::Open { .. }) => TICKETS_FOR_OPEN_LOOP,
        };
        let mut before = self.dialer.tickets();
        while before < wanted {
            self.send_single(self.requests.pick(), halt)?;
            let now = self.dialer.tickets();
            if now <= before {
                break;
            }
            before = now;
        }
        Ok(())
    }

    /// Sends one request on a connection of its own, and closes that.
    fn send_single(&mut self, pick: Pick, halt: Halt<'_>) -> Result<(), Ended> {
        let seat = self.seats.len() as u32;
        self.seats.push(Seat::new());
        let lane = self.add_lane(seat);
        self.free.clear();
        let per_request = std::mem::replace(&mut self.per_request, true);
        (self.is_single, self.single) = (true, None);
        let now = Instant::now();
        self.start(lane, pick, Pending { intended: now, worker: 0 }, now);
        let ended = loop {
            self.flush();
            if self.busy == 0 {
                break Ok(());
            }
            if let Err(ended) = self.turn(None, halt) {
                break Err(ended);
            }
        };
        (self.per_request, self.is_single) = (per_request, false);
        self.seats.pop();
        self.lanes.pop();
        self.free.clear();
        ended?;
        let nothing = || Err(Failure::new(ErrorKind::Other, "the request had no outcome"));
        Ok(self.single.take().unwrap_or_else(nothing)?)
    }

    fn add_lane(&mut self, seat: u32) -> LaneId {
        let lane = self.lanes.len() as LaneId;
        let now = Instant::now();
        let record = crate::record::Record::begin(now, now);
        let pick = Pick { number: 0, request: None, body_size: 0 };
        let (state, by) = (LaneState::Free, now);
        self.lanes.push(Lane { seat, home: seat, state, pick, worker: 0, turns: 0, since: now, by, record });
        self.seats[seat as usize].lanes.push(lane);
        self.free.push_back(lane);
        lane
    }

    /// The failure of the connection of a seat that was not ready in time.
    fn connect_timeout(&self, seat: u32) -> Failure {
        let link = self.seats[seat as usize].link.as_ref();
        let awaited = link.and_then(Link::awaits).map_or_else(String::new, |awaited| format!(": {awaited}"));
        let limit = self.timeouts.opening();
        Failure::new(ErrorKind::Timeout, format!("connecting took longer than {limit:?}{awaited}"))
    }

    fn request_timeout(&self) -> Failure {
        let limit = self.timeouts.request;
        // Bare UDP sends nothing again: what did not arrive is lost.
        let kind = if self.spec.protocol == Protocol::Udp { ErrorKind::Lost } else { ErrorKind::Timeout };
        Failure::new(kind, format!("the response was not complete after {limit:?}"))
    }

    /// The deadline of the connection for a lane's request.
    fn open_by(&self, lane: LaneId) -> Instant {
        let lane = &self.lanes[lane as usize];
        (lane.since + self.timeouts.connect).min(lane.record.start + self.timeouts.request)
    }

    /// Starts to open the connection of a seat.
    fn dial(&mut self, seat: u32, opener: Option<LaneId>) {
        let by = match opener {
            Some(lane) => self.open_by(lane),
            None => Instant::now() + self.timeouts.opening(),
        };
        if let Some(lane) = opener {
            self.lanes[lane as usize].by = by;
        }
        let place = &mut self.seats[seat as usize];
        place.generation = place.generation.wrapping_add(1);
        match self.dialer.dial(&self.poller, seat::token(seat, place.generation)) {
            Ok(link) => {
                place.link = Some(link);
                place.opening = Some(Opening { opener, by });
                self.soil(seat);
                self.watch(by);
            }
            Err(failure) => match opener {
                Some(lane) => self.fail(lane, Instant::now(), failure),
                None => self.not_opened = Some(failure),
            },
        }
    }

    /// Ensures that the deadlines are looked at by this time.
    pub(super) fn watch(&mut self, by: Instant) {
        self.next_scan = self.next_scan.min(by);
    }
}

/// Interval of the questions to `halt`.
const HALT_EVERY: Duration = Duration::from_millis(100);
