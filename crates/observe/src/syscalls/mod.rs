//! System calls of client and server in the measured window, counted at the kernel's tracepoints.
//!
//! Unlike strace(1), this stops no process. The kernel counts with an eBPF program ([`program`]) if it accepts one,
//! otherwise with counters on every thread ([`counters`]).

mod calls;
mod counter;
mod counters;
mod program;
mod room;
mod strace;
mod tracefs;

use wirelab_model::metric::Values;
use wirelab_model::missing::Missing;

pub use calls::{BY_NAME, CALLS, STRACE, TOTAL};
pub use strace::Strace;

use crate::window::{Reading, Sides, per_request, values};
use crate::{About, Observer, Targets, Window};
use counters::Counters;
use program::Program;
use room::Room;

/// How system calls are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Means {
    /// By an eBPF program if the kernel accepts one, otherwise by counters.
    #[default]
    Best,
    /// By counters on every thread.
    Counters,
}

/// How system calls can be counted here.
#[derive(Debug)]
pub enum Available {
    /// By an eBPF program.
    Program,
    /// By perf counters on every thread, which cost more, because the kernel accepts no eBPF program.
    Counters {
        /// Why it accepts none.
        why: Missing,
    },
}

/// Tests on this process how system calls can be counted here.
///
/// # Errors
/// If they cannot be counted.
pub fn available() -> Result<Available, Missing> {
    let own = [std::process::id()];
    match Program::start(&own, &[]).and_then(Program::stop) {
        Ok(_) => Ok(Available::Program),
        Err(why) => Counters::open(&own, &[]).map(|_| Available::Counters { why }),
    }
}

/// The observer `syscalls`.
#[derive(Debug, Default)]
pub struct Total(Syscalls);

/// The observer `syscalls_by_name`. It is separate because it can cost the trial far more.
#[derive(Debug, Default)]
pub struct ByName(Syscalls);

impl Observer for Total {
    fn about(&self) -> &'static About {
        &TOTAL
    }

    fn begin(&mut self, targets: &Targets) {
        self.0.begin(targets, &[]);
    }

    fn end(&mut self, targets: &Targets) {
        self.0.end(targets);
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

    fn end(&mut self, targets: &Targets) {
        self.0.end(targets);
    }

    fn values(&mut self, window: &Window) -> Values {
        let mut readings = (0..CALLS.len())
            .flat_map(|number| self.0.readings(|counts| counts.named(number), window))
            .chain(self.0.readings(Counts::other, window));
        let readings: [Reading; BY_NAME.metrics.len()] =
            std::array::from_fn(|_| readings.next().unwrap_or(Err(Missing::NoWindow)));
        values(BY_NAME.metrics, readings)
    }
}

impl Total {
    /// An observer that counts by these means.
    #[must_use]
    pub fn by(means: Means) -> Self {
        Self(Syscalls { means, ..Syscalls::default() })
    }
}

impl ByName {
    /// An observer that counts by these means.
    #[must_use]
    pub fn by(means: Means) -> Self {
        Self(Syscalls { means, ..Syscalls::default() })
    }
}

/// The running counters, then the counts.
#[derive(Debug, Default)]
struct Syscalls {
    means: Means,
    counting: Option<Counting>,
    counts: Option<Sides<Result<Counts, Missing>>>,
    room: Option<Room>,
}

#[derive(Debug)]
enum Counting {
    Program(Program),
    Counters(Sides<Result<Counters, Missing>>),
}

impl Syscalls {
    fn begin(&mut self, targets: &Targets, calls: &[(&'static str, &str)]) {
        if self.means == Means::Best {
            let pids = |side: &Option<Vec<_>>| side.clone().unwrap_or_default();
            if let Ok(program) = Program::start(&pids(&targets.clients), &pids(&targets.servers)) {
                self.counting = Some(Counting::Program(program));
                return;
            }
        }
        // If the limit cannot be raised, opening a counter fails with a reason of its own.
        self.room = Room::make().ok();
        let mut counters = Sides::read(targets, |roots| Counters::open(roots, calls));
        for side in [&mut counters.client, &mut counters.server] {
            if let Err(reason) = side.as_ref().map_err(Clone::clone).and_then(Counters::enable) {
                *side = Err(reason);
            }
        }
        self.counting = Some(Counting::Counters(counters));
    }

    fn end(&mut self, targets: &Targets) {
        self.counts = match self.counting.take() {
            None => return,
            Some(Counting::Program(program)) => {
                let counts = program.stop();
                let Sides { client, server } = Sides::read(targets, |_| Ok(()));
                let side = |shown: Result<(), Missing>, of: fn(Sides<Counts>) -> Counts| {
                    shown.and_then(|()| counts.clone().map(of))
                };
                Some(Sides { client: side(client, |sides| sides.client), server: side(server, |sides| sides.server) })
            }
            Some(Counting::Counters(Sides { client, server })) => {
                // Disables both first, so that reading one side does not fall into the window of the other.
                let disabled =
                    [&client, &server].map(|side| side.as_ref().map_err(Clone::clone).and_then(Counters::disable));
                let [client, server] = [(client, &disabled[0]), (server, &disabled[1])].map(|(side, disabled)| {
                    disabled.clone()?;
                    side?.read()
                });
                Some(Sides { client, server })
            }
        };
        self.room = None;
    }

    /// A count per request, for the client and for the server.
    fn readings(&self, of: impl Fn(&Counts) -> Result<u64, Missing>, window: &Window) -> [Reading; 2] {
        let Some(Sides { client, server }) = &self.counts else { return [(); 2].map(|()| Err(Missing::NoWindow)) };
        [client, server].map(|side| {
            let count = side.as_ref().map_err(Clone::clone).and_then(&of).map(|count| count as f64);
            per_request(&count, window)
        })
    }
}

/// The counts of a process tree in the window.
#[derive(Debug, Clone, Default)]
struct Counts {
    total: u64,
    named: Vec<(&'static str, Option<u64>)>,
}

impl Counts {
    fn named(&self, number: usize) -> Result<u64, Missing> {
        match self.named.get(number) {
            Some((_, Some(count))) => Ok(*count),
            Some((name, None)) => Err(Missing::kernel_lacks(format!("system call {name}"))),
            None => Err(Missing::NoWindow),
        }
    }

    fn other(&self) -> Result<u64, Missing> {
        let counts: Vec<_> = self.named.iter().filter_map(|(_, count)| *count).collect();
        if counts.is_empty() {
            return Err(Missing::kernel_lacks("tracepoints of single system calls (CONFIG_FTRACE_SYSCALLS)"));
        }
        let sum = counts.iter().sum();
        self.total.checked_sub(sum).ok_or(Missing::ContradictoryCounts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_the_kernel_lacks_gives_a_reason_and_other_is_the_total_minus_the_named() {
        let counts = Counts { total: 10, named: vec![("poll", None), ("read", Some(3)), ("write", Some(2))] };
        assert_eq!(counts.named(0).unwrap_err().to_string(), "this kernel has no system call poll");
        assert_eq!((counts.named(1), counts.other()), (Ok(3), Ok(5)));
        assert_eq!(Counts { total: 4, ..counts }.other(), Err(Missing::ContradictoryCounts));
        let none = Counts { total: 4, named: vec![("read", None)] };
        assert!(none.other().unwrap_err().to_string().contains("CONFIG_FTRACE_SYSCALLS"));
    }
}
