//! Kills the processes that an endpoint left in a pod or on a host, or the endpoint itself.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::process::{Pid, Signal, getpid, kill_process};

use super::root::ROOT;

/// How often new processes are searched: a killed parent may just have started another child.
const ROUNDS: usize = 100;

/// Kills the processes of this seat, if the agent has a root; otherwise it is in a pod, and kills every process except
/// the first. Other sweeps live on: several endpoints may be ended at once, and their sweeps must not kill each other.
pub(crate) fn sweep() -> io::Result<()> {
    match env::var_os(ROOT) {
        Some(root) => kill_all(|pid| root_of(pid).is_some_and(|of| of == root)),
        None => sweep_pod(),
    }
}

/// Kills every process of this user whose root is the folder or below it.
pub(crate) fn below(folder: &Path) -> io::Result<()> {
    kill_all(|pid| root_of(pid).is_some_and(|root| Path::new(&root).starts_with(folder)))
}

fn sweep_pod() -> io::Result<()> {
    if getpid().as_raw_nonzero().get() == 1 {
        return Err(io::Error::other("the first process does not sweep"));
    }
    // Outside a pod, this would kill every process of the user.
    if !is_agent(&std::fs::read("/proc/1/cmdline")?, "wait") {
        return Err(io::Error::other("the first process here is no agent that waits, so this is no pod of wirelab"));
    }
    kill_all(|pid| pid.as_raw_nonzero().get() != 1)
}

/// Kills the running processes that are meant, until none is left.
fn kill_all(is_meant: impl Fn(Pid) -> bool) -> io::Result<()> {
    for _ in 0..ROUNDS {
        let others: Vec<_> = others()?.into_iter().filter(|pid| is_meant(*pid)).collect();
        if others.is_empty() {
            return Ok(());
        }
        for pid in others {
            // The process may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::yield_now();
    }
    Err(io::Error::other("processes did not end though they were killed"))
}

/// Whether a command line is that of an agent with this subcommand.
fn is_agent(command: &[u8], word: &str) -> bool {
    let mut words = command.split(|byte| *byte == 0).skip(1);
    words.next() == Some(super::SUBCOMMAND.as_bytes()) && words.next() == Some(word.as_bytes())
}

/// The root in a process's environment, if it has one and may be read.
fn root_of(pid: Pid) -> Option<OsString> {
    let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
    let mut entries = environment.split(|byte| *byte == 0).filter_map(|entry| {
        let (name, value) = entry.split_at(entry.iter().position(|byte| *byte == b'=')?);
        (OsStr::from_bytes(name) == ROOT).then(|| OsString::from_vec(value[1..].to_vec()))
    });
    entries.next()
}

/// All other running processes that this process sees; ended ones are left to their parents.
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
        if runs && pid != getpid() && !sweeps() {
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
    #[test]
    fn only_the_processes_with_the_root_are_swept() {
        let mut children = ["/tmp/wirelab-a/server", "/tmp/wirelab-b/server"]
            .map(|root| std::process::Command::new("sleep").arg("60").env(ROOT, root).spawn().unwrap());
        below(Path::new("/tmp/wirelab-a")).unwrap();
        assert!(!children[0].wait().unwrap().success());
        assert_eq!(children[1].try_wait().unwrap(), None);
        children[1].kill().unwrap();
        children[1].wait().unwrap();
    }
}
