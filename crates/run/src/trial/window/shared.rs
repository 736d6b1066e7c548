//! The measured window of a trial with several clients. Each client has its own thread, which sends `go` and reads
//! its events, so that all start at the same moment and the end of each is timed exactly.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use wirelab_lab::{EventError, LabError};
use wirelab_model::event::{Command, Event};
use wirelab_model::journal::Portion;
use wirelab_model::reason::Attempt;

use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::trial::run_queue::RunQueue;
use crate::trial::verify::{self, Delays};

/// Interval at which a thread checks whether to stop waiting.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Interval at which the servers are checked meanwhile.
pub(crate) const SERVER_CHECK_INTERVAL: Duration = Duration::from_millis(100);

const ATTEMPT: Attempt = Attempt::Measuring;

/// The next event of a client, or why none is available.
pub(crate) type ReadResult = Result<Event, EventError>;

/// A thread's report about its client.
struct ThreadReport {
    number: usize,
    /// When `go` was sent, since the window began.
    sent_at: Duration,
    /// When the event was read, since the window began.
    read_at: Duration,
    /// How long the client and its thread here waited for a processor meanwhile.
    waited: Option<Duration>,
    read: Result<ReadResult, TrialAbort>,
}

/// Runs the measured window of all clients; returns the record of each.
///
/// After its last response, a client may be idle for `longest_idle` before it says `end`; `None` if this is unknown.
///
/// # Errors
/// If a client does anything but measure to its end, or a server prints an event or ends.
pub(crate) fn measure(
    clients: &mut [EndpointHandle],
    servers: &mut [EndpointHandle],
    longest_idle: Option<Duration>,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Vec<Portion>, TrialAbort> {
    let has_clock = clients.iter().all(EndpointHandle::has_clock);
    let mut portions = vec![None; clients.len()];
    let stop_reading = AtomicBool::new(false);
    // Whether all threads are there and the window begins; set once.
    let gate = OnceLock::<bool>::new();
    // When the first client was started.
    let begun = OnceLock::new();
    let outcome = thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let (ready, all_ready) = mpsc::channel::<Infallible>();
        let (stop_reading, gate, begun) = (&stop_reading, &gate, &begun);
        for (number, client) in clients.iter_mut().enumerate() {
            let (sender, ready) = (sender.clone(), ready.clone());
            let measure_one = move || {
                let run_queue = RunQueue::begin(client.pid());
                drop(ready);
                if !*gate.wait() {
                    return;
                }
                let begun: Instant = *begun.get_or_init(Instant::now);
                let sent_at = begun.elapsed();
                let read = client.send(Command::Go).map(|()| read_event(client, limit, stop_reading));
                let read_at = begun.elapsed();
                let waited = run_queue.and_then(|run_queue| run_queue.waited());
                let waited = waited.zip(longest_idle).map(|(waited, idle)| waited + idle);
                // If another client failed first, the receiver is gone.
                let _ = sender.send(ThreadReport { number, sent_at, read_at, waited, read });
            };
            if let Err(error) = thread::Builder::new().spawn_scoped(scope, measure_one) {
                gate.get_or_init(|| false);
                return Err(LabError::thread("for each client", error).into());
            }
        }
        drop((sender, ready));
        let Err(mpsc::RecvError) = all_ready.recv();
        gate.get_or_init(|| true);
        let outcome = gather(&receiver, &mut portions, servers, has_clock, stop);
        stop_reading.store(true, Ordering::Relaxed);
        outcome
    });
    match outcome? {
        None => Ok(portions.into_iter().flatten().collect()),
        // Determining the blame needs the servers, which the threads did not have.
        Some((number, read)) => Err(clients[number].abort(read, ATTEMPT, limit, servers)),
    }
}

/// The next event of a client within the limit, or until `stop_reading` is set.
pub(crate) fn read_event(client: &mut EndpointHandle, limit: Duration, stop_reading: &AtomicBool) -> ReadResult {
    let deadline = Instant::now() + limit;
    loop {
        let slice = deadline.min(Instant::now() + CHECK_INTERVAL);
        match client.read(slice) {
            // A lab without a clock does not wait: its first time-out is final.
            Err(EventError::Deadline)
                if Instant::now() >= slice && slice < deadline && !stop_reading.load(Ordering::Relaxed) => {}
            read => return read,
        }
    }
}

/// Receives the end of each client. Returns the first client that did not end properly, with its event, or `None`.
fn gather(
    receiver: &mpsc::Receiver<ThreadReport>,
    portions: &mut [Option<Portion>],
    servers: &mut [EndpointHandle],
    has_clock: bool,
    stop: &AtomicBool,
) -> Result<Option<(usize, ReadResult)>, TrialAbort> {
    while portions.iter().any(Option::is_none) {
        let ThreadReport { number, sent_at, read_at, waited, read } = match receiver.recv_timeout(SERVER_CHECK_INTERVAL)
        {
            Ok(report) => report,
            Err(_) => {
                if stop.load(Ordering::Relaxed) {
                    return Err(TrialAbort::Interrupted);
                }
                for server in servers.iter_mut() {
                    server.expect_no_event(ATTEMPT, Duration::ZERO)?;
                }
                continue;
            }
        };
        match read? {
            Ok(Event::End { window_ns }) => {
                if has_clock {
                    let passed = read_at.saturating_sub(sent_at);
                    let delays = Delays::of(waited, portions.len());
                    verify::window(window_ns, passed, delays).map_err(TrialAbort::Outcome)?;
                }
                let told_ns = sent_at.as_nanos() as u64;
                let begun_ns = (read_at.as_nanos() as u64).saturating_sub(window_ns).max(told_ns);
                portions[number] = Some(Portion { told_ns, begun_ns, window_ns, ..Portion::default() });
            }
            read => return Ok(Some((number, read))),
        }
    }
    Ok(None)
}
