//! The conversation with an endpoint, step by step; every deviation from the contract is a finding.

use std::fs;
use std::path::Path;
use std::time::Instant;

use indexmap::IndexMap;
use wirelab_lab::{EventError, Exit, ExitStatus, Process, Role};
use wirelab_model::endpoint::UNSUPPORTED_STATUS;
use wirelab_model::event::{Command, Configured, Event, WarmedUp};
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
    Accepted(T),
    /// The endpoint printed `unsupported` and exited with 127.
    Unsupported(String),
    /// The endpoint printed `error` and exited with 1.
    Error(ErrorKind, String),
}

impl<T> Answer<T> {
    /// Describes the answer for the reason of a failure.
    pub fn describe(&self) -> String {
        match self {
            Self::Accepted(_) => "it accepted the spec".to_owned(),
            Self::Unsupported(message) => format!("it printed `unsupported`: {message}"),
            Self::Error(kind, message) => format!("it printed `error` of kind `{kind}`: {message}"),
        }
    }
}

/// Evaluates to the value of an accepted answer; returns any other answer from the surrounding function.
macro_rules! accepted {
    ($answer:expr) => {
        match $answer? {
            Answer::Accepted(value) => value,
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
struct Conversation<'a> {
    stage: &'a Stage,
    process: Box<dyn Process>,
    who: String,
}

impl<'a> Conversation<'a> {
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
            Ok(event) => Ok(Answer::Accepted(event)),
            Err(EventError::Deadline) => {
                Err(Stop::Hung(format!("{who}: expected {wanted}; it hung and printed no event before the deadline")))
            }
            Err(EventError::Ended(exit)) => {
                Err(Stop::broken(format!("{who}: expected {wanted}; it ended with {} without an event", status(&exit))))
            }
            Err(EventError::Nonsense(line)) => {
                Err(Stop::broken(format!("{who}: expected {wanted}; it printed a line that is not an event: {line}")))
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
        match accepted!(self.next("`done`")) {
            Event::Done { requests, errors, configured, transport } => {
                self.ends_with(0, "`done`")?;
                let transport = transport.map(|report| *report);
                if let Some(report) = &transport {
                    report
                        .check()
                        .map_err(|why| Stop::broken(format!("{}: `done.transport` is impossible: {why}", self.who)))?;
                }
                Ok(Answer::Accepted(Done { requests, errors, configured, transport }))
            }
            other => self.unexpected("`done`", &other),
        }
    }
}

fn status(exit: &Exit) -> String {
    match exit.status {
        ExitStatus::Code(code) => format!("exit status {code}"),
        ExitStatus::Signal(signal) => format!("signal {signal}"),
        ExitStatus::Killed => "SIGKILL from the suite".to_owned(),
        ExitStatus::Lost => "an unknown status".to_owned(),
    }
}

/// A server, a sidecar or a control plane after `ready`.
pub struct Server<'a> {
    conversation: Conversation<'a>,
    /// The port that it listens on.
    pub port: u16,
    /// The effective settings that it reported.
    pub configured: Configured,
}

impl<'a> Server<'a> {
    /// Starts it and waits until it is ready.
    pub fn start(stage: &'a Stage, party: &Party, spec: &serde_json::Value) -> Finding<Answer<Self>> {
        Self::start_as(stage, party, Role::Server, spec)
    }

    /// Like [`Self::start`], in another role that listens.
    pub fn start_as(stage: &'a Stage, party: &Party, role: Role, spec: &serde_json::Value) -> Finding<Answer<Self>> {
        let mut conversation = Conversation::start(stage, party, role, spec)?;
        let wanted = "`ready` with a port";
        match accepted!(conversation.next(wanted)) {
            Event::Ready { port: Some(port @ 1..), configured, .. } => {
                Ok(Answer::Accepted(Self { conversation, port, configured }))
            }
            other => conversation.unexpected(wanted, &other),
        }
    }

    /// Stops it, by the command `stop` or by the end of its input, and demands a clean end. Returns its transport
    /// statistics, if it got the command and reports them.
    pub fn stop(mut self, by_word: bool) -> Finding<Option<TransportReport>> {
        if by_word {
            self.conversation.send(Command::Stop)?;
            return match self.conversation.done()? {
                Answer::Accepted(done) => Ok(done.transport),
                other => Err(Stop::broken(format!(
                    "{}: expected `done` after `stop`; {}",
                    self.conversation.who,
                    other.describe()
                ))),
            };
        }
        self.conversation.ends_with(0, "the end of its input")?;
        Ok(None)
    }

    /// Sends `reach` to a sidecar or a control plane, which then reads its file again.
    pub fn reach(&mut self) -> Finding {
        self.conversation.send(Command::Reach)?;
        match self.conversation.next("`reached`")? {
            Answer::Accepted(Event::Reached) => Ok(()),
            Answer::Accepted(other) => {
                Err(Stop::broken(format!("{}: expected `reached`; {other:?}", self.conversation.who)))
            }
            other => Err(Stop::broken(format!("{}: expected `reached`; {}", self.conversation.who, other.describe()))),
        }
    }

    /// Asks for the number of answered requests.
    pub fn count(&mut self) -> Finding<u64> {
        self.conversation.send(Command::Count)?;
        match self.conversation.next("`counted`")? {
            Answer::Accepted(Event::Counted { requests }) => Ok(requests),
            Answer::Accepted(other) => {
                Err(Stop::broken(format!("{}: expected `counted`; {other:?}", self.conversation.who)))
            }
            other => Err(Stop::broken(format!("{}: expected `counted`; {}", self.conversation.who, other.describe()))),
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
    /// The effective settings that it reported; values of `done` replace values of `ready`.
    pub configured: Configured,
    /// How its warm-up ended, if that was to last until response times are steady.
    pub warmed_up: Option<WarmedUp>,
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
    let mut conversation = Conversation::start(stage, party, Role::Client, spec)?;
    let mut configured = match accepted!(conversation.next("`ready`")) {
        Event::Ready { port: None, configured, .. } => configured,
        other => return conversation.unexpected("`ready` without a port", &other),
    };
    conversation.send(Command::Go)?;
    let is_until_steady = spec["until_steady"] == true;
    let wanted = if is_until_steady { "`warm` with `until_steady`" } else { "`warm` without `until_steady`" };
    let warmed_up = match accepted!(conversation.next(wanted)) {
        Event::Warm { until_steady } if until_steady.is_some() == is_until_steady => until_steady,
        other => return conversation.unexpected(wanted, &other),
    };
    conversation.send(Command::Go)?;
    in_window();
    let window_ns = match accepted!(conversation.next("`end`")) {
        Event::End { window_ns } => window_ns,
        other => return conversation.unexpected("`end`", &other),
    };
    conversation.send(Command::Finish)?;
    let Done { requests, errors, configured: last, transport } = accepted!(conversation.done());
    configured.extend(last);
    Ok(Answer::Accepted(Run { configured, warmed_up, window_ns, requests, errors, transport }))
}

/// Starts a client that completes its check request and warm-up, and keeps its connections.
pub fn warm_client<'a>(stage: &'a Stage, party: &Party, spec: &serde_json::Value) -> Finding<Answer<Warm<'a>>> {
    let mut conversation = Conversation::start(stage, party, Role::Client, spec)?;
    for (wanted, command) in [("`ready`", Some(Command::Go)), ("`warm`", None)] {
        match accepted!(conversation.next(wanted)) {
            Event::Ready { .. } | Event::Warm { .. } => {}
            other => return conversation.unexpected(wanted, &other),
        }
        if let Some(command) = command {
            conversation.send(command)?;
        }
    }
    Ok(Answer::Accepted(Warm { conversation }))
}

/// A client after `warm`; see [`warm_client`].
pub struct Warm<'a> {
    conversation: Conversation<'a>,
}

impl Warm<'_> {
    /// Runs the measured window. Returns the reported numbers of successful and failed requests.
    pub fn measure(mut self) -> Finding<(u64, u64)> {
        let accepted = |answer: Answer<Event>| match answer {
            Answer::Accepted(event) => Ok(event),
            other => Err(Stop::broken(format!("expected it to measure; {}", other.describe()))),
        };
        self.conversation.send(Command::Go)?;
        match accepted(self.conversation.next("`end`")?)? {
            Event::End { .. } => {}
            other => return self.conversation.unexpected("`end`", &other),
        }
        self.conversation.send(Command::Finish)?;
        match self.conversation.done()? {
            Answer::Accepted(Done { requests, errors, .. }) => {
                Ok((requests.unwrap_or_default(), errors.values().sum()))
            }
            other => Err(Stop::broken(format!("expected `done`; {}", other.describe()))),
        }
    }

    /// Aborts the client, and demands that it ends by itself with status 1.
    pub fn give_up(mut self, by_word: bool) -> Finding {
        if by_word {
            self.conversation.send(Command::Stop)?;
        }
        self.conversation.ends_with(1, if by_word { "`stop`" } else { "the end of its input" })
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
