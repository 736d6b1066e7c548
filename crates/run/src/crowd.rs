//! The measured window of a trial with several clients. Each client has its own thread, which sends `go` and reads
//! its events, so that all start at the same moment and the end of each is timed exactly.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock, mpsc};
use std::time::{Duration, Instant};

use wirelab_lab::EventError;
use wirelab_model::event::{Command, Event};
use wirelab_model::journal::Portion;

use crate::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::verify;

/// Interval at which a thread checks whether to stop waiting.
const SLICE: Duration = Duration::from_millis(250);

/// Interval at which the servers are checked meanwhile.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

const ATTEMPT: &str = "measuring";

/// The next event of a client, or why none is available.
pub(crate) type Said = Result<Event, EventError>;

/// A thread's report about its client.
struct Told {
    number: usize,
    /// When `go` was sent, since the window began.
    told: Duration,
    /// When the event was read, since the window began.
    heard: Duration,
    said: Result<Said, TrialAbort>,
}

/// Runs the measured window of all clients; returns the record of each.
///
/// # Errors
/// If a client does anything but measure to its end, or a server prints an event or ends.
pub(crate) fn watch(
    clients: &mut [EndpointHandle],
    servers: &mut [EndpointHandle],
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Vec<Portion>, TrialAbort> {
    let has_clock = clients.iter().all(EndpointHandle::has_clock);
    let mut portions = vec![None; clients.len()];
    let enough = AtomicBool::new(false);
    let together = Barrier::new(clients.len() + 1);
    // When the first client was started.
    let begun = OnceLock::new();
    let outcome = std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let (enough, together, begun) = (&enough, &together, &begun);
        for (number, client) in clients.iter_mut().enumerate() {
            let tell = tell.clone();
            scope.spawn(move || {
                together.wait();
                let begun: Instant = *begun.get_or_init(Instant::now);
                let told = begun.elapsed();
                let said = client.send(Command::Go).map(|()| listened(client, limit, enough));
                // If another client failed first, the receiver is gone.
                let _ = tell.send(Told { number, told, heard: begun.elapsed(), said });
            });
        }
        drop(tell);
        together.wait();
        let outcome = gather(&told, &mut portions, servers, has_clock, stop);
        enough.store(true, Ordering::Relaxed);
        outcome
    });
    match outcome? {
        None => Ok(portions.into_iter().flatten().collect()),
        // Determining the blame needs the servers, which the threads did not have.
        Some((number, said)) => Err(clients[number].fault(said, ATTEMPT, limit, servers)),
    }
}

/// The next event of a client within the limit, or until `enough` is set.
pub(crate) fn listened(client: &mut EndpointHandle, limit: Duration, enough: &AtomicBool) -> Said {
    let deadline = Instant::now() + limit;
    loop {
        let slice = deadline.min(Instant::now() + SLICE);
        match client.listen(slice) {
            // A lab without a clock does not wait: its first time-out is final.
            Err(EventError::Deadline)
                if Instant::now() >= slice && slice < deadline && !enough.load(Ordering::Relaxed) => {}
            said => return said,
        }
    }
}

/// Receives the end of each client. Returns the first client that did not end properly, with its event, or `None`.
fn gather(
    told: &mpsc::Receiver<Told>,
    portions: &mut [Option<Portion>],
    servers: &mut [EndpointHandle],
    has_clock: bool,
    stop: &AtomicBool,
) -> Result<Option<(usize, Said)>, TrialAbort> {
    while portions.iter().any(Option::is_none) {
        let Told { number, told, heard, said } = match told.recv_timeout(LOOK_EVERY) {
            Ok(told) => told,
            Err(_) => {
                if stop.load(Ordering::Relaxed) {
                    return Err(TrialAbort::Interrupted);
                }
                for server in servers.iter_mut() {
                    server.stays_silent(ATTEMPT, Duration::ZERO)?;
                }
                continue;
            }
        };
        match said? {
            Ok(Event::End { window_ns }) => {
                if has_clock {
                    verify::window(window_ns, heard.saturating_sub(told)).map_err(TrialAbort::Outcome)?;
                }
                let told_ns = told.as_nanos() as u64;
                let begun_ns = (heard.as_nanos() as u64).saturating_sub(window_ns).max(told_ns);
                portions[number] = Some(Portion { told_ns, begun_ns, window_ns, ..Portion::default() });
            }
            said => return Ok(Some((number, said))),
        }
    }
    Ok(None)
}
