//! Counts system calls with one counter per thread (perf_event_open(2)), for kernels that accept no eBPF program.
//!
//! Every thread of the process and its children gets a counter before the window. Threads and children that start in
//! the window inherit it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::{Mutex, PoisonError};

use wirelab_model::missing::Missing;

use super::Counts;
use super::calls::EVERY;
use super::counter::Counter;
use super::tracefs;
use crate::tree::{Pid, threads};

/// The counters of a process tree.
#[derive(Debug)]
pub(super) struct Counters {
    /// Counters of all system calls, one per thread.
    total: Vec<Counter>,
    /// Counters by name, one per thread; `None` if the kernel has no such call.
    named: Vec<(&'static str, Option<Vec<Counter>>)>,
}

/// How often counters are opened again because a thread started or ended meanwhile. Both processes wait, so one try is
/// usual.
const TRIES: usize = 10;

impl Counters {
    /// Opens disabled counters on every thread of the process and its children.
    ///
    /// The list of threads must be the same before and after. A thread that starts in between inherits its parent's
    /// counters if they exist already; nothing shows whether they did.
    pub(super) fn open(roots: &[Pid], calls: &[(&'static str, &str)]) -> Result<Self, Missing> {
        let events = tracefs::events()?;
        let every = tracefs::number(&events, EVERY)?
            .ok_or_else(|| Missing::kernel_lacks(format!("tracepoint {EVERY} (CONFIG_FTRACE_SYSCALLS)")))?;
        let mut named = Vec::new();
        for (name, tracepoint) in calls {
            named.push((*name, tracefs::number(&events, tracepoint)?));
        }
        for _ in 0..TRIES {
            let listed = threads(roots)?;
            let each: Vec<_> = listed.keys().copied().collect();
            let opened = on_all(every, &each).and_then(|total| {
                let one = |(name, number): &(_, Option<u64>)| {
                    Ok((*name, number.map(|number| on_all(number, &each)).transpose()?))
                };
                Ok(Self { total, named: named.iter().map(one).collect::<io::Result<_>>()? })
            });
            match opened {
                Ok(counters) if threads(roots)? == listed => return Ok(counters),
                Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                    return Err(refused(error, each.len(), named.len() + 1));
                }
                _ => {}
            }
        }
        Err(Missing::ProcessesKeepChanging)
    }

    /// Enables the total first and [`Counters::disable`] disables it last. A call of a background thread in between
    /// then counts in the total only, never by name only.
    pub(super) fn enable(&self) -> Result<(), Missing> {
        self.total.iter().chain(self.by_name()).try_for_each(Counter::enable).map_err(unreadable)
    }

    pub(super) fn disable(&self) -> Result<(), Missing> {
        self.by_name().chain(&self.total).try_for_each(Counter::disable).map_err(unreadable)
    }

    fn by_name(&self) -> impl Iterator<Item = &Counter> {
        self.named.iter().filter_map(|(_, counters)| counters.as_ref()).flatten()
    }

    pub(super) fn read(&self) -> Result<Counts, Missing> {
        let sum =
            |counters: &Vec<Counter>| counters.iter().map(Counter::read).sum::<io::Result<u64>>().map_err(unreadable);
        let named = |(name, counters): &(_, Option<_>)| Ok((*name, counters.as_ref().map(sum).transpose()?));
        Ok(Counts { total: sum(&self.total)?, named: self.named.iter().map(named).collect::<Result<_, Missing>>()? })
    }
}

/// Opens a counter of a tracepoint on each thread.
fn on_all(tracepoint: u64, threads: &[Pid]) -> io::Result<Vec<Counter>> {
    keep(tracepoint)?;
    threads.iter().map(|thread| Counter::open(tracepoint, *thread)).collect()
}

/// Keeps the tracepoint in use until wirelab ends. The kernel's wait of a second then happens at the end of the run,
/// not in each trial.
fn keep(tracepoint: u64) -> io::Result<()> {
    static KEPT: Mutex<BTreeMap<u64, Counter>> = Mutex::new(BTreeMap::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Entry::Vacant(new) = kept.entry(tracepoint) {
        new.insert(Counter::idle(tracepoint)?);
    }
    Ok(())
}

fn unreadable(error: io::Error) -> Missing {
    Missing::failed("the kernel's counters of system calls failed", error)
}

/// The reason why counters could not be opened, with the remedy.
fn refused(error: io::Error, threads: usize, calls: usize) -> Missing {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let setting = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
            Missing::CountingNotPermitted { paranoid: setting.trim().to_owned(), cause: error.into() }
        }
        Some(libc::EMFILE | libc::ENFILE) => Missing::TooManyCounters { calls, threads, cause: error.into() },
        Some(libc::ENOSYS) => Missing::kernel_lacks("perf_event_open (CONFIG_PERF_EVENTS)"),
        _ => Missing::failed("the kernel's counters of system calls cannot be opened", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_why_counters_cannot_be_opened_name_the_missing_privilege_or_limit() {
        let reason = |number| refused(io::Error::from_raw_os_error(number), 64, 30).to_string();
        assert!(reason(libc::EACCES).contains("run wirelab as root or with CAP_PERFMON"));
        assert!(reason(libc::EMFILE).contains("30 kinds of system calls in 64 threads takes 1920 open files"));
        assert!(reason(libc::ENOSYS).contains("CONFIG_PERF_EVENTS"));
    }
}
