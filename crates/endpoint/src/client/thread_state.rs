//! The shared state of a thread's lanes: transport, limits, expected response and records.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{ClientSpec, ConnectionPolicy};
use wirelab_engine::progress::{Progress, Timeouts, expected_requests};
use wirelab_engine::requests::Requests;
use wirelab_engine::steady::Judge;

use crate::client::record::{Record, Recorder};
use crate::client::schedule::Share;
use crate::client::transport::{Failure, Transport};
use crate::refusal::Refusal;
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
    /// The requests, and the expected responses.
    pub requests: Requests,
    /// Kind of a time-out: bare UDP has no retransmission, so a late response counts as lost.
    silence: ErrorKind,
    /// The way of connections in words, for a time-out: ` through the proxy URL`; empty for the direct way.
    way: String,
    now: fn() -> Instant,
    numbers: Arc<AtomicU32>,
    progress: Arc<Progress>,
    measuring: Cell<bool>,
    recorder: RefCell<Recorder>,
    last_end: Cell<Option<Instant>>,
    first_failure: RefCell<Option<Failure>>,
    sent_again: Cell<u64>,
}

impl<T: Transport> ThreadState<T> {
    /// Creates the state of one thread before the measurement.
    pub fn build<K: Clock>(
        spec: &ClientSpec,
        share: Share,
        numbers: Arc<AtomicU32>,
        progress: Arc<Progress>,
    ) -> Result<Self, Refusal> {
        if !spec.mix.is_empty() && !T::OWN_REQUESTS {
            return Err(Refusal::unsupported("`mix` is set, and this client does not send requests of the user"));
        }
        let transport = T::build(spec)?;
        Ok(Self {
            transport,
            timeouts: Timeouts::of(spec),
            per_request: spec.connections == ConnectionPolicy::PerRequest,
            multiplexes: spec.protocol.multiplexes(),
            requests: Requests::of(spec, share)?,
            silence: if spec.protocol == Protocol::Udp { ErrorKind::Lost } else { ErrorKind::Timeout },
            way: spec.via.as_ref().map_or_else(String::new, |via| format!(" through {via}")),
            now: K::now,
            numbers,
            progress,
            measuring: Cell::new(false),
            recorder: RefCell::new(Recorder::new(spec.recording, expected_requests(spec, share))),
            last_end: Cell::new(None),
            first_failure: RefCell::new(None),
            sent_again: Cell::new(0),
        })
    }

    /// Opens a connection under its deadline.
    pub async fn connect(&self) -> Result<T::Connection, Failure> {
        match tokio::time::timeout(self.timeouts.connect.min(self.timeouts.request), self.transport.connect()).await {
            Ok(opened) => Ok(opened?.connection),
            Err(_) => Err(self.connect_timeout()),
        }
    }

    /// Decides when the warm-up ends, if it lasts until response times are steady.
    pub fn judge(&self) -> Option<&Arc<Judge>> {
        self.progress.judge.as_ref()
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

    /// Counts a request that a closing connection turned away.
    pub fn count_sent_again(&self) {
        if self.measuring.get() {
            self.sent_again.set(self.sent_again.get() + 1);
        }
    }

    /// Number of requests of the window that went on a new connection, because the old one turned them away.
    pub fn sent_again(&self) -> u64 {
        self.sent_again.get()
    }

    /// Records a request that ended.
    pub fn keep(&self, mut record: Record, failure: Option<&Failure>) {
        if !self.measuring.get() {
            if let Some(judge) = &self.progress.judge {
                judge.add(&record, failure.is_some());
            }
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
        if let Some(intervals) = &self.progress.intervals {
            intervals.add(&record);
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
        Failure::new(ErrorKind::Timeout, format!("connecting{} took longer than {limit:?}", self.way))
    }

    /// The failure of a response that was not complete in time.
    pub fn request_timeout(&self) -> Failure {
        Failure::new(self.silence, format!("the response was not complete after {:?}", self.timeouts.request))
    }
}
