//! CPU time and peak memory of sidecars, apart from the servers and clients that they serve.

use wirelab_model::metric::{Better, Metric, Side, Unit, Value, Values};
use wirelab_model::missing::Missing;

use crate::cpu::Cpu;
use crate::memory::Memory;
use crate::{About, Observer, Targets, Window};

/// Name, cost and metrics.
pub const ABOUT: About = About {
    name: "sidecars",
    summary: "CPU time and peak memory of sidecars, and the CPU time of all processes. In every study with a `mesh`.",
    cost: "As the observers cpu and memory, for more processes.",
    needs: None,
    by_default: false,
    metrics: &[
        cpu(
            "cpu_client_sidecar_per_request",
            "CPU time per request, clients' sidecar",
            Side::Client,
            "As `cpu_client_per_request`, for the clients' sidecar.",
        ),
        cpu(
            "cpu_server_sidecar_per_request",
            "CPU time per request, servers' sidecars",
            Side::Server,
            "As `cpu_server_per_request`, for the servers' sidecars together.",
        ),
        cpu(
            "cpu_all_per_request",
            "CPU time per request, everything",
            Side::Link,
            "As `cpu_client_per_request`, for clients, servers, sidecars and control plane together; also in trials \
             without sidecars.",
        ),
        memory(
            "memory_client_sidecar_peak",
            "Peak memory, clients' sidecar",
            Side::Client,
            "As `memory_client_peak`, for the clients' sidecar.",
        ),
        memory(
            "memory_server_sidecar_peak",
            "Peak memory, servers' sidecars",
            Side::Server,
            "As `memory_server_peak`, for the servers' sidecars together.",
        ),
    ],
};

/// The metrics of the observers cpu and memory that give these metrics, in the same order, if they observe sidecars.
const SOURCES: [&str; 5] = [
    "cpu_client_per_request",
    "cpu_server_per_request",
    "cpu_client_per_request",
    "memory_client_peak",
    "memory_server_peak",
];

const fn cpu(name: &'static str, title: &'static str, side: Side, meaning: &'static str) -> Metric {
    let vantage = "the kernel's CPU-time clocks of the processes and their children";
    Metric { name, title, unit: Unit::Nanoseconds, side, vantage, better: Better::Lower, meaning }
}

const fn memory(name: &'static str, title: &'static str, side: Side, meaning: &'static str) -> Metric {
    let vantage = "the kernel's account of the processes and their children (VmHWM)";
    Metric { name, title, unit: Unit::Bytes, side, vantage, better: Better::Lower, meaning }
}

/// The observer. It runs the observers cpu and memory with sidecars in place of servers and clients.
#[derive(Debug, Default)]
pub struct OfSidecars {
    cpu: Cpu,
    memory: Memory,
    /// All processes, observed as clients.
    all: Cpu,
    has_none: bool,
}

impl Observer for OfSidecars {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn begin(&mut self, targets: &Targets) {
        self.has_none = targets.sidecars.is_none();
        self.all.begin(&all_processes(targets));
        self.cpu.begin(&sidecars(targets));
        self.memory.begin(&sidecars(targets));
    }

    fn end(&mut self, targets: &Targets) {
        self.memory.end(&sidecars(targets));
        self.cpu.end(&sidecars(targets));
        self.all.end(&all_processes(targets));
    }

    fn values(&mut self, window: &Window) -> Values {
        let (cpu, memory, all) = (self.cpu.values(window), self.memory.values(window), self.all.values(window));
        let values = ABOUT.metrics.iter().zip(SOURCES).map(|(metric, other)| {
            let of_all = metric.name == "cpu_all_per_request";
            let from = if of_all { &all } else { &cpu };
            let value = if self.has_none && !of_all {
                Value::missing(Missing::NoSidecars)
            } else {
                from.get(other).or_else(|| memory.get(other)).cloned().unwrap_or(Value::missing(Missing::NoWindow))
            };
            (metric.name.to_owned(), value)
        });
        values.collect()
    }
}

/// The sidecars, in place of the servers and clients.
fn sidecars(targets: &Targets) -> Targets {
    let sidecars = targets.sidecars.clone().unwrap_or_default();
    Targets { servers: sidecars.of_servers, clients: sidecars.of_clients, ..Targets::default() }
}

/// All processes as clients; none if the lab hides any of them.
fn all_processes(targets: &Targets) -> Targets {
    let sidecars = targets.sidecars.as_ref().map_or(Some(Vec::new()), |sidecars| {
        Some([sidecars.of_servers.clone()?, sidecars.of_clients.clone()?].concat())
    });
    let control_plane = || targets.control_plane.into_iter().collect();
    let all = || Some([targets.servers.clone()?, targets.clients.clone()?, sidecars?, control_plane()].concat());
    Targets { clients: all(), ..Targets::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sidecars;

    const WINDOW: Window = Window { ns: 1_000_000, requests: 10, bytes: 10 };

    fn values(targets: &Targets) -> Values {
        let mut observer = OfSidecars::default();
        observer.begin(targets);
        // Uses CPU time, because the test expects more than zero.
        let mut digits: u64 = 0;
        while std::hint::black_box(digits) < 3_000_000 {
            digits += 1;
        }
        observer.end(targets);
        observer.values(&WINDOW)
    }

    #[test]
    fn the_total_is_known_without_sidecars_and_a_missing_sidecar_is_not_zero() {
        let own = Some(vec![std::process::id()]);
        let without = Targets { servers: own.clone(), clients: own.clone(), ..Targets::default() };
        let values_without = values(&without);
        assert!(values_without["cpu_all_per_request"].number().unwrap() > 0.0);
        let reason = Value::missing(Missing::NoSidecars);
        assert_eq!(values_without["cpu_server_sidecar_per_request"], reason);
        assert_eq!(values_without["memory_client_sidecar_peak"], reason);

        // The control plane is part of the total: if it cannot be read, the total is missing.
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let with = values(&Targets { control_plane: Some(ended.id()), ..without.clone() });
        assert_eq!(with["cpu_all_per_request"].number(), None, "{with:?}");

        let sidecars = Sidecars { of_servers: own.clone(), of_clients: own };
        let with = values(&Targets { sidecars: Some(sidecars), ..without.clone() });
        assert!(with.values().all(|value| value.number().is_some_and(|number| number > 0.0)), "{with:?}");

        let hidden = values(&Targets { sidecars: Some(Sidecars::default()), ..without });
        assert!(hidden.values().all(|value| value.number().is_none()), "{hidden:?}");
    }
}
