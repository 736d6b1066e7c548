//! Controls the client's threads through the phases of a trial.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::{Command, Configured, WarmedUp};
use wirelab_contract::exposition::{Exposed, Times};
use wirelab_contract::spec::{ClientSpec, ConnectionPolicy};
use wirelab_contract::transport::TransportReport;
use wirelab_engine::intervals::Intervals;
use wirelab_engine::progress::Progress;
use wirelab_engine::results::ThreadResults;
use wirelab_engine::steady::Judge;

use crate::client::record::Results;
use crate::client::schedule::Share;
use crate::client::threads::{self, Driver, Job, Message, Order, Report};
use crate::client::transport::Failure;
use crate::client::validate;
use crate::refusal::Refusal;

/// Interval of the calls to `watch`.
const WATCH_EVERY: Duration = Duration::from_millis(100);

/// The reason for the early end of a phase.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The client got the command `stop`.
    Stopped,
    /// An error.
    Failed(Failure),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The outcome of a client.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The records or histograms of all threads.
    pub results: Results,
    /// The effective settings.
    pub configured: Configured,
    /// Transport statistics of the connections; absent if unavailable.
    pub transport: Option<TransportReport>,
    /// The first failure of the window, for the log.
    pub first_failure: Option<Failure>,
    /// Number of requests that went on a new connection, because the old one turned them away.
    pub sent_again: u64,
}

/// Gets the numbers of completed and of failed requests, and what each thread tells. Returns true to stop the client.
type Look<'a> = dyn FnMut(u64, u64, &[Arc<Progress>]) -> bool + 'a;

/// Functions that watch a client.
pub(crate) struct Watch<'a> {
    /// Called ten times a second.
    pub look: Box<Look<'a>>,
    /// The length of the intervals, if they are wanted; not 0.
    pub every: Option<Duration>,
}

/// A started client.
pub(crate) struct Control<'a> {
    spec: Arc<ClientSpec>,
    orders: Vec<UnboundedSender<Order>>,
    inbox: Receiver<Message>,
    sender: Sender<Message>,
    progress: Vec<Arc<Progress>>,
    numbers: Arc<AtomicU32>,
    configured: Configured,
    zero: Instant,
    watch: Option<Watch<'a>>,
    /// Whether to keep the results of a window that was cut short.
    keeps_partial: bool,
    /// Decides when the warm-up ends, if it lasts until response times are steady.
    judge: Option<Arc<Judge>>,
}

impl<'a> Control<'a> {
    /// Starts the threads, without connections.
    pub fn start(spec: ClientSpec, driver: Driver, watch: Option<Watch<'a>>) -> Result<Self, Refusal> {
        validate::client(&spec)?;
        let spec = Arc::new(spec);
        let numbers = Arc::new(AtomicU32::new(0));
        let (sender, inbox) = channel();
        let zero = Instant::now();
        let (orders, progress, configured) = Default::default();
        let keeps_partial = watch.is_some();
        let judge = spec.until_steady.then(Arc::<Judge>::default);
        let every = watch.as_ref().and_then(|watch| watch.every);
        let mut control = Self {
            spec: Arc::clone(&spec),
            orders,
            inbox,
            sender,
            progress,
            numbers,
            configured,
            zero,
            watch,
            keeps_partial,
            judge,
        };
        for share in Share::all(&spec) {
            let response = spec.exposition.as_ref().map(|_| Box::default());
            let intervals = every.map(Intervals::new);
            let judge = control.judge.clone();
            let progress = Arc::new(Progress { response, intervals, judge, ..Progress::default() });
            control.progress.push(Arc::clone(&progress));
            let (numbers, reports) = (Arc::clone(&control.numbers), control.sender.clone());
            let orders = threads::start(Job { spec: Arc::clone(&spec), driver, share, numbers, progress, reports })
                .map_err(|error| Refusal::failed(format!("starting a client thread: {error}")))?;
            control.orders.push(orders);
        }
        for _ in 0..control.orders.len() {
            match control.inbox.recv() {
                Ok(Message::Report(Report::Ready(configured))) => control.configured = configured,
                Ok(Message::Report(Report::Refused(refusal))) => return Err(refusal),
                _ => return Err(lost().into()),
            }
        }
        control.configured.insert("threads".to_owned(), control.orders.len().into());
        Ok(control)
    }

    /// The effective settings before any connection.
    pub const fn configured(&self) -> &Configured {
        &self.configured
    }

    /// Returns a function that reads the counters, from any thread.
    pub fn counts(&self) -> impl Fn() -> Exposed + Send + Sync + 'static {
        let all = self.progress.clone();
        move || {
            let (mut requests, mut failed, mut connections) = (0, 0, Some(0));
            let mut response = Times::default();
            for progress in &all {
                // Read in this order, failures never exceed requests.
                let failures = progress.failed.load(Ordering::Relaxed);
                requests += progress.requests.load(Ordering::Relaxed).saturating_sub(failures);
                failed += failures;
                let open = progress.accounts.get().map(|accounts| accounts.open() as u64);
                connections = connections.zip(open).map(|(sum, open)| sum + open);
                if let Some(of_thread) = &progress.response {
                    of_thread.add_to(&mut response);
                }
            }
            let (failed, response) = (Some(failed), Some(response));
            Exposed { labels: Default::default(), requests, failed, connections, response }
        }
    }

    /// The progress of each thread.
    pub fn progress(&self) -> &[Arc<Progress>] {
        &self.progress
    }

    /// The sender for commands.
    pub fn sender(&self) -> Sender<Message> {
        self.sender.clone()
    }

    /// Waits for a command, and returns its time of arrival. Any other command ends the client.
    pub fn word(&mut self, wanted: Command) -> Result<Instant, Ended> {
        match self.next()? {
            Some(Message::Word(word, at)) if word == wanted => Ok(at),
            Some(Message::Word(word, _)) => Err(Failure::new(
                ErrorKind::Other,
                format!("got the command `{}` in place of `{}`", word.word(), wanted.word()),
            )
            .into()),
            Some(Message::Report(_)) => Err(lost().into()),
            None => Err(Ended::Stopped),
        }
    }

    /// Sends the check request, opens connections, warms up.
    ///
    /// Without an expected response nothing needs a check, so no check request is sent: the server may be a foreign
    /// one.
    pub fn open(&mut self) -> Result<(), Ended> {
        let expects = self.spec.request.expect.is_some() || self.spec.mix.iter().any(|one| !one.expect.is_empty());
        if let Some(first) = self.orders.first().filter(|_| expects) {
            let _ = first.send(Order::Check);
            self.all_done(1)?;
        }
        self.order(Order::Open);
        self.all_done(self.orders.len())
    }

    /// The end of a warm-up that lasts until response times are steady, after [`open`](Self::open); `None` for another
    /// one.
    pub fn warmed_up(&self) -> Option<WarmedUp> {
        self.judge.as_ref().map(|judge| judge.outcome())
    }

    /// Runs the measured window, which began at `zero`. Returns its length up to the end of the last request in
    /// nanoseconds, and whether it was cut short.
    pub fn measure(&mut self, zero: Instant) -> Result<(u64, bool), Ended> {
        self.zero = zero;
        if self.spec.connections == ConnectionPolicy::PerRequest {
            // Connections of the warm-up are not part of the results.
            self.numbers.store(0, Ordering::Relaxed);
        }
        for intervals in self.progress.iter().filter_map(|progress| progress.intervals.as_ref()) {
            intervals.begin(zero);
        }
        self.order(Order::Measure(zero));
        let (mut last, mut halted, mut missing) = (None, false, self.orders.len());
        while missing > 0 {
            match self.next()? {
                Some(Message::Report(Report::Ended(end))) => {
                    last = last.max(end);
                    missing -= 1;
                }
                None if self.keeps_partial && !halted => {
                    halted = true;
                    self.order(Order::Halt);
                }
                None => return Err(Ended::Stopped),
                Some(Message::Word(..)) => {
                    return Err(Failure::new(ErrorKind::Other, "got a command during the window").into());
                }
                Some(Message::Report(Report::Failed(failure))) => return Err(failure.into()),
                Some(Message::Report(_)) => return Err(lost().into()),
            }
        }
        let last = last.unwrap_or_else(Instant::now);
        Ok((last.saturating_duration_since(zero).as_nanos() as u64, halted))
    }

    /// Closes connections and merges the threads' results.
    pub fn finish(&mut self) -> Result<Outcome, Ended> {
        self.order(Order::Finish);
        let mut merged: Option<ThreadResults> = None;
        for _ in 0..self.orders.len() {
            match self.next_report()? {
                Report::Finished(part) => match &mut merged {
                    Some(merged) => {
                        merged.recorder.merge(part.recorder);
                        merged.sent_again += part.sent_again;
                        merged.first_failure = merged.first_failure.take().or(part.first_failure);
                        if let (Some(all), Some(of_thread)) = (&mut merged.transport, &part.transport) {
                            all.merge(of_thread);
                        }
                    }
                    None => merged = Some(*part),
                },
                Report::Failed(failure) => return Err(failure.into()),
                _ => return Err(lost().into()),
            }
        }
        let part = merged.ok_or_else(lost)?;
        self.configured.extend(part.configured);
        Ok(Outcome {
            results: part.recorder.finish(self.zero),
            configured: self.configured.clone(),
            transport: part.transport.map(|totals| totals.report()),
            first_failure: part.first_failure,
            sent_again: part.sent_again,
        })
    }

    fn order(&self, order: Order) {
        for orders in &self.orders {
            // A finished thread has sent its final report.
            let _ = orders.send(order);
        }
    }

    fn all_done(&mut self, count: usize) -> Result<(), Ended> {
        for _ in 0..count {
            match self.next_report()? {
                Report::Done => {}
                Report::Failed(failure) => return Err(failure.into()),
                _ => return Err(lost().into()),
            }
        }
        Ok(())
    }

    fn next_report(&mut self) -> Result<Report, Ended> {
        match self.next()? {
            Some(Message::Report(report)) => Ok(report),
            Some(Message::Word(word, _)) => Err(Failure::new(
                ErrorKind::Other,
                format!("got the command `{}` before the client was ready for it", word.word()),
            )
            .into()),
            None => Err(Ended::Stopped),
        }
    }

    /// The next message; `None` if the client should stop.
    fn next(&mut self) -> Result<Option<Message>, Ended> {
        loop {
            let message = match &mut self.watch {
                None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(watch) => {
                    let sum = |count: fn(&Progress) -> u64| self.progress.iter().map(|p| count(p)).sum();
                    let completed = sum(|p| p.requests.load(Ordering::Relaxed));
                    if (watch.look)(completed, sum(|p| p.failed.load(Ordering::Relaxed)), &self.progress) {
                        // One stop is enough, because the client ends after it.
                        self.watch = None;
                        return Ok(None);
                    }
                    self.inbox.recv_timeout(WATCH_EVERY)
                }
            };
            return match message {
                Ok(Message::Word(Command::Stop, _)) => Ok(None),
                Ok(message) => Ok(Some(message)),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => Err(lost().into()),
            };
        }
    }
}

impl Drop for Control<'_> {
    fn drop(&mut self) {
        // If the client ends early, its threads must stop sending.
        self.order(Order::Halt);
    }
}

fn lost() -> Failure {
    let message = "a thread of the client ended unexpectedly; its panic is in the log";
    Failure::new(ErrorKind::Other, message)
}
