//! The client's requests and responses as the kernel saw them: a witness that is independent of the client.
//!
//! An eBPF program follows each connection of the client ([`code`]). Where a connection carries one request at a time,
//! the first packet after a response begins the next request. The kernel's count and times of these exchanges need
//! nothing that the client says, so `run` checks the client's records against them.

mod assembler;
mod code;
mod histogram;
mod program;

use wirelab_model::metric::{Better, Metric, Side, Unit, Values};
use wirelab_model::missing::Missing;

use crate::bpf::suited;
use crate::tree::{Pid, tree};
use crate::window::{Reading, values};
use crate::{About, Observer, Targets, Window};
pub use histogram::Durations;
use program::Program;

const VANTAGE: &str = "the client's kernel: tracepoints of sockets and of the network device";

/// Name, cost and metrics.
///
/// The kernel's own account of the programs (`kernel.bpf_stats_enabled`), for exchanges of 100 bytes over one TCP
/// connection on loopback, Linux 6.18 in a virtual machine: 8 runs per exchange, 175 to 350 ns each, the account
/// included; 1.5 to 2 µs in total beside some 20 µs per exchange.
pub const ABOUT: About = About {
    name: "exchanges",
    summary: "The client's requests as the kernel saw them; the client's records are checked against them.",
    cost: "Some 2 µs of processor time per request and response on loopback, most of it in the sender of each packet; \
           starting and ending take 50 to 140 ms outside of the window.",
    needs: Some("root, or CAP_BPF and CAP_PERFMON; Linux 6.3 or later"),
    by_default: false,
    metrics: &[
        Metric {
            name: "kernel_requests",
            title: "Requests that the client's kernel saw",
            unit: Unit::Count,
            side: Side::Client,
            vantage: VANTAGE,
            better: Better::Higher,
            meaning: "Requests with a response in the measured window, counted in the kernel: the client sent data, and \
                      read data before it sent again.",
        },
        quantile("kernel_response_median", "Response time in the kernel, median"),
        quantile("kernel_response_p90", "Response time in the kernel, P90"),
        quantile("kernel_response_p99", "Response time in the kernel, P99"),
    ],
};

const fn quantile(name: &'static str, title: &'static str) -> Metric {
    let meaning = "Time from the first packet of a request that left the client's kernel to the arrival there of the \
                   last data of its response, known to 0.05 %. The client's own response time is longer by its work, and \
                   by the time until it gets a processor.";
    Metric {
        name,
        title,
        unit: Unit::Nanoseconds,
        side: Side::Client,
        vantage: VANTAGE,
        better: Better::Lower,
        meaning,
    }
}

/// Requests and responses on the client's connections in the measured window. Times are nanoseconds of the monotonic
/// clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchanges {
    /// When the watch began, before the client got its word to start.
    pub watched_from_ns: u64,
    /// When the watch ended, after the client had reported the end of its window.
    pub watched_to_ns: u64,
    /// When the first request left.
    pub first_ns: u64,
    /// When the client last read data.
    pub last_ns: u64,
    /// From the departure of a request to the arrival of its response.
    pub durations: Durations,
}

/// The observer.
#[derive(Debug, Default)]
pub struct Witness {
    running: Option<Result<Running, Missing>>,
    seen: Option<Result<Exchanges, Missing>>,
}

#[derive(Debug)]
struct Running {
    program: Program,
    processes: Vec<Pid>,
    from_ns: u64,
}

impl Observer for Witness {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn begin(&mut self, targets: &Targets) {
        self.running = Some(start(targets));
    }

    fn end(&mut self, targets: &Targets) {
        let to_ns = now();
        self.seen = self.running.take().map(|running| running.and_then(|running| running.stop(targets, to_ns)));
    }

    fn exchanges(&self) -> Option<&Exchanges> {
        self.seen.as_ref()?.as_ref().ok()
    }

    fn values(&mut self, _window: &Window) -> Values {
        let seen = self.seen.clone().unwrap_or(Err(Missing::NoWindow)).map(|exchanges| exchanges.durations);
        let of = |share: f64, needed: u64| -> Reading {
            let durations = seen.as_ref().map_err(Clone::clone)?;
            let (count, percent) = (durations.count(), share * 100.0);
            match durations.quantile(share) {
                Some(quantile) if count >= needed => Ok(quantile),
                _ => Err(Missing::TooFewForPercentile { count, percent, needed }),
            }
        };
        let count = seen.as_ref().map_err(Clone::clone).map(|durations| durations.count() as f64);
        values(ABOUT.metrics, [count, of(0.5, 1), of(0.9, 10), of(0.99, 100)])
    }
}

fn start(targets: &Targets) -> Result<Running, Missing> {
    if let Some(why) = &targets.mixed {
        return Err(why.clone());
    }
    suited()?;
    let processes = processes(targets)?;
    let program = Program::start(&processes, &targets.ports)?;
    Ok(Running { program, processes, from_ns: now() })
}

impl Running {
    fn stop(self, targets: &Targets, to_ns: u64) -> Result<Exchanges, Missing> {
        let seen = self.program.stop()?;
        // A process that started in the window was not followed.
        if processes(targets)? != self.processes {
            return Err(Missing::ProcessesKeepChanging);
        }
        let (Some(first_ns), Some(last_ns)) = (seen.first_ns, seen.last_ns) else { return Err(Missing::NoExchange) };
        Ok(Exchanges {
            watched_from_ns: self.from_ns,
            watched_to_ns: to_ns,
            first_ns,
            last_ns,
            durations: seen.durations,
        })
    }
}

fn processes(targets: &Targets) -> Result<Vec<Pid>, Missing> {
    let roots = targets.clients.as_deref().ok_or(Missing::ProcessHidden { side: Side::Client })?;
    Ok(tree(roots)?.into_keys().collect())
}

/// The monotonic clock, which eBPF programs and clients read, too.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for a write during the call. The call cannot fail: every kernel has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
