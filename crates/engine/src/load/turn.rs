//! One turn of a thread: wait, look at what happened, start what can start.

use std::time::{Duration, Instant};

use wirelab_contract::error_kind::ErrorKind;

use crate::link::{Dialer, Link};
use crate::machine::Event;
use crate::poller::Readiness;
use crate::record::Record;
use crate::refusal::Failure;
use crate::requests::Pick;

use super::pace::{Pending, Verdict};
use super::seat::{LaneId, LaneState, Seat, of_token};
use super::{Ended, HALT_EVERY, Halt, Load};

/// Requests that start before sockets are looked at again. Without a limit a server that refuses every connection at
/// once would keep the thread here.
const STARTS_AT_ONCE: u32 = 1024;

/// Maximum lead of a wait before the wanted time; the thread polls for the rest. A sleeping processor takes about as
/// long to wake.
const LEAD: Duration = Duration::from_micros(60);

/// The lead is at most this fraction of a wait, so that an open loop's CPU time stays the CPU time of its requests.
const LEAD_PART: u32 = 20;

/// Time limit of a closing connection's wait for its session ticket.
const TICKET_WAIT: Duration = Duration::from_millis(500);

impl<D: Dialer> Load<D> {
    /// Sends the requests of a period; returns when none is in flight.
    pub(super) fn run(&mut self, halt: Halt<'_>) -> Result<(), Ended> {
        loop {
            let now = Instant::now();
            self.pace.advance(now);
            self.dispatch(now);
            self.flush();
            if self.busy == 0 && self.pace.is_over() {
                return Ok(());
            }
            self.turn(self.pace.next_time(), halt)?;
        }
    }

    /// Waits for sockets, deadlines and `next`, and handles what happened.
    pub(super) fn turn(&mut self, next: Option<Instant>, halt: Halt<'_>) -> Result<(), Ended> {
        let failed = |error| Failure::new(ErrorKind::Other, format!("waiting for sockets: {error}"));
        let limit = if self.again { Some(Duration::ZERO) } else { next.map(|at| self.until(at)) };
        self.poller.wake_at(self.next_scan).map_err(failed)?;
        if self.poller.wait(limit).map_err(failed)? || self.again {
            self.scan(Instant::now());
            if halt() {
                return Err(Ended::Halted);
            }
        }
        for index in 0..self.poller.count() {
            self.serve(self.poller.event(index));
        }
        Ok(())
    }

    /// The longest wait before `at`: the thread polls for the last part, whose length depends on the whole wait.
    fn until(&mut self, at: Instant) -> Duration {
        let now = Instant::now();
        let poll_from = match self.awaited {
            Some((known, poll_from)) if known == at => poll_from,
            _ => at - LEAD.min(at.saturating_duration_since(now) / LEAD_PART),
        };
        self.awaited = Some((at, poll_from));
        poll_from.saturating_duration_since(now)
    }

    /// Handles what happened at a socket, up to the next requests.
    fn serve(&mut self, ready: Readiness) {
        let (index, generation) = of_token(ready.token);
        let Some(seat) = self.seats.get_mut(index as usize).filter(|seat| seat.generation == generation) else {
            return;
        };
        let Some(link) = &mut seat.link else { return };
        let received = link.receive(ready, &mut self.inbox);
        self.take(index, received);
    }

    /// Handles what a connection reported, up to the next requests.
    fn take(&mut self, index: u32, received: Result<(), Failure>) {
        let generation = self.seats[index as usize].generation;
        self.soil(index);
        // Taken out, so that handling them can use everything else; the memory stays.
        let mut events = std::mem::take(&mut self.inbox.events);
        for event in events.drain(..) {
            self.handle(index, event);
        }
        self.inbox.events = events;
        // The next request may already have another connection.
        if let Some(place) = self.place_of(index, generation) {
            match received {
                Err(failure) => self.broke(place, &failure),
                Ok(()) => self.tidy(place),
            }
        }
        if self.pace.has_pending() {
            self.dispatch(Instant::now());
        }
        self.flush();
    }

    fn handle(&mut self, index: u32, event: Event) {
        match event {
            Event::Opened { connected, ready } => self.opened(index, connected, ready),
            Event::FirstByte { slot, at } => {
                let lane = &mut self.lanes[slot as usize];
                if lane.state == LaneState::Going {
                    lane.record.first_byte = Some(at);
                }
            }
            Event::Done { slot, at, status, bytes_in } => {
                let lane = &mut self.lanes[slot as usize];
                if lane.state == LaneState::Going {
                    lane.record.end = at;
                    lane.record.bytes_in = bytes_in;
                    lane.record.status = status;
                    let outcome = self.requests.judge(lane.pick, status, bytes_in, self.inbox.kept(slot));
                    self.ended(slot, outcome.err());
                    // With several streams, the next request of one must not wait for the others' responses.
                    self.dispatch(Instant::now());
                }
            }
            Event::Failed { slot, at, failure } => {
                if self.lanes[slot as usize].state == LaneState::Going {
                    self.fail(slot, at, failure);
                }
            }
            Event::TurnedAway { slot, at, failure } => {
                if self.lanes[slot as usize].state == LaneState::Going {
                    self.turned_away(slot, at, failure);
                }
            }
        }
    }

    fn opened(&mut self, index: u32, connected: Option<Instant>, ready: Option<Instant>) {
        let seat = &mut self.seats[index as usize];
        let Some(opening) = seat.opening.take() else { return };
        if !self.is_single {
            seat.number = self.book.next_number();
        }
        let waiting = std::mem::take(&mut seat.waiting);
        if let Some(opener) = opening.opener {
            let record = &mut self.lanes[opener as usize].record;
            (record.opened, record.connected, record.ready) = (true, connected, ready);
            self.go(opener);
        }
        for lane in waiting {
            self.go(lane);
        }
    }

    /// Starts pending requests on free lanes.
    pub(super) fn dispatch(&mut self, mut now: Instant) {
        self.again = false;
        let mut starts = 0;
        while self.pace.has_pending() {
            if self.free.is_empty() {
                if !self.per_request {
                    return;
                }
                // Every request has a connection of its own: as many as the schedule wants.
                let seat = self.seats.len() as u32;
                self.seats.push(Seat::new());
                self.add_lane(seat);
            }
            if starts == STARTS_AT_ONCE {
                self.again = true;
                return;
            }
            if starts > 0 {
                now = Instant::now();
            }
            starts += 1;
            match self.pace.take(now) {
                Some(Verdict::Start(pending)) => {
                    let Some(lane) = self.free.pop_front() else { return };
                    self.start(lane, self.requests.pick(), pending, now);
                }
                Some(Verdict::GaveUp(pending)) => {
                    let message =
                        "the request waited for a free connection until its time-out after the end of the window";
                    let failure = Failure::new(ErrorKind::Timeout, message);
                    self.book.keep(Record::begin(pending.intended, now), Some(failure));
                }
                Some(Verdict::Retired) | None => {}
            }
        }
    }

    /// Starts a request on a free lane.
    pub(super) fn start(&mut self, id: LaneId, pick: Pick, Pending { intended, worker }: Pending, now: Instant) {
        let lane = &mut self.lanes[id as usize];
        lane.record = Record { request: pick.request, ..Record::begin(intended.min(now), now) };
        (lane.pick, lane.worker) = (pick, worker);
        (lane.turns, lane.since) = (0, now);
        lane.state = LaneState::Waiting;
        self.busy += 1;
        self.attach(id);
    }

    /// Finds a connection for the request of a lane.
    pub(super) fn attach(&mut self, id: LaneId) {
        let index = self.lanes[id as usize].home;
        let seat = &mut self.seats[index as usize];
        if seat.opening.is_some() {
            seat.waiting.push(id);
            let by = self.open_by(id);
            self.lanes[id as usize].by = by;
            return self.watch(by);
        }
        if seat.link.as_ref().is_some_and(Link::is_open) {
            return self.go(id);
        }
        if seat.in_flight > 0 {
            self.make_room(index);
        } else {
            self.leave(index);
        }
        self.dial(index, Some(id));
    }

    /// Hands the request of a lane to its connection, which is open.
    fn go(&mut self, id: LaneId) {
        let lane = &mut self.lanes[id as usize];
        lane.state = LaneState::Going;
        lane.by = lane.record.start + self.timeouts.request;
        lane.record.bytes_out = lane.pick.body_size;
        let (pick, by, index) = (lane.pick, lane.by, lane.seat);
        self.inbox.begin_body(id, self.requests.reads_body(pick));
        let seat = &mut self.seats[index as usize];
        seat.in_flight += 1;
        if let Some(link) = &mut seat.link {
            link.start(id, pick.number);
        }
        self.soil(index);
        self.watch(by);
    }

    /// A request failed.
    pub(super) fn fail(&mut self, id: LaneId, at: Instant, failure: Failure) {
        self.lanes[id as usize].record.end = at;
        self.ended(id, Some(failure));
    }

    /// A request ended: records it and frees its lane.
    fn ended(&mut self, id: LaneId, failure: Option<Failure>) {
        let lane = &mut self.lanes[id as usize];
        let index = lane.seat;
        let seat = &mut self.seats[index as usize];
        if lane.state == LaneState::Going {
            seat.in_flight -= 1;
            lane.record.connection = seat.number;
            if lane.record.opened {
                lane.record.handshake = seat.link.as_ref().and_then(Link::handshake);
            }
            lane.seat = lane.home;
        }
        let record = lane.record;
        if self.is_single {
            self.single = Some(failure.map_or(Ok(()), Err));
        } else {
            self.book.keep(record, failure);
        }
        if self.per_request {
            let seat = &mut self.seats[index as usize];
            if seat.opening.is_none() && seat.link.as_ref().is_some_and(Link::lacks_ticket) {
                let by = Instant::now() + TICKET_WAIT;
                seat.closing = Some(by);
                self.lanes[id as usize].state = LaneState::Closing;
                self.watch(by);
                return;
            }
            self.leave(index);
        }
        self.release(id);
    }

    /// Frees a lane, whose worker can go on.
    fn release(&mut self, id: LaneId) {
        let lane = &mut self.lanes[id as usize];
        lane.state = LaneState::Free;
        let (worker, end) = (lane.worker, lane.record.end);
        self.busy -= 1;
        self.free.push_back(id);
        self.pace.completed(worker, end, Instant::now());
    }

    /// Closes the connection of a seat, if it has one.
    fn leave(&mut self, index: u32) {
        let seat = &mut self.seats[index as usize];
        (seat.closing, seat.opening) = (None, None);
        if let Some(mut link) = seat.link.take() {
            link.close();
        }
    }

    /// A connection broke: its requests fail.
    pub(super) fn broke(&mut self, index: u32, failure: &Failure) {
        let now = self.inbox.now;
        let seat = &mut self.seats[index as usize];
        let opening = seat.opening.take();
        let lanes = std::mem::take(&mut seat.lanes);
        for &id in &lanes {
            let lane = &self.lanes[id as usize];
            if lane.seat != index {
                continue;
            }
            match lane.state {
                LaneState::Going => self.fail(id, now, failure.clone()),
                LaneState::Closing => self.release(id),
                LaneState::Free | LaneState::Waiting => {}
            }
        }
        let seat = &mut self.seats[index as usize];
        seat.lanes = lanes;
        seat.closing = None;
        seat.link = None;
        match opening.map(|opening| opening.opener) {
            Some(Some(opener)) => self.fail(opener, now, failure.clone()),
            Some(None) => self.not_opened = Some(failure.clone()),
            None => {}
        }
        self.vacate(index);
        self.reopen(index);
    }

    /// After a read without an error: closes a connection that takes no further request, and one that has its ticket.
    fn tidy(&mut self, index: u32) {
        let seat = &mut self.seats[index as usize];
        let Some(link) = &mut seat.link else { return self.reopen(index) };
        if seat.closing.is_some() {
            if !link.lacks_ticket() {
                self.end_closing(index);
            }
        } else if seat.opening.is_none() && seat.in_flight == 0 && !link.is_open() {
            self.leave(index);
            self.vacate(index);
            self.reopen(index);
        }
    }

    fn end_closing(&mut self, index: u32) {
        self.leave(index);
        let lanes = std::mem::take(&mut self.seats[index as usize].lanes);
        for &id in &lanes {
            if self.lanes[id as usize].state == LaneState::Closing {
                self.release(id);
            }
        }
        self.seats[index as usize].lanes = lanes;
    }

    /// Opens a connection again for a request that waits for it.
    fn reopen(&mut self, index: u32) {
        loop {
            let seat = &mut self.seats[index as usize];
            if seat.link.is_some() || seat.opening.is_some() || seat.waiting.is_empty() {
                return;
            }
            let opener = seat.waiting.remove(0);
            self.dial(index, Some(opener));
        }
    }

    /// Ends what is past its deadline, and finds the next deadline.
    fn scan(&mut self, now: Instant) {
        self.inbox.now = now;
        let mut next = now + HALT_EVERY;
        self.next_scan = next;
        for index in 0..self.seats.len() as u32 {
            if let Some(link) = &mut self.seats[index as usize].link
                && let Some(by) = link.timer()
            {
                if by > now {
                    next = next.min(by);
                } else {
                    let ticked = link.tick(now, &mut self.inbox);
                    self.take(index, ticked);
                    next = next.min(self.seats[index as usize].link.as_ref().and_then(Link::timer).unwrap_or(next));
                }
            }
            let seat = &self.seats[index as usize];
            let by = seat.closing.or(seat.opening.filter(|opening| opening.opener.is_none()).map(|opening| opening.by));
            let Some(by) = by else { continue };
            if by > now {
                next = next.min(by);
            } else if seat.closing.is_some() {
                // Without a ticket the next connection has a full handshake, and its sample says so.
                self.end_closing(index);
            } else {
                let failure = self.connect_timeout(index);
                self.broke(index, &failure);
            }
        }
        for id in 0..self.lanes.len() as LaneId {
            let lane = &self.lanes[id as usize];
            if !matches!(lane.state, LaneState::Going | LaneState::Waiting) {
                continue;
            }
            if lane.by > now {
                next = next.min(lane.by);
            } else {
                self.expire(id, now);
            }
        }
        self.next_scan = self.next_scan.min(next);
        if self.pace.has_pending() {
            self.dispatch(now);
        }
        self.flush();
    }

    /// A request, or its connection, is past its deadline.
    fn expire(&mut self, id: LaneId, now: Instant) {
        let lane = &self.lanes[id as usize];
        let (state, index) = (lane.state, lane.seat);
        let seat = &mut self.seats[index as usize];
        if state == LaneState::Waiting {
            let failure = self.connect_timeout(index);
            let seat = &mut self.seats[index as usize];
            if seat.opening.is_some_and(|opening| opening.opener == Some(id)) {
                return self.broke(index, &failure);
            }
            seat.waiting.retain(|waiting| *waiting != id);
            return self.fail(id, now, failure);
        }
        if let Some(link) = &mut seat.link {
            link.cancel(id);
        }
        let failure = self.request_timeout();
        self.fail(id, now, failure);
        let seat = &mut self.seats[index as usize];
        match &seat.link {
            // With one request at a time, a late response would be taken for the response to the next request.
            Some(link) if !link.is_open() && seat.in_flight == 0 => {
                seat.link = None;
                self.vacate(index);
                self.reopen(index);
            }
            Some(_) => self.soil(index),
            None => {}
        }
    }

    /// Remembers that a connection may have output.
    pub(super) fn soil(&mut self, index: u32) {
        let seat = &mut self.seats[index as usize];
        if !seat.is_dirty {
            seat.is_dirty = true;
            self.dirty.push(index);
        }
    }

    /// Writes all output.
    pub(super) fn flush(&mut self) {
        while let Some(index) = self.dirty.pop() {
            let Some(seat) = self.seats.get_mut(index as usize) else { continue };
            seat.is_dirty = false;
            let Some(link) = &mut seat.link else { continue };
            match link.flush() {
                Ok(()) => {
                    if let Some(by) = link.timer() {
                        self.watch(by);
                    }
                }
                Err(failure) => {
                    self.inbox.now = Instant::now();
                    self.broke(index, &failure);
                    if self.pace.has_pending() {
                        self.dispatch(Instant::now());
                    }
                }
            }
        }
    }
}
