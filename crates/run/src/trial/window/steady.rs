//! The measured window of a single client.

use std::time::{Duration, Instant};

use wirelab_model::event::{Command, Event};
use wirelab_model::reason::Attempt;

use crate::trial::context::TrialContext;
use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::trial::verify;

impl TrialContext<'_> {
    /// Runs the measurement of the only client; returns the length of its window in nanoseconds.
    pub(crate) fn run_client(
        &self,
        client: &mut EndpointHandle,
        servers: &mut [EndpointHandle],
        limit: Duration,
    ) -> Result<u64, TrialAbort> {
        const ATTEMPT: Attempt = Attempt::Measuring;
        let begun = Instant::now();
        client.send(Command::Go)?;
        match client.wait(ATTEMPT, limit, servers, self.stop)? {
            Event::End { window_ns } => {
                if client.has_clock() {
                    verify::window(window_ns, begun.elapsed()).map_err(TrialAbort::Outcome)?;
                }
                Ok(window_ns)
            }
            other => Err(client.unexpected(&other, ATTEMPT)),
        }
    }
}
