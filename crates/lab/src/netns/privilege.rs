//! What the process that holds the network needs from the kernel, and how to get it.

use std::io;
use std::path::PathBuf;

use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities, unshare_unsafe};

/// Gets the right to make network namespaces: as root by having it, otherwise in a user namespace. To be called before any
/// thread is started. Gives the user namespace, if one was made.
///
/// # Errors
/// If the kernel allows neither; the message says what would help.
pub(crate) fn obtain() -> Result<Option<PathBuf>, String> {
    if is_privileged() {
        return Ok(None);
    }
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    // SAFETY: the process has one thread, and unshares neither memory nor file descriptors.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }
        .map_err(|error| format!("making a user namespace: {error}. {REMEDY}"))?;
    let map = |file: &str, text: String| {
        std::fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| format!("writing /proc/self/{file}: {error}. {REMEDY}"))
    };
    map("setgroups", "deny".to_owned())?;
    map("uid_map", format!("0 {uid} 1"))?;
    map("gid_map", format!("0 {gid} 1"))?;
    Ok(Some(format!("/proc/{}/ns/user", std::process::id()).into()))
}

/// What helps where namespaces are not allowed.
pub(crate) const REMEDY: &str = "Run as root (or with CAP_SYS_ADMIN and CAP_NET_ADMIN), or let users make namespaces: \
     `sysctl user.max_user_namespaces=10000`, and on Ubuntu `sysctl kernel.apparmor_restrict_unprivileged_userns=0`";

/// Whether namespaces and their interfaces can be made without a user namespace.
pub(crate) fn is_privileged() -> bool {
    capabilities(None).is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN))
}

/// Wakes this thread at once when its time has come: no timer slack, and ahead of ordinary processes where that is allowed.
pub(crate) fn be_prompt() {
    // Refused without the privilege; then the measurement of the link shows what that costs.
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters live through the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters) };
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Processor time of this process, in nanoseconds.
pub(crate) fn cpu_ns() -> u64 {
    // SAFETY: `timespec` is plain data, for which all zeroes is a value.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the value lives through the call.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    debug_assert_eq!(status, 0, "{}", io::Error::last_os_error());
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
