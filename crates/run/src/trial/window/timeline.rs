//! The measured window of a trial with a timeline: executes actions when they are due, and polls the servers' request
//! counters.
//!
//! Every process runs before the window begins. Processes for later actions wait, ready but without a connection, so
//! that an action takes no extra time. A client that finished early stays idle until the window ends, for the
//! observers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wirelab_lab::{Arena, LabError};
use wirelab_model::event::{Command, Event};
use wirelab_model::outcome::Blame;
use wirelab_model::plan::{Job, Reach};
use wirelab_model::reason::{Attempt, Reason};
use wirelab_model::timeline::{
    ActionRecord, Answered, ClientRecord, Lifetimes, ServerRecord, TimelineRecord, TimelineStep,
};

use crate::exporter::TrialExporter;
use crate::limits::Limits;
use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::trial::membership::Membership;
use crate::trial::verify::{self, Delays};

/// Interval between queries of the servers' request counters.
const COUNT_INTERVAL: Duration = Duration::from_millis(100);

/// Tolerated delay of an action's start, and its maximum duration.
const MAX_DELAY: Duration = Duration::from_millis(200);
const MAX_DURATION: Duration = Duration::from_secs(2);

const ATTEMPT: Attempt = Attempt::Measuring;

/// Participants and state of the window.
pub(crate) struct TimelineRun<'a> {
    pub arena: &'a mut dyn Arena,
    pub job: &'a Job,
    pub lifetimes: &'a Lifetimes,
    /// All servers of the course, then the sidecars (that of the clients last) or the control plane, if any; all
    /// ready.
    pub others: &'a mut [EndpointHandle],
    /// All clients of the course: the first one is warm, the others are ready.
    pub clients: &'a mut [EndpointHandle],
    /// Ports of the servers.
    pub ports: &'a [u16],
    /// Server list of the last process in `others`.
    pub membership: Option<&'a Membership>,
    pub limits: Limits,
    pub stop: &'a AtomicBool,
    /// Record so far; kept if the trial fails.
    pub played: &'a mut TimelineRecord,
    /// Export to Prometheus.
    pub exporter: Option<&'a TrialExporter<'a>>,
    /// The last change of servers that clients have not completed yet.
    pub changing: Option<PendingChange>,
}

/// A change of servers that takes effect asynchronously, while requests continue.
pub(crate) struct PendingChange {
    /// Index of its action.
    action: usize,
    name: String,
    /// Servers to stop once no client finds them.
    stopped: Vec<u32>,
}

impl TimelineRun<'_> {
    /// Runs the whole window, to the end of every client's requests.
    pub(crate) fn run(&mut self) -> Result<(), TrialAbort> {
        let mut clock = Clock { begun: Instant::now(), skipped: Duration::ZERO };
        self.played.servers = vec![ServerRecord::default(); self.ports.len()];
        let first: Vec<_> = (0..self.job.server_count()).collect();
        self.record_serving(&first, 0);
        // No request is in flight yet.
        self.count(&clock)?;
        self.start_client(0, &clock)?;
        let lifetimes = self.lifetimes;
        for step in &lifetimes.steps {
            self.poll_until(step.at_ns, &mut clock)?;
            self.execute(step, &clock)?;
        }
        self.poll_until(lifetimes.window_ns, &mut clock)?;
        // Clients that began late still run. Responses from here on belong to no window, for servers and clients.
        self.count(&clock)?;
        self.require_completed_change(None)?;
        self.end_all(&(0..self.clients.len()).collect::<Vec<_>>(), &clock)?;
        self.count(&clock)
    }

    /// Polls all processes until the given time.
    fn poll_until(&mut self, until_ns: u64, clock: &mut Clock) -> Result<(), TrialAbort> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(TrialAbort::Interrupted);
            }
            let now = clock.now();
            let last = self.played.answered.last().map_or(0, |answered| answered.at_ns);
            let due = last + COUNT_INTERVAL.as_nanos() as u64;
            if now >= due {
                self.count(clock)?;
            }
            self.complete_change(clock)?;
            if now >= until_ns {
                return Ok(());
            }
            for other in self.others.iter_mut() {
                other.expect_no_event(ATTEMPT, Duration::ZERO)?;
            }
            for number in 1..self.clients.len() {
                self.poll_client(number, Duration::ZERO, clock)?;
            }
            let slice = Duration::from_nanos(until_ns.min(due.max(now + 1)) - now);
            self.poll_client(0, slice, clock)?;
            // Without a clock, the wait takes no real time.
            if !self.clients[0].has_clock() {
                clock.skipped += slice;
            }
        }
    }

    /// Reads the next event of a client, which may only be its end.
    fn poll_client(&mut self, number: usize, timeout: Duration, clock: &Clock) -> Result<(), TrialAbort> {
        match self.clients[number].poll(ATTEMPT, timeout, self.others)? {
            None => Ok(()),
            Some(event) => self.record_end(number, &event, clock),
        }
    }

    fn execute(&mut self, step: &TimelineStep, clock: &Clock) -> Result<(), TrialAbort> {
        let began_ns = clock.now();
        if let Some(exporter) = self.exporter {
            exporter.action(&step.name);
        }
        // Responses from here on belong to the next part.
        self.count(clock)?;
        let mut record = ActionRecord { name: step.name.clone(), due_ns: step.at_ns, began_ns, took_ns: 0 };
        let done = self.apply(step, began_ns, clock);
        record.took_ns = clock.now() - began_ns;
        if let Some(exporter) = self.exporter {
            exporter.update(self.played);
        }
        let late = lateness(&record);
        self.played.actions.push(record);
        done?;
        late.map_or(Ok(()), |reason| Err(TrialAbort::failed(Blame::Lab, reason)))
    }

    fn apply(&mut self, step: &TimelineStep, began_ns: u64, clock: &Clock) -> Result<(), TrialAbort> {
        let failed = |error| action_failed(&step.name, error);
        // A client that resolves the name once needs the previous change to be complete.
        let reach = self.job.servers().map(|own| &own.reach);
        let resolves_once = reach == Some(&Reach::Headless { resolves_again: false }) && !step.beginning.is_empty();
        if step.serving.is_some() || resolves_once {
            self.require_completed_change(Some(&step.name))?;
        }
        if let Some(number) = step.killed {
            self.pod_handles(number).for_each(EndpointHandle::kill);
        }
        if let Some(serving) = &step.serving {
            match (self.membership, self.others.last_mut()) {
                (Some(membership), Some(reader)) => membership.update(reader, serving, self.limits, self.stop)?,
                _ => {
                    let port = |number: &u32| (*number, self.ports[*number as usize]);
                    let reached: Vec<_> = serving.iter().map(port).collect();
                    self.arena.reach(&reached).map_err(failed)?;
                }
            }
            self.record_serving(serving, began_ns);
            let (action, stopped) = (self.played.actions.len(), step.stopped.clone());
            self.changing = Some(PendingChange { action, name: step.name.clone(), stopped });
            self.complete_change(clock)?;
        }
        self.end_all(&step.ending, clock)?;
        for client in &step.beginning {
            self.clients[*client].send(Command::Go)?;
        }
        for client in &step.beginning {
            let attempt = Attempt::WarmingUp;
            match self.clients[*client].wait(attempt, self.limits.slack, self.others, self.stop)? {
                Event::Warm { .. } => self.start_client(*client, clock)?,
                other => return Err(self.clients[*client].unexpected(&other, attempt)),
            }
        }
        Ok(())
    }

    /// Completes the last change of servers, once clients find them.
    fn complete_change(&mut self, clock: &Clock) -> Result<(), TrialAbort> {
        let Some(PendingChange { name, .. }) = &self.changing else { return Ok(()) };
        if !self.arena.is_reached().map_err(|error| action_failed(name, error))? {
            return Ok(());
        }
        let Some(PendingChange { action, stopped, .. }) = self.changing.take() else { return Ok(()) };
        let (limits, stop) = (self.limits, self.stop);
        for number in stopped {
            self.pod_handles(number).try_for_each(|handle| handle.stop(limits.exit, stop))?;
        }
        // The current action has no record yet.
        if let Some(record) = self.played.actions.get_mut(action) {
            record.took_ns = clock.now() - record.began_ns;
        }
        Ok(())
    }

    /// Fails if the last change of servers is incomplete before the next action, or before the end of the window.
    fn require_completed_change(&self, before: Option<&str>) -> Result<(), TrialAbort> {
        let Some(PendingChange { name, .. }) = &self.changing else { return Ok(()) };
        let (action, before) = (name.clone(), before.map(str::to_owned));
        Err(TrialAbort::failed(Blame::Lab, Reason::ServersNotFound { action, before }))
    }

    /// The handles of a server and its sidecar, if any: they start and stop together.
    fn pod_handles(&mut self, number: u32) -> impl Iterator<Item = &mut EndpointHandle> {
        let (servers, others) = self.others.split_at_mut(self.ports.len());
        let sidecar = others.get_mut(number as usize).filter(|_| self.job.sidecar().is_some());
        servers.get_mut(number as usize).into_iter().chain(sidecar)
    }

    /// Starts the measurement of a client.
    fn start_client(&mut self, number: usize, clock: &Clock) -> Result<(), TrialAbort> {
        let from_ns = clock.now();
        self.clients[number].send(Command::Go)?;
        self.played.clients.push(ClientRecord { from_ns, ..ClientRecord::default() });
        Ok(())
    }

    /// Waits until the requests of these clients have ended. Reads the end of each client promptly, because its
    /// reported window is checked against the time that passed here.
    fn end_all(&mut self, numbers: &[usize], clock: &Clock) -> Result<(), TrialAbort> {
        const SLICE: Duration = Duration::from_millis(20);
        let timeouts = self.job.load.timeouts;
        let request = Duration::from_nanos(timeouts.connect_ns.saturating_add(timeouts.request_ns));
        let limit = self.limits.slack.saturating_add(request);
        let begun = Instant::now();
        loop {
            let has_ended = |number: usize| self.played.clients.get(number).is_some_and(|client| client.window_ns > 0);
            let open: Vec<_> = numbers.iter().copied().filter(|number| !has_ended(*number)).collect();
            let Some((first, others)) = open.split_first() else { return Ok(()) };
            if self.stop.load(Ordering::Relaxed) {
                return Err(TrialAbort::Interrupted);
            }
            // Without a clock, all clients take equally long.
            if begun.elapsed() >= limit || !self.clients[*first].has_clock() {
                let event = self.clients[*first].wait(ATTEMPT, limit, self.others, self.stop)?;
                self.record_end(*first, &event, clock)?;
                continue;
            }
            for other in self.others.iter_mut() {
                other.expect_no_event(ATTEMPT, Duration::ZERO)?;
            }
            for number in others {
                self.poll_client(*number, Duration::ZERO, clock)?;
            }
            self.poll_client(*first, SLICE, clock)?;
        }
    }

    fn record_end(&mut self, number: usize, event: &Event, clock: &Clock) -> Result<(), TrialAbort> {
        let handle = &self.clients[number];
        let (Event::End { window_ns }, Some(client)) = (event, self.played.clients.get_mut(number)) else {
            return Err(handle.unexpected(event, ATTEMPT));
        };
        // A trial without requests has an empty window; the check of the results reports it.
        client.window_ns = (*window_ns).max(1);
        if handle.has_clock() {
            let passed = Duration::from_nanos(clock.now() - client.from_ns);
            // Actions delay the reading of `end`.
            let delays = Delays::Unknown { clients: self.clients.len() };
            verify::window(*window_ns, passed, delays).map_err(TrialAbort::Outcome)?;
        }
        Ok(())
    }

    /// Queries the servers for their number of answered requests.
    fn count(&mut self, clock: &Clock) -> Result<(), TrialAbort> {
        let last = self.played.answered.last().map(|answered| answered.requests.clone());
        let mut requests = last.unwrap_or_else(|| vec![0; self.ports.len()]);
        let servers = &mut self.others[..self.ports.len()];
        for server in servers.iter_mut().filter(|server| !server.is_stopped()) {
            server.send(Command::Count)?;
        }
        for (number, server) in servers.iter_mut().enumerate().filter(|(_, server)| !server.is_stopped()) {
            let attempt = Attempt::CountingAnswers;
            match server.wait(attempt, self.limits.slack, &mut [], self.stop)? {
                Event::Counted { requests: count } => requests[number] = count,
                other => return Err(server.unexpected(&other, attempt)),
            }
        }
        self.played.answered.push(Answered { at_ns: clock.now(), requests });
        Ok(())
    }

    /// Records which servers are in service from `at_ns` on.
    fn record_serving(&mut self, serving: &[u32], at_ns: u64) {
        for (number, server) in (0..).zip(&mut self.played.servers) {
            let (is_there, was_there) = (serving.contains(&number), server.from_ns.is_some());
            if is_there && !was_there {
                server.from_ns = Some(at_ns);
            } else if !is_there && was_there && server.until_ns.is_none() {
                server.until_ns = Some(at_ns);
            }
        }
    }
}

/// Time in the window. In labs without a clock, waits are added as if they had happened.
struct Clock {
    begun: Instant,
    skipped: Duration,
}

impl Clock {
    fn now(&self) -> u64 {
        (self.begun.elapsed() + self.skipped).as_nanos() as u64
    }
}

/// Why a late or slow action invalidates the trial, if it does.
fn lateness(record: &ActionRecord) -> Option<Reason> {
    let ActionRecord { name, due_ns, began_ns, took_ns } = record;
    let (late_ns, took_ns, action) = (began_ns.saturating_sub(*due_ns), *took_ns, name.clone());
    let [most_late, longest] = [MAX_DELAY, MAX_DURATION].map(|limit| limit.as_nanos() as u64);
    if late_ns > most_late {
        Some(Reason::LateAction { action, late_ns, limit_ns: most_late })
    } else if took_ns > longest {
        Some(Reason::SlowAction { action, took_ns, limit_ns: longest })
    } else {
        None
    }
}

fn action_failed(action: &str, error: LabError) -> TrialAbort {
    let (action, cause) = (action.to_owned(), Box::new(error.into()));
    TrialAbort::failed(Blame::Lab, Reason::Action { action, cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_and_slow_actions_are_refused() {
        let of = |began, took| {
            let ms = |ms: u64| ms * 1_000_000;
            lateness(&ActionRecord { name: "T2".to_owned(), due_ns: ms(500), began_ns: ms(began), took_ns: ms(took) })
        };
        assert_eq!(of(500, 0), None);
        assert_eq!(of(700, 2000), None);
        assert!(of(701, 0).unwrap().to_string().contains("the action `T2` began 201.0ms late"));
        assert!(of(500, 2001).unwrap().to_string().contains("took 2.0s"));
    }
}
