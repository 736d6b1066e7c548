//! Requests that sidecars carried.

use std::sync::atomic::AtomicBool;

use wirelab_model::event::{Command, Event};
use wirelab_model::reason::Attempt;

use crate::limits::Limits;
use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};

/// Requests carried by each sidecar; `None` for a sidecar that was stopped before the count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Carried {
    pub of_clients: u64,
    /// In server order.
    pub of_servers: Vec<Option<u64>>,
}

/// Queries the sidecars for their number of carried requests.
pub(crate) fn count(handles: &mut [EndpointHandle], limits: Limits, stop: &AtomicBool) -> Result<Carried, TrialAbort> {
    let attempt = Attempt::CountingCarried;
    let mut counts = Vec::new();
    for handle in handles {
        if handle.is_stopped() {
            counts.push(None);
            continue;
        }
        handle.send(Command::Count)?;
        counts.push(match handle.wait(attempt, limits.slack, &mut [], stop)? {
            Event::Counted { requests } => Some(requests),
            other => return Err(handle.unexpected(&other, attempt)),
        });
    }
    let of_clients = counts.pop().flatten().unwrap_or_default();
    Ok(Carried { of_clients, of_servers: counts })
}
