//! Handle of an endpoint during a trial: waits for its events, and assigns the blame for any other behaviour.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tracing::{Span, debug, info, info_span};
use wirelab_lab::{Arena, Beside, EventError, Exit, ExitStatus, LabError, Launch, Process, Role};
use wirelab_model::endpoint::UNSUPPORTED_STATUS;
use wirelab_model::event::{Command, Event};
use wirelab_model::outcome::{Blame, ErrorKind, Outcome};
use wirelab_model::plan::Job;

use crate::error::RunError;

/// Why a trial ends early.
#[derive(Debug)]
pub(crate) enum TrialAbort {
    /// The trial ended with this outcome.
    Outcome(Outcome),
    /// The user requested a stop; the trial leaves no record.
    Interrupted,
    /// The run cannot continue.
    Run(RunError),
}

impl From<RunError> for TrialAbort {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl TrialAbort {
    /// A failed trial.
    pub(crate) fn failed(blame: Blame, reason: impl Into<String>) -> Self {
        Self::Outcome(Outcome::failed(blame, reason))
    }
}

/// Interval at which a wait checks for a stop request and for dead processes.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Upper limit of waits: longer than any trial, and within the range of the clock's arithmetic.
const LONGEST_WAIT: Duration = Duration::from_secs(30 * 86_400);

/// Time limit for an endpoint to exit after `error` or `unsupported`.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit for a server to exit after its client reported an error.
const DEATH_TIMEOUT: Duration = Duration::from_millis(200);

fn not_started(LabError(why): LabError) -> TrialAbort {
    TrialAbort::failed(Blame::Lab, why)
}

/// A running endpoint. Drop kills it.
pub(crate) struct EndpointHandle {
    process: Box<dyn Process>,
    role: Role,
    name: String,
    /// Index among several clients that share a workload.
    number: Option<u32>,
    /// Whether it connects to a remote site.
    is_remote: bool,
    /// Whether it connects to a sidecar.
    uses_sidecar: bool,
    /// Whether it runs in real time.
    has_clock: bool,
    /// Whether it was stopped on purpose during the trial, so that its exit is expected.
    is_stopped: bool,
    /// Span of its events in the log.
    span: Span,
}

impl EndpointHandle {
    pub(crate) fn start(arena: &mut dyn Arena, job: &Job, launch: &Launch<'_>) -> Result<Self, TrialAbort> {
        let process = arena.start(launch).map_err(not_started)?;
        Ok(Self::of(process, arena, job, launch))
    }

    /// Starts several endpoints; the handles are in the order of the launches.
    pub(crate) fn start_all(
        arena: &mut dyn Arena,
        job: &Job,
        launches: &[Launch<'_>],
    ) -> Result<Vec<Self>, TrialAbort> {
        let processes = arena.start_all(launches).map_err(not_started)?;
        Ok(processes.into_iter().zip(launches).map(|(process, launch)| Self::of(process, arena, job, launch)).collect())
    }

    fn of(process: Box<dyn Process>, arena: &dyn Arena, job: &Job, launch: &Launch<'_>) -> Self {
        let name = launch.endpoint.name.clone();
        let span = info_span!("role", role = launch.role.word(), number = launch.number, endpoint = name);
        span.in_scope(|| info!(pid = process.pid(), "started"));
        Self {
            process,
            role: launch.role,
            name,
            number: (launch.role == Role::Client && job.load.clients > 1).then_some(launch.number),
            is_remote: job.site().is_some(),
            uses_sidecar: job.has_mesh(),
            has_clock: arena.has_clock(),
            is_stopped: false,
            span,
        }
    }

    pub(crate) const fn role(&self) -> Role {
        self.role
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.pid()
    }

    pub(crate) const fn has_clock(&self) -> bool {
        self.has_clock
    }

    /// Sends a command.
    pub(crate) fn send(&mut self, command: Command) -> Result<(), TrialAbort> {
        self.span.in_scope(|| debug!(command = command.word(), "sent"));
        let LabError(why) = match self.process.send(command) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        // It has probably ended; its exit explains more than the broken pipe.
        let exit = self.end_process(Instant::now());
        Err(self.ended(&exit, &format!("`{}` was sent to it ({why})", command.word())))
    }

    /// Waits for the next event. Meanwhile the others must neither print events nor end.
    pub(crate) fn wait(
        &mut self,
        attempt: &str,
        limit: Duration,
        others: &mut [Self],
        stop: &AtomicBool,
    ) -> Result<Event, TrialAbort> {
        let deadline = Instant::now() + limit.min(LONGEST_WAIT);
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(TrialAbort::Interrupted);
            }
            let slice = deadline.min(Instant::now() + CHECK_INTERVAL);
            let error = match self.read(slice) {
                Ok(Event::Error { kind, message }) => {
                    return Err(self.reported(kind, &message, attempt, others));
                }
                Ok(Event::Unsupported { message }) => return Err(self.refused(&message)),
                Ok(event) => return Ok(event),
                Err(error) => error,
            };
            match error {
                // A lab without a clock does not wait: its first time-out is final.
                EventError::Deadline if Instant::now() >= slice && slice < deadline => {}
                EventError::Deadline => return Err(self.timed_out(attempt, limit)),
                EventError::Ended(exit) => return Err(self.ended(&exit, attempt)),
                EventError::Nonsense(line) => {
                    let words = last_words(&self.end_process(Instant::now()));
                    let reason = format!("{self} printed an invalid event while {attempt}: {line}{words}");
                    return Err(TrialAbort::failed(self.role.blame(), reason));
                }
            }
            for other in others.iter_mut() {
                other.expect_no_event(attempt, Duration::ZERO)?;
            }
        }
    }

    /// Fails if the endpoint prints an event or ends within this time.
    pub(crate) fn expect_no_event(&mut self, attempt: &str, timeout: Duration) -> Result<(), TrialAbort> {
        if self.is_stopped {
            return Ok(());
        }
        match self.poll(attempt, timeout, &mut [])? {
            None => Ok(()),
            Some(event) => Err(self.unexpected(&event, attempt)),
        }
    }

    /// The next event within this time, if any.
    pub(crate) fn poll(
        &mut self,
        attempt: &str,
        timeout: Duration,
        others: &mut [Self],
    ) -> Result<Option<Event>, TrialAbort> {
        let read = self.read(Instant::now() + timeout);
        self.interpret(read, attempt, others)
    }

    /// The unchecked result of reading until the deadline, for threads that lack the other handles.
    pub(crate) fn read(&mut self, deadline: Instant) -> Result<Event, EventError> {
        let read = self.process.next_event(deadline);
        if let Ok(event) = &read {
            self.span.in_scope(|| debug!(?event, "received"));
        }
        read
    }

    /// Closes the standard input of the process and waits for its exit; kills it at the deadline.
    fn end_process(&mut self, deadline: Instant) -> Exit {
        let exit = self.process.end(deadline);
        self.span.in_scope(|| info!(status = ?exit.status, "ended"));
        exit
    }

    /// Converts the result of a read to an event, `None` for a time-out, or an abort.
    pub(crate) fn interpret(
        &mut self,
        read: Result<Event, EventError>,
        attempt: &str,
        others: &mut [Self],
    ) -> Result<Option<Event>, TrialAbort> {
        match read {
            Err(EventError::Deadline) => Ok(None),
            Err(EventError::Ended(exit)) => Err(self.ended(&exit, attempt)),
            Err(EventError::Nonsense(line)) => {
                let reason = format!("{self} printed an invalid event while {attempt}: {line}");
                Err(TrialAbort::failed(self.role.blame(), reason))
            }
            Ok(Event::Error { kind, message }) => Err(self.reported(kind, &message, attempt, others)),
            Ok(event) => Ok(Some(event)),
        }
    }

    /// The abort for an endpoint that printed this, or nothing within the limit, instead of the expected event.
    pub(crate) fn abort(
        &mut self,
        read: Result<Event, EventError>,
        attempt: &str,
        limit: Duration,
        others: &mut [Self],
    ) -> TrialAbort {
        if let Ok(Event::Unsupported { message }) = &read {
            return self.refused(message);
        }
        match self.interpret(read, attempt, others) {
            Err(cut) => cut,
            Ok(Some(event)) => self.unexpected(&event, attempt),
            Ok(None) => self.timed_out(attempt, limit),
        }
    }

    /// The abort for an endpoint that printed nothing within the limit.
    fn timed_out(&mut self, attempt: &str, limit: Duration) -> TrialAbort {
        let words = last_words(&self.end_process(Instant::now()));
        let reason = format!("{self} printed no event for {:.1} s while {attempt}{words}", limit.as_secs_f64());
        TrialAbort::failed(self.role.blame(), reason)
    }

    /// Kills the endpoint, as an action of the timeline.
    pub(crate) fn kill(&mut self) {
        self.is_stopped = true;
        self.end_process(Instant::now());
    }

    /// Stops the endpoint during the trial.
    pub(crate) fn stop(&mut self, limit: Duration, stop: &AtomicBool) -> Result<(), TrialAbort> {
        let attempt = "stopping";
        self.send(Command::Stop)?;
        match self.wait(attempt, limit, &mut [], stop)? {
            Event::Done { .. } => {}
            other => return Err(self.unexpected(&other, attempt)),
        }
        self.is_stopped = true;
        self.end("ending after `done`", limit).map(drop)
    }

    /// Whether it was stopped on purpose during the trial.
    pub(crate) const fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// The abort for an unexpected event.
    pub(crate) fn unexpected(&self, event: &Event, attempt: &str) -> TrialAbort {
        let event = serde_json::to_string(event).unwrap_or_else(|_| format!("{event:?}"));
        TrialAbort::failed(self.role.blame(), format!("{self} printed the unexpected event `{event}` while {attempt}"))
    }

    /// Closes its standard input and waits for exit status 0.
    pub(crate) fn end(&mut self, attempt: &str, limit: Duration) -> Result<Exit, TrialAbort> {
        let exit = self.end_process(Instant::now() + limit);
        if exit.status == ExitStatus::Code(0) { Ok(exit) } else { Err(self.ended(&exit, attempt)) }
    }

    /// The abort for an unexpected exit.
    fn ended(&self, exit: &Exit, attempt: &str) -> TrialAbort {
        let how = match exit.status {
            ExitStatus::Code(UNSUPPORTED_STATUS) => {
                let words = if exit.last_words.is_empty() { "it gave no reason" } else { &exit.last_words };
                return TrialAbort::Outcome(Outcome::Unsupported { reason: format!("{self}: {words}") });
            }
            ExitStatus::Code(0) => "ended too early (exit status 0)".to_owned(),
            ExitStatus::Code(code) => format!("failed with exit status {code}"),
            ExitStatus::Signal(signal) => format!("was killed by signal {signal}"),
            ExitStatus::Killed => "did not end in time and was killed".to_owned(),
            ExitStatus::Lost => {
                let reason = format!("{self} was lost while {attempt}{}", last_words(exit));
                return TrialAbort::failed(Blame::Lab, reason);
            }
        };
        TrialAbort::failed(self.role.blame(), format!("{self} {how} while {attempt}{}", last_words(exit)))
    }

    /// The abort for an endpoint that printed `unsupported`; its exit status must be 127.
    fn refused(&mut self, message: &str) -> TrialAbort {
        let exit = self.end_process(Instant::now() + EXIT_TIMEOUT);
        if exit.status == ExitStatus::Code(UNSUPPORTED_STATUS) {
            TrialAbort::Outcome(Outcome::Unsupported { reason: format!("{self}: {message}") })
        } else {
            let reason = format!(
                "{self} printed `unsupported` ({message}) and then ended with {:?}, not with exit status 127",
                exit.status
            );
            TrialAbort::failed(self.role.blame(), reason)
        }
    }

    /// The abort for an endpoint that printed `error`. The server is to blame for a client's error if it died or
    /// answered wrongly.
    fn reported(&mut self, kind: ErrorKind, message: &str, attempt: &str, others: &mut [Self]) -> TrialAbort {
        // All other endpoints had the same time to die as the first one.
        for (number, other) in others.iter_mut().enumerate() {
            let timeout = if number == 0 { DEATH_TIMEOUT } else { Duration::ZERO };
            if let Err(cut) = other.expect_no_event(attempt, timeout) {
                return cut;
            }
        }
        let exit = self.end_process(Instant::now() + EXIT_TIMEOUT);
        let words = last_words(&exit);
        let status = match exit.status {
            ExitStatus::Code(1) => String::new(),
            other => format!(" (and then ended with {other:?} where the contract demands exit status 1)"),
        };
        let blame = match (self.role, kind) {
            // The server reported its port and still runs, but does not answer, or too late, or wrongly. A sidecar
            // between client and server is closer to the client than the server, which is alive.
            (
                Role::Client,
                ErrorKind::Refused
                | ErrorKind::Status
                | ErrorKind::Digest
                | ErrorKind::Truncated
                | ErrorKind::Reset
                | ErrorKind::Timeout,
            ) => {
                if self.uses_sidecar {
                    Blame::Sidecar
                } else {
                    Blame::Server
                }
            }
            // Servers started by wirelab support the protocol and have a trusted certificate; remote servers may not.
            (Role::Client, ErrorKind::Certificate | ErrorKind::Tls | ErrorKind::Protocol) if self.is_remote => {
                Blame::Server
            }
            (Role::Client, ErrorKind::Unreachable) => Blame::Lab,
            (role, _) => role.blame(),
        };
        TrialAbort::failed(blame, format!("{self} reported `{kind}` while {attempt}: {message}{status}{words}"))
    }
}

impl std::fmt::Display for EndpointHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = &self.name;
        match self.role {
            Role::Sidecar(Beside::Server) => write!(f, "the sidecar `{name}` of a server"),
            Role::Sidecar(Beside::Clients) => write!(f, "the sidecar `{name}` of the clients"),
            Role::ControlPlane => write!(f, "the control plane `{name}`"),
            role => match self.number {
                Some(number) => write!(f, "the {} `{name}` (number {number})", role.word()),
                None => write!(f, "the {} `{name}`", role.word()),
            },
        }
    }
}

/// Last lines of standard error, as the end of a sentence.
fn last_words(exit: &Exit) -> String {
    let words = exit.last_words.trim();
    if words.is_empty() { String::new() } else { format!("; its last words: `{words}`") }
}
