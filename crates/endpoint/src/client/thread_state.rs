//! The shared state of a thread's lanes: transport, limits, expected response and records.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::exposition::{self, BOUNDS, Times};
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{ClientSpec, ConnectionPolicy, Extent, Schedule};

use crate::client::record::{Record, Recorder};
use crate::client::schedule::Share;
use crate::client::transport::{Answer, Failure, Transport};
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;
use crate::wait::Timer;

/// A clock; tests advance theirs by hand.
pub(crate) trait Clock: Default + 'static {
    /// The current time.
    fn now() -> Instant;
    /// Returns at `at`, or at once if `at` has passed.
    fn until(&mut self, at: Instant) -> impl Future<Output = ()>;
}

impl Clock for Timer {
    fn now() -> Instant {
        Instant::now()
    }

    async fn until(&mut self, at: Instant) {
        // Most waits of a closed loop without pauses end at once.
        if at > Instant::now() {
            Self::until(self, at).await;
        }
    }
}

/// Counters of one thread, which other threads may read at any time.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Progress {
    /// Requests completed in the measured window, failed ones included.
    pub requests: AtomicU64,
    /// Requests that failed.
    pub failed: AtomicU64,
    /// Response times of successful requests, if `exposition` is set.
    pub response: Option<Box<Spread>>,
    /// Statistics of the connections, if the transport has them.
    pub accounts: OnceLock<Accounts>,
}

/// A histogram of response times.
#[derive(Debug)]
pub(crate) struct Spread {
    counts: [AtomicU64; BOUNDS + 1],
    sum_ns: AtomicU64,
}

impl Default for Spread {
    fn default() -> Self {
        Self { counts: std::array::from_fn(|_| AtomicU64::new(0)), sum_ns: AtomicU64::new(0) }
    }
}

impl Spread {
    fn add(&self, time: Duration) {
        let ns = time.as_nanos() as u64;
        self.counts[exposition::place(ns)].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Adds the counts so far to `times`.
    pub fn add_to(&self, times: &mut Times) {
        times.counts.resize(self.counts.len(), 0);
        for (sum, count) in times.counts.iter_mut().zip(&self.counts) {
            *sum += count.load(Ordering::Relaxed);
        }
        times.sum_ns += self.sum_ns.load(Ordering::Relaxed);
    }
}

/// Time-outs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// Time-out of a connection.
    pub connect: Duration,
    /// Time-out of a request, including the time to connect.
    pub request: Duration,
}

/// The shared state of a thread's lanes.
#[derive(Debug)]
pub(crate) struct ThreadState<T> {
    /// Opens connections.
    pub transport: T,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// Whether each request has a connection of its own.
    pub per_request: bool,
    /// Whether a connection carries several requests at once.
    pub multiplexes: bool,
    /// Size of the request body in bytes.
    pub body_size: u64,
    expected: Option<(u16, u64)>,
    is_http: bool,
    /// Kind of a time-out: bare UDP has no retransmission, so a late response counts as lost.
    silence: ErrorKind,
    now: fn() -> Instant,
    numbers: Arc<AtomicU32>,
    progress: Arc<Progress>,
    measuring: Cell<bool>,
    recorder: RefCell<Recorder>,
    last_end: Cell<Option<Instant>>,
    first_failure: RefCell<Option<Failure>>,
}

impl<T: Transport> ThreadState<T> {
    /// Creates the state of one thread before the measurement.
    pub fn build<K: Clock>(
        spec: &ClientSpec,
        share: Share,
        numbers: Arc<AtomicU32>,
        progress: Arc<Progress>,
    ) -> Result<Self, Refusal> {
        let transport = T::build(spec)?;
        Ok(Self {
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
            silence: if spec.protocol == Protocol::Udp { ErrorKind::Lost } else { ErrorKind::Timeout },
            now: K::now,
            numbers,
            progress,
            measuring: Cell::new(false),
            recorder: RefCell::new(Recorder::new(spec.recording, expected_requests(spec, share))),
            last_end: Cell::new(None),
            first_failure: RefCell::new(None),
        })
    }

    /// Opens a connection under its deadline.
    pub async fn connect(&self) -> Result<T::Connection, Failure> {
        match tokio::time::timeout(self.timeouts.connect.min(self.timeouts.request), self.transport.connect()).await {
            Ok(opened) => Ok(opened?.connection),
            Err(_) => Err(self.connect_timeout()),
        }
    }

    /// Starts the recording of requests that end.
    pub fn begin_measuring(&self) {
        self.measuring.set(true);
    }

    /// Stops the recording. Returns the end of the last recorded request, if any.
    pub fn end_measuring(&self) -> Option<Instant> {
        self.measuring.set(false);
        self.last_end.get()
    }

    /// Returns the records and the first failure.
    pub fn take(&self) -> (Recorder, Option<Failure>) {
        (self.recorder.replace(Recorder::Samples(Vec::new())), self.first_failure.take())
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        (self.now)()
    }

    /// The number of a new connection.
    pub fn next_number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Checks a complete response.
    pub fn judge(&self, answer: &Answer) -> Result<(), Failure> {
        let fail = |kind, message| Err(Failure::new(kind, message));
        match (self.expected, answer.status) {
            (Some((wanted, _)), Some(status @ (300..=303 | 305..=399))) if status != wanted => fail(
                ErrorKind::Status,
                format!(
                    "the server answered with status {status} instead of {wanted}, a redirect, which is not followed"
                ),
            ),
            (Some((wanted, _)), Some(status)) if status != wanted => {
                fail(ErrorKind::Status, format!("the server answered with status {status} instead of {wanted}"))
            }
            // Measuring a redirect in place of its target would give a plausible but wrong number. 304 is no redirect.
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
        } else if let Some(response) = &self.progress.response {
            response.add(record.end.saturating_duration_since(record.intended));
        }
        self.progress.requests.fetch_add(1, Ordering::Relaxed);
        if self.last_end.get().is_none_or(|last| last < record.end) {
            self.last_end.set(Some(record.end));
        }
        self.recorder.borrow_mut().push(record);
    }

    /// The failure of a connection that was not ready in time.
    pub fn connect_timeout(&self) -> Failure {
        let limit = self.timeouts.connect.min(self.timeouts.request);
        Failure::new(ErrorKind::Timeout, format!("connecting took longer than {limit:?}"))
    }

    /// The failure of a response that was not complete in time.
    pub fn request_timeout(&self) -> Failure {
        Failure::new(self.silence, format!("the response was not complete after {:?}", self.timeouts.request))
    }
}

/// Expected number of recorded requests of a thread, for the allocation of memory.
fn expected_requests(spec: &ClientSpec, share: Share) -> u64 {
    match (spec.extent, spec.schedule) {
        (Extent::Requests(count), _) => share.part(count),
        (Extent::DurationNs(ns), Schedule::Open { rate_per_s, .. }) => {
            (rate_per_s * ns as f64 / 1e9 / f64::from(share.of) * 1.1) as u64
        }
        // An estimate for a fast protocol on one core.
        (Extent::DurationNs(ns), Schedule::Closed { .. }) => ns / 20_000,
    }
}
