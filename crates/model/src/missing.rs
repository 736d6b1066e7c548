//! Why a value is missing: the one place that renders these reasons as text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::metric::Side;
use crate::protocol::Protocol;

/// The reason why a value is missing.
///
/// In JSON it has its text as `not_measured`, the variant as `code`, and the fields. A reason of a client, or of a run
/// that is older than the codes, has its text only and is read as [`Missing::Other`].
#[derive(Debug, Clone, PartialEq, Error, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "code", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the text of a variant says what it means")]
pub enum Missing {
    // The trial and its measured window.
    #[error("the trial ended before its measured window did")]
    NoWindow,
    #[error("the measured window has no length")]
    EmptyWindow,
    #[error("the number is not finite")]
    NotFinite,
    #[error("the server is not ours")]
    ForeignServer,
    #[error("not a process of this machine")]
    RemoteProcess,
    #[error("the observer `{observer}` {how}")]
    Distorted { observer: String, how: String },
    #[error("the trial has no sidecars")]
    NoSidecars,
    #[error("the table has no number in this field")]
    EmptyField,

    // Requests.
    #[error("no request was made")]
    NoRequest,
    #[error("no request succeeded")]
    NoSuccess,
    #[error("no request failed")]
    NoFailure,
    #[error("the requests had no payload")]
    NoPayload,
    #[error("only {count} {}; a P{percent} needs {needed}", if *count == 1 { "request" } else { "requests" })]
    TooFewForPercentile { count: u64, percent: f64, needed: u64 },
    #[error("only {count} requests; quartiles need 4")]
    TooFewForQuartiles { count: u64 },
    #[error("this transport connects at the end of its handshake")]
    ConnectsWithHandshake,
    #[error("no successful request opened a connection in the measured window")]
    NoNewConnection,
    #[error("no TLS or QUIC handshake happened in the measured window")]
    NoHandshake,
    #[error("histograms do not record when the transport was connected")]
    NotInHistograms,
    #[error("a client had no answer")]
    ClientWithoutAnswer,
    #[error("the client is your program, and `client_output` does not say where it prints the value")]
    NotPrinted,
    #[error("your client printed 0, because the time is shorter than the last digit that it prints")]
    PrintedZero,
    #[error("{failed} requests failed, and the percentile that your client printed leaves them out")]
    SuccessesOnly { failed: u64 },

    // Timelines.
    #[error("no server answered a request in the window")]
    NoServerAnswered,
    #[error("no reachable server answered a request in the window")]
    NoReachableServerAnswered,
    #[error("the next action or the end came within half a second")]
    NextActionTooSoon,
    #[error("the servers were not balanced before the next action or the end")]
    NotBalanced,

    // Transports.
    #[error("the {side} does not report on its transport")]
    NoTransportReport { side: Side },
    #[error("the {side} had no connection")]
    NoConnection { side: Side },
    #[error("the {side} had no TCP connection in the window")]
    NoTcpConnection { side: Side },
    #[error("the {side}'s report on its transport is implausible: {detail}")]
    ImplausibleReport { side: Side, detail: String },
    #[error("the transport does not report it")]
    NotReported,
    #[error("the kernel has no sample of this value")]
    NoSample,
    #[error("no packet was sent")]
    NoPacketSent,

    // Exchanges.
    #[error("requests over {protocol} share connections with other frames, so the kernel cannot tell them apart")]
    SharedConnections { protocol: Protocol },
    #[error("requests open TLS connections, whose handshakes look like requests to the kernel")]
    HandshakesInWindow,
    #[error("a server may answer a request of {bytes} bytes before it has arrived, which looks like two requests")]
    LargeRequest { bytes: u64 },
    #[error("only trials of one protocol, without a timeline, a page, sidecars or a control plane, are followed")]
    NotOneByOne,
    #[error("the kernel saw no request and response on the client's connections to the servers")]
    NoExchange,

    // Page loads.
    #[error("the client does not measure it")]
    NotMeasuredByClient,
    #[error("no page was loaded")]
    NoLoad,
    #[error("the page's timeline could not be read")]
    NoPageTimeline,
    #[error("{event} did not fire")]
    NotFired { event: String },
    #[error("nothing was painted that counts")]
    NoPaint,
    #[error("the browser does not say")]
    NotSaidByBrowser,
    #[error("the browser does not say it of every resource")]
    NotSaidOfEveryResource,
    #[error("the browser does not say when requests left or responses ended")]
    NoRequestTimes,
    #[error("the browser does not say over which connection a response came")]
    UnnumberedConnections,
    #[error("Firefox takes the session tickets of TLS 1.3 for the first byte of an HTTP/1.1 response")]
    SessionTicketsAsFirstByte,
    #[error("no load was filmed")]
    NotFilmed,
    #[error("the browser gave no pictures of the window")]
    NoPictures,
    #[error("nothing was painted: the window is as white at the end as at the beginning")]
    WhiteWindow,
    #[error("a picture cannot be made smaller")]
    PictureNotReduced,

    // The lab and its links.
    #[error("the link is a wire, which no emulator carries")]
    NoEmulator,
    #[error("no datagram came back; does a firewall block UDP between the hosts?")]
    NoDatagramCameBack,
    #[error("no packet of the tried sizes arrived")]
    NoSizeArrived,
    #[error("the network sets the number of remaining hops itself")]
    HopsHidden,
    #[error("it needs load on the path, which the study does not allow (`link_load`)")]
    LoadNotAllowed,
    #[error("the client does not connect to a service")]
    NoService,
    #[error("the service led no connection to a server")]
    UnusedService,
    #[error("{reason}")]
    Lab { reason: String },
    #[error("one of the places did not report this metric")]
    NotReportedByAPlace,
    #[error("no place reported this metric")]
    NotReportedByAnyPlace,

    // Processes.
    #[error("the lab does not show the process of the {side}")]
    ProcessHidden { side: Side },
    #[error("the lab does not show the processes, which may run on another machine")]
    ProcessesHidden,
    #[error("the lab does not reap the process of the {side}")]
    NotReaped { side: Side },
    #[error("process {pid} had ended")]
    ProcessEnded { pid: u32 },
    #[error("a process ended in the window without a living parent, so its counts are lost")]
    OrphanEnded,
    #[error("a process ended in the window and no parent waited for it")]
    EndedUnwaited,
    #[error("a child process ended in the window")]
    ChildEnded,
    #[error("a child process ended in the window and used too little CPU time for the kernel's ticks")]
    ShortChildEnded,
    #[error(
        "child processes ended in the window, and the kernel's ticks do not give their CPU time to within {percent} % \
         of the total"
    )]
    CoarseTicks { percent: f64 },
    #[error("the window has {ticks} ticks of CPU time; the split needs at least {needed}")]
    TooFewTicks { ticks: u64, needed: u64 },
    #[error("the window was shorter than a tick of the kernel's account")]
    ShorterThanTick,
    #[error("no processor time was spent")]
    NoProcessorTime,
    #[error("a process ended in the window, and the kernel dropped its peak")]
    PeakLost,
    #[error("a process ended, so the kernel shows no VmHWM of it")]
    NoPeak,
    #[error("the peak before the window cannot be reset: {cause}")]
    PeakNotReset {
        #[source]
        cause: Cause,
    },
    #[error("{count} threads ended in the window, and the kernel keeps no counts of ended threads")]
    ThreadsEnded { count: usize },
    #[error("the kernel reused a thread id in the window")]
    ThreadIdReused,
    #[error("the kernel shows no context switches of the process")]
    NoSwitches,
    #[error("the kernel shows no count of migrations (/proc/PID/task/TID/sched)")]
    NoMigrations,
    #[error("the kernel shows no list of allowed processors")]
    NoAffinity,
    #[error("a process moved to another network namespace in the window")]
    NamespaceChanged,
    #[error("the kernel's counter went backwards")]
    CounterBackwards,

    // System calls.
    #[error("counting system calls failed: processes or threads kept starting and ending while it began")]
    ProcessesKeepChanging,
    #[error(
        "the kernel does not let wirelab count system calls ({cause}; kernel.perf_event_paranoid is {paranoid}). \
         Remedy: run wirelab as root or with CAP_PERFMON; in a container, allow perf_event_open. Or use the observer \
         `strace`, whose trials give no other metric"
    )]
    CountingNotPermitted {
        paranoid: String,
        #[source]
        cause: Cause,
    },
    #[error(
        "counting {calls} kinds of system calls in {threads} threads takes {} open files: {cause}. Remedy: raise the \
         limit (ulimit -Hn)",
        threads * calls
    )]
    TooManyCounters {
        calls: usize,
        threads: usize,
        #[source]
        cause: Cause,
    },
    #[error("the counts by name exceed the count of all calls")]
    ContradictoryCounts,
    #[error("the program can follow {most} processes and threads, and {missed} more were started")]
    TooManyProcesses { most: u32, missed: u64 },
    #[error("eBPF: big-endian machines are not supported")]
    BigEndian,
    #[error("eBPF: wirelab runs in a PID namespace of its own, such as a container's")]
    OwnPidNamespace,

    // Packets and connections.
    #[error(
        "the lab shares its network interfaces with other programs, so the trial's packets cannot be separated from \
         theirs; use the lab netns"
    )]
    SharedInterfaces,
    #[error("the lab shows no interface there")]
    NoInterface,
    #[error("the servers are on several nodes, so no single node's interface carries all their packets")]
    SeveralNodes,
    #[error("each client's pod has an interface of its own, and shares of several do not add up; use one client")]
    SeveralClients,
    #[error("Linkerd's proxies have containers of their own, whose processes wirelab's containers cannot see")]
    LinkerdContainers,
    #[error("client and server share a node, so their packets pass no other node's interface")]
    OnClientNode,
    #[error(
        "the servers' pods exchanged no packet with the clients; check whether the network translates addresses on \
         the way, as NodePort services do"
    )]
    NoPacketsAtPod,
    #[error("at the interface of the server's pod: {reason}")]
    AtPod { reason: Box<Missing> },
    #[error(
        "the server's pod sent {sent} packets to clients and received {received}, but its node's interface carried \
         {sent_at_node} and {received_at_node} of them, plain or in VXLAN: the cluster's network takes another way or \
         uses another encapsulation"
    )]
    OtherPacketsAtPod { sent: u64, received: u64, sent_at_node: u64, received_at_node: u64 },
    #[error("no packet passed in the window")]
    NoPackets,
    #[error("packets are not in VXLAN at this interface")]
    NotEncapsulated,
    #[error("a super-packet that is neither TCP nor UDP over IP passed, so packets could not be counted")]
    UnknownSuperPacket,
    #[error(
        "the client's interface carried {carried} bytes, fewer than the payload's {payload}, so packets took another \
         way"
    )]
    OtherWay { carried: u64, payload: u64 },
    #[error(
        "{count} frames arrived faster than they could be read, so the counts are incomplete; lower the load, or use \
         a machine with more processors"
    )]
    FramesLost { count: u64 },
    #[error(
        "{captured} frames were captured but the interface counted {counted}, so the capture is not what passed (does \
         the interface merge what it receives, GRO?)"
    )]
    OtherFrames { captured: u64, counted: u64 },
    #[error("connections ended faster than they could be read, so the counts are incomplete")]
    ConnectionsLost,

    // The kernel, files and tools.
    #[error("this kernel has no {feature}")]
    KernelLacks { feature: String },
    #[error("{path} cannot be read: {cause}")]
    Unreadable {
        path: String,
        #[source]
        cause: Cause,
    },
    #[error("{attempt}: {cause}")]
    Failed {
        attempt: String,
        #[source]
        cause: Cause,
    },
    #[error("{attempt}: {cause}. Remedy: {remedy}")]
    NotPermitted {
        attempt: String,
        #[source]
        cause: Cause,
        remedy: String,
    },
    #[error("{attempt} took longer than {seconds} s")]
    TimedOut { attempt: String, seconds: u64 },
    #[error("cannot run {program}: it is not on the PATH. Remedy: install it (apt-get install {program})")]
    ProgramMissing { program: String },
    #[error(
        "strace ended before it was attached: {output}. Remedy: run wirelab as root, with CAP_SYS_PTRACE, or with \
         kernel.yama.ptrace_scope = 0"
    )]
    StraceEnded { output: String },
    #[error("strace printed no table of system calls: {output}")]
    NoStraceTable { output: String },
    #[error("the witness process has ended; was it killed?")]
    WitnessEnded,
    #[error("the witness process answered {order} with {answer}")]
    WrongAnswer { order: String, answer: String },

    /// A reason of a client, or of a run that is older than the codes.
    #[error("{text}")]
    Other {
        #[serde(skip)]
        text: String,
    },
}

impl Missing {
    /// A reason without a code.
    pub fn other(text: impl Into<String>) -> Self {
        Self::Other { text: text.into() }
    }

    /// A file or folder that cannot be read.
    pub fn unreadable(path: impl Into<String>, error: impl Into<std::io::Error>) -> Self {
        Self::Unreadable { path: path.into(), cause: error.into().into() }
    }

    /// An attempt that failed.
    pub fn failed(attempt: impl Into<String>, error: impl Into<std::io::Error>) -> Self {
        Self::Failed { attempt: attempt.into(), cause: error.into().into() }
    }

    /// A feature that this kernel lacks.
    pub fn kernel_lacks(feature: impl Into<String>) -> Self {
        Self::KernelLacks { feature: feature.into() }
    }
}

impl Serialize for Missing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'a> {
            not_measured: String,
            #[serde(flatten, with = "Missing")]
            reason: &'a Missing,
        }
        Written { not_measured: self.to_string(), reason: self }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Missing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            not_measured: String,
            #[serde(flatten)]
            reason: serde_json::Map<String, serde_json::Value>,
        }
        let Written { not_measured: text, reason } = Written::deserialize(deserializer)?;
        Ok(match Self::deserialize(serde_json::Value::Object(reason)) {
            Ok(Self::Other { .. }) | Err(_) => Self::Other { text },
            Ok(reason) => reason,
        })
    }
}

/// The error of the system or of a library behind a reason, as text and, if the system gave one, with its number.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{text}")]
pub struct Cause {
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
}

impl From<std::io::Error> for Cause {
    fn from(error: std::io::Error) -> Self {
        Self { text: error.to_string(), errno: error.raw_os_error() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Value;

    #[track_caller]
    fn check(reason: &Missing, json: &str) {
        let value = Value::missing(reason.clone());
        assert_eq!(serde_json::to_string(&value).unwrap(), json);
        assert_eq!(serde_json::from_str::<Value>(json).unwrap(), value);
    }

    #[test]
    fn a_reason_is_written_with_its_text_its_code_and_its_fields() {
        check(&Missing::NoSidecars, r#"{"not_measured":"the trial has no sidecars","code":"no-sidecars"}"#);
        check(
            &Missing::ProcessHidden { side: Side::Client },
            r#"{"not_measured":"the lab does not show the process of the client","code":"process-hidden","side":"client"}"#,
        );
        check(
            &Missing::unreadable("/proc", std::io::Error::other("no")),
            r#"{"not_measured":"/proc cannot be read: no","code":"unreadable","path":"/proc","cause":{"text":"no"}}"#,
        );
        let inner = r#"{"not_measured":"no packet passed in the window","code":"no-packets"}"#;
        check(
            &Missing::AtPod { reason: Box::new(Missing::NoPackets) },
            &format!(
                r#"{{"not_measured":"at the interface of the server's pod: no packet passed in the window","code":"at-pod","reason":{inner}}}"#
            ),
        );
        check(&Missing::other("too hot"), r#"{"not_measured":"too hot","code":"other"}"#);
    }

    #[test]
    fn a_reason_without_a_known_code_keeps_its_text() {
        for json in [
            r#"{"not_measured":"too hot"}"#,
            r#"{"not_measured":"too hot","code":"heat"}"#,
            r#"{"not_measured":"too hot","code":"process-ended","pid":"x"}"#,
        ] {
            assert_eq!(serde_json::from_str::<Value>(json).unwrap(), Value::missing(Missing::other("too hot")));
        }
    }
}
