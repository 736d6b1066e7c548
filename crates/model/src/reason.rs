//! Why a trial or a page load has no result.
//!
//! A reason has a stable code and fields for programs, and one text for people: [`Reason`]'s `Display`. Programs decide
//! by the variants, never by the text.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Command;

use crate::violation::Violation;

/// Why a trial failed or was unsupported.
///
/// In files it is the text `reason`, the `reason_code` and its `details`. A record without a code, or with the code of
/// a later version, is [`Reason::Reported`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "reason_code", content = "details", rename_all = "kebab-case")]
pub enum Reason {
    /// A text with no more structure: from a page load, a library or an older run. Its record has no code.
    #[serde(skip)]
    Reported(String),
    /// wirelab abandoned the cell after this number of trials that ended alike.
    NotRun {
        /// Number of trials.
        after: u32,
        /// The reason of the last of them.
        cause: Box<Reason>,
    },
    /// The lab measured the link before or after the block, and it was out of tolerance.
    LinkDeviated {
        /// The deviation.
        miss: String,
    },
    /// The client cannot send requests that the user wrote.
    OwnRequests {
        /// Name of its endpoint.
        endpoint: String,
    },
    /// The client cannot end its warm-up when response times are steady.
    UntilSteady {
        /// Name of its endpoint.
        endpoint: String,
    },
    /// The lab could not do its part.
    Lab(Box<LabFailure>),
    /// An endpoint ended.
    Exited {
        /// The endpoint.
        party: Box<Party>,
        /// The task at that time.
        attempt: Attempt,
        /// The exit status.
        exit: ExitStatus,
        /// Last lines of its standard error; empty: none.
        last_words: String,
    },
    /// An endpoint printed nothing within the time limit.
    NoEvent {
        /// The endpoint.
        party: Box<Party>,
        /// The task at that time.
        attempt: Attempt,
        /// The time limit in nanoseconds.
        limit_ns: u64,
        /// Last lines of its standard error; empty: none.
        last_words: String,
    },
    /// An endpoint printed a line that is no event.
    InvalidEvent {
        /// The endpoint.
        party: Box<Party>,
        /// The task at that time.
        attempt: Attempt,
        /// The line, shortened.
        line: String,
        /// Last lines of its standard error; empty: none.
        last_words: String,
    },
    /// An endpoint printed another event than the contract demands.
    UnexpectedEvent {
        /// The endpoint.
        party: Box<Party>,
        /// The task at that time.
        attempt: Attempt,
        /// The event as JSON.
        event: String,
    },
    /// An endpoint that listens did not report its port.
    NoPort {
        /// The endpoint.
        party: Box<Party>,
    },
    /// An endpoint reported an error.
    EndpointError {
        /// The endpoint.
        party: Box<Party>,
        /// The task at that time.
        attempt: Attempt,
        /// The kind of error.
        kind: ErrorKind,
        /// The endpoint's message.
        message: String,
        /// Its exit status; the contract demands 1.
        exit: ExitStatus,
        /// Last lines of its standard error; empty: none.
        last_words: String,
    },
    /// An endpoint does not support what the cell asks for.
    Refused {
        /// The endpoint.
        party: Box<Party>,
        /// The endpoint's message; empty: none.
        message: String,
    },
    /// An endpoint reported `unsupported`, but its exit status was not 127.
    RefusedWithoutStatus {
        /// The endpoint.
        party: Box<Party>,
        /// The endpoint's message.
        message: String,
        /// Its exit status.
        exit: ExitStatus,
    },
    /// The results of the clients cannot be read.
    Unreadable {
        /// The endpoint of the clients.
        client: String,
        /// The position and the cause.
        problem: String,
    },
    /// A report of an endpoint contradicts its spec, another report or physics.
    Violation(Box<Violation>),
    /// A page load of the trial failed.
    Load {
        /// Number of the load, from 1.
        number: u64,
        /// Number of loads that the spec asks for.
        of: u64,
        /// The reason of the load.
        cause: Box<Reason>,
    },
    /// An action of the timeline failed.
    Action {
        /// Name of the action.
        action: String,
        /// The reason.
        cause: Box<Reason>,
    },
    /// An action of the timeline began too late.
    LateAction {
        /// Name of the action.
        action: String,
        /// Its delay in nanoseconds.
        late_ns: u64,
        /// The tolerance in nanoseconds.
        limit_ns: u64,
    },
    /// An action of the timeline took too long.
    SlowAction {
        /// Name of the action.
        action: String,
        /// Its duration in nanoseconds.
        took_ns: u64,
        /// The tolerance in nanoseconds.
        limit_ns: u64,
    },
    /// Clients did not find the servers of an action in time.
    ServersNotFound {
        /// Name of the action.
        action: String,
        /// Name of the next action; absent: the window ended.
        before: Option<String>,
    },
}

impl Reason {
    /// Whether both reasons are the same failure. Measured numbers and free texts of programs may differ; endpoint,
    /// task, kind of error and exit status may not. Two reasons that are nothing but text must be equal.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Violation(one), Self::Violation(other)) => one.is_like(other),
            (Self::NotRun { cause: one, .. }, Self::NotRun { cause: other, .. })
            | (Self::Load { cause: one, .. }, Self::Load { cause: other, .. }) => one.is_like(other),
            (Self::Action { action, cause }, Self::Action { action: other, cause: cause_of_other }) => {
                action == other && cause.is_like(cause_of_other)
            }
            _ => self.clone().without_measurements() == other.clone().without_measurements(),
        }
    }

    /// Whether the trial did not run because its cell was abandoned.
    #[must_use]
    pub const fn is_not_run(&self) -> bool {
        matches!(self, Self::NotRun { .. })
    }

    fn without_measurements(mut self) -> Self {
        match &mut self {
            Self::Lab(failure) => (failure.cause, failure.remedy) = (None, None),
            Self::Refused { message: text, .. }
            | Self::RefusedWithoutStatus { message: text, .. }
            | Self::LinkDeviated { miss: text }
            | Self::Exited { last_words: text, .. }
            | Self::NoEvent { last_words: text, .. }
            | Self::UnexpectedEvent { event: text, .. }
            | Self::Unreadable { problem: text, .. } => text.clear(),
            Self::InvalidEvent { line: text, last_words, .. }
            | Self::EndpointError { message: text, last_words, .. } => {
                text.clear();
                last_words.clear();
            }
            Self::LateAction { late_ns: measured, .. } | Self::SlowAction { took_ns: measured, .. } => *measured = 0,
            Self::Reported(_)
            | Self::NoPort { .. }
            | Self::ServersNotFound { .. }
            | Self::OwnRequests { .. }
            | Self::UntilSteady { .. }
            | Self::NotRun { .. }
            | Self::Violation(_)
            | Self::Load { .. }
            | Self::Action { .. } => {}
        }
        self
    }
}

impl From<String> for Reason {
    fn from(message: String) -> Self {
        Self::Reported(message)
    }
}

impl From<&str> for Reason {
    fn from(message: &str) -> Self {
        Self::Reported(message.to_owned())
    }
}

impl From<Violation> for Reason {
    fn from(violation: Violation) -> Self {
        Self::Violation(Box::new(violation))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reported(message) => f.write_str(message),
            Self::Lab(failure) => failure.fmt(f),
            Self::NotRun { after, cause } => {
                write!(f, "not run, because {after} trials in a row ended like this: {cause}")
            }
            Self::OwnRequests { endpoint } => write!(
                f,
                "the client `{endpoint}` cannot send requests of the user (`request`); set `client` to one that can, such as \
                 the built-in one"
            ),
            Self::UntilSteady { endpoint } => write!(
                f,
                "the client `{endpoint}` cannot warm up until response times are steady; set `warm_up` to a time, or `client` \
                 to one that can, such as the built-in one"
            ),
            Self::LinkDeviated { miss } => write!(f, "the link deviated from its specification: {miss}"),
            Self::Exited { party, attempt, exit, last_words } => {
                let how = match exit {
                    ExitStatus::Code(0) => "ended too early (exit status 0)".to_owned(),
                    ExitStatus::Code(code) => format!("failed with exit status {code}"),
                    ExitStatus::Signal(signal) => format!("was killed by signal {signal}"),
                    ExitStatus::Killed => "did not end in time and was killed".to_owned(),
                    ExitStatus::Lost => "was lost".to_owned(),
                };
                write!(f, "{party} {how} while {attempt}{}", LastWords(last_words))
            }
            Self::NoEvent { party, attempt, limit_ns, last_words } => {
                let seconds = *limit_ns as f64 / 1e9;
                write!(f, "{party} printed no event for {seconds:.1} s while {attempt}{}", LastWords(last_words))
            }
            Self::InvalidEvent { party, attempt, line, last_words } => {
                write!(f, "{party} printed an invalid event while {attempt}: {line}{}", LastWords(last_words))
            }
            Self::UnexpectedEvent { party, attempt, event } => {
                write!(f, "{party} printed the unexpected event `{event}` while {attempt}")
            }
            Self::NoPort { party } => write!(f, "{party} printed `ready` without its port"),
            Self::EndpointError { party, attempt, kind, message, exit, last_words } => {
                write!(f, "{party} reported `{kind}` while {attempt}: {message}")?;
                if *exit != ExitStatus::Code(1) {
                    write!(f, " (and then ended with {exit:?} where the contract demands exit status 1)")?;
                }
                LastWords(last_words).fmt(f)
            }
            Self::Refused { party, message } => {
                write!(f, "{party}: {}", if message.is_empty() { "it gave no reason" } else { message })
            }
            Self::RefusedWithoutStatus { party, message, exit } => {
                let then = format!("and then ended with {exit:?}, not with exit status 127");
                write!(f, "{party} printed `unsupported` ({message}) {then}")
            }
            Self::Unreadable { client, problem } => write!(f, "the client `{client}`: {problem}"),
            Self::Violation(violation) => violation.fmt(f),
            Self::Load { number, of, cause } => write!(f, "load {number} of {of} is no sample: {cause}"),
            Self::Action { action, cause } => write!(f, "the action `{action}` failed: {cause}"),
            Self::LateAction { action, late_ns, limit_ns } => {
                let (late, limit) = (Nanos(*late_ns), Nanos(*limit_ns));
                write!(f, "the action `{action}` began {late:.1} late, but at most {limit} is tolerated{BUSY}")
            }
            Self::SlowAction { action, took_ns, limit_ns } => {
                let (took, limit) = (Nanos(*took_ns), Nanos(*limit_ns));
                write!(f, "the action `{action}` took {took:.1}, but at most {limit} is tolerated{BUSY}")
            }
            Self::ServersNotFound { action, before } => {
                let when =
                    before.as_ref().map_or_else(|| "the window ended".to_owned(), |next| format!("`{next}` was due"));
                write!(
                    f,
                    "when {when}, clients did not yet find the servers of the action `{action}`: networks need a second \
                     or two, and names as long as name servers cache them; use a longer `duration`"
                )
            }
        }
    }
}

const BUSY: &str = ": the machine was too busy; use fewer clients, or longer pauses";

/// Last lines of standard error, as the end of a sentence.
struct LastWords<'a>(&'a str);

impl fmt::Display for LastWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "; its last words: `{}`", self.0) }
    }
}

/// A duration in nanoseconds with a fitting unit.
pub(crate) struct Nanos(pub(crate) u64);

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&std::time::Duration::from_nanos(self.0), f)
    }
}

/// How the lab failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabFault {
    /// The lab cannot do what the job asks for.
    Unsupported,
    /// The system or the cluster refused it, for lack of rights or resources.
    Refused,
    /// The network could not be set up, changed or measured.
    Network,
    /// A process could not be started or reached.
    Process,
    /// A file could not be read or written.
    File,
    /// The cluster could not be used.
    Cluster,
    /// An endpoint is missing, cannot be used, or broke the contract.
    Endpoint,
    /// The user stopped it.
    Interrupted,
}

/// An action that the lab failed to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabFailure {
    /// The kind of failure.
    pub fault: LabFault,
    /// The attempt, or what is wrong.
    pub attempt: String,
    /// The cause, in the words of the library or the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The remedy for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl fmt::Display for LabFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.attempt)?;
        if let Some(cause) = &self.cause {
            write!(f, ": {cause}")?;
        }
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

/// An endpoint of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "kebab-case")]
pub enum Party {
    Server {
        /// Name of the endpoint.
        name: String,
    },
    Client {
        /// Name of the endpoint.
        name: String,
        /// Its number among several that share the workload; absent: it is the only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
    },
    ServerSidecar {
        /// Name of the endpoint.
        name: String,
    },
    ClientSidecar {
        /// Name of the endpoint.
        name: String,
    },
    ControlPlane {
        /// Name of the endpoint.
        name: String,
    },
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { name } => write!(f, "the server `{name}`"),
            Self::Client { name, number: None } => write!(f, "the client `{name}`"),
            Self::Client { name, number: Some(number) } => write!(f, "the client `{name}` (number {number})"),
            Self::ServerSidecar { name } => write!(f, "the sidecar `{name}` of a server"),
            Self::ClientSidecar { name } => write!(f, "the sidecar `{name}` of the clients"),
            Self::ControlPlane { name } => write!(f, "the control plane `{name}`"),
        }
    }
}

/// The task of an endpoint, or the task that needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attempt {
    Starting,
    /// Check request and warm-up.
    WarmingUp,
    /// The measured window.
    Measuring,
    /// Count of answered requests.
    CountingAnswers,
    /// Count of carried requests.
    CountingCarried,
    /// A changed list of servers.
    ReadingServers,
    /// Closing connections and writing results.
    Finishing,
    Stopping,
    /// Exit after `done`.
    Ending,
    /// The command `go`.
    SendingGo,
    /// The command `finish`.
    SendingFinish,
    /// The command `count`.
    SendingCount,
    /// The command `reach`.
    SendingReach,
    /// The command `stop`.
    SendingStop,
}

impl Attempt {
    /// The attempt to send this command.
    #[must_use]
    pub const fn sending(command: Command) -> Self {
        match command {
            Command::Go => Self::SendingGo,
            Command::Finish => Self::SendingFinish,
            Command::Count => Self::SendingCount,
            Command::Reach => Self::SendingReach,
            Command::Stop => Self::SendingStop,
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::WarmingUp => "making the check request and warming up",
            Self::Measuring => "measuring",
            Self::CountingAnswers => "reporting how many requests it has answered",
            Self::CountingCarried => "reporting how many requests it has carried",
            Self::ReadingServers => "reading the new server list",
            Self::Finishing => "closing its connections and writing its results",
            Self::Stopping => "stopping",
            Self::Ending => "ending after `done`",
            Self::SendingGo => "`go` was sent to it",
            Self::SendingFinish => "`finish` was sent to it",
            Self::SendingCount => "`count` was sent to it",
            Self::SendingReach => "`reach` was sent to it",
            Self::SendingStop => "`stop` was sent to it",
        })
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitStatus {
    /// Exited with this status.
    Code(i32),
    /// Killed by a signal that wirelab did not send.
    Signal(i32),
    /// Killed by wirelab, because it did not exit in time.
    Killed,
    /// Unknown: the connection to its host was lost first. The last words give the cause.
    Lost,
}

/// A reason with its code and fields, without the text.
struct Typed<T>(T);

impl Serialize for Typed<&Reason> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Reason::serialize(self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Typed<Reason> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Reason::deserialize(deserializer).map(Self)
    }
}

/// A reason in a file.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "Typed<T>: Serialize", deserialize = "Typed<T>: Deserialize<'de>"))]
struct Written<T> {
    reason: String,
    #[serde(flatten)]
    typed: Option<Typed<T>>,
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let typed = (!matches!(self, Self::Reported(_))).then_some(Typed(self));
        Written { reason: self.to_string(), typed }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { reason, typed } = Written::<Self>::deserialize(deserializer)?;
        Ok(typed.map_or(Self::Reported(reason), |Typed(typed)| typed))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::outcome::{Blame, Outcome};

    fn exited(code: i32, last_words: &str) -> Reason {
        Reason::Exited {
            party: Box::new(Party::Client { name: "a".to_owned(), number: None }),
            attempt: Attempt::Measuring,
            exit: ExitStatus::Code(code),
            last_words: last_words.to_owned(),
        }
    }

    #[test]
    fn a_record_has_text_code_and_fields_and_is_read_back() {
        let outcome =
            Outcome::failed(Blame::Client, Reason::NotRun { after: 3, cause: Box::new(exited(2, "port 80")) });
        let cause = "the client `a` failed with exit status 2 while measuring; its last words: `port 80`";
        let written = json!({
            "outcome": "failed",
            "blame": "client",
            "reason": format!("not run, because 3 trials in a row ended like this: {cause}"),
            "reason_code": "not-run",
            "details": {
                "after": 3,
                "cause": {
                    "reason": cause,
                    "reason_code": "exited",
                    "details": {
                        "party": { "role": "client", "name": "a" },
                        "attempt": "measuring",
                        "exit": { "code": 2 },
                        "last_words": "port 80"
                    }
                }
            }
        });
        assert_eq!(serde_json::to_value(&outcome).unwrap(), written);
        assert_eq!(serde_json::from_value::<Outcome>(written).unwrap(), outcome);
    }

    #[test]
    fn records_without_a_known_code_are_texts() {
        let read = |more: Value| {
            let mut record = json!({ "outcome": "unsupported", "reason": "no `gso`" });
            record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value::<Outcome>(record).unwrap()
        };
        let text = Outcome::Unsupported { reason: "no `gso`".into() };
        assert_eq!(read(json!({})), text);
        assert_eq!(read(json!({ "reason_code": "of-a-later-version", "details": { "x": 1 } })), text);
        assert_eq!(serde_json::to_value(&text).unwrap(), json!({ "outcome": "unsupported", "reason": "no `gso`" }));
    }

    #[test]
    fn reasons_are_alike_that_differ_in_measurements_and_free_texts_only() {
        assert!(exited(2, "port 80").is_like(&exited(2, "port 81")));
        assert!(!exited(2, "").is_like(&exited(3, "")));
        let slow = |took_ns, action: &str| Reason::SlowAction { action: action.to_owned(), took_ns, limit_ns: 1 };
        assert!(slow(7, "T1").is_like(&slow(8, "T1")) && !slow(7, "T1").is_like(&slow(7, "T2")));
        assert!(!Reason::from("timeout after 7 s").is_like(&"timeout after 8 s".into()));
        let late = Violation::WindowTooLong { window_ns: 2, passed_ns: 1 };
        assert!(Reason::from(late.clone()).is_like(&Violation::WindowTooLong { window_ns: 3, passed_ns: 1 }.into()));
        assert!(!Reason::from(late).is_like(&Violation::NoRequest.into()));
    }
}
