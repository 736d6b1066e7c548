//! CPU time of client and server in the measured window, as the kernel accounts it.
//!
//! The CPU-time clock of a process (clock_getcpuclockid(3)) counts nanoseconds of all its threads, ended threads
//! included. Reading it needs neither the process's cooperation nor a sampling interval. Both processes wait during the
//! reading, so the difference of two readings is exactly the CPU time of the window.

use std::io;

use procfs::process::Stat;
use wirelab_model::metric::{Better, Metric, Side, Unit, Values};
use wirelab_model::missing::Missing;

use crate::tree::{Pid, Tree, accounted, tree};
use crate::window::{Reading, Sides, per_byte, per_request, share, values};
use crate::{About, Observer, Targets, Window};

/// Name, cost and metrics.
pub const ABOUT: About = About {
    name: "cpu",
    summary: "CPU time of client and server in the measured window.",
    cost: "Two clocks are read and /proc is searched, before and after the window; nothing happens in it.",
    needs: None,
    by_default: true,
    metrics: &[
        per_request_metric("cpu_client_per_request", "CPU time per request, client", Side::Client),
        per_request_metric("cpu_server_per_request", "CPU time per request, server", Side::Server),
        per_byte_metric("cpu_client_per_byte", "CPU time per byte, client", Side::Client),
        per_byte_metric("cpu_server_per_byte", "CPU time per byte, server", Side::Server),
        total_metric(
            "cpu_total_per_request",
            "CPU time per request, client and server",
            "CPU time, user and system, of client and server in the measured window, divided by the requests that \
             succeeded in it. Unlike the values of one side, it does not depend on which process the kernel charges for \
             the receipt of a packet.",
        ),
        total_metric(
            "cpu_total_per_byte",
            "CPU time per byte, client and server",
            "CPU time, user and system, of client and server in the measured window, divided by the payload bytes of \
             the requests that succeeded in it, both directions. Unlike the values of one side, it does not depend on \
             which process the kernel charges for the receipt of a packet.",
        ),
        share_metric("cpu_client_share", "CPU use, client", Side::Client),
        share_metric("cpu_server_share", "CPU use, server", Side::Server),
        system_metric("cpu_client_system_share", "System part of the CPU time, client", Side::Client),
        system_metric("cpu_server_system_share", "System part of the CPU time, server", Side::Server),
    ],
};

const CLOCK: &str = "the kernel's CPU-time clock of the process and its children";
const TICKS: &str = "the kernel's account of the process in ticks (/proc/PID/stat)";

const fn per_request_metric(name: &'static str, title: &'static str, side: Side) -> Metric {
    let meaning = "CPU time, user and system, of all threads of the process and its children in the measured window, \
                   divided by the requests that succeeded in it. On loopback and between \
                   network namespaces, the kernel charges the receipt of a packet to its sender; only the sum of both \
                   sides (`cpu_total_*`) is free of that.";
    Metric { name, title, unit: Unit::Nanoseconds, side, vantage: CLOCK, better: Better::Lower, meaning }
}

const fn per_byte_metric(name: &'static str, title: &'static str, side: Side) -> Metric {
    let meaning = "CPU time, user and system, of all threads of the process and its children in the measured window, \
                   divided by the payload bytes of the requests that succeeded in it, both directions. On loopback and between \
                   network namespaces, the kernel charges the receipt of a packet to its sender; only the sum of both \
                   sides (`cpu_total_*`) is free of that.";
    Metric { name, title, unit: Unit::Nanoseconds, side, vantage: CLOCK, better: Better::Lower, meaning }
}

/// A metric of both sides together.
const fn total_metric(name: &'static str, title: &'static str, meaning: &'static str) -> Metric {
    Metric { name, title, unit: Unit::Nanoseconds, side: Side::Link, vantage: CLOCK, better: Better::Lower, meaning }
}

const fn share_metric(name: &'static str, title: &'static str, side: Side) -> Metric {
    let meaning = "CPU time, user and system, of all threads of the process and its children in the measured window, \
                   divided by the window's length; 100 % is one processor, so several threads can exceed it.";
    Metric { name, title, unit: Unit::Share, side, vantage: CLOCK, better: Better::Lower, meaning }
}

const fn system_metric(name: &'static str, title: &'static str, side: Side) -> Metric {
    let meaning = "The share of the process's CPU time in the measured window that the kernel spent on its behalf. The \
                   kernel splits the time by sampling at its ticks, so windows with less than 50 ticks of CPU time \
                   give no value.";
    Metric { name, title, unit: Unit::Share, side, vantage: TICKS, better: Better::Lower, meaning }
}

/// Below this many ticks the split between user and system time is mostly rounding.
const FEWEST_TICKS: u64 = 50;

/// The largest share of a CPU time that may be known in ticks only.
const TICK_ERROR: f64 = 0.01;

/// The observer.
#[derive(Debug, Default)]
pub struct Cpu {
    begin: Option<Sides<Result<Times, Missing>>>,
    end: Option<Sides<Result<Times, Missing>>>,
}

/// The CPU times of a process tree.
#[derive(Debug)]
struct Times {
    tree: Tree,
    /// Sum of the CPU-time clocks of all processes of the tree, in nanoseconds.
    clocks: u64,
    /// CPU time of children that were waited for, in ticks.
    reaped_ticks: u64,
}

impl Observer for Cpu {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn begin(&mut self, targets: &Targets) {
        self.begin = Some(Sides::read(targets, times));
    }

    fn end(&mut self, targets: &Targets) {
        self.end = Some(Sides::read(targets, times));
    }

    fn values(&mut self, window: &Window) -> Values {
        let spent = Sides::join(self.begin.as_ref(), self.end.as_ref(), spent);
        let system = Sides::join(self.begin.as_ref(), self.end.as_ref(), system_share);
        let total = spent.client.clone().and_then(|client| Ok(client + spent.server.clone()?));
        values(
            ABOUT.metrics,
            [
                per_request(&spent.client, window),
                per_request(&spent.server, window),
                per_byte(&spent.client, window),
                per_byte(&spent.server, window),
                per_request(&total, window),
                per_byte(&total, window),
                share(&spent.client, window),
                share(&spent.server, window),
                system.client,
                system.server,
            ],
        )
    }
}

fn times(roots: &[Pid]) -> Result<Times, Missing> {
    let tree = tree(roots)?;
    let mut clocks = 0;
    for pid in tree.keys() {
        clocks += cpu_clock(*pid).map_err(|error| Missing::unreadable("the CPU-time clock of a process", error))?;
    }
    let reaped_ticks = tree.values().map(|stat| (stat.cutime + stat.cstime).cast_unsigned()).sum();
    Ok(Times { tree, clocks, reaped_ticks })
}

/// Nanoseconds of CPU time between two readings.
fn spent(begin: &Times, end: &Times) -> Reading {
    accounted(&begin.tree, &end.tree)?;
    let clocks = end.clocks as f64 - begin.clocks as f64;
    let reaped = end.reaped_ticks.saturating_sub(begin.reaped_ticks);
    if reaped == 0 {
        // A child that ended after less than a tick of CPU time may still be missing.
        let ended = begin.tree.keys().any(|pid| !end.tree.contains_key(pid));
        return if ended || clocks < 0.0 { Err(Missing::ShortChildEnded) } else { Ok(clocks) };
    }
    // The time of ended children is known in ticks only, with an uncertainty of one tick at each end of the window.
    let tick = nanos_per_tick();
    let total = clocks + reaped as f64 * tick;
    if 2.0 * tick <= TICK_ERROR * total { Ok(total) } else { Err(Missing::CoarseTicks { percent: TICK_ERROR * 100.0 }) }
}

fn system_share(begin: &Times, end: &Times) -> Reading {
    let grown = |count: fn(&Stat) -> u64| {
        let sum = |times: &Times| times.tree.values().map(count).sum::<u64>();
        sum(end).checked_sub(sum(begin)).ok_or(Missing::ChildEnded)
    };
    let (user, system) = (grown(|stat| stat.utime)?, grown(|stat| stat.stime)?);
    let all = user + system;
    if all < FEWEST_TICKS {
        return Err(Missing::TooFewTicks { ticks: all, needed: FEWEST_TICKS });
    }
    Ok(system as f64 / all as f64)
}

/// The CPU-time clock of a process, in nanoseconds.
fn cpu_clock(pid: Pid) -> io::Result<u64> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is valid for a write during the call; any process id may be asked for.
    let status = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
    if status != 0 {
        return Err(io::Error::from_raw_os_error(status));
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for a write during the call; a clock whose process has ended is an error, not a danger.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// The length of the ticks of `/proc/PID/stat` in nanoseconds.
fn nanos_per_tick() -> f64 {
    1e9 / rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(clocks: u64, reaped_ticks: u64) -> Times {
        Times { tree: Tree::new(), clocks, reaped_ticks }
    }

    #[test]
    fn ended_children_are_added_only_if_ticks_are_precise_enough() {
        assert_eq!(spent(&times(5, 0), &times(105, 0)), Ok(100.0));
        let tick = nanos_per_tick();
        let second = 1_000_000_000;
        assert_eq!(spent(&times(0, 0), &times(3 * second, 100)), Ok(3e9 + 100.0 * tick));
        assert_eq!(spent(&times(0, 0), &times(second / 10, 1)), Err(Missing::CoarseTicks { percent: 1.0 }));
    }
}
