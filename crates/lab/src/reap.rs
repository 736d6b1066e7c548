//! Exit status and resource usage of a process.

use std::io;
use std::mem::MaybeUninit;

use rustix::process::Pid;

use crate::{ExitStatus, Usage};

/// Reaps a child that has ended; returns its exit status and resource usage (wait4(2)).
///
/// The usage includes the descendants that the child waited for. Blocks until the child has ended.
///
/// # Errors
/// If `pid` is not a child of this process, or was already reaped.
pub fn reap(pid: Pid) -> io::Result<(ExitStatus, Usage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are valid for writes for the whole call, and wait4 keeps neither of them.
        let reaped = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, usage.as_mut_ptr()) };
        if reaped >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: `struct rusage` consists of integers only, for which zero bytes (or what the kernel wrote) are valid.
    let usage = unsafe { usage.assume_init() };
    let status = if libc::WIFSIGNALED(status) {
        ExitStatus::Signal(libc::WTERMSIG(status))
    } else {
        ExitStatus::Code(libc::WEXITSTATUS(status))
    };
    Ok((status, convert(&usage)))
}

/// Converts `struct rusage` to base units. The kernel reports `ru_maxrss` in KiB (getrusage(2)).
fn convert(usage: &libc::rusage) -> Usage {
    let nanos = |time: libc::timeval| unsigned(time.tv_sec) * 1_000_000_000 + unsigned(time.tv_usec) * 1000;
    Usage {
        user_ns: nanos(usage.ru_utime),
        system_ns: nanos(usage.ru_stime),
        peak_memory: unsigned(usage.ru_maxrss) * 1024,
        minor_faults: unsigned(usage.ru_minflt),
        major_faults: unsigned(usage.ru_majflt),
        voluntary_switches: unsigned(usage.ru_nvcsw),
        involuntary_switches: unsigned(usage.ru_nivcsw),
    }
}

/// The kernel's counters are never negative, although their C type is signed.
fn unsigned(count: i64) -> u64 {
    count.unsigned_abs()
}
