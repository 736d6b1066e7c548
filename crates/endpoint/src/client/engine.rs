//! The engine of one thread: prepares, warms up, measures. It knows no protocol.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wirelab_model::event::Configured;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::spec::{ClientSpec, ConnectionPolicy, Extent, Resumption, Schedule};

use crate::client::check;
use crate::client::lanes::{self, Period};
use crate::client::pool::Pool;
use crate::client::record::{Record, Recorder};
use crate::client::schedule::{Limit, Phase, Share};
use crate::client::transport::{Answer, Failure, Transport};
use crate::refusal::Refusal;
use crate::wait::Timer;

/// Tickets to have in store where an open loop does not say how many connections there will be at a time.
const TICKETS_FOR_OPEN_LOOP: usize = 64;

/// A clock to wait by; tests have one that they turn by hand.
pub(crate) trait Clock: Default + 'static {
    /// The moment.
    fn now() -> Instant;
    /// Returns at `at`, or at once if that has passed.
    fn until(&mut self, at: Instant) -> impl Future<Output = ()>;
}

impl Clock for Timer {
    fn now() -> Instant {
        Instant::now()
    }

    async fn until(&mut self, at: Instant) {
        // Most waits of a closed loop without pauses are for a moment that has passed.
        if at > Instant::now() {
            Self::until(self, at).await;
        }
    }
}

/// Counts of one thread that others may read at any time.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Progress {
    /// Requests completed in the measured window, failed ones included.
    pub requests: AtomicU64,
    /// Those that failed.
    pub failed: AtomicU64,
}

/// Time-outs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For a request, connecting included.
    pub request: Duration,
}

/// What all lanes of a thread share.
#[derive(Debug)]
pub(crate) struct Bench<T> {
    /// Opens connections.
    pub transport: T,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// Whether each request has a connection of its own.
    pub per_request: bool,
    /// Whether a connection carries several requests at a time.
    pub multiplexes: bool,
    /// Bytes of request body.
    pub body_size: u64,
    expected: Option<(u16, u64)>,
    is_http: bool,
    /// Bare UDP retransmits nothing: what does not come in time is lost.
    silence: ErrorKind,
    now: fn() -> Instant,
    numbers: Arc<AtomicU32>,
    progress: Arc<Progress>,
    measuring: Cell<bool>,
    recorder: RefCell<Recorder>,
    last_end: Cell<Option<Instant>>,
    first_failure: RefCell<Option<Failure>>,
}

impl<T: Transport> Bench<T> {
    /// The moment.
    pub fn now(&self) -> Instant {
        (self.now)()
    }

    /// The number of a connection that was just opened.
    pub fn next_number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether a complete response is the right one.
    pub fn judge(&self, answer: &Answer) -> Result<(), Failure> {
        let fail = |kind, message| Err(Failure::new(kind, message));
        match (self.expected, answer.status) {
            (Some((wanted, _)), Some(status)) if status != wanted => {
                fail(ErrorKind::Status, format!("the server answered with status {status} instead of {wanted}"))
            }
            // Measuring a redirect instead of what it leads to would be a wrong number that looks right. 304 is no redirect.
            (None, Some(status @ (300..=303 | 305..=399))) => fail(
                ErrorKind::Status,
                format!("the server answered with status {status}, a redirect, which is not followed"),
            ),
            (None, Some(status)) if status >= 400 => {
                fail(ErrorKind::Status, format!("the server answered with status {status}"))
            }
            (Some(_), None) if self.is_http => fail(ErrorKind::Protocol, "the response has no status".to_owned()),
            (Some((_, size)), _) if answer.bytes_in < size => {
                let got = answer.bytes_in;
                fail(ErrorKind::Truncated, format!("the response has {got} bytes instead of {size}"))
            }
            (Some((_, size)), _) if answer.bytes_in > size => {
                let got = answer.bytes_in;
                fail(ErrorKind::Digest, format!("the response has {got} bytes instead of {size}"))
            }
            _ => Ok(()),
        }
    }

    /// Records a request that ended.
    pub fn keep(&self, mut record: Record, failure: Option<&Failure>) {
        if !self.measuring.get() {
            return;
        }
        if let Some(failure) = failure {
            record.error = Some(failure.kind);
            self.progress.failed.fetch_add(1, Ordering::Relaxed);
            if self.first_failure.borrow().is_none() {
                self.first_failure.replace(Some(failure.clone()));
            }
        }
        self.progress.requests.fetch_add(1, Ordering::Relaxed);
        if self.last_end.get().is_none_or(|last| last < record.end) {
            self.last_end.set(Some(record.end));
        }
        self.recorder.borrow_mut().push(record);
    }

    /// A connection was not ready in time.
    pub fn connect_timeout(&self) -> Failure {
        let limit = self.timeouts.connect.min(self.timeouts.request);
        Failure::new(ErrorKind::Timeout, format!("connecting took longer than {limit:?}"))
    }

    /// A response was not complete in time.
    pub fn request_timeout(&self) -> Failure {
        Failure::new(self.silence, format!("the response was not complete after {:?}", self.timeouts.request))
    }
}

/// The engine of one thread.
pub(crate) struct Engine<T: Transport> {
    spec: Arc<ClientSpec>,
    share: Share,
    bench: Rc<Bench<T>>,
    pool: Rc<Pool<T::Connection>>,
}

/// What a thread brings home.
#[derive(Debug)]
pub(crate) struct Part {
    /// What it recorded.
    pub recorder: Recorder,
    /// The first failure of its window, for the log.
    pub first_failure: Option<Failure>,
    /// What was in force.
    pub configured: Configured,
}

impl<T: Transport> Engine<T> {
    /// The engine of one thread, with nothing connected.
    pub fn build<K: Clock>(
        spec: Arc<ClientSpec>,
        share: Share,
        numbers: Arc<AtomicU32>,
        progress: Arc<Progress>,
    ) -> Result<Self, Refusal> {
        let transport = T::build(&spec)?;
        let bench = Bench {
            transport,
            timeouts: Timeouts {
                connect: Duration::from_nanos(spec.timeouts.connect_ns),
                request: Duration::from_nanos(spec.timeouts.request_ns),
            },
            per_request: spec.connections == ConnectionPolicy::PerRequest,
            multiplexes: spec.protocol.multiplexes(),
            body_size: spec.request.body_size,
            expected: spec.request.expect.as_ref().map(|expect| (expect.status, expect.body_size)),
            is_http: spec.protocol.is_http(),
            silence: if spec.protocol == wirelab_model::protocol::Protocol::Udp {
                ErrorKind::Lost
            } else {
                ErrorKind::Timeout
            },
            now: K::now,
            numbers,
            progress,
            measuring: Cell::new(false),
            recorder: RefCell::new(Recorder::new(spec.recording, expected_requests(&spec, share))),
            last_end: Cell::new(None),
            first_failure: RefCell::new(None),
        };
        let bench = Rc::new(bench);
        // Lanes of persistent connections come with `open`.
        let pool = Rc::new(Pool::unlimited());
        Ok(Self { spec, share, bench, pool })
    }

    /// What is in force, as far as it is known.
    pub fn configured(&self) -> Configured {
        self.bench.transport.configured()
    }

    /// Sends the check request on a connection of its own.
    pub async fn check(&self) -> Result<(), Failure> {
        check::check(&self.bench, &self.spec).await
    }

    /// Fills the ticket store, opens persistent connections, warms up.
    pub async fn open<K: Clock>(&mut self) -> Result<(), Failure> {
        self.prime().await?;
        self.pool = Rc::new(Pool::open(&self.bench, self.spec.connections, self.share).await?);
        if let Some(extent) = self.spec.warm_up {
            self.send::<K>(Phase::WarmUp, extent, K::now()).await;
        }
        Ok(())
    }

    /// The measured window, from `zero` on. Returns the end of its last request, if there was any.
    pub async fn measure<K: Clock>(&self, zero: Instant) -> Option<Instant> {
        self.bench.measuring.set(true);
        self.send::<K>(Phase::Measured, self.spec.extent, zero).await;
        self.bench.measuring.set(false);
        self.bench.last_end.get()
    }

    /// The end of the last request so far, where the window was cut short.
    pub fn stop(&self) -> Option<Instant> {
        self.bench.measuring.set(false);
        self.bench.last_end.get()
    }

    /// Closes connections and hands over what was recorded.
    pub async fn finish(self) -> Part {
        self.pool.close().await;
        let recorder = self.bench.recorder.replace(Recorder::Samples(Vec::new()));
        Part { recorder, first_failure: self.bench.first_failure.take(), configured: self.configured() }
    }

    async fn send<K: Clock>(&self, phase: Phase, extent: Extent, start: Instant) {
        let limit = Limit::of(extent, self.share, start);
        let period = Period { phase, start, limit, share: self.share };
        lanes::send::<T, K>(&self.bench, &self.pool, self.spec.schedule, self.spec.seed, period).await;
    }

    /// Opens and closes connections until there is a ticket for each that will be open at the same time.
    ///
    /// A server that gives no tickets is no failure here: each sample says how its connection began.
    async fn prime(&self) -> Result<(), Failure> {
        if self.spec.resumption == Resumption::None {
            return Ok(());
        }
        let wanted = match (self.spec.connections, self.spec.schedule) {
            (ConnectionPolicy::Persistent { connections, .. }, _) => self.share.part32(connections) as usize,
            (ConnectionPolicy::PerRequest, Schedule::Closed { workers, .. }) => self.share.part32(workers) as usize,
            (ConnectionPolicy::PerRequest, Schedule::Open { .. }) => TICKETS_FOR_OPEN_LOOP,
        };
        let mut before = self.bench.transport.tickets();
        while before < wanted {
            check::once(&self.bench, None).await?;
            let now = self.bench.transport.tickets();
            if now <= before {
                break;
            }
            before = now;
        }
        Ok(())
    }
}

/// How many requests a thread will record, for the memory that they take.
fn expected_requests(spec: &ClientSpec, share: Share) -> u64 {
    match (spec.extent, spec.schedule) {
        (Extent::Requests(count), _) => share.part(count),
        (Extent::DurationNs(ns), Schedule::Open { rate_per_s, .. }) => {
            (rate_per_s * ns as f64 / 1e9 / f64::from(share.of) * 1.1) as u64
        }
        // A guess: what a fast protocol may do on one core.
        (Extent::DurationNs(ns), Schedule::Closed { .. }) => ns / 20_000,
    }
}

/// Opens a connection under its deadline.
pub(crate) async fn connect<T: Transport>(bench: &Bench<T>) -> Result<T::Connection, Failure> {
    match tokio::time::timeout(bench.timeouts.connect.min(bench.timeouts.request), bench.transport.connect()).await {
        Ok(opened) => Ok(opened?.connection),
        Err(_) => Err(bench.connect_timeout()),
    }
}
