//! Time that threads were ready to run, and waited for a processor.
//!
//! The client takes its window's times, and `run` checks them against its own clock. On a busy machine both processes
//! wait for a processor between the two readings. The kernel accounts this time for each thread
//! (`/proc/PID/task/TID/schedstat`), so the check can allow exactly for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The unit of `/proc/stat`, `USER_HZ`, is 100 per second on every architecture.
const TICK: Duration = Duration::from_millis(10);

/// Accounts of a client's threads, of the calling thread and of the hypervisor.
#[derive(Debug)]
pub(crate) struct RunQueue {
    client: u32,
    /// Nanoseconds by folder of the thread.
    threads: BTreeMap<PathBuf, u64>,
    /// Ticks in which the hypervisor ran other machines.
    stolen: u64,
}

impl RunQueue {
    /// Reads the accounts of a client on this machine; `None` if the client runs elsewhere, or the kernel keeps none.
    pub(crate) fn begin(client: Option<u32>) -> Option<Self> {
        let client = client?;
        Some(Self { client, threads: accounts(client)?, stolen: stolen().unwrap_or_default() })
    }

    /// Waiting time since [`Self::begin`], as a sum over all threads. Call it on the same thread.
    pub(crate) fn waited(&self) -> Option<Duration> {
        let now = accounts(self.client)?;
        let grown = now.iter().map(|(thread, ns)| ns.saturating_sub(self.threads.get(thread).copied().unwrap_or(0)));
        let stolen = stolen().unwrap_or_default().saturating_sub(self.stolen);
        // The account has whole ticks only.
        let ticks = if stolen == 0 { 0 } else { stolen + 1 };
        Some(Duration::from_nanos(grown.sum()) + TICK * u32::try_from(ticks).unwrap_or(u32::MAX))
    }
}

/// Waiting times of the client's threads, those of its child processes included, and of this thread.
fn accounts(client: u32) -> Option<BTreeMap<PathBuf, u64>> {
    let own = PathBuf::from("/proc/thread-self");
    let mut all = BTreeMap::from([(own.clone(), waited(&own)?)]);
    add(client, &mut all);
    // Without any thread, the process is no longer there.
    (all.len() > 1).then_some(all)
}

fn add(process: u32, all: &mut BTreeMap<PathBuf, u64>) {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return };
    for thread in threads.flatten().map(|entry| entry.path()) {
        let Some(waited) = waited(&thread) else { continue };
        // Absent in kernels without CONFIG_PROC_CHILDREN.
        let children = fs::read_to_string(thread.join("children")).unwrap_or_default();
        all.insert(thread, waited);
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            add(child, all);
        }
    }
}

/// The second number of `schedstat`: nanoseconds on a run queue without running.
fn waited(thread: &Path) -> Option<u64> {
    fs::read_to_string(thread.join("schedstat")).ok()?.split_whitespace().nth(1)?.parse().ok()
}

fn stolen() -> Option<u64> {
    fs::read_to_string("/proc/stat").ok()?.lines().next()?.split_whitespace().nth(8)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_grows_and_covers_the_client_and_this_thread() {
        let before = RunQueue::begin(Some(std::process::id())).expect("this kernel keeps the accounts");
        assert!(before.threads.len() >= 2, "{before:?}");
        let first = before.waited().unwrap();
        assert!(before.waited().unwrap() >= first);
    }

    #[test]
    fn a_client_elsewhere_has_no_accounts() {
        assert!(RunQueue::begin(None).is_none());
        assert!(RunQueue::begin(Some(u32::MAX)).is_none());
    }
}
