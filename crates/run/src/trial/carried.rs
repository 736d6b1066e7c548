//! Requests that sidecars carried.

use std::sync::atomic::AtomicBool;

use wirelab_model::event::{Command, Event};
use wirelab_model::reason::Attempt;

use crate::limits::Limits;
use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};

/// Requests that each sidecar carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Carried {
    pub of_clients: u64,
    /// In server order; `None` for a sidecar that was stopped before the count.
    pub of_servers: Vec<Option<u64>>,
}

/// Asks the sidecars how many requests they carried. The clients' sidecar is the last one.
pub(crate) fn count(handles: &mut [EndpointHandle], limits: Limits, stop: &AtomicBool) -> Result<Carried, TrialAbort> {
    const ATTEMPT: Attempt = Attempt::CountingCarried;
    let requests = |handle: &mut EndpointHandle| {
        handle.send(Command::Count)?;
        match handle.wait(ATTEMPT, limits.slack, &mut [], stop)? {
            Event::Counted { requests } => Ok(requests),
            other => Err(handle.unexpected(&other, ATTEMPT)),
        }
    };
    let (of_clients, of_servers) = handles.split_last_mut().expect("a mesh has the clients' sidecar");
    let of_servers = of_servers.iter_mut().map(|handle| {
        let is_stopped = handle.is_stopped();
        (!is_stopped).then(|| requests(handle)).transpose()
    });
    let of_servers = of_servers.collect::<Result<_, _>>()?;
    Ok(Carried { of_clients: requests(of_clients)?, of_servers })
}
