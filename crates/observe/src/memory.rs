//! Peak memory of client and server, in the measured window and over their lifetimes.

use std::collections::BTreeMap;

use procfs::process::ClearRefs;
use wirelab_model::metric::{Better, Metric, Side, Unit, Values};
use wirelab_model::missing::Missing;

use crate::tree::{Pid, plain, process, tree, unreadable};
use crate::window::{Reading, Sides, values};
use crate::{About, Observer, Targets, Window};

/// Name, cost and metrics.
pub const ABOUT: About = About {
    name: "memory",
    summary: "Peak memory of client and server.",
    cost: "The kernel's peak is reset before the window and read after it; the kernel counts in any case.",
    needs: Some("a kernel with /proc/PID/clear_refs (CONFIG_PROC_PAGE_MONITOR), for the peak in the window only"),
    by_default: true,
    metrics: &[
        window_metric("memory_client_peak", "Peak memory, client", Side::Client),
        window_metric("memory_server_peak", "Peak memory, server", Side::Server),
        life_metric("memory_client_life_peak", "Peak memory since its start, client", Side::Client),
        life_metric("memory_server_life_peak", "Peak memory since its start, server", Side::Server),
    ],
};

const VANTAGE: &str = "the kernel's account of the process and its children (VmHWM)";

const fn window_metric(name: &'static str, title: &'static str, side: Side) -> Metric {
    let meaning = "Largest resident set of the process in the measured window, shared pages and memory from before the \
                   window included. Peaks of child processes are added, though they need not have been at the same \
                   moment.";
    Metric { name, title, unit: Unit::Bytes, side, vantage: VANTAGE, better: Better::Lower, meaning }
}

const fn life_metric(name: &'static str, title: &'static str, side: Side) -> Metric {
    let meaning = "Largest resident set of the process from its start to the end of the measured window. Peaks of \
                   child processes are added, though they need not have been at the same moment.";
    Metric { name, title, unit: Unit::Bytes, side, vantage: VANTAGE, better: Better::Lower, meaning }
}

/// The observer.
#[derive(Debug, Default)]
pub struct Memory {
    begin: Option<Sides<Result<Before, Missing>>>,
    end: Option<Sides<Result<Peaks, Missing>>>,
}

/// Peak resident sets in bytes, by process.
type Peaks = BTreeMap<Pid, u64>;

#[derive(Debug, Clone)]
struct Before {
    /// Peaks from the processes' starts to the window.
    peaks: Peaks,
    /// Why the peaks could not be reset.
    not_reset: Option<Missing>,
}

impl Observer for Memory {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn begin(&mut self, targets: &Targets) {
        self.begin = Some(Sides::read(targets, |roots| {
            let peaks = peaks(roots)?;
            let not_reset = peaks.keys().find_map(|pid| reset(*pid).err());
            Ok(Before { peaks, not_reset })
        }));
    }

    fn end(&mut self, targets: &Targets) {
        self.end = Some(Sides::read(targets, peaks));
    }

    fn values(&mut self, _window: &Window) -> Values {
        let (begin, end) = (self.begin.as_ref(), self.end.as_ref());
        let in_window = Sides::join(begin, end, window_peak);
        let in_life = Sides::join(begin, end, life_peak);
        values(ABOUT.metrics, [in_window.client, in_window.server, in_life.client, in_life.server])
    }
}

fn window_peak(before: &Before, after: &Peaks) -> Reading {
    match &before.not_reset {
        Some(why) => Err(why.clone()),
        None => sum(before, after, |_, after| after),
    }
}

fn life_peak(before: &Before, after: &Peaks) -> Reading {
    // If the peak was reset, the peak before the reset may be larger.
    sum(before, after, u64::max)
}

fn sum(before: &Before, after: &Peaks, of: fn(u64, u64) -> u64) -> Reading {
    if before.peaks.keys().any(|pid| !after.contains_key(pid)) {
        return Err(Missing::PeakLost);
    }
    let peak = |(pid, after): (&Pid, &u64)| of(before.peaks.get(pid).copied().unwrap_or_default(), *after);
    Ok(after.iter().map(peak).sum::<u64>() as f64)
}

fn peaks(roots: &[Pid]) -> Result<Peaks, Missing> {
    tree(roots)?.into_keys().map(|pid| Ok((pid, peak(pid)?))).collect()
}

/// The peak in bytes; the kernel writes KiB (proc_pid_status(5)).
fn peak(pid: Pid) -> Result<u64, Missing> {
    let status = process(pid).and_then(|process| process.status());
    let status = status.map_err(|error| unreadable(format!("/proc/{pid}/status"), error))?;
    // A zombie has no memory and no peak.
    status.vmhwm.map(|kibibytes| kibibytes * 1024).ok_or(Missing::NoPeak)
}

/// Resets the peak to the current resident set (proc_pid_clear_refs(5)).
fn reset(pid: Pid) -> Result<(), Missing> {
    let written = process(pid).and_then(|process| process.clear_refs(ClearRefs::PeakRSS));
    written.map_err(|error| Missing::PeakNotReset { cause: plain(error).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(peaks: &[(Pid, u64)], not_reset: Option<Missing>) -> Before {
        Before { peaks: peaks.iter().copied().collect(), not_reset }
    }

    #[test]
    fn without_a_reset_the_window_has_no_peak_but_the_lifetime_has() {
        let after = Peaks::from([(1, 500), (2, 40)]);
        let reset = before(&[(1, 900)], None);
        assert_eq!((window_peak(&reset, &after), life_peak(&reset, &after)), (Ok(540.0), Ok(940.0)));
        let not = before(&[(1, 400)], Some(Missing::other("not permitted")));
        assert_eq!(
            (window_peak(&not, &after), life_peak(&not, &after)),
            (Err(Missing::other("not permitted")), Ok(540.0))
        );
    }

    #[test]
    fn an_ended_process_makes_the_peak_missing() {
        let peak = window_peak(&before(&[(1, 5), (7, 5)], None), &Peaks::from([(1, 5)]));
        assert_eq!(peak, Err(Missing::PeakLost));
    }
}
