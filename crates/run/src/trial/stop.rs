//! Ends the processes of a trial: clients in parallel, because most of this time is waiting in pods; then sidecars or
//! the control plane, then servers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use wirelab_lab::{LabError, Usage, many};
use wirelab_model::event::{Command, Configured, Event};
use wirelab_model::reason::Attempt;
use wirelab_model::transport::TransportReport;

use crate::limits::Limits;
use crate::trial::carried;
use crate::trial::clients::Clients;
use crate::trial::context::{Facts, TrialContext};
use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::trial::start::Serving;
use crate::trial::window::shared::{ReadResult, SERVER_CHECK_INTERVAL, read_event};

const ATTEMPT: Attempt = Attempt::Finishing;

/// Reports of a client at its end.
pub(crate) struct End {
    pub configured: Configured,
    pub transport: Option<Box<TransportReport>>,
    pub usage: Option<Usage>,
}

/// Why a client has no [`End`].
enum Fault {
    /// The result of the read instead of `done`. Its meaning depends on the servers.
    Read(Box<ReadResult>),
    /// It did not exit properly.
    Exit(TrialAbort),
}

/// Ends all clients; returns their reports in client order.
///
/// # Errors
/// If a client does not end properly, or a server prints an event or ends; the first failure in time counts.
pub(crate) fn end_all(
    clients: &mut [EndpointHandle],
    others: &mut [EndpointHandle],
    limits: Limits,
    stop: &AtomicBool,
) -> Result<Vec<End>, TrialAbort> {
    for client in clients.iter_mut() {
        client.send(Command::Finish)?;
    }
    let (stop_reading, first) = (AtomicBool::new(false), Mutex::new(None));
    let ended = thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let (stop_reading, first) = (&stop_reading, &first);
        let numbered: Vec<_> = clients.iter_mut().enumerate().collect();
        let end_each = move || {
            let ended = many::each(numbered, |(number, client)| {
                end(client, limits, stop_reading).map_err(|fault| {
                    first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((number, fault));
                    stop_reading.store(true, Ordering::Relaxed);
                })
            });
            // If a server failed first, the receiver is gone.
            let _ = sender.send(ended);
        };
        let thread = thread::Builder::new().spawn_scoped(scope, end_each);
        thread.map_err(|error| LabError::thread("that ends the clients", error))?;
        let ended = wait_for_ends(&receiver, others, stop);
        stop_reading.store(true, Ordering::Relaxed);
        ended
    });
    let fault = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (ended?, fault) {
        (Ok(ends), _) => Ok(ends),
        (Err(()), Some((_, Fault::Exit(cut)))) => Err(cut),
        // Determining the blame needs the servers, which the threads did not have.
        (Err(()), Some((number, Fault::Read(read)))) => {
            Err(clients[number].abort(*read, ATTEMPT, limits.finish, others))
        }
        (Err(()), None) => unreachable!("a failed client stores its fault"),
    }
}

fn end(client: &mut EndpointHandle, limits: Limits, stop_reading: &AtomicBool) -> Result<End, Fault> {
    match read_event(client, limits.finish, stop_reading) {
        Ok(Event::Done { configured, transport, .. }) => {
            let exit = client.end(Attempt::Ending, limits.exit).map_err(Fault::Exit)?;
            Ok(End { configured, transport, usage: exit.usage })
        }
        read => Err(Fault::Read(Box::new(read))),
    }
}

/// Waits for the ends; meanwhile checks the servers and stop requests.
fn wait_for_ends<T>(
    ended: &mpsc::Receiver<T>,
    others: &mut [EndpointHandle],
    stop: &AtomicBool,
) -> Result<T, TrialAbort> {
    loop {
        match ended.recv_timeout(SERVER_CHECK_INTERVAL) {
            Ok(ended) => return Ok(ended),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("the thread sends its result before it ends"),
        }
        if stop.load(Ordering::Relaxed) {
            return Err(TrialAbort::Interrupted);
        }
        for other in others.iter_mut() {
            other.expect_no_event(ATTEMPT, Duration::ZERO)?;
        }
    }
}

impl TrialContext<'_> {
    /// Ends the clients; returns their resource usage in total.
    pub(crate) fn end_clients(
        &self,
        clients: &mut Clients,
        serving: &mut Serving,
        facts: &mut Facts,
    ) -> Result<Option<Usage>, TrialAbort> {
        let (mut usages, mut transports) = (Vec::new(), Vec::new());
        for End { configured, transport, usage } in end_all(clients, &mut serving.handles, self.limits, self.stop)? {
            facts.client.extend(configured);
            transports.push(transport);
            usages.push(usage);
        }
        facts.client_transport = transports.into_iter().reduce(merge_transport).flatten();
        Ok(usages.into_iter().reduce(merge_usage).flatten())
    }

    /// Stops sidecars or control plane in reverse order of start, then the servers. Returns the servers' resource
    /// usage in total.
    pub(crate) fn end_servers(&self, serving: &mut Serving, facts: &mut Facts) -> Result<Option<Usage>, TrialAbort> {
        const ATTEMPT: Attempt = Attempt::Stopping;
        let (limits, stop) = (self.limits, self.stop);
        let (servers, rest) = serving.handles.split_at_mut(serving.ports.len());
        if serving.mesh.is_some() {
            facts.carried = Some(carried::count(rest, limits, stop)?);
        }
        for other in rest.iter_mut().rev().filter(|other| !other.is_stopped()) {
            other.stop(limits.exit, stop)?;
        }
        let (mut usages, mut transports, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for server in servers {
            // The usage of a server that ended earlier is unknown.
            if server.is_stopped() {
                usages.push(None);
                transports.push(None);
                counts.push(None);
                continue;
            }
            server.send(Command::Stop)?;
            match server.wait(ATTEMPT, limits.exit, &mut [], stop)? {
                Event::Done { requests, configured, transport, .. } => {
                    facts.server.extend(configured);
                    transports.push(transport);
                    counts.push(requests);
                }
                other => return Err(server.unexpected(&other, ATTEMPT)),
            }
            usages.push(server.end(Attempt::Ending, limits.exit)?.usage);
        }
        // Without a server, the count is missing, not 0.
        facts.answered = counts.into_iter().reduce(|sum, one| Some(sum? + one?)).flatten();
        facts.server_transport = transports.into_iter().reduce(merge_transport).flatten();
        Ok(usages.into_iter().reduce(merge_usage).flatten())
    }
}

/// Sum of two usages; `None` if one is unknown.
fn merge_usage(sum: Option<Usage>, one: Option<Usage>) -> Option<Usage> {
    Some(sum?.with(one?))
}

/// Merges the transport reports of two endpoints; `None` if one is missing.
fn merge_transport(
    sum: Option<Box<TransportReport>>,
    one: Option<Box<TransportReport>>,
) -> Option<Box<TransportReport>> {
    Some(Box::new(sum?.and(one.as_ref()?)))
}
