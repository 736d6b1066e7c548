//! Use of the machine's processors in the measured window, by the trial and by everything else.
//!
//! A virtual machine whose host gives its processors to others measures the host. No other metric of a trial shows
//! that.
//!
//! The file's first line is parsed here, because `procfs` rejects the file if any of its other lines is missing.

use std::fs;
use std::io;

use wirelab_model::metric::{Better, Metric, Side, Unit, Values};
use wirelab_model::missing::Missing;

use crate::window::{Reading, values};
use crate::{About, Observer, Targets, Window};

/// Name, cost and metrics.
pub const ABOUT: About = About {
    name: "machine",
    summary: "How busy the machine's processors were, and how much the host of a virtual machine took from them.",
    cost: "/proc/stat is read before and after the window; the kernel counts in any case.",
    needs: None,
    by_default: true,
    metrics: &[
        metric(
            STOLEN,
            "Processors' time that the host took",
            "Steal time (proc_stat(5)): share of the processors' time in the measured window in which this virtual \
             machine was ready to run and its host did not let it; 0 on a machine without a host.",
        ),
        metric(
            "machine_busy_share",
            "Processors' time that was used",
            "Share of the time of all processors in the measured window that was used, by any process on this machine.",
        ),
    ],
};

/// The statistics warn if this share is large.
const STOLEN: &str = "machine_stolen_share";

const VANTAGE: &str = "the kernel's account of all processors, in ticks of mostly 10 ms";

const fn metric(name: &'static str, title: &'static str, meaning: &'static str) -> Metric {
    Metric { name, title, unit: Unit::Share, side: Side::Link, vantage: VANTAGE, better: Better::Lower, meaning }
}

/// The observer.
#[derive(Debug, Default)]
pub struct Machine {
    begin: Option<Result<Ticks, Missing>>,
    end: Option<Result<Ticks, Missing>>,
}

/// Ticks of all processors since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl Observer for Machine {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn begin(&mut self, targets: &Targets) {
        self.begin = Some(read(targets));
    }

    fn end(&mut self, targets: &Targets) {
        self.end = Some(read(targets));
    }

    fn values(&mut self, _: &Window) -> Values {
        let share = |of: fn(&Ticks) -> u64| self.share(of);
        values(ABOUT.metrics, [share(|ticks| ticks.stolen), share(|ticks| ticks.all - ticks.idle - ticks.stolen)])
    }
}

impl Machine {
    fn share(&self, of: fn(&Ticks) -> u64) -> Reading {
        let (Some(begin), Some(end)) = (&self.begin, &self.end) else {
            return Err(Missing::NoWindow);
        };
        let (begin, end) = (begin.as_ref().map_err(Clone::clone)?, end.as_ref().map_err(Clone::clone)?);
        let grown = |of: fn(&Ticks) -> u64| of(end).checked_sub(of(begin)).ok_or(Missing::CounterBackwards);
        match grown(|ticks| ticks.all)? {
            0 => Err(Missing::ShorterThanTick),
            all => Ok(grown(of)? as f64 / all as f64),
        }
    }
}

fn read(targets: &Targets) -> Result<Ticks, Missing> {
    // Processes that a lab hides run on other machines.
    if targets.servers.is_none() && targets.clients.is_none() {
        return Err(Missing::ProcessesHidden);
    }
    let unknown = || io::Error::other("it does not begin with the `cpu` line of proc_stat(5)");
    let read = fs::read_to_string("/proc/stat").and_then(|text| parse(&text).ok_or_else(unknown));
    read.map_err(|error| Missing::unreadable("/proc/stat", error))
}

/// Parses the first line: user, nice, system, idle, iowait, irq, softirq, steal. The guest fields after these are
/// already counted in user and nice.
fn parse(text: &str) -> Option<Ticks> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).take(8).collect();
    let [_, _, _, idle, waiting, _, _, stolen] = fields[..] else { return None };
    Some(Ticks { all: fields.iter().sum(), idle: idle + waiting, stolen })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(begin: &str, end: &str) -> Machine {
        let ticks = |text| parse(text).ok_or(Missing::NoWindow);
        Machine { begin: Some(ticks(begin)), end: Some(ticks(end)) }
    }

    #[test]
    fn shares_are_of_the_time_of_all_processors() {
        let machine = seen("cpu  100 0 50 800 10 0 0 40 7 0\ncpu0 1\n", "cpu  120 0 60 840 20 0 0 60 9 0\n");
        assert_eq!(machine.share(|ticks| ticks.stolen), Ok(0.2));
        assert_eq!(machine.share(|ticks| ticks.all - ticks.idle - ticks.stolen), Ok(0.3));
    }

    #[test]
    fn a_window_shorter_than_a_tick_has_a_reason() {
        let machine = seen("cpu  1 1 1 1 1 1 1 1\n", "cpu  1 1 1 1 1 1 1 1\n");
        assert_eq!(machine.share(|ticks| ticks.stolen), Err(Missing::ShorterThanTick));
        assert_eq!(parse("cpu  1 2 3\n"), None);
        assert_eq!(parse("intr 1\n"), None);
    }

    #[test]
    fn this_machine_has_processor_accounts() {
        let targets = Targets { clients: Some(vec![std::process::id()]), ..Targets::default() };
        assert!(read(&targets).unwrap().all > 0);
        // The port of a server in a pod says nothing about this machine.
        let elsewhere = Targets { ports: vec![443], ..Targets::default() };
        for hidden in [Targets::default(), elsewhere] {
            assert_eq!(read(&hidden), Err(Missing::ProcessesHidden), "{hidden:?}");
        }
    }
}
