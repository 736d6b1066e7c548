//! The measured window of a single client.

use std::time::{Duration, Instant};

use wirelab_model::event::{Command, Event};
use wirelab_model::plan::Job;
use wirelab_model::reason::Attempt;
use wirelab_model::spec::{Pause, Schedule};

use crate::trial::context::TrialContext;
use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::trial::run_queue::RunQueue;
use crate::trial::verify::{self, Delays};

impl TrialContext<'_> {
    /// Runs the measurement of the only client; returns the length of its window in nanoseconds.
    ///
    /// After its last response, the client may be idle for `longest_idle` before it says `end`; `None` if this is
    /// unknown.
    pub(crate) fn run_client(
        &self,
        longest_idle: Option<Duration>,
        client: &mut EndpointHandle,
        servers: &mut [EndpointHandle],
        limit: Duration,
    ) -> Result<u64, TrialAbort> {
        const ATTEMPT: Attempt = Attempt::Measuring;
        let run_queue = RunQueue::begin(client.pid());
        let begun = Instant::now();
        client.send(Command::Go)?;
        match client.wait(ATTEMPT, limit, servers, self.stop)? {
            Event::End { window_ns } => {
                let passed = begun.elapsed();
                if client.has_clock() {
                    let waited = run_queue.and_then(|run_queue| run_queue.waited());
                    let waited = waited.zip(longest_idle).map(|(waited, idle)| waited + idle);
                    verify::window(window_ns, passed, Delays::of(waited, 1)).map_err(TrialAbort::Outcome)?;
                }
                Ok(window_ns)
            }
            other => Err(client.unexpected(&other, ATTEMPT)),
        }
    }
}

/// The longest time between the last response and the `end` of a client; `None` if it is unknown. A client may make one
/// more pause. Over an emulated link, it may wait for the end of a connection.
pub(crate) fn longest_idle(job: &Job) -> Option<Duration> {
    let pause = match job.load.schedule {
        Schedule::Closed { pause: Pause::Fixed { ns }, .. } => ns,
        Schedule::Closed { pause: Pause::Uniform { max_ns, .. }, .. } => max_ns,
        Schedule::Closed { pause: Pause::None, .. } | Schedule::Open { .. } => 0,
    };
    job.topology.link.is_none().then(|| Duration::from_nanos(pause))
}
