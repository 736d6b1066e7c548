//! Kills the processes that an endpoint left in a pod, or the endpoint itself.

use std::io;

use rustix::process::{Pid, Signal, getpid, kill_process};

/// How often new processes are searched: a killed parent may just have started another child.
const ROUNDS: usize = 100;

/// Kills every process except the first and other sweeps. Several endpoints of a pod may be ended at once, and their
/// sweeps must not kill each other.
pub(crate) fn sweep() -> io::Result<()> {
    if getpid().as_raw_nonzero().get() == 1 {
        return Err(io::Error::other("the first process does not sweep"));
    }
    // Outside a pod, this would kill every process of the user.
    if !is_agent(&std::fs::read("/proc/1/cmdline")?, "wait") {
        return Err(io::Error::other("the first process here is no agent that waits, so this is no pod of wirelab"));
    }
    for _ in 0..ROUNDS {
        let others = others()?;
        if others.is_empty() {
            return Ok(());
        }
        for pid in others {
            // The process may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::yield_now();
    }
    Err(io::Error::other("processes of the pod did not end though they were killed"))
}

/// Whether a command line is that of an agent with this subcommand.
fn is_agent(command: &[u8], word: &str) -> bool {
    let mut words = command.split(|byte| *byte == 0).skip(1);
    words.next() == Some(super::SUBCOMMAND.as_bytes()) && words.next() == Some(word.as_bytes())
}

/// The pod's running processes; ended ones are left to their parents.
fn others() -> io::Result<Vec<Pid>> {
    let mut others = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
        let runs = !matches!(state, None | Some('Z' | 'X'));
        // A process that has just ended has no command line, and is not found again.
        let sweeps = || is_agent(&std::fs::read(entry.path().join("cmdline")).unwrap_or_default(), "sweep");
        if runs && pid != getpid() && pid.as_raw_nonzero().get() != 1 && !sweeps() {
            others.push(pid);
        }
    }
    Ok(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_recognised_by_their_command_line() {
        assert!(is_agent(b"/wirelab\0agent\0wait\0other-0\0", "wait"));
        assert!(!is_agent(b"/sbin/init\0", "wait"));
        assert!(!is_agent(b"/wirelab\0agent\0look\0", "wait"));
        assert!(is_agent(b"/wirelab\0agent\0sweep\0", "sweep"));
        assert!(!is_agent(b"/wirelab\0endpoint\0sweep\0", "sweep"));
    }
}
