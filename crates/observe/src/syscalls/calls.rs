//! The system calls that are counted by name, and the metrics of each.

use wirelab_model::metric::{Better, Metric, Side, Unit};

use crate::About;

/// From where strace sees them.
const STOPPED: &str = "strace(1), which stops the threads of the process and its children at every call";

/// The kernel's tracepoint of every system call.
pub const EVERY: &str = "raw_syscalls/sys_enter";

const VANTAGE: &str = "a counter of the kernel's tracepoint, in the threads of the process and its children";

/// The declaration of the observer of totals.
///
/// Its cost was measured with `examples/observer_cost.rs`: UDP ping-pong between two processes over loopback, 30 000 exchanges
/// a trial, Linux 6.18 in a virtual machine with two processors; ratios to no observer, the median of those in the same round.
///
/// | observer           | program: median, quartiles, least | counters: medians of three runs, least of the last |
/// |--------------------|-----------------------------------|----------------------------------------------------|
/// | none, once more    | 0.99, 0.93 to 1.03, 1.00          | 1.09, 0.99, 1.01, 1.07                             |
/// | `syscalls`         | 1.00, 0.95 to 1.05, 1.00          | 1.28, 1.11, 1.14, 1.24                             |
/// | `syscalls_by_name` | 0.99, 0.94 to 1.05, 1.01          | 2.14, 2.09, 2.14, 1.90                             |
///
/// By a program: 25 rounds, an exchange of 14 µs, optimised build. By counters: 12, 25 and 30 rounds, 10 to 12 µs, unoptimised build, a
/// machine that others used too. Most of the cost of counters is not counting but the switch of threads: the kernel takes every counter of
/// a thread away when it waits and puts it back when it goes on, some 0.2 µs for each.
pub const TOTAL: About = About {
    name: "syscalls",
    summary: "System calls of client and server in the measured window.",
    cost: "A UDP ping-pong, the worst case, took 1.00 times as long with it as without (quartiles 0.95 to 1.05; twice without it: 0.93 to \
           1.03); 1.1 to 1.3 times where the kernel takes no eBPF program of this user.",
    needs: Some(NEEDS),
    by_default: false,
    metrics: &[
        per_request("syscalls_client_per_request", "System calls per request, client", Side::Client, ALL),
        per_request("syscalls_server_per_request", "System calls per request, server", Side::Server, ALL),
    ],
};

const NEEDS: &str =
    "root, or CAP_PERFMON and a readable tracing file system; it is mounted at /sys/kernel/tracing if it is not";

const ALL: &str = "System calls of all threads of the process and its children that were entered in the measured window, \
                   divided by the requests that succeeded in it. One that was waiting in the kernel when the window began is \
                   not in it; one that waits when it ends is.";

const ONE: &str = "Calls of the function that the title names (section 2 of the manual), counted as the total is.";

const OTHER: &str = "System calls, as in the total, that are not among those that are counted by name; 32-bit programs have \
                     all of theirs here.";

const TRACED: &str = "System calls that strace counted between its attaching before the measured window and its detaching after \
                      it, of all threads of the process and its children, divided by the requests that succeeded in it. Only \
                      calls that returned; whatever waited in the kernel is interrupted by attaching and asks again, which is a \
                      call more for each such thread.";

const TRACED_ONE: &str =
    "Calls of the function that the title names (section 2 of the manual), counted as strace's total is.";

const TRACED_OTHER: &str = "System calls, as in strace's total, that are not among those that are counted by name.";

const fn per_request(name: &'static str, title: &'static str, side: Side, meaning: &'static str) -> Metric {
    Metric { name, title, unit: Unit::Count, side, vantage: VANTAGE, better: Better::Lower, meaning }
}

const fn traced(name: &'static str, title: &'static str, side: Side, meaning: &'static str) -> Metric {
    Metric { vantage: STOPPED, ..per_request(name, title, side, meaning) }
}

/// Declares [`CALLS`], [`BY_NAME`] and [`STRACE`] from the calls' names and, where the kernel's tracepoint has another, that one.
macro_rules! calls {
    ($($call:literal $(as $tracepoint:literal)?),* $(,)?) => {
        /// The calls by name, each with its tracepoint: what network programs spend their calls on, and what they wait in.
        /// One more name costs a thread some 0.2 µs each time it waits (see [`TOTAL`]), so rare ones are not here.
        pub const CALLS: &[(&str, &str)] = &[$(($call, calls!(@tracepoint $call $(as $tracepoint)?))),*];

        /// The declaration of the observer of calls by name. What it costs stands at [`TOTAL`].
        pub const BY_NAME: About = About {
            name: "syscalls_by_name",
            summary: "System calls of client and server in the measured window, by name.",
            cost: "That of `syscalls`, because one program counts both. Where the kernel takes no eBPF program of this user: a UDP ping-pong, \
                   the worst case, took 2.1 times as long with it as without, so times of its trials compare with each other only; and \
                   the run ends a second later.",
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
                per_request("syscalls_client_other_per_request", "Other system calls per request, client", Side::Client, OTHER),
                per_request("syscalls_server_other_per_request", "Other system calls per request, server", Side::Server, OTHER),
            ],
        };

        /// The declaration of the observer that has strace count.
        pub const STRACE: About = About {
            name: "strace",
            summary: "System calls of client and server by strace, where the kernel's counters cannot be had. Its trials give no other \
                      value: all else is slowed down.",
            cost: "Many times the trial's length, which is why nothing else is measured in its trials.",
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
                traced("strace_client_other_per_request", "Other system calls per request by strace, client", Side::Client, TRACED_OTHER),
                traced("strace_server_other_per_request", "Other system calls per request by strace, server", Side::Server, TRACED_OTHER),
            ],
        };
    };
    (@tracepoint $call:literal) => { concat!("syscalls/sys_enter_", $call) };
    (@tracepoint $call:literal as $tracepoint:literal) => { concat!("syscalls/sys_enter_", $tracepoint) };
}

calls!(
    // Bytes out and in.
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

/// The kernel's number of a call; absent where this machine's kernel has no such call.
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
    fn every_call_has_a_number_of_its_own() {
        let numbers: std::collections::BTreeSet<_> = CALLS.iter().map(|(call, _)| number(call).unwrap()).collect();
        assert_eq!(numbers.len(), CALLS.len());
        assert_eq!(number("fly"), None);
    }
}
