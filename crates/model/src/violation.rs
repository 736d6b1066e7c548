//! Reports of endpoints that contradict the spec, each other, or physics.

use std::fmt;
use std::mem::discriminant;

use serde::{Deserialize, Serialize};
use wirelab_contract::protocol::Protocol;
use wirelab_contract::sample::Handshake;

use crate::processors::ProcessorSet;
use crate::reason::Nanos;

/// A violated rule, with the numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the fields are the numbers of the sentence in `Display`")]
pub enum Violation {
    /// A client must report the negotiated protocol.
    ProtocolNotReported { wanted: String },
    /// The negotiated protocol must be the cell's.
    WrongProtocol { reported: serde_json::Value, protocol: Protocol },
    /// An endpoint must honour a setting, or refuse it.
    SettingIgnored { role: String, setting: String, reported: serde_json::Value, requested: serde_json::Value },
    /// A process must stay on the processors of its side.
    OtherProcessors { role: String, used: ProcessorSet, wanted: ProcessorSet },
    /// The window must not be longer than the time between `go` and `end`.
    WindowTooLong { window_ns: u64, passed_ns: u64 },
    /// The window must not be shorter than that time by more than the processes took to hand over the words.
    WindowTooShort {
        window_ns: u64,
        passed_ns: u64,
        #[serde(default)]
        allowed_ns: u64,
    },
    /// The client must record as many requests as the spec says.
    WrongRequestCount { recorded: u64, wanted: u64 },
    /// The window must have at least one request.
    NoRequest,
    /// A site must return its page at least once.
    NoPage { url: String, answers: String },
    /// Each connection must be new.
    NotNew { handshake: Handshake },
    /// Servers and clients must agree about the number of answered requests.
    AnsweredDiffer { answered: u64, recorded: u64, unrecorded: u64 },
    /// Servers must have answered what the clients recorded, and no other request.
    ServedDiffer { answered: u64, recorded: u64, unrecorded: u64 },
    /// The client must record as many requests as the kernel saw.
    KernelCount { kernel: u64, recorded: u64, failed: u64 },
    /// One moment must be time zero of the client's records, for the kernel's times too.
    KernelClock { apart_ns: u64 },
    /// No response can take less time than the kernel saw.
    KernelTimes { count: u64, kernel_ns: u64, recorded_ns: u64 },
    /// The clients' sidecar must have carried every response.
    CarriedTooFew { carried: u64, responses: u64 },
    /// The sidecars of both sides must have carried equally many requests.
    CarriedDiffer { of_clients: u64, of_servers: u64 },
    /// Each server's sidecar must have carried what its server answered.
    CarriedNotAnswered { answered: Vec<u64>, carried: Vec<u64> },
    /// The clients' sidecar must have carried every request, and no other.
    CarriedNotSent { carried: u64, recorded: u64, unrecorded: u64 },
    /// A record must be possible.
    ImpossibleRecord { number: u64, problem: RecordProblem },
    /// Histograms must have as many values as the counters say.
    HistogramsDiffer { what: String, is: u64, right: u64 },
    /// No time may be longer than the window.
    LongerThanWindow { what: String, max_ns: u64, window_ns: u64 },
    /// No response may come before the server's delay has passed.
    TooEarly { waited_ns: u64, delay_ns: u64 },
    /// Each request needs a connection of its own.
    TooFewConnections { connections: u64, requests: u64 },
    /// A page load must be possible.
    ImpossibleLoad { number: u64, of: u64, problem: LoadProblem },
}

/// Why the record of a request is impossible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the fields are the numbers of the sentence in `Display`")]
pub enum RecordProblem {
    /// The record contradicts itself.
    Contradiction { what: String },
    /// The request ended after the window.
    EndedAfterWindow { ended_ns: u64, window_ns: u64 },
    /// A wrong number of body bytes was received.
    Received { bytes: u64, wanted: u64 },
    /// A wrong number of body bytes was sent.
    Sent { bytes: u64, wanted: u64 },
    /// It succeeded with a status of failures, or with none.
    Status { status: Option<u16> },
    /// It opened a connection without a handshake.
    NoHandshake,
    /// The response came before the server's delay had passed.
    TooEarly { waited_ns: u64, delay_ns: u64 },
    /// It used the connection of another request.
    ConnectionUsedAgain { connection: u32 },
}

/// Why a page load is impossible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the fields are the numbers of the sentence in `Display`")]
pub enum LoadProblem {
    /// Fewer bytes were received than the bodies have.
    TooFewBytes { received: u64, bodies: u64 },
    /// More connections were used than browsers open.
    TooManyConnections { connections: u64, host: Option<String>, most: u64, protocol: Protocol },
    /// A host of the page got no request.
    HostNotUsed { host: String },
    /// Hosts shared connections.
    SharedConnections { of_hosts: u64, of_load: u64 },
    /// The load took less time than its bytes need on the link.
    FasterThanLink { net_ns: u64, least_ns: u64 },
    /// The first byte came before the necessary round trips.
    FirstByteTooEarly { first_ns: u64, trips: u64, has_delay: bool, least_ns: u64 },
}

impl Violation {
    /// Whether both break the same rule in the same way; the numbers may differ.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::SettingIgnored { role, setting, .. }, Self::SettingIgnored { role: of, setting: other, .. }) => {
                role == of && setting == other
            }
            (Self::OtherProcessors { role, .. }, Self::OtherProcessors { role: other, .. }) => role == other,
            (Self::ImpossibleRecord { problem: one, .. }, Self::ImpossibleRecord { problem: other, .. }) => {
                discriminant(one) == discriminant(other)
            }
            (Self::ImpossibleLoad { problem: one, .. }, Self::ImpossibleLoad { problem: other, .. }) => {
                discriminant(one) == discriminant(other)
            }
            _ => discriminant(self) == discriminant(other),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProtocolNotReported { wanted } => {
                write!(f, "the client does not report which protocol was negotiated (`alpn`); `{wanted}` is required")
            }
            Self::WrongProtocol { reported, protocol } => {
                let wanted = protocol.alpn().map_or_else(|| "nothing".to_owned(), |wanted| format!("`{wanted}`"));
                write!(
                    f,
                    "the client reports that {reported} was negotiated (`alpn`), but {protocol} requires {wanted}"
                )
            }
            Self::SettingIgnored { role, setting, reported, requested } => write!(
                f,
                "the {role} reports `{setting}` = {reported}, but {requested} was requested; it must honour or refuse a \
                 setting"
            ),
            Self::OtherProcessors { role, used, wanted } => write!(
                f,
                "the {role} may run on the processors {used}, but the trial confines it to {wanted} (`cpus`); an \
                 endpoint must not widen its affinity"
            ),
            Self::WindowTooLong { window_ns, passed_ns } => {
                let (window, passed) = (Nanos(*window_ns), Nanos(*passed_ns));
                write!(f, "the client reports a window of {window}, but only {passed} passed here")
            }
            Self::WindowTooShort { window_ns, passed_ns, allowed_ns } => {
                let (window, passed) = (Nanos(*window_ns), Nanos(*passed_ns));
                write!(f, "the client reports a window of {window:.1}, but {passed:.1} passed here")?;
                // Old journals lack it.
                match allowed_ns {
                    0 => Ok(()),
                    _ => write!(f, "; starting and ending it explains at most {:.1}", Nanos(*allowed_ns)),
                }
            }
            Self::WrongRequestCount { recorded, wanted } => {
                write!(f, "the client recorded {recorded} requests instead of {wanted}")
            }
            Self::NoRequest => f.write_str("the client made no request in the measured window"),
            Self::NoPage { url, answers } => write!(f, "{url} never returned the page: {answers}"),
            Self::NotNew { handshake } => {
                write!(f, "a connection was {handshake:?}, but each must be new (`resumption = \"none\"`)")
            }
            Self::AnsweredDiffer { answered, recorded, unrecorded } => write!(
                f,
                "the servers report {answered} answered requests in the window, but the clients sent {recorded} and \
                 {unrecorded} before they recorded any"
            ),
            Self::ServedDiffer { answered, recorded, unrecorded } => write!(
                f,
                "the servers answered {answered} requests, but the clients recorded {recorded}, and sent {unrecorded} \
                 before they recorded any"
            ),
            Self::KernelCount { kernel, recorded, failed } => write!(
                f,
                "the kernel saw {kernel} requests with a response, but the client recorded {recorded}, and {failed} that \
                 failed"
            ),
            Self::KernelClock { apart_ns } => write!(
                f,
                "no time zero fits the client's records: its first request or its last response differs from the \
                 kernel's by {:.1}",
                Nanos(*apart_ns)
            ),
            Self::KernelTimes { count, kernel_ns, recorded_ns } => write!(
                f,
                "the kernel saw {count} responses that took {:.1} or longer, but the longest {count} that the client \
                 recorded took from {:.1}",
                Nanos(*kernel_ns),
                Nanos(*recorded_ns)
            ),
            Self::CarriedTooFew { carried, responses } => write!(
                f,
                "the clients' sidecar reports {carried} carried requests, but the clients got responses to {responses}"
            ),
            Self::CarriedDiffer { of_clients, of_servers } => write!(
                f,
                "the clients' sidecar reports {of_clients} carried requests, but those of the servers {of_servers}"
            ),
            Self::CarriedNotAnswered { answered, carried } => write!(
                f,
                "the servers report {answered:?} answered requests, but their sidecars {carried:?} carried ones"
            ),
            Self::CarriedNotSent { carried, recorded, unrecorded } => write!(
                f,
                "the clients' sidecar reports {carried} carried requests, but the clients sent {recorded} and \
                 {unrecorded} before they recorded any"
            ),
            Self::ImpossibleRecord { number, problem } => write!(f, "record {number} is impossible: {problem}"),
            Self::HistogramsDiffer { what, is, right } => {
                write!(f, "the histograms contradict themselves: {is} {what} instead of {right}")
            }
            Self::LongerThanWindow { what, max_ns, window_ns } => {
                write!(f, "the longest `{what}` time, {max_ns} ns, exceeds the window of {window_ns} ns")
            }
            Self::TooEarly { waited_ns, delay_ns } => {
                write!(f, "a response came after {waited_ns} ns, but the server had to wait {delay_ns} ns")
            }
            Self::TooFewConnections { connections, requests } => {
                write!(f, "{connections} connections for {requests} requests, but every request needs its own")
            }
            Self::ImpossibleLoad { number, of, problem } => write!(f, "load {number} of {of} is impossible: {problem}"),
        }
    }
}

impl fmt::Display for RecordProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contradiction { what } => f.write_str(what),
            Self::EndedAfterWindow { ended_ns, window_ns } => {
                write!(f, "it ended at {ended_ns} ns, after the window of {window_ns} ns")
            }
            Self::Received { bytes, wanted } => write!(f, "it succeeded with {bytes} bytes instead of {wanted}"),
            Self::Sent { bytes, wanted } => write!(f, "it sent {bytes} body bytes instead of {wanted}"),
            Self::Status { status: Some(status) } => write!(f, "it succeeded with status {status}"),
            Self::Status { status: None } => f.write_str("it succeeded without a status"),
            Self::NoHandshake => f.write_str("it opened its connection and does not say how the handshake began"),
            Self::TooEarly { waited_ns, delay_ns } => {
                write!(f, "its response came after {waited_ns} ns, but the server had to wait {delay_ns} ns")
            }
            Self::ConnectionUsedAgain { connection } => {
                write!(f, "it used connection {connection} again, but every request needs its own")
            }
        }
    }
}

impl fmt::Display for LoadProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: &u64| *ns as f64 / 1e6;
        match self {
            Self::TooFewBytes { received, bodies } => {
                write!(f, "{received} bytes were received, but the page's bodies alone have {bodies}")
            }
            Self::TooManyConnections { connections, host, most, protocol } => {
                let to = host.as_ref().map_or_else(String::new, |host| format!(" to {host}"));
                write!(f, "it took {connections} connections{to}, but browsers open at most {most} for {protocol}")
            }
            Self::HostNotUsed { host } => write!(f, "no request went to {host}, which has files of the page"),
            Self::SharedConnections { of_hosts, of_load } => {
                write!(f, "its hosts had {of_hosts} connections, but the load only {of_load}: some were shared")
            }
            Self::FasterThanLink { net_ns, least_ns } => {
                let (net, least) = (ms(net_ns), ms(least_ns));
                write!(f, "its net time is {net:.1} ms, but the link needs {least:.1} ms for its bytes")
            }
            Self::FirstByteTooEarly { first_ns, trips, has_delay, least_ns } => {
                let and_delay = if *has_delay { " and the server's delay" } else { "" };
                let (first, least) = (ms(first_ns), ms(least_ns));
                write!(
                    f,
                    "its first byte came after {first:.1} ms, but {trips} round trips{and_delay} take {least:.1} ms"
                )
            }
        }
    }
}
