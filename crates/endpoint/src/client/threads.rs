//! The client's threads: each runs one engine on a runtime of its own, and shares nothing with the others while
//! requests are in flight.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::Sender;
use std::time::Instant;

use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;
use wirelab_contract::event::{Command, Configured};
use wirelab_contract::spec::ClientSpec;
use wirelab_engine::progress::Progress;
use wirelab_engine::results::ThreadResults;

use crate::client::engine::Engine;
use crate::client::schedule::Share;
use crate::client::transport::{Failure, Transport};
use crate::refusal::Refusal;
use crate::wait::Timer;

/// An order to a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// Send the check request.
    Check,
    /// Open connections and warm up.
    Open,
    /// Send the requests of the measured window, which began at this time.
    Measure(Instant),
    /// Abandon the requests in flight.
    Halt,
    /// Close connections and return the results.
    Finish,
}

/// A report of a thread.
#[derive(Debug)]
pub(crate) enum Report {
    /// The thread is ready.
    Ready(Configured),
    /// The thread cannot execute the spec.
    Refused(Refusal),
    /// The order is complete.
    Done,
    /// The window is over; its last request ended at this time.
    Ended(Option<Instant>),
    /// The order failed.
    Failed(Failure),
    /// The results.
    Finished(Box<ThreadResults>),
    /// The thread ended by a panic.
    Lost,
}

/// A message to the client's main thread.
#[derive(Debug)]
pub(crate) enum Message {
    /// A report of a thread.
    Report(Report),
    /// A command with its time of arrival.
    Word(Command, Instant),
}

/// The arguments of a thread.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub spec: Arc<ClientSpec>,
    /// The transport's driver.
    pub driver: Driver,
    /// The share of the work.
    pub share: Share,
    /// The counter that numbers the connections of all threads.
    pub numbers: Arc<AtomicU32>,
    /// The thread's progress.
    pub progress: Arc<Progress>,
    /// The receiver of its reports.
    pub reports: Sender<Message>,
}

/// Runs one thread of a client. Dynamic dispatch happens once per thread; all other calls are static.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Driver(pub fn(&Job, UnboundedReceiver<Order>));

impl Driver {
    /// Creates the driver of a transport, on a runtime of its own.
    pub fn of<T: Transport>() -> Self {
        Self(run::<T>)
    }
}

impl Job {
    /// Sends a report to the main thread.
    pub fn report(&self, report: Report) {
        // The receiver is gone if the client was aborted.
        let _ = self.reports.send(Message::Report(report));
    }
}

/// Starts a thread. The thread reports `Ready` or `Refused`, and then answers every order with one report.
pub(crate) fn start(job: Job) -> std::io::Result<UnboundedSender<Order>> {
    let (orders, inbox) = unbounded_channel();
    std::thread::Builder::new().name(format!("client-{}", job.share.index)).spawn(move || {
        let last_word = ExitReport(Some(job.reports.clone()));
        (job.driver.0)(&job, inbox);
        last_word.forget();
    })?;
    Ok(orders)
}

/// Reports `Lost` on drop, unless the thread ended in order.
struct ExitReport(Option<Sender<Message>>);

impl ExitReport {
    fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for ExitReport {
    fn drop(&mut self) {
        if let Some(reports) = &self.0 {
            let _ = reports.send(Message::Report(Report::Lost));
        }
    }
}

fn run<T: Transport>(job: &Job, inbox: UnboundedReceiver<Order>) {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return job.report(Report::Refused(Refusal::failed(format!("starting a client runtime: {error}"))));
        }
    };
    let local = LocalSet::new();
    local.block_on(&runtime, obey::<T>(job, inbox));
}

async fn obey<T: Transport>(job: &Job, mut inbox: UnboundedReceiver<Order>) {
    let Job { spec, share, numbers, progress, .. } = job.clone();
    let mut engine = match Engine::<T>::build::<Timer>(spec, share, numbers, progress) {
        Ok(engine) => engine,
        Err(refusal) => return job.report(Report::Refused(refusal)),
    };
    if let Some(accounts) = engine.accounts() {
        let _ = job.progress.accounts.set(accounts.clone());
    }
    job.report(Report::Ready(engine.configured()));
    while let Some(order) = inbox.recv().await {
        let report = match order {
            Order::Check => until_halted(&mut inbox, engine.check()).await,
            Order::Open => until_halted(&mut inbox, engine.open::<Timer>()).await,
            Order::Measure(zero) => {
                let measured = tokio::select! {
                    end = engine.measure::<Timer>(zero) => Some(end),
                    _ = inbox.recv() => None,
                };
                Some(Report::Ended(measured.unwrap_or_else(|| engine.stop())))
            }
            Order::Finish => return job.report(Report::Finished(Box::new(engine.finish().await))),
            // The work to halt has just ended.
            Order::Halt => continue,
        };
        match report {
            Some(report) => job.report(report),
            None => return,
        }
    }
}

/// Runs `work` until it ends or until a further order arrives, which can only be `Halt`.
async fn until_halted(
    inbox: &mut UnboundedReceiver<Order>,
    work: impl Future<Output = Result<(), Failure>>,
) -> Option<Report> {
    tokio::select! {
        result = work => Some(result.map_or_else(Report::Failed, |()| Report::Done)),
        _ = inbox.recv() => None,
    }
}
