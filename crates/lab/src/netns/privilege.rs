//! Privileges of the process that holds the network.

use std::io;
use std::path::PathBuf;

use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities, unshare_unsafe};

use crate::LabError;

/// Obtains the right to create network namespaces: as root directly, otherwise in a new user namespace. Call it
/// before any thread starts. Returns the path of the user namespace, if one was created.
///
/// # Errors
/// If the kernel permits neither; the message names the remedy.
pub(crate) fn obtain() -> Result<Option<PathBuf>, LabError> {
    if is_privileged() {
        return Ok(None);
    }
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    // SAFETY: the process has one thread, and unshares neither memory nor file descriptors.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }
        .map_err(|error| LabError::refused("making a user namespace").because(error).remedy(REMEDY))?;
    let map = |file: &str, text: String| {
        let path = format!("/proc/self/{file}");
        std::fs::write(&path, text)
            .map_err(|error| LabError::refused(format!("writing {path}")).because(error).remedy(REMEDY))
    };
    map("setgroups", "deny".to_owned())?;
    map("uid_map", format!("0 {uid} 1"))?;
    map("gid_map", format!("0 {gid} 1"))?;
    Ok(Some(format!("/proc/{}/ns/user", std::process::id()).into()))
}

/// Remedy where namespaces are not permitted.
const REMEDY: &str = "run as root (or with CAP_SYS_ADMIN and CAP_NET_ADMIN), or let users make namespaces: \
     `sysctl user.max_user_namespaces=10000`, and on Ubuntu `sysctl kernel.apparmor_restrict_unprivileged_userns=0`";

/// Whether the process can create namespaces and interfaces without a user namespace.
pub(crate) fn is_privileged() -> bool {
    capabilities(None).is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN))
}

/// Makes this thread wake promptly: no timer slack, and real-time priority if permitted.
pub(crate) fn be_prompt() {
    // Without the privilege the call fails; the link measurement then shows the cost.
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters live through the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters) };
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// CPU time of this process, in nanoseconds.
pub(crate) fn cpu_ns() -> u64 {
    // SAFETY: `timespec` is plain data, for which all zeroes is a value.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the value lives through the call.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    debug_assert_eq!(status, 0, "{}", io::Error::last_os_error());
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
