//! The conversation with an endpoint, step by step; every deviation from the contract is a finding.

use std::fs;
use std::path::Path;
use std::time::Instant;

use indexmap::IndexMap;
use wirelab_lab::{EventError, Exit, ExitStatus, Process, Role};
use wirelab_model::endpoint::UNSUPPORTED_STATUS;
use wirelab_model::event::{Command, Configured, Event};
use wirelab_model::histogram::Histograms;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::sample::Sample;
use wirelab_model::spec::ClientSpec;
use wirelab_model::transport::TransportReport;

use crate::finding::{Finding, Stop, demand};
use crate::stage::{Party, Stage};

/// An endpoint's reaction to a spec, in one of the three ways that the contract allows.
#[derive(Debug)]
pub enum Answer<T> {
    /// The endpoint accepted the spec.
    Went(T),
    /// The endpoint printed `unsupported` and exited with 127.
    Unsupported(String),
    /// The endpoint printed `error` and exited with 1.
    Error(ErrorKind, String),
}

impl<T> Answer<T> {
    /// Describes the answer for the reason of a failure.
    pub fn words(&self) -> String {
        match self {
            Self::Went(_) => "it went on as if nothing were wrong".to_owned(),
            Self::Unsupported(message) => format!("it said `unsupported`: {message}"),
            Self::Error(kind, message) => format!("it said `error` of kind `{kind}`: {message}"),
        }
    }
}

/// Evaluates to the value of an accepted answer; returns any other answer from the surrounding function.
macro_rules! went {
    ($answer:expr) => {
        match $answer? {
            Answer::Went(value) => value,
            Answer::Unsupported(message) => return Ok(Answer::Unsupported(message)),
            Answer::Error(kind, message) => return Ok(Answer::Error(kind, message)),
        }
    };
}

/// The fields of the event `done`.
struct Done {
    requests: Option<u64>,
    errors: IndexMap<ErrorKind, u64>,
    configured: Configured,
    transport: Option<TransportReport>,
}

/// A started endpoint.
struct Talk<'a> {
    stage: &'a Stage,
    process: Box<dyn Process>,
    who: String,
}

impl<'a> Talk<'a> {
    fn start(stage: &'a Stage, party: &Party, role: Role, spec: &serde_json::Value) -> Finding<Self> {
        let who = format!("`{}` as {}", party.endpoint.name, role.word());
        Ok(Self { stage, process: stage.start(party, role, spec)?, who })
    }

    /// Waits for the next event; `wanted` describes the expected one. Checks the exit status after the final events: 1
    /// after `error`, 127 after `unsupported`.
    fn next(&mut self, wanted: &str) -> Finding<Answer<Event>> {
        let next = self.process.next_event(self.stage.deadline());
        if matches!(next, Err(EventError::Deadline | EventError::Nonsense(_))) {
            // Ends the endpoint to get the rest of its log.
            self.process.end(Instant::now());
        }
        let who = &self.who;
        match next {
            Ok(Event::Error { kind, message }) => {
                self.ends_with(1, "`error`")?;
                Ok(Answer::Error(kind, message))
            }
            Ok(Event::Unsupported { message }) => {
                self.ends_with(UNSUPPORTED_STATUS, "`unsupported`")?;
                Ok(Answer::Unsupported(message))
            }
            Ok(event) => Ok(Answer::Went(event)),
            Err(EventError::Deadline) => {
                Err(Stop::Hung(format!("{who}: expected {wanted}; it hung: nothing came in time")))
            }
            Err(EventError::Ended(exit)) => {
                Err(Stop::broken(format!("{who}: expected {wanted}; it ended with {} without an event", status(&exit))))
            }
            Err(EventError::Nonsense(line)) => {
                Err(Stop::broken(format!("{who}: expected {wanted}; it printed what is not an event: {line}")))
            }
        }
    }

    fn unexpected<T>(&self, wanted: &str, event: &Event) -> Finding<T> {
        let event = serde_json::to_string(event).unwrap_or_else(|_| format!("{event:?}"));
        Err(Stop::broken(format!("{}: expected {wanted}; it printed {event}", self.who)))
    }

    fn send(&mut self, command: Command) -> Finding {
        self.process.send(command).map_err(|error| Stop::broken(format!("{}: {error}", self.who)))
    }

    fn ends_with(&mut self, code: i32, after: &str) -> Finding {
        let exit = self.process.end(self.stage.deadline());
        if exit.status == ExitStatus::Killed {
            return Err(Stop::Hung(format!("{}: expected it to end after {after}; it did not", self.who)));
        }
        demand(exit.status == ExitStatus::Code(code), || {
            format!("{}: expected exit status {code} after {after}; it ended with {}", self.who, status(&exit))
        })
    }

    fn done(&mut self) -> Finding<Answer<Done>> {
        match went!(self.next("`done`")) {
            Event::Done { requests, errors, configured, transport } => {
                self.ends_with(0, "`done`")?;
                let transport = transport.map(|report| *report);
                if let Some(report) = &transport {
                    report.check().map_err(|why| {
                        Stop::broken(format!("{}: `done.transport` is not what a transport can say: {why}", self.who))
                    })?;
                }
                Ok(Answer::Went(Done { requests, errors, configured, transport }))
            }
            other => self.unexpected("`done`", &other),
        }
    }
}

fn status(exit: &Exit) -> String {
    match exit.status {
        ExitStatus::Code(code) => format!("exit status {code}"),
        ExitStatus::Signal(signal) => format!("signal {signal}"),
        ExitStatus::Killed => "nothing but our SIGKILL".to_owned(),
        ExitStatus::Lost => "nobody knows what".to_owned(),
    }
}

/// A server, a sidecar or a control plane after `ready`.
pub struct Server<'a> {
    talk: Talk<'a>,
    /// The port that it listens on.
    pub port: u16,
    /// The settings in force that it reported.
    pub configured: Configured,
}

impl<'a> Server<'a> {
    /// Starts it and waits until it is ready.
    pub fn start(stage: &'a Stage, party: &Party, spec: &serde_json::Value) -> Finding<Answer<Self>> {
        Self::start_as(stage, party, Role::Server, spec)
    }

    /// Like [`Self::start`], in another role that listens.
    pub fn start_as(stage: &'a Stage, party: &Party, role: Role, spec: &serde_json::Value) -> Finding<Answer<Self>> {
        let mut talk = Talk::start(stage, party, role, spec)?;
        let wanted = "`ready` with a port";
        match went!(talk.next(wanted)) {
            Event::Ready { port: Some(port @ 1..), configured } => Ok(Answer::Went(Self { talk, port, configured })),
            other => talk.unexpected(wanted, &other),
        }
    }

    /// Stops it, by the command `stop` or by the end of its input, and demands a clean end. Returns its transport
    /// statistics, if it got the command and reports them.
    pub fn stop(mut self, by_word: bool) -> Finding<Option<TransportReport>> {
        if by_word {
            self.talk.send(Command::Stop)?;
            return match self.talk.done()? {
                Answer::Went(done) => Ok(done.transport),
                other => {
                    Err(Stop::broken(format!("{}: expected `done` after `stop`; {}", self.talk.who, other.words())))
                }
            };
        }
        self.talk.ends_with(0, "the end of its input")?;
        Ok(None)
    }

    /// Sends `reach` to a sidecar or a control plane, which then reads its file again.
    pub fn reach(&mut self) -> Finding {
        self.talk.send(Command::Reach)?;
        match self.talk.next("`reached`")? {
            Answer::Went(Event::Reached) => Ok(()),
            Answer::Went(other) => Err(Stop::broken(format!("{}: expected `reached`; {other:?}", self.talk.who))),
            other => Err(Stop::broken(format!("{}: expected `reached`; {}", self.talk.who, other.words()))),
        }
    }

    /// Asks for the number of answered requests.
    pub fn count(&mut self) -> Finding<u64> {
        self.talk.send(Command::Count)?;
        match self.talk.next("`counted`")? {
            Answer::Went(Event::Counted { requests }) => Ok(requests),
            Answer::Went(other) => Err(Stop::broken(format!("{}: expected `counted`; {other:?}", self.talk.who))),
            other => Err(Stop::broken(format!("{}: expected `counted`; {}", self.talk.who, other.words()))),
        }
    }

    /// Kills it with SIGKILL.
    pub fn kill(self) {
        drop(self);
    }
}

/// The report of a client from `ready` to `done`.
#[derive(Debug)]
pub struct Run {
    /// The settings in force that it reported; values of `done` replace values of `ready`.
    pub configured: Configured,
    /// Length of the measured window in nanoseconds.
    pub window_ns: u64,
    /// The reported number of successful requests.
    pub requests: Option<u64>,
    /// The reported number of failed requests by kind.
    pub errors: IndexMap<ErrorKind, u64>,
    /// Transport statistics, if reported.
    pub transport: Option<TransportReport>,
}

/// Runs a client to its end; calls `in_window` right after the second `go`.
pub fn run_client(
    stage: &Stage,
    party: &Party,
    spec: &serde_json::Value,
    in_window: impl FnOnce(),
) -> Finding<Answer<Run>> {
    let mut talk = Talk::start(stage, party, Role::Client, spec)?;
    let mut configured = match went!(talk.next("`ready`")) {
        Event::Ready { port: None, configured } => configured,
        other => return talk.unexpected("`ready` without a port", &other),
    };
    talk.send(Command::Go)?;
    match went!(talk.next("`warm`")) {
        Event::Warm => {}
        other => return talk.unexpected("`warm`", &other),
    }
    talk.send(Command::Go)?;
    in_window();
    let window_ns = match went!(talk.next("`end`")) {
        Event::End { window_ns } => window_ns,
        other => return talk.unexpected("`end`", &other),
    };
    talk.send(Command::Finish)?;
    let Done { requests, errors, configured: last, transport } = went!(talk.done());
    configured.extend(last);
    Ok(Answer::Went(Run { configured, window_ns, requests, errors, transport }))
}

/// Starts a client that completes its check request and warm-up, and keeps its connections.
pub fn warm_client<'a>(stage: &'a Stage, party: &Party, spec: &serde_json::Value) -> Finding<Answer<Warm<'a>>> {
    let mut talk = Talk::start(stage, party, Role::Client, spec)?;
    for (wanted, command) in [("`ready`", Some(Command::Go)), ("`warm`", None)] {
        match went!(talk.next(wanted)) {
            Event::Ready { .. } | Event::Warm => {}
            other => return talk.unexpected(wanted, &other),
        }
        if let Some(command) = command {
            talk.send(command)?;
        }
    }
    Ok(Answer::Went(Warm { talk }))
}

/// A client after `warm`; see [`warm_client`].
pub struct Warm<'a> {
    talk: Talk<'a>,
}

impl Warm<'_> {
    /// Runs the measured window. Returns the reported numbers of successful and failed requests.
    pub fn measure(mut self) -> Finding<(u64, u64)> {
        let went = |answer: Answer<Event>| match answer {
            Answer::Went(event) => Ok(event),
            other => Err(Stop::broken(format!("expected it to measure; {}", other.words()))),
        };
        self.talk.send(Command::Go)?;
        match went(self.talk.next("`end`")?)? {
            Event::End { .. } => {}
            other => return self.talk.unexpected("`end`", &other),
        }
        self.talk.send(Command::Finish)?;
        match self.talk.done()? {
            Answer::Went(Done { requests, errors, .. }) => Ok((requests.unwrap_or_default(), errors.values().sum())),
            other => Err(Stop::broken(format!("expected `done`; {}", other.words()))),
        }
    }

    /// Aborts the client, and demands that it ends by itself with status 1.
    pub fn give_up(mut self, by_word: bool) -> Finding {
        if by_word {
            self.talk.send(Command::Stop)?;
        }
        self.talk.ends_with(1, if by_word { "`stop`" } else { "the end of its input" })
    }
}

/// Reads a client's records. Every record must be valid.
pub fn samples(results: &Path) -> Finding<Vec<Sample>> {
    let text = read(results)?;
    let mut samples = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = |why: &dyn std::fmt::Display| Stop::broken(format!("record {number} is not valid: {why}: {line}"));
        let sample: Sample = serde_json::from_str(line).map_err(|error| wrong(&error))?;
        sample.check().map_err(|why| wrong(&why))?;
        samples.push(sample);
    }
    Ok(samples)
}

/// Reads a client's histograms.
pub fn histograms(results: &Path) -> Finding<Histograms> {
    serde_json::from_str(&read(results)?)
        .map_err(|error| Stop::broken(format!("the histograms are not valid: {error}")))
}

fn read(results: &Path) -> Finding<String> {
    fs::read_to_string(results)
        .map_err(|error| Stop::broken(format!("expected a results file at {}; {error}", results.display())))
}

/// Converts a spec to JSON.
pub fn json(spec: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(spec).expect("a spec is JSON")
}

/// Runs a client to its end.
pub fn run(stage: &Stage, party: &Party, spec: &ClientSpec) -> Finding<Answer<Run>> {
    run_client(stage, party, &json(spec), || {})
}
