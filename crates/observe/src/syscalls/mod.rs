//! System calls of client and server in the measured window, from counters of the kernel's tracepoints.
//!
//! Nothing stops the processes, unlike with strace(1): the kernel counts on its own (perf_event_open(2)). A counter is put on
//! every thread of the process and its children before the window; threads and children that start in the window inherit it.

mod calls;
mod counter;
mod room;
mod strace;
mod tracefs;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::{Mutex, PoisonError};

use wirelab_model::metric::Values;

pub use calls::{BY_NAME, CALLS, STRACE, TOTAL};
pub use strace::Strace;

use crate::tree::{Pid, threads};
use crate::window::{NO_WINDOW, Reading, Sides, per_request, values};
use crate::{About, Observer, Targets, Window};
use calls::EVERY;
use counter::Counter;
use room::Room;

/// Tries whether system calls can be counted here, on this process itself.
///
/// # Errors
/// If they cannot; says why.
pub fn available() -> Result<(), String> {
    Counters::open(&[std::process::id()], &[]).map(drop)
}

/// The observer of totals.
#[derive(Debug, Default)]
pub struct Total(Syscalls);

/// The observer of calls by name. Apart from the other because it costs the trial far more.
#[derive(Debug, Default)]
pub struct ByName(Syscalls);

impl Observer for Total {
    fn about(&self) -> &'static About {
        &TOTAL
    }

    fn begin(&mut self, targets: &Targets) {
        self.0.begin(targets, &[]);
    }

    fn end(&mut self, _: &Targets) {
        self.0.end();
    }

    fn values(&mut self, window: &Window) -> Values {
        values(TOTAL.metrics, self.0.readings(|counts| Ok(counts.total), window))
    }
}

impl Observer for ByName {
    fn about(&self) -> &'static About {
        &BY_NAME
    }

    fn begin(&mut self, targets: &Targets) {
        self.0.begin(targets, CALLS);
    }

    fn end(&mut self, _: &Targets) {
        self.0.end();
    }

    fn values(&mut self, window: &Window) -> Values {
        let mut readings = (0..CALLS.len())
            .flat_map(|number| self.0.readings(|counts| counts.named(number), window))
            .chain(self.0.readings(Counts::other, window));
        let readings: [Reading; BY_NAME.metrics.len()] =
            std::array::from_fn(|_| readings.next().unwrap_or_else(|| Err("it is not counted".to_owned())));
        values(BY_NAME.metrics, readings)
    }
}

/// The counters of both sides, then their counts.
#[derive(Debug, Default)]
struct Syscalls {
    counters: Option<Sides<Result<Counters, String>>>,
    counts: Option<Sides<Result<Counts, String>>>,
    room: Option<Room>,
}

impl Syscalls {
    fn begin(&mut self, targets: &Targets, calls: &[(&'static str, &str)]) {
        // Without, the error of the counter that found no room explains itself.
        self.room = Room::make().ok();
        let mut counters = Sides::read(targets, |roots| Counters::open(roots, calls));
        for side in [&mut counters.client, &mut counters.server] {
            if let Err(reason) = side.as_ref().map_err(Clone::clone).and_then(Counters::enable) {
                *side = Err(reason);
            }
        }
        self.counters = Some(counters);
    }

    fn end(&mut self) {
        let Some(Sides { client, server }) = self.counters.take() else { return };
        // Both first, so that reading the one is not in the window of the other.
        let disabled = [&client, &server].map(|side| side.as_ref().map_err(Clone::clone).and_then(Counters::disable));
        let [client, server] = [(client, &disabled[0]), (server, &disabled[1])].map(|(side, disabled)| {
            disabled.clone()?;
            side?.read()
        });
        self.counts = Some(Sides { client, server });
        self.room = None;
    }

    /// A count per request of the client and of the server.
    fn readings(&self, of: impl Fn(&Counts) -> Result<u64, String>, window: &Window) -> [Reading; 2] {
        let Some(Sides { client, server }) = &self.counts else { return [(); 2].map(|()| Err(NO_WINDOW.to_owned())) };
        [client, server].map(|side| {
            let count = side.as_ref().map_err(Clone::clone).and_then(&of).map(|count| count as f64);
            per_request(&count, window)
        })
    }
}

/// The counters of a tree of processes.
#[derive(Debug)]
struct Counters {
    /// Of every system call, one per thread.
    total: Vec<Counter>,
    /// By name, one per thread; absent if the kernel has no such call.
    named: Vec<(&'static str, Option<Vec<Counter>>)>,
}

/// How often the counters are opened anew because threads came or went meanwhile. Both processes wait, so once is usual.
const TRIES: usize = 10;

impl Counters {
    /// Counters on every thread of the process and its children; they do not count yet.
    ///
    /// A thread that starts after the threads were listed is counted if its parent had its counters already and is not if it
    /// had none yet, and nothing shows which it was. So the list has to be the same before and after.
    fn open(roots: &[Pid], calls: &[(&'static str, &str)]) -> Result<Self, String> {
        let events = tracefs::events()?;
        let every = tracefs::number(&events, EVERY)?
            .ok_or_else(|| format!("the kernel has no tracepoint {EVERY} (CONFIG_FTRACE_SYSCALLS)"))?;
        let mut named = Vec::new();
        for (name, tracepoint) in calls {
            named.push((*name, tracefs::number(&events, tracepoint)?));
        }
        for _ in 0..TRIES {
            let listed = threads(roots)?;
            let threads: Vec<_> = listed.keys().copied().collect();
            let opened = on_all(every, &threads).and_then(|total| {
                let one = |(name, number): &(_, Option<u64>)| {
                    Ok((*name, number.map(|number| on_all(number, &threads)).transpose()?))
                };
                Ok(Self { total, named: named.iter().map(one).collect::<io::Result<_>>()? })
            });
            match opened {
                Ok(counters) if self::threads(roots)? == listed => return Ok(counters),
                Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                    return Err(refused(&error, threads.len(), named.len() + 1));
                }
                _ => {}
            }
        }
        Err("threads kept starting and ending while their system calls were to be counted".to_owned())
    }

    /// Begins with the total and ceases with it, so that a call of a background thread meanwhile is in no name without being
    /// in the total.
    fn enable(&self) -> Result<(), String> {
        self.total.iter().chain(self.by_name()).try_for_each(Counter::enable).map_err(unreadable)
    }

    fn disable(&self) -> Result<(), String> {
        self.by_name().chain(&self.total).try_for_each(Counter::disable).map_err(unreadable)
    }

    fn by_name(&self) -> impl Iterator<Item = &Counter> {
        self.named.iter().filter_map(|(_, counters)| counters.as_ref()).flatten()
    }

    fn read(&self) -> Result<Counts, String> {
        let sum =
            |counters: &Vec<Counter>| counters.iter().map(Counter::read).sum::<io::Result<u64>>().map_err(unreadable);
        let named = |(name, counters): &(_, Option<_>)| Ok((*name, counters.as_ref().map(sum).transpose()?));
        Ok(Counts { total: sum(&self.total)?, named: self.named.iter().map(named).collect::<Result<_, String>>()? })
    }
}

/// A counter of a tracepoint on each thread.
fn on_all(tracepoint: u64, threads: &[Pid]) -> io::Result<Vec<Counter>> {
    keep(tracepoint)?;
    threads.iter().map(|thread| Counter::open(tracepoint, *thread)).collect()
}

/// Keeps the tracepoint in use until wirelab ends: a second of waiting at the end of the run instead of in each trial.
fn keep(tracepoint: u64) -> io::Result<()> {
    static KEPT: Mutex<BTreeMap<u64, Counter>> = Mutex::new(BTreeMap::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Entry::Vacant(new) = kept.entry(tracepoint) {
        new.insert(Counter::idle(tracepoint)?);
    }
    Ok(())
}

fn unreadable(error: io::Error) -> String {
    format!("the kernel's counters of system calls failed: {error}")
}

/// Why counters could not be opened, with the remedy.
fn refused(error: &io::Error, threads: usize, tracepoints: usize) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let setting = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
            format!(
                "the kernel does not let wirelab count system calls ({error}; kernel.perf_event_paranoid is {}). Remedy: run \
                 wirelab as root or with CAP_PERFMON; in a container, allow perf_event_open. Or let strace count in trials of their \
                 own, which give nothing else (observer `strace`)",
                setting.trim()
            )
        }
        Some(libc::EMFILE | libc::ENFILE) => format!(
            "counting {tracepoints} kinds of system calls in {threads} threads takes {} open files: {error}. Remedy: raise the \
             limit (ulimit -Hn)",
            threads * tracepoints
        ),
        Some(libc::ENOSYS) => "this kernel has no perf_event_open (CONFIG_PERF_EVENTS)".to_owned(),
        _ => format!("the kernel's counters of system calls cannot be opened: {error}"),
    }
}

/// The counts of a tree of processes in the window.
#[derive(Debug, Default)]
struct Counts {
    total: u64,
    named: Vec<(&'static str, Option<u64>)>,
}

impl Counts {
    fn named(&self, number: usize) -> Result<u64, String> {
        match self.named.get(number) {
            Some((_, Some(count))) => Ok(*count),
            Some((name, None)) => Err(format!("this kernel has no system call {name}")),
            None => Err("it was not counted".to_owned()),
        }
    }

    fn other(&self) -> Result<u64, String> {
        let counts: Vec<_> = self.named.iter().filter_map(|(_, count)| *count).collect();
        if counts.is_empty() {
            return Err("the kernel has no tracepoints of single system calls (CONFIG_FTRACE_SYSCALLS)".to_owned());
        }
        let sum = counts.iter().sum();
        self.total.checked_sub(sum).ok_or_else(|| "the calls by name are more than all calls".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_the_kernel_does_not_have_is_a_reason_and_the_others_are_what_remains() {
        let counts = Counts { total: 10, named: vec![("poll", None), ("read", Some(3)), ("write", Some(2))] };
        assert_eq!(counts.named(0).unwrap_err(), "this kernel has no system call poll");
        assert_eq!((counts.named(1), counts.other()), (Ok(3), Ok(5)));
        assert!(Counts { total: 4, ..counts }.other().unwrap_err().contains("more than all"));
        let none = Counts { total: 4, named: vec![("read", None)] };
        assert!(none.other().unwrap_err().contains("CONFIG_FTRACE_SYSCALLS"));
    }

    #[test]
    fn reasons_why_counters_cannot_be_opened_name_what_is_wanting() {
        let reason = |number| refused(&io::Error::from_raw_os_error(number), 64, 30);
        assert!(reason(libc::EACCES).contains("run wirelab as root or with CAP_PERFMON"));
        assert!(reason(libc::EMFILE).contains("30 kinds of system calls in 64 threads takes 1920 open files"));
        assert!(reason(libc::ENOSYS).contains("CONFIG_PERF_EVENTS"));
    }
}
