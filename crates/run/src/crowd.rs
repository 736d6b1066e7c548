//! The measured window of a trial whose workload several clients share: each is told to go by a thread of its own, which then listens to
//! nobody else, so that all are told at the same moment and each end is heard when it comes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock, mpsc};
use std::time::{Duration, Instant};

use wirelab_lab::EventError;
use wirelab_model::event::{Command, Event};
use wirelab_model::journal::Portion;

use crate::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::verify;

/// How often a thread looks up, whether it listens in vain.
const SLICE: Duration = Duration::from_millis(250);

/// How often the servers are looked at meanwhile.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

const ATTEMPT: &str = "measuring";

/// What a client says, as it is.
pub(crate) type Said = Result<Event, EventError>;

/// What a thread has to tell of its client.
struct Told {
    number: usize,
    /// When it was told to go, since the window began.
    told: Duration,
    /// When it said this.
    heard: Duration,
    said: Result<Said, TrialAbort>,
}

/// Lets all of them measure; gives what is known of each so far.
///
/// # Errors
/// If one of them does anything but measure to its end, or a server does anything.
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
    // When the first of them was told.
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
                // Nobody listens any more where another one failed first.
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
        // Its blame may be the servers', which only now can be asked.
        Some((number, said)) => Err(clients[number].fault(said, ATTEMPT, limit, servers)),
    }
}

/// What it says next, or that it says nothing, also where enough was heard of others meanwhile.
pub(crate) fn listened(client: &mut EndpointHandle, limit: Duration, enough: &AtomicBool) -> Said {
    let deadline = Instant::now() + limit;
    loop {
        let slice = deadline.min(Instant::now() + SLICE);
        match client.listen(slice) {
            // A lab without a clock does not wait: there, the first deadline is the last one.
            Err(EventError::Deadline)
                if Instant::now() >= slice && slice < deadline && !enough.load(Ordering::Relaxed) => {}
            said => return said,
        }
    }
}

/// Hears of the end of each client. Absent: all ended as they should; otherwise the first that did not, and what it said.
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
