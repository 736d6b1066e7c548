//! Sending of requests by a schedule: workers of a closed loop, arrivals of an open loop.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::{ClientSpec, Pause, Schedule};
use wirelab_engine::arrivals::ArrivalTimes;
use wirelab_engine::requests::Pick;

use crate::client::deadline::Elapsed;
use crate::client::pool::{Lane, Pool};
use crate::client::record::Record;
use crate::client::schedule::{Limit, Phase, Share, pause, random};
use crate::client::thread_state::{Clock, ThreadState};
use crate::client::transport::{Answer, Connection, Failure, Sink, Transport};

/// A period of requests: the warm-up or the measured window.
#[derive(Debug, Clone)]
pub(crate) struct Period {
    pub phase: Phase,
    pub start: Instant,
    pub limit: Limit,
    /// The thread's share.
    pub share: Share,
}

/// Sends the requests of one thread in one period; returns when none is in flight.
///
/// Dropping the future abandons requests in flight.
pub(crate) async fn send<T: Transport, K: Clock>(
    state: &Rc<ThreadState<T>>,
    pool: &Rc<Pool<T::Connection>>,
    spec: &ClientSpec,
    period: Period,
) {
    let mut tasks = JoinSet::new();
    match spec.schedule {
        Schedule::Closed { workers, pause } => {
            let limit = Rc::new(RefCell::new(period.limit.clone()));
            for user in 0..period.share.part32(workers) {
                let worker = Worker { state: Rc::clone(state), pool: Rc::clone(pool), limit: Rc::clone(&limit) };
                tasks.spawn_local(worker.run::<K>(pause, spec.seed, user, period.clone()));
            }
        }
        Schedule::Open { .. } => {
            if let Some(times) = ArrivalTimes::of(spec, period.share, period.phase) {
                dispatch::<T, K>(state, pool, times, period, &mut tasks).await;
            }
        }
    }
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

/// One worker of a closed loop.
struct Worker<T: Transport> {
    state: Rc<ThreadState<T>>,
    pool: Rc<Pool<T::Connection>>,
    limit: Rc<RefCell<Limit>>,
}

impl<T: Transport> Worker<T> {
    async fn run<K: Clock>(self, pauses: Pause, seed: u64, user: u32, period: Period) {
        let mut random = random(seed, period.share, period.phase, user);
        let mut clock = K::default();
        let mut intended = period.start;
        loop {
            clock.until(intended).await;
            let mut lane = self.pool.take(&self.state).await;
            // The actual start counts, because no request may start after the end.
            let goes_on = self.limit.borrow_mut().take(self.state.now().max(intended));
            if !goes_on {
                self.pool.put(lane);
                return;
            }
            let end = perform(&mut lane, &self.state, intended).await;
            self.pool.put(lane);
            // Without a pause the intended start of the next request is now, when its worker is free.
            intended = if pauses == Pause::None { self.state.now() } else { end + pause(pauses, &mut random) };
        }
    }
}

/// Starts a request at each arrival, independent of earlier requests.
///
/// Every request has a connection or stream of its own if the policy allows it. Otherwise it waits in line, and its
/// response time runs from its arrival. Requests that arrived within the period are sent even after its end: dropping
/// them would omit the slowest requests. The wait is limited to the request time-out after the end; longer waits fail
/// by time-out.
async fn dispatch<T: Transport, K: Clock>(
    state: &Rc<ThreadState<T>>,
    pool: &Rc<Pool<T::Connection>>,
    mut times: ArrivalTimes,
    period: Period,
    tasks: &mut JoinSet<()>,
) {
    let line = Rc::new(Line::default());
    let mut clock = K::default();
    let mut limit = period.limit;
    while let Some(ns) = times.next_ns() {
        let arrival = period.start + std::time::Duration::from_nanos(ns);
        if !limit.take(arrival) {
            break;
        }
        clock.until(arrival).await;
        if let Some(carrier) = line.idle.borrow_mut().pop_front() {
            carrier.next.set(Some(arrival));
            carrier.wake.notify_one();
        } else if let Some(lane) = pool.try_take(state) {
            let carrier = Carrier { state: Rc::clone(state), pool: Rc::clone(pool), line: Rc::clone(&line) };
            tasks.spawn_local(carrier.run(lane, arrival));
        } else {
            line.waiting.borrow_mut().push_back(arrival);
        }
        // A task that panicked is noticed at the end; carriers end only then.
    }
    let latest_start = state.now().max(period.start) + state.timeouts.request;
    line.end(latest_start);
}

/// Arrivals that wait for a carrier, and carriers that wait for an arrival.
#[derive(Debug, Default)]
struct Line {
    waiting: RefCell<VecDeque<Instant>>,
    idle: RefCell<VecDeque<Rc<Parked>>>,
    /// The latest start of waiting arrivals; set after the last arrival.
    latest_start: Cell<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Parked {
    next: Cell<Option<Instant>>,
    wake: Notify,
}

impl Line {
    fn end(&self, latest_start: Instant) {
        self.latest_start.set(Some(latest_start));
        for carrier in self.idle.borrow_mut().drain(..) {
            carrier.wake.notify_one();
        }
    }
}

/// Sends arrivals over one lane in sequence.
struct Carrier<T: Transport> {
    state: Rc<ThreadState<T>>,
    pool: Rc<Pool<T::Connection>>,
    line: Rc<Line>,
}

impl<T: Transport> Carrier<T> {
    async fn run(self, mut lane: Lane<T::Connection>, first: Instant) {
        let parked = Rc::new(Parked::default());
        let mut next = Some(first);
        while let Some(intended) = next {
            if self.line.latest_start.get().is_some_and(|latest_start| self.state.now() > latest_start) {
                self.give_up(intended);
            } else {
                perform(&mut lane, &self.state, intended).await;
            }
            next = self.line.waiting.borrow_mut().pop_front();
            if next.is_none() && self.line.latest_start.get().is_none() {
                self.line.idle.borrow_mut().push_back(Rc::clone(&parked));
                parked.wake.notified().await;
                next = parked.next.take();
            }
        }
        self.pool.put(lane);
    }

    fn give_up(&self, intended: Instant) {
        let message = "the request waited for a free connection until its time-out after the end of the window";
        let failure = Failure::new(ErrorKind::Timeout, message);
        self.state.keep(Record::begin(intended, self.state.now()), Some(&failure));
    }
}

/// Sends one request over a lane and records it. Returns its end.
pub(crate) async fn perform<T: Transport>(
    lane: &mut Lane<T::Connection>,
    state: &ThreadState<T>,
    intended: Instant,
) -> Instant {
    let start = state.now();
    let mut record = Record::begin(intended.min(start), start);
    let pick = state.requests.pick();
    let mut body = Vec::new();
    let outcome = attempt(lane, state, pick, &mut record, &mut body).await;
    record.request = pick.request;
    let failure = match outcome {
        Ok(answer) => {
            record.first_byte = Some(answer.first_byte);
            record.end = answer.last_byte;
            record.bytes_in = answer.bytes_in;
            record.status = answer.status;
            state.requests.judge(pick, answer.status, answer.bytes_in, &body).err()
        }
        Err(failure) => {
            record.end = state.now();
            Some(failure)
        }
    };
    if let Some(held) = &lane.held {
        record.connection = held.number;
        if record.opened {
            record.handshake = held.connection.handshake();
        }
    }
    let end = record.end;
    state.keep(record, failure.as_ref());
    if state.per_request
        && let Some(held) = lane.held.take()
    {
        held.connection.close().await;
    }
    end
}

async fn attempt<T: Transport>(
    lane: &mut Lane<T::Connection>,
    state: &ThreadState<T>,
    pick: Pick,
    record: &mut Record,
    body: &mut Vec<u8>,
) -> Result<Answer, Failure> {
    let by = record.start + state.timeouts.request;
    let mut turns = 0;
    loop {
        open(lane, state, record, by).await?;
        match send_once(lane, state, pick, record, body, by).await {
            Sent::Done(outcome) => return outcome,
            Sent::TurnedAway(failure) if turns == MOST_TURNS => return Err(failure),
            // Another connection of the same server takes the request; its time goes on.
            Sent::TurnedAway(_) => {
                turns += 1;
                state.count_sent_again();
                lane.held = None;
                body.clear();
            }
        }
    }
}

/// Number of connections that may turn a request away before it fails.
const MOST_TURNS: u32 = 5;

/// Ensures a connection, and records its times if the request had to open it.
async fn open<T: Transport>(
    lane: &mut Lane<T::Connection>,
    state: &ThreadState<T>,
    record: &mut Record,
    by: Instant,
) -> Result<(), Failure> {
    if let Some(moments) = lane.connect(state, by.min(state.now() + state.timeouts.connect)).await? {
        record.opened = true;
        record.connected = moments.connected;
        record.ready = moments.ready;
    }
    Ok(())
}

/// The end of an attempt to send a request.
enum Sent {
    Done(Result<Answer, Failure>),
    /// The server certainly did not process it.
    TurnedAway(Failure),
}

async fn send_once<T: Transport>(
    lane: &mut Lane<T::Connection>,
    state: &ThreadState<T>,
    pick: Pick,
    record: &mut Record,
    body: &mut Vec<u8>,
    by: Instant,
) -> Sent {
    let Some(held) = &mut lane.held else {
        let message = "the connection was lost before the request was sent";
        return Sent::Done(Err(Failure::new(ErrorKind::Other, message)));
    };
    record.bytes_out = pick.body_size;
    let mut collect = |bytes: &[u8]| body.extend_from_slice(bytes);
    let sink = state.requests.reads_body(pick).then_some(&mut collect as Sink<'_>);
    match lane.deadline.guard(by, held.connection.request(pick.number, sink)).await {
        Ok(Ok(answer)) => Sent::Done(Ok(answer)),
        Ok(Err(failure)) if held.connection.was_turned_away() => Sent::TurnedAway(failure),
        Ok(Err(failure)) => {
            if !(state.multiplexes && held.connection.is_open()) {
                record.connection = held.number;
                record.handshake = record.opened.then(|| held.connection.handshake()).flatten();
                lane.held = None;
            }
            Sent::Done(Err(failure))
        }
        Err(Elapsed) => {
            // With one request at a time, a late response would be taken for the response to the next request.
            if !state.multiplexes || state.per_request {
                record.connection = held.number;
                record.handshake = record.opened.then(|| held.connection.handshake()).flatten();
                lane.held = None;
            }
            Sent::Done(Err(state.request_timeout()))
        }
    }
}
