//! The process that made a namespace, and whether it still runs.

use std::fs;

use procfs::process::Process;
use serde::{Deserialize, Serialize};

/// A process, uniquely identified by machine, boot, process id and start time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) host: String,
    boot: String,
    pid: u32,
    started: u64,
}

/// The state of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// The process runs.
    Alive,
    /// The process has ended.
    Gone,
    /// The process is, or was, on this other machine, so its state is unknown here.
    Elsewhere(String),
}

impl Owner {
    /// This process.
    pub(crate) fn this() -> Self {
        let pid = std::process::id();
        Self { host: read("kernel/hostname"), boot: boot(), pid, started: started(pid).unwrap_or(0) }
    }

    /// The owner's state, as far as this machine knows.
    pub(crate) fn state(&self) -> State {
        self.judged(&read("kernel/hostname"), &boot(), started)
    }

    fn judged(&self, host: &str, boot: &str, started: impl Fn(u32) -> Option<u64>) -> State {
        if self.host != host {
            State::Elsewhere(self.host.clone())
        } else if self.boot == boot && started(self.pid) == Some(self.started) {
            State::Alive
        } else {
            State::Gone
        }
    }
}

fn read(parameter: &str) -> String {
    fs::read_to_string(format!("/proc/sys/{parameter}")).unwrap_or_default().trim().to_owned()
}

fn boot() -> String {
    read("kernel/random/boot_id")
}

/// The start of a process in ticks since boot; `None` if it does not exist.
fn started(pid: u32) -> Option<u64> {
    Some(Process::new(pid.cast_signed()).ok()?.stat().ok()?.starttime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives() {
        let owner = Owner::this();
        assert!(owner.started > 0, "{owner:?}");
        assert_eq!(owner.state(), State::Alive);
    }

    #[test]
    fn an_owner_is_gone_with_its_process_or_its_boot_and_unknown_on_another_machine() {
        let owner = Owner { host: "a".to_owned(), boot: "1".to_owned(), pid: 7, started: 99 };
        let seven = |started| move |pid| (pid == 7).then_some(started);
        assert_eq!(owner.judged("a", "1", seven(99)), State::Alive);
        assert_eq!(owner.judged("a", "1", seven(100)), State::Gone, "its number was given to another process");
        assert_eq!(owner.judged("a", "1", |_| None), State::Gone);
        assert_eq!(owner.judged("a", "2", seven(99)), State::Gone);
        assert_eq!(owner.judged("b", "1", seven(99)), State::Elsewhere("a".to_owned()));
    }
}
