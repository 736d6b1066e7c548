//! The system calls that are counted by name, and the metrics of each.

use wirelab_model::metric::{Better, Metric, Side, Unit};

use crate::About;

/// Vantage of the observer `strace`.
const STOPPED: &str = "strace(1), which stops the threads of the process and its children at every call";

/// The tracepoint that every system call passes.
pub const EVERY: &str = "raw_syscalls/sys_enter";

const VANTAGE: &str = "a counter of the kernel's tracepoint, in the threads of the process and its children";

/// The declaration of the observer `syscalls`.
///
/// Its cost was measured with `examples/observer_cost.rs`: UDP ping-pong between two processes over loopback, 30 000
/// exchanges a trial, Linux 6.18 in a virtual machine with two processors. Ratios to no observer, medians over the
/// rounds.
///
/// | observer           | program: median, quartiles, least | counters: medians of three runs, least of the last |
/// |--------------------|-----------------------------------|----------------------------------------------------|
/// | none, once more    | 0.99, 0.93 to 1.03, 1.00          | 1.09, 0.99, 1.01, 1.07                             |
/// | `syscalls`         | 1.00, 0.95 to 1.05, 1.00          | 1.28, 1.11, 1.14, 1.24                             |
/// | `syscalls_by_name` | 0.99, 0.94 to 1.05, 1.01          | 2.14, 2.09, 2.14, 1.90                             |
///
/// The program: 25 rounds, 14 µs per exchange, optimised build. The counters: 12, 25 and 30 rounds, 10 to 12 µs,
/// unoptimised build, on a machine with other load. Most of the counters' cost is in context switches: the kernel
/// removes every counter of a thread that waits and restores it afterwards, about 0.2 µs each.
pub const TOTAL: About = About {
    name: "syscalls",
    summary: "System calls of client and server in the measured window.",
    cost: "A UDP ping-pong, the worst case, took 1.00 times as long with it as without (quartiles 0.95 to 1.05; twice \
           without it: 0.93 to 1.03). It took 1.1 to 1.3 times as long where the kernel refuses an eBPF program of \
           this user.",
    needs: Some(NEEDS),
    by_default: false,
    metrics: &[
        per_request("syscalls_client_per_request", "System calls per request, client", Side::Client, ALL),
        per_request("syscalls_server_per_request", "System calls per request, server", Side::Server, ALL),
    ],
};

const NEEDS: &str =
    "root, or CAP_PERFMON and a readable tracing file system; it is mounted at /sys/kernel/tracing if it is not";

const ALL: &str = "System calls that all threads of the process and its children entered in the measured window, \
                   divided by the requests that succeeded in it. A call that was waiting in the kernel when the window \
                   began does not count; a call that waits when the window ends does.";

const ONE: &str = "Calls of the function in the title (section 2 of the manual), counted like the total.";

const OTHER: &str = "System calls of the total that are not counted by name, and all system calls of 32-bit programs.";

const TRACED: &str = "System calls that strace counted, of all threads of the process and its children, divided by the \
                      requests that succeeded in the measured window. strace attaches before the window and detaches \
                      after it. Only calls that returned count. Attaching interrupts each waiting call, which adds one \
                      call for each such thread.";

const TRACED_ONE: &str = "Calls of the function in the title (section 2 of the manual), counted like strace's total.";

const TRACED_OTHER: &str = "System calls of strace's total that are not counted by name.";

const fn per_request(name: &'static str, title: &'static str, side: Side, meaning: &'static str) -> Metric {
    Metric { name, title, unit: Unit::Count, side, vantage: VANTAGE, better: Better::Lower, meaning }
}

const fn traced(name: &'static str, title: &'static str, side: Side, meaning: &'static str) -> Metric {
    Metric { vantage: STOPPED, ..per_request(name, title, side, meaning) }
}

/// Declares [`CALLS`], [`BY_NAME`] and [`STRACE`] from the calls' names, and the tracepoints' names if they differ.
macro_rules! calls {
    ($($call:literal $(as $tracepoint:literal)?),* $(,)?) => {
        /// The calls that are counted by name, each with its tracepoint: the calls that network programs use most and
        /// wait in. Every further name costs a thread about 0.2 µs each time it waits (see [`TOTAL`]), so rare calls
        /// are left out.
        pub const CALLS: &[(&str, &str)] = &[$(($call, calls!(@tracepoint $call $(as $tracepoint)?))),*];

        /// The declaration of the observer `syscalls_by_name`; [`TOTAL`] has the measurement of its cost.
        pub const BY_NAME: About = About {
            name: "syscalls_by_name",
            summary: "System calls of client and server in the measured window, by name.",
            cost: "As `syscalls`, because one program counts both. Where the kernel refuses an eBPF program of this \
                   user, a UDP ping-pong, the worst case, took 2.1 times as long with it as without. Times of such \
                   trials compare with each other only, and the run ends a second later.",
            needs: Some(NEEDS),
            by_default: false,
            metrics: &[
                $(
                    per_request(
                        concat!("syscalls_client_", $call, "_per_request"),
                        concat!("Calls of ", $call, " per request, client"),
                        Side::Client,
                        ONE,
                    ),
                    per_request(
                        concat!("syscalls_server_", $call, "_per_request"),
                        concat!("Calls of ", $call, " per request, server"),
                        Side::Server,
                        ONE,
                    ),
                )*
                per_request(
                    "syscalls_client_other_per_request",
                    "Other system calls per request, client",
                    Side::Client,
                    OTHER,
                ),
                per_request(
                    "syscalls_server_other_per_request",
                    "Other system calls per request, server",
                    Side::Server,
                    OTHER,
                ),
            ],
        };

        /// The declaration of the observer `strace`.
        pub const STRACE: About = About {
            name: "strace",
            summary: "System calls of client and server by strace, for kernels without usable counters. Its trials \
                      give no other value, because strace slows the processes down.",
            cost: "Trials take many times as long, so they give no other metric.",
            needs: Some("strace, and the right to trace: root, CAP_SYS_PTRACE, or kernel.yama.ptrace_scope = 0"),
            by_default: false,
            metrics: &[
                traced("strace_client_per_request", "System calls per request by strace, client", Side::Client, TRACED),
                traced("strace_server_per_request", "System calls per request by strace, server", Side::Server, TRACED),
                $(
                    traced(
                        concat!("strace_client_", $call, "_per_request"),
                        concat!("Calls of ", $call, " per request by strace, client"),
                        Side::Client,
                        TRACED_ONE,
                    ),
                    traced(
                        concat!("strace_server_", $call, "_per_request"),
                        concat!("Calls of ", $call, " per request by strace, server"),
                        Side::Server,
                        TRACED_ONE,
                    ),
                )*
                traced(
                    "strace_client_other_per_request",
                    "Other system calls per request by strace, client",
                    Side::Client,
                    TRACED_OTHER,
                ),
                traced(
                    "strace_server_other_per_request",
                    "Other system calls per request by strace, server",
                    Side::Server,
                    TRACED_OTHER,
                ),
            ],
        };
    };
    (@tracepoint $call:literal) => { concat!("syscalls/sys_enter_", $call) };
    (@tracepoint $call:literal as $tracepoint:literal) => { concat!("syscalls/sys_enter_", $tracepoint) };
}

calls!(
    // Input and output.
    "read",
    "write",
    "readv",
    "writev",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "sendfile" as "sendfile64",
    // Waiting.
    "epoll_wait",
    "epoll_pwait",
    "epoll_ctl",
    "poll",
    "ppoll",
    "futex",
    "nanosleep",
    "clock_nanosleep",
    "io_uring_enter",
    // Connections and files.
    "socket",
    "connect",
    "accept4",
    "setsockopt",
    "openat",
    "close",
    // Memory.
    "mmap",
    "munmap",
    "madvise",
);

/// The number of a call on this architecture; `None` if the architecture lacks the call.
pub fn number(call: &str) -> Option<u64> {
    let number = match call {
        "read" => libc::SYS_read,
        "write" => libc::SYS_write,
        "readv" => libc::SYS_readv,
        "writev" => libc::SYS_writev,
        "recvfrom" => libc::SYS_recvfrom,
        "recvmsg" => libc::SYS_recvmsg,
        "recvmmsg" => libc::SYS_recvmmsg,
        "sendto" => libc::SYS_sendto,
        "sendmsg" => libc::SYS_sendmsg,
        "sendmmsg" => libc::SYS_sendmmsg,
        "sendfile" => libc::SYS_sendfile,
        #[cfg(target_arch = "x86_64")]
        "epoll_wait" => libc::SYS_epoll_wait,
        "epoll_pwait" => libc::SYS_epoll_pwait,
        "epoll_ctl" => libc::SYS_epoll_ctl,
        #[cfg(target_arch = "x86_64")]
        "poll" => libc::SYS_poll,
        "ppoll" => libc::SYS_ppoll,
        "futex" => libc::SYS_futex,
        "nanosleep" => libc::SYS_nanosleep,
        "clock_nanosleep" => libc::SYS_clock_nanosleep,
        "io_uring_enter" => libc::SYS_io_uring_enter,
        "socket" => libc::SYS_socket,
        "connect" => libc::SYS_connect,
        "accept4" => libc::SYS_accept4,
        "setsockopt" => libc::SYS_setsockopt,
        "openat" => libc::SYS_openat,
        "close" => libc::SYS_close,
        "mmap" => libc::SYS_mmap,
        "munmap" => libc::SYS_munmap,
        "madvise" => libc::SYS_madvise,
        _ => return None,
    };
    u64::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn every_call_has_a_distinct_number() {
        let numbers: std::collections::BTreeSet<_> = CALLS.iter().map(|(call, _)| number(call).unwrap()).collect();
        assert_eq!(numbers.len(), CALLS.len());
        assert_eq!(number("fly"), None);
    }
}
