//! Handle of an endpoint during a trial: waits for its events, and assigns the blame for any other behaviour.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tracing::{Span, debug, info, info_span};
use wirelab_lab::{Arena, Beside, EventError, Exit, ExitStatus, LabError, Launch, Process, Role};
use wirelab_model::endpoint::UNSUPPORTED_STATUS;
use wirelab_model::event::{Command, Event};
use wirelab_model::outcome::{Blame, ErrorKind, Outcome};
use wirelab_model::plan::Job;
use wirelab_model::reason::{Attempt, Party, Reason};

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

impl From<LabError> for TrialAbort {
    fn from(error: LabError) -> Self {
        Self::failed(Blame::Lab, error)
    }
}

impl TrialAbort {
    /// A failed trial.
    pub(crate) fn failed(blame: Blame, reason: impl Into<Reason>) -> Self {
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
        let process = arena.start(launch)?;
        Ok(Self::of(process, arena, job, launch))
    }

    /// Starts several endpoints; the handles are in the order of the launches.
    pub(crate) fn start_all(
        arena: &mut dyn Arena,
        job: &Job,
        launches: &[Launch<'_>],
    ) -> Result<Vec<Self>, TrialAbort> {
        let processes = arena.start_all(launches)?;
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
        if self.process.send(command).is_ok() {
            return Ok(());
        }
        // It has probably ended; its exit explains more than the broken pipe.
        let exit = self.end_process(Instant::now());
        Err(self.ended(&exit, Attempt::sending(command)))
    }

    /// Waits for the next event. Meanwhile the others must neither print events nor end.
    pub(crate) fn wait(
        &mut self,
        attempt: Attempt,
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
                    let last_words = last_words(&self.end_process(Instant::now()));
                    return Err(self.failed(Reason::InvalidEvent { party: self.party(), attempt, line, last_words }));
                }
            }
            for other in others.iter_mut() {
                other.expect_no_event(attempt, Duration::ZERO)?;
            }
        }
    }

    /// Fails if the endpoint prints an event or ends within this time.
    pub(crate) fn expect_no_event(&mut self, attempt: Attempt, timeout: Duration) -> Result<(), TrialAbort> {
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
        attempt: Attempt,
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
        attempt: Attempt,
        others: &mut [Self],
    ) -> Result<Option<Event>, TrialAbort> {
        match read {
            Err(EventError::Deadline) => Ok(None),
            Err(EventError::Ended(exit)) => Err(self.ended(&exit, attempt)),
            Err(EventError::Nonsense(line)) => {
                let last_words = String::new();
                Err(self.failed(Reason::InvalidEvent { party: self.party(), attempt, line, last_words }))
            }
            Ok(Event::Error { kind, message }) => Err(self.reported(kind, &message, attempt, others)),
            Ok(event) => Ok(Some(event)),
        }
    }

    /// The abort for an endpoint that printed this, or nothing within the limit, instead of the expected event.
    pub(crate) fn abort(
        &mut self,
        read: Result<Event, EventError>,
        attempt: Attempt,
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
    fn timed_out(&mut self, attempt: Attempt, limit: Duration) -> TrialAbort {
        let last_words = last_words(&self.end_process(Instant::now()));
        let limit_ns = limit.as_nanos() as u64;
        self.failed(Reason::NoEvent { party: self.party(), attempt, limit_ns, last_words })
    }

    /// Kills the endpoint, as an action of the timeline.
    pub(crate) fn kill(&mut self) {
        self.is_stopped = true;
        self.end_process(Instant::now());
    }

    /// Stops the endpoint during the trial.
    pub(crate) fn stop(&mut self, limit: Duration, stop: &AtomicBool) -> Result<(), TrialAbort> {
        let attempt = Attempt::Stopping;
        self.send(Command::Stop)?;
        match self.wait(attempt, limit, &mut [], stop)? {
            Event::Done { .. } => {}
            other => return Err(self.unexpected(&other, attempt)),
        }
        self.is_stopped = true;
        self.end(Attempt::Ending, limit).map(drop)
    }

    /// Whether it was stopped on purpose during the trial.
    pub(crate) const fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// The abort for an unexpected event.
    pub(crate) fn unexpected(&self, event: &Event, attempt: Attempt) -> TrialAbort {
        let event = serde_json::to_string(event).unwrap_or_else(|_| format!("{event:?}"));
        self.failed(Reason::UnexpectedEvent { party: self.party(), attempt, event })
    }

    /// Closes its standard input and waits for exit status 0.
    pub(crate) fn end(&mut self, attempt: Attempt, limit: Duration) -> Result<Exit, TrialAbort> {
        let exit = self.end_process(Instant::now() + limit);
        if exit.status == ExitStatus::Code(0) { Ok(exit) } else { Err(self.ended(&exit, attempt)) }
    }

    /// The abort for an endpoint that listens and did not report its port.
    pub(crate) fn without_port(&self) -> TrialAbort {
        self.failed(Reason::NoPort { party: self.party() })
    }

    /// The abort for an unexpected exit.
    fn ended(&self, exit: &Exit, attempt: Attempt) -> TrialAbort {
        let (party, last_words) = (self.party(), last_words(exit));
        let blame = match exit.status {
            ExitStatus::Code(UNSUPPORTED_STATUS) => {
                let reason = Reason::Refused { party, message: last_words };
                return TrialAbort::Outcome(Outcome::Unsupported { reason });
            }
            ExitStatus::Lost => Blame::Lab,
            ExitStatus::Code(_) | ExitStatus::Signal(_) | ExitStatus::Killed => self.role.blame(),
        };
        TrialAbort::failed(blame, Reason::Exited { party, attempt, exit: exit.status, last_words })
    }

    /// The abort for an endpoint that printed `unsupported`; its exit status must be 127.
    fn refused(&mut self, message: &str) -> TrialAbort {
        let exit = self.end_process(Instant::now() + EXIT_TIMEOUT).status;
        let (party, message) = (self.party(), message.to_owned());
        if exit == ExitStatus::Code(UNSUPPORTED_STATUS) {
            TrialAbort::Outcome(Outcome::Unsupported { reason: Reason::Refused { party, message } })
        } else {
            self.failed(Reason::RefusedWithoutStatus { party, message, exit })
        }
    }

    /// A failed trial with this endpoint at fault.
    fn failed(&self, reason: Reason) -> TrialAbort {
        TrialAbort::failed(self.role.blame(), reason)
    }

    fn party(&self) -> Box<Party> {
        let name = self.name.clone();
        Box::new(match self.role {
            Role::Server => Party::Server { name },
            Role::Client => Party::Client { name, number: self.number },
            Role::Sidecar(Beside::Server) => Party::ServerSidecar { name },
            Role::Sidecar(Beside::Clients) => Party::ClientSidecar { name },
            Role::ControlPlane => Party::ControlPlane { name },
        })
    }

    /// The abort for an endpoint that printed `error`. The server is to blame for a client's error if it died or
    /// answered wrongly.
    fn reported(&mut self, kind: ErrorKind, message: &str, attempt: Attempt, others: &mut [Self]) -> TrialAbort {
        // All other endpoints had the same time to die as the first one.
        for (number, other) in others.iter_mut().enumerate() {
            let timeout = if number == 0 { DEATH_TIMEOUT } else { Duration::ZERO };
            if let Err(cut) = other.expect_no_event(attempt, timeout) {
                return cut;
            }
        }
        let exit = self.end_process(Instant::now() + EXIT_TIMEOUT);
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
            // Neither endpoint is the way between them.
            (Role::Client, ErrorKind::Unreachable | ErrorKind::Proxy) => Blame::Lab,
            (role, _) => role.blame(),
        };
        let (party, message, last_words) = (self.party(), message.to_owned(), last_words(&exit));
        TrialAbort::failed(
            blame,
            Reason::EndpointError { party, attempt, kind, message, exit: exit.status, last_words },
        )
    }
}

/// Last lines of standard error.
fn last_words(exit: &Exit) -> String {
    exit.last_words.trim().to_owned()
}
