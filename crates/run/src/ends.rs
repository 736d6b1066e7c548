//! The ends of the clients of a trial, several at a time, because where clients are in pods nearly all of an end is waiting: each is told
//! to write its results, is heard, and ends.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use wirelab_lab::{Usage, many};
use wirelab_model::event::{Command, Configured, Event};
use wirelab_model::transport::TransportReport;

use crate::crowd::{LOOK_EVERY, Said, listened};
use crate::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::limits::Limits;

const ATTEMPT: &str = "closing its connections and writing its results";

/// The clients of a trial. Dropping them kills those that still run.
pub(crate) struct Clients(Vec<EndpointHandle>);

impl Clients {
    pub(crate) const fn new(handles: Vec<EndpointHandle>) -> Self {
        Self(handles)
    }
}

impl Deref for Clients {
    type Target = [EndpointHandle];

    fn deref(&self) -> &[EndpointHandle] {
        &self.0
    }
}

impl DerefMut for Clients {
    fn deref_mut(&mut self) -> &mut [EndpointHandle] {
        &mut self.0
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        many::drop_all(std::mem::take(&mut self.0));
    }
}

/// What a client leaves.
pub(crate) struct End {
    pub configured: Configured,
    pub transport: Option<Box<TransportReport>>,
    pub usage: Option<Usage>,
}

/// Why there is none.
enum Fault {
    /// It said this, or nothing, instead of `done`. What it means depends on the servers.
    Said(Box<Said>),
    /// It did not end as it should.
    Ending(TrialAbort),
}

/// Lets all clients write their results and end; gives what each leaves, in their order.
///
/// # Errors
/// If one of them does anything else, or a server does anything; the blame is that of the first one in time.
pub(crate) fn end_all(
    clients: &mut [EndpointHandle],
    others: &mut [EndpointHandle],
    limits: Limits,
    stop: &AtomicBool,
) -> Result<Vec<End>, TrialAbort> {
    for client in clients.iter_mut() {
        client.send(Command::Finish)?;
    }
    let (enough, first) = (AtomicBool::new(false), Mutex::new(None));
    let ended = thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let (enough, first) = (&enough, &first);
        let numbered: Vec<_> = clients.iter_mut().enumerate().collect();
        scope.spawn(move || {
            let ended = many::each(numbered, |(number, client)| {
                end(client, limits, enough).map_err(|fault| {
                    first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((number, fault));
                    enough.store(true, Ordering::Relaxed);
                })
            });
            // Nobody listens any more where a server failed first.
            let _ = tell.send(ended);
        });
        let ended = watched(&told, others, stop);
        enough.store(true, Ordering::Relaxed);
        ended
    });
    let fault = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (ended?, fault) {
        (Ok(ends), _) => Ok(ends),
        (Err(()), Some((_, Fault::Ending(cut)))) => Err(cut),
        // Its blame may be the servers', which only now can be asked.
        (Err(()), Some((number, Fault::Said(said)))) => {
            Err(clients[number].fault(*said, ATTEMPT, limits.finish, others))
        }
        (Err(()), None) => unreachable!("whoever fails says why"),
    }
}

fn end(client: &mut EndpointHandle, limits: Limits, enough: &AtomicBool) -> Result<End, Fault> {
    match listened(client, limits.finish, enough) {
        Ok(Event::Done { configured, transport, .. }) => {
            let exit = client.end("ending after `done`", limits.exit).map_err(Fault::Ending)?;
            Ok(End { configured, transport, usage: exit.usage })
        }
        said => Err(Fault::Said(Box::new(said))),
    }
}

/// Waits for the ends; meanwhile looks at the servers, and whether the user wants to stop.
fn watched<T>(ended: &mpsc::Receiver<T>, others: &mut [EndpointHandle], stop: &AtomicBool) -> Result<T, TrialAbort> {
    loop {
        match ended.recv_timeout(LOOK_EVERY) {
            Ok(ended) => return Ok(ended),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("whoever ends the clients tells how that went"),
        }
        if stop.load(Ordering::Relaxed) {
            return Err(TrialAbort::Interrupted);
        }
        for other in others.iter_mut() {
            other.stays_silent(ATTEMPT, Duration::ZERO)?;
        }
    }
}
