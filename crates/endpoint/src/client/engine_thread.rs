//! A thread of a client that is the load engine of the crate `wirelab-engine`, without a runtime.

use tokio::sync::mpsc::UnboundedReceiver;
use wirelab_engine::link::Dialer;
use wirelab_engine::load::{Ended, Load};

use crate::client::threads::{Driver, Job, Order, Report};

impl Driver {
    /// Creates the driver of the load engine with the connections of one dialer.
    pub fn engine<D: Dialer>() -> Self {
        Self(run::<D>)
    }
}

fn run<D: Dialer>(job: &Job, mut orders: UnboundedReceiver<Order>) {
    let Job { spec, share, numbers, progress, .. } = job.clone();
    let mut load = match Load::<D>::new(spec, share, numbers, progress) {
        Ok(load) => load,
        Err(refusal) => return job.report(Report::Refused(refusal)),
    };
    if let Some(accounts) = load.accounts() {
        let _ = job.progress.accounts.set(accounts.clone());
    }
    job.report(Report::Ready(load.configured()));
    while let Some(order) = orders.blocking_recv() {
        // While the engine works, the only further order is `Halt`; the client is gone if the channel is closed.
        let mut halt = || !matches!(orders.try_recv(), Err(tokio::sync::mpsc::error::TryRecvError::Empty));
        let report = match order {
            Order::Check => done(load.check(&mut halt)),
            Order::Open => done(load.open(&mut halt)),
            Order::Measure(zero) => Some(load.measure(zero, &mut halt).map_or_else(Report::Failed, Report::Ended)),
            Order::Finish => return job.report(Report::Finished(Box::new(load.finish()))),
            // The work to halt has just ended.
            Order::Halt => continue,
        };
        match report {
            Some(report) => job.report(report),
            None => return,
        }
    }
}

fn done(result: Result<(), Ended>) -> Option<Report> {
    match result {
        Ok(()) => Some(Report::Done),
        Err(Ended::Failed(failure)) => Some(Report::Failed(failure)),
        Err(Ended::Halted) => None,
    }
}
