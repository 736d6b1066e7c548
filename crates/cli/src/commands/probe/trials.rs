//! The trials of a probe: one at a time, and rate-limited for hosts of other owners.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wirelab_endpoint::Refusal;
use wirelab_endpoint::load::{self, Results};
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::Values;
use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::plan::{Plan, Trial};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{ConnectionPolicy, Pause, Schedule};
use wirelab_plan::polite;
use wirelab_run::Pace;

use crate::args::ProbeArgs;
use crate::target::Target;

/// The results of the trials.
pub struct Measured {
    /// One record per trial.
    pub records: Vec<TrialRecord>,
    /// The protocols without a successful trial in the first block, with the reason; they are not tried again.
    pub failed: IndexMap<Protocol, String>,
}

/// Runs the blocks of the plan until all are done or `stop` is set.
pub fn measure(args: &ProbeArgs, target: &Target, plan: &Plan, stop: &AtomicBool) -> Measured {
    let bar = progress(args, plan);
    let interval = if args.i_own_this_host { Duration::ZERO } else { polite::INTERVAL };
    let mut pace = Pace::new(interval);
    pace.rest();
    let mut measured = Measured { records: Vec::new(), failed: IndexMap::new() };
    for number in 0..plan.max_blocks {
        for trial in wirelab_plan::block(plan, number) {
            let cell = &plan.cells[trial.cell];
            bar.inc(1);
            if measured.failed.contains_key(&cell.job.protocol) {
                continue;
            }
            bar.set_message(cell.label());
            pace.wait(stop);
            if stop.load(Ordering::Relaxed) {
                bar.finish_and_clear();
                return measured;
            }
            let record = perform(args, target, plan, trial, interval, stop);
            pace.rest();
            // A trial that Ctrl-C cut short is no result.
            if !stop.load(Ordering::Relaxed) {
                measured.records.push(record);
            }
        }
        measured.give_up(plan);
    }
    bar.finish_and_clear();
    measured
}

impl Measured {
    /// Adds the protocols without any successful trial so far. Called at the end of each block.
    fn give_up(&mut self, plan: &Plan) {
        let mut reasons: IndexMap<Protocol, Option<String>> = IndexMap::new();
        for record in &self.records {
            let last = reasons.entry(plan.cells[record.trial.cell].job.protocol).or_insert(Some(String::new()));
            match &record.outcome {
                Outcome::Ok => *last = None,
                Outcome::Failed { reason, .. } | Outcome::Unsupported { reason } => {
                    if let Some(last) = last {
                        *last = reason.to_string();
                    }
                }
            }
        }
        let failed = reasons.into_iter().filter_map(|(protocol, reason)| Some((protocol, reason?)));
        self.failed.extend(failed);
    }
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

/// Runs one trial: one request on a new connection, or several on a kept one.
fn perform(
    args: &ProbeArgs,
    target: &Target,
    plan: &Plan,
    trial: Trial,
    interval: Duration,
    stop: &AtomicBool,
) -> TrialRecord {
    let job = &plan.cells[trial.cell].job;
    let mut spec = target.spec(job.protocol, &args.reach, args.reach.timeout, trial.seed);
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
    let result = load::run(&spec, |_| {}, stop);
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
        trial,
        at: String::new(),
        took_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        outcome,
        window_ns,
        values,
        results: None,
        server: Default::default(),
        client: configured,
        timeline: None,
        clients: Vec::new(),
        profile: Vec::new(),
        warnings: Vec::new(),
    }
}

fn progress(args: &ProbeArgs, plan: &Plan) -> ProgressBar {
    let target = if args.show.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(u64::from(plan.max_blocks) * plan.cells.len() as u64), target);
    let style = ProgressStyle::with_template("{elapsed_precise} {wide_bar:.cyan/dim} {eta} left {msg}");
    bar.with_style(style.expect("the template is valid").progress_chars("━━─"))
}
