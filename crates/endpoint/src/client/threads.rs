//! The client's threads: each runs one engine on a runtime of its own and shares nothing with the others while requests
//! are sent.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::Sender;
use std::time::Instant;

use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;
use wirelab_model::event::{Command, Configured};
use wirelab_model::spec::ClientSpec;

use crate::client::engine::{Engine, Part};
use crate::client::schedule::Share;
use crate::client::thread_state::Progress;
use crate::client::transport::{Failure, Transport};
use crate::refusal::Refusal;
use crate::wait::Timer;

/// What a thread is told to do next.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// Send the check request.
    Check,
    /// Open connections and warm up.
    Open,
    /// Send the requests of the measured window, which began at this moment.
    Measure(Instant),
    /// Abandon what is under way.
    Halt,
    /// Close connections and hand over the results.
    Finish,
}

/// What a thread says.
#[derive(Debug)]
pub(crate) enum Report {
    /// It can begin.
    Ready(Configured),
    /// It cannot.
    Refused(Refusal),
    /// It did what it was told.
    Done,
    /// Its last request of the window ended then.
    Ended(Option<Instant>),
    /// What it was told to do failed.
    Failed(Failure),
    /// Its results.
    Finished(Box<Part>),
    /// It ended without a word, by a panic.
    Lost,
}

/// What comes in while a client works.
#[derive(Debug)]
pub(crate) enum Message {
    /// A thread says something.
    Report(Report),
    /// A word came in, at this moment.
    Word(Command, Instant),
}

/// What a thread is started with.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// What to do.
    pub spec: Arc<ClientSpec>,
    /// By which transport.
    pub driver: Driver,
    /// How much of it.
    pub share: Share,
    /// Numbers the connections of all threads.
    pub numbers: Arc<AtomicU32>,
    /// Where it shows how far it is.
    pub progress: Arc<Progress>,
    /// Where it reports to.
    pub reports: Sender<Message>,
}

/// Runs the engine of one thread with one transport. The choice is made once per thread, so that the engine's own calls
/// are bound when it is compiled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Driver(fn(Job, UnboundedReceiver<Order>) -> Drive);

type Drive = Pin<Box<dyn Future<Output = ()>>>;

impl Driver {
    /// The driver of a transport.
    pub fn of<T: Transport>() -> Self {
        Self(|job, inbox| Box::pin(async move { obey::<T>(&job, inbox).await }))
    }
}

impl Job {
    fn report(&self, report: Report) {
        // Nobody listens any more where the client gave up.
        let _ = self.reports.send(Message::Report(report));
    }
}

/// Starts a thread; it reports `Ready` or `Refused`, and then answers every order with one report.
pub(crate) fn start(job: Job) -> std::io::Result<UnboundedSender<Order>> {
    let (orders, inbox) = unbounded_channel();
    std::thread::Builder::new().name(format!("client-{}", job.share.index)).spawn(move || {
        let last_word = LastWord(Some(job.reports.clone()));
        run(&job, inbox);
        last_word.forget();
    })?;
    Ok(orders)
}

/// Tells that the thread is gone, unless it ended in order.
struct LastWord(Option<Sender<Message>>);

impl LastWord {
    fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for LastWord {
    fn drop(&mut self) {
        if let Some(reports) = &self.0 {
            let _ = reports.send(Message::Report(Report::Lost));
        }
    }
}

fn run(job: &Job, inbox: UnboundedReceiver<Order>) {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return job.report(Report::Refused(Refusal::failed(format!("starting a client runtime: {error}"))));
        }
    };
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        (job.driver.0)(job.clone(), inbox).await;
    });
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
            Order::Check => halting(&mut inbox, engine.check()).await,
            Order::Open => halting(&mut inbox, engine.open::<Timer>()).await,
            Order::Measure(zero) => {
                let measured = tokio::select! {
                    end = engine.measure::<Timer>(zero) => Some(end),
                    _ = inbox.recv() => None,
                };
                Some(Report::Ended(measured.unwrap_or_else(|| engine.stop())))
            }
            Order::Finish => return job.report(Report::Finished(Box::new(engine.finish().await))),
            // What it would halt has just ended.
            Order::Halt => continue,
        };
        match report {
            Some(report) => job.report(report),
            None => return,
        }
    }
}

/// Does a piece of work, unless a further order comes in between, which can only be to halt.
async fn halting(
    inbox: &mut UnboundedReceiver<Order>,
    work: impl Future<Output = Result<(), Failure>>,
) -> Option<Report> {
    tokio::select! {
        result = work => Some(result.map_or_else(Report::Failed, |()| Report::Done)),
        _ = inbox.recv() => None,
    }
}
