//! The trials of a probe: one at a time, and rate-limited for hosts of other owners.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use wirelab_endpoint::Refusal;
use wirelab_endpoint::load::{self, Client, Results};
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::Values;
use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::plan::{Plan, Trial};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{ConnectionPolicy, Pause, Schedule};
use wirelab_run::{Blocks, Counter, Pace, each_block};

use crate::args::ProbeArgs;
use crate::progress::Display;
use crate::requests::Requests;

/// Number of equal failures of a protocol in a row after which it is given up, to spare the server.
const GIVE_UP_AFTER: u32 = 2;

/// The results of the trials.
pub struct Measured {
    /// One record per trial.
    pub records: Vec<TrialRecord>,
    /// The protocols without a successful trial, with the reason.
    pub failed: IndexMap<Protocol, String>,
}

/// Runs the blocks of the plan until all are done or `stop` is set.
/// `interval` is the minimum between two requests.
pub fn measure(args: &ProbeArgs, requests: &Requests, plan: &Plan, interval: Duration, stop: &AtomicBool) -> Measured {
    let mut pace = Pace::new(interval);
    pace.rest();
    let mut trials = Trials {
        args,
        requests,
        plan,
        stop,
        interval,
        pace,
        records: Vec::new(),
        counter: Counter::new(plan.max_blocks, plan.cells.len()),
        display: Display::new(args.show.quiet),
    };
    let Ok(_) = each_block(&mut trials, 0..plan.max_blocks, Some(GIVE_UP_AFTER), stop);
    Measured { failed: failed(&trials.records, plan), records: trials.records }
}

/// The trials of a probe, one at a time.
struct Trials<'a> {
    args: &'a ProbeArgs,
    requests: &'a Requests,
    plan: &'a Plan,
    stop: &'a AtomicBool,
    interval: Duration,
    pace: Pace,
    records: Vec<TrialRecord>,
    counter: Counter,
    display: Display,
}

impl Trials<'_> {
    fn protocol(&self, cell: usize) -> Protocol {
        self.plan.cells[cell].job.protocol
    }
}

impl Blocks for Trials<'_> {
    type Error = Infallible;

    fn begin(&mut self, block: u32) -> Result<Vec<Trial>, Infallible> {
        Ok(wirelab_plan::block(self.plan, block))
    }

    fn label(&self, cell: usize) -> String {
        self.plan.cells[cell].label()
    }

    fn outcomes(&self, cell: usize) -> Vec<&Outcome> {
        predicting(&self.records, cell, |other| self.protocol(other) == self.protocol(cell))
    }

    fn show(&mut self, trial: &Trial) {
        self.display.show(&self.counter.progress(trial.block, self.label(trial.cell)));
    }

    fn pace(&mut self) -> Option<&mut Pace> {
        Some(&mut self.pace)
    }

    fn perform(&mut self, trial: &Trial) -> Result<bool, Infallible> {
        let record = perform(self.args, self.requests, self.plan, *trial, self.interval, self.stop);
        // A trial that Ctrl-C cut short is no result.
        if self.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        self.counter.count();
        self.records.push(record);
        Ok(true)
    }

    fn give_up(&mut self, trial: &Trial, outcome: Outcome) -> Result<(), Infallible> {
        self.counter.count();
        self.records.push(TrialRecord::without_window(*trial, String::new(), outcome));
        Ok(())
    }
}

/// The outcomes that predict the next trial of a cell, the newest first: those of all cells with its protocol until one
/// of them succeeds, then those of the cell alone.
fn predicting(records: &[TrialRecord], cell: usize, has_protocol: impl Fn(usize) -> bool) -> Vec<&Outcome> {
    let of_protocol: Vec<_> = records.iter().rev().filter(|record| has_protocol(record.trial.cell)).collect();
    let works = of_protocol.iter().any(|record| record.outcome == Outcome::Ok);
    let relevant = of_protocol.into_iter().filter(|record| !works || record.trial.cell == cell);
    relevant.map(|record| &record.outcome).collect()
}

/// The protocols without any successful trial, with the reason of the first failure.
fn failed(records: &[TrialRecord], plan: &Plan) -> IndexMap<Protocol, String> {
    let mut reasons: IndexMap<Protocol, Option<String>> = IndexMap::new();
    for record in records {
        let first = reasons.entry(plan.cells[record.trial.cell].job.protocol);
        match &record.outcome {
            Outcome::Ok => *first.or_default() = None,
            Outcome::Failed { reason, .. } | Outcome::Unsupported { reason } => {
                first.or_insert_with(|| Some(reason.to_string()));
            }
        }
    }
    reasons.into_iter().filter_map(|(protocol, reason)| Some((protocol, reason?))).collect()
}

/// The records of the cells that are in both plans, with the cell numbers of the second plan.
pub fn renumber(records: Vec<TrialRecord>, from: &Plan, to: &Plan) -> Vec<TrialRecord> {
    let place = |number: usize| {
        let old = &from.cells[number];
        to.cells.iter().position(|new| new.levels == old.levels && new.twin_of.is_some() == old.twin_of.is_some())
    };
    let moved = records.into_iter().filter_map(|mut record| {
        record.trial.cell = place(record.trial.cell)?;
        Some(record)
    });
    moved.collect()
}

/// The client of every protocol of the probe.
pub const CLIENT: Client = Client::Engine;

/// Runs one trial: one request on a new connection, or several on a kept one.
fn perform(
    args: &ProbeArgs,
    requests: &Requests,
    plan: &Plan,
    trial: Trial,
    interval: Duration,
    stop: &AtomicBool,
) -> TrialRecord {
    let job = &plan.cells[trial.cell].job;
    let mut spec = requests.spec(job.protocol, &args.reach, args.reach.timeout, trial.seed);
    spec.extent = job.load.extent;
    if job.load.connections == ConnectionPolicy::PerRequest {
        spec.connections = ConnectionPolicy::PerRequest;
    }
    let pause = match u64::try_from(interval.as_nanos()) {
        Ok(0) | Err(_) => Pause::None,
        Ok(ns) => Pause::Fixed { ns },
    };
    spec.schedule = Schedule::Closed { workers: 1, pause };
    let began = Instant::now();
    let result = load::run(&spec, CLIENT, None, |_| {}, stop);
    let failed = |reason: String| Outcome::failed(Blame::Server, reason);
    let (outcome, values, window_ns, configured) = match result {
        Ok(result) => match (&result.results, result.first_failure) {
            (Results::Samples(samples), None) => {
                (Outcome::Ok, wirelab_stats::summarise(samples, result.window_ns), result.window_ns, result.configured)
            }
            (_, why) => (failed(why.unwrap_or_default()), Values::default(), result.window_ns, result.configured),
        },
        Err(Refusal::Unsupported(reason)) => {
            (Outcome::Unsupported { reason: reason.into() }, Values::default(), 0, Default::default())
        }
        Err(refusal) => (failed(refusal.to_string()), Values::default(), 0, Default::default()),
    };
    TrialRecord {
        took_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        window_ns,
        values,
        client: configured,
        ..TrialRecord::without_window(trial, String::new(), outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_connections_that_fail_predict_new_ones_until_the_protocol_succeeds() {
        let record = |cell, outcome| {
            let trial = Trial { number: 0, block: 0, position: 0, cell, seed: 1 };
            TrialRecord::without_window(trial, String::new(), outcome)
        };
        let failed = Outcome::failed(Blame::Server, "refused".to_owned());
        let mut records = vec![record(2, Outcome::Ok), record(0, failed.clone()), record(1, failed.clone())];
        let predicting = |records: &[TrialRecord], cell| {
            super::predicting(records, cell, |other| other < 2).into_iter().cloned().collect::<Vec<_>>()
        };
        assert_eq!(predicting(&records, 0), [failed.clone(), failed.clone()]);
        records.push(record(0, Outcome::Ok));
        assert_eq!(predicting(&records, 0), [Outcome::Ok, failed.clone()]);
        assert_eq!(predicting(&records, 1), [failed]);
    }
}
