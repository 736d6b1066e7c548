//! Context switches and migrations of client and server in the measured window.

use std::collections::BTreeMap;
use std::fs;

use procfs::process::Status;
use wirelab_model::metric::{Better, Metric, Side, Unit, Values};
use wirelab_model::missing::Missing;

use crate::tree::{self, Pid};
use crate::window::{Reading, Sides, per_request, values};
use crate::{About, Observer, Targets, Window};

/// Name, cost and metrics.
pub const ABOUT: About = About {
    name: "switches",
    summary: "Context switches of client and server in the measured window, and moves to another processor.",
    cost: "Two files per thread are read before and after the window; the kernel counts in any case.",
    needs: None,
    by_default: true,
    metrics: &[
        all("switches_client_per_request", "Context switches per request, client", Side::Client),
        all("switches_server_per_request", "Context switches per request, server", Side::Server),
        involuntary("switches_client_involuntary_per_request", "Preemptions per request, client", Side::Client),
        involuntary("switches_server_involuntary_per_request", "Preemptions per request, server", Side::Server),
        migrations("migrations_client", "Migrations, client", Side::Client),
        migrations("migrations_server", "Migrations, server", Side::Server),
    ],
};

const VANTAGE: &str = "the kernel's account of each thread of the process and its children";

const fn all(name: &'static str, title: &'static str, side: Side) -> Metric {
    let meaning = "Context switches, voluntary and involuntary, of the threads that lived through the measured window \
                   or began in it, divided by the requests that succeeded in it. Threads that both began and ended in \
                   it are not seen.";
    Metric { name, title, unit: Unit::Count, side, vantage: VANTAGE, better: Better::Lower, meaning }
}

const fn involuntary(name: &'static str, title: &'static str, side: Side) -> Metric {
    let meaning = "Involuntary context switches (the kernel gave the processor to another thread) of the threads that \
                   lived through the measured window or began in it, divided by the requests that succeeded in it. \
                   Threads that both began and ended in it are not seen.";
    Metric { name, title, unit: Unit::Count, side, vantage: VANTAGE, better: Better::Lower, meaning }
}

const fn migrations(name: &'static str, title: &'static str, side: Side) -> Metric {
    let meaning = "Moves to another processor in the measured window, in total, of the threads that lived through it or \
                   began in it. Threads that both began and ended in it are not seen.";
    let vantage = "the kernel's account of each thread of the process and its children (/proc/PID/task/*/sched)";
    Metric { name, title, unit: Unit::Count, side, vantage, better: Better::Lower, meaning }
}

/// The observer.
#[derive(Debug, Default)]
pub struct Switches {
    begin: Option<Sides<Result<Threads, Missing>>>,
    end: Option<Sides<Result<Threads, Missing>>>,
}

/// The counters of all threads, by thread id.
type Threads = BTreeMap<Pid, Count>;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    voluntary: u64,
    involuntary: u64,
    /// `None`: this kernel does not show them.
    migrations: Option<u64>,
}

impl Observer for Switches {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn begin(&mut self, targets: &Targets) {
        self.begin = Some(Sides::read(targets, threads));
    }

    fn end(&mut self, targets: &Targets) {
        self.end = Some(Sides::read(targets, threads));
    }

    fn values(&mut self, window: &Window) -> Values {
        let grown = |of: fn(Count) -> u64| {
            Sides::join(self.begin.as_ref(), self.end.as_ref(), |begin, end| growth(begin, end, of))
        };
        let all = grown(|count| count.voluntary + count.involuntary);
        let involuntary = grown(|count| count.involuntary);
        let moved = Sides::join(self.begin.as_ref(), self.end.as_ref(), |begin, end| {
            let mut threads = begin.values().chain(end.values());
            if threads.any(|thread| thread.migrations.is_none()) {
                return Err(Missing::NoMigrations);
            }
            growth(begin, end, |count| count.migrations.unwrap_or_default())
        });
        let readings = [&all.client, &all.server, &involuntary.client, &involuntary.server];
        let [a, b, c, d] = readings.map(|count| per_request(count, window));
        values(ABOUT.metrics, [a, b, c, d, moved.client, moved.server])
    }
}

fn growth(begin: &Threads, end: &Threads, of: fn(Count) -> u64) -> Reading {
    let ended = begin.keys().filter(|thread| !end.contains_key(thread)).count();
    if ended > 0 {
        return Err(Missing::ThreadsEnded { count: ended });
    }
    let sum = |threads: &Threads| threads.values().copied().map(of).sum::<u64>();
    sum(end).checked_sub(sum(begin)).map(|count| count as f64).ok_or(Missing::ThreadIdReused)
}

fn threads(roots: &[Pid]) -> Result<Threads, Missing> {
    let mut threads = Threads::new();
    for (thread, pid) in tree::threads(roots)? {
        let task = tree::process(pid).and_then(|process| process.task_from_tid(thread.cast_signed()));
        // A thread may end after it was listed; the end of the window will not show it either.
        let status = task.and_then(|task| task.status()).ok();
        let count = |status: Status| Some((status.voluntary_ctxt_switches?, status.nonvoluntary_ctxt_switches?));
        if let Some((voluntary, involuntary)) = status.and_then(count) {
            let sched = fs::read_to_string(format!("/proc/{pid}/task/{thread}/sched"));
            let migrations = sched.ok().and_then(|text| migrations_in(&text));
            threads.insert(thread, Count { voluntary, involuntary, migrations });
        }
    }
    if threads.is_empty() { Err(Missing::NoSwitches) } else { Ok(threads) }
}

/// The line `se.nr_migrations : 7` of a thread's `sched`. Kernels before 6.15 without `CONFIG_SCHED_DEBUG` lack the
/// file.
fn migrations_in(sched: &str) -> Option<u64> {
    let line = sched.lines().find_map(|line| line.strip_prefix("se.nr_migrations"))?;
    line.trim_start().strip_prefix(':')?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use wirelab_model::metric::Value;

    use super::*;

    #[test]
    fn new_threads_count_and_ended_threads_make_the_count_missing() {
        let count = |voluntary| Count { voluntary, involuntary: 0, migrations: None };
        let (begin, end) = (Threads::from([(1, count(10))]), Threads::from([(1, count(15)), (2, count(4))]));
        assert_eq!(growth(&begin, &end, |count| count.voluntary), Ok(9.0));
        assert_eq!(growth(&end, &begin, |count| count.voluntary), Err(Missing::ThreadsEnded { count: 1 }));
    }

    #[test]
    fn migrations_are_read_from_the_kernels_account_of_a_thread() {
        let text =
            "cat (1, #threads: 1)\nse.vruntime      :     346.07\nse.nr_migrations     :            7\nprio : 120\n";
        assert_eq!(migrations_in(text), Some(7));
        assert_eq!(migrations_in("se.nr_migrations_cold : 7\n"), None);
        assert_eq!(migrations_in(""), None);
    }

    #[test]
    fn migrations_are_missing_with_a_reason_where_the_kernel_shows_none() {
        let of = |migrations| Threads::from([(1, Count { migrations, ..Count::default() })]);
        let moved = |begin, end| {
            let sides = |threads| Some(Sides { client: Ok(threads), server: Err(Missing::NoSwitches) });
            let mut observer = Switches { begin: sides(of(begin)), end: sides(of(end)) };
            observer.values(&Window { ns: 1, requests: 1, bytes: 1 })["migrations_client"].clone()
        };
        assert_eq!(moved(Some(2), Some(9)).number(), Some(7.0));
        assert_eq!(moved(None, None), Value::missing(Missing::NoMigrations));
    }
}
