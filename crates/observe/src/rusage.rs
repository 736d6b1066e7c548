//! The kernel's resource usage over the whole lives of client and server, as `time(1)` shows it, for comparison with
//! studies that used it. It includes start-up, check request, warm-up and the writing of results.

use wirelab_model::metric::{Better, Metric, Side, Unit, Values};
use wirelab_model::missing::Missing;
use wirelab_model::usage::Usage;

use crate::window::{Reading, values};
use crate::{About, Observer, Reaped, Targets, Window};

/// Name, cost and metrics.
pub const ABOUT: About = About {
    name: "rusage",
    summary: "CPU time, memory, context switches and page faults of client and server over their whole life.",
    cost: "None: the kernel delivers it with the exit status.",
    needs: None,
    by_default: true,
    metrics: &[
        life("life_cpu_client_user", "User CPU time over its life, client", Unit::Nanoseconds, Side::Client),
        life("life_cpu_client_system", "System CPU time over its life, client", Unit::Nanoseconds, Side::Client),
        life("life_memory_client", "Largest resident set over its life, client", Unit::Bytes, Side::Client),
        life("life_switches_client", "Context switches over its life, client", Unit::Count, Side::Client),
        life("life_faults_client", "Page faults over its life, client", Unit::Count, Side::Client),
        life("life_cpu_server_user", "User CPU time over its life, server", Unit::Nanoseconds, Side::Server),
        life("life_cpu_server_system", "System CPU time over its life, server", Unit::Nanoseconds, Side::Server),
        life("life_memory_server", "Largest resident set over its life, server", Unit::Bytes, Side::Server),
        life("life_switches_server", "Context switches over its life, server", Unit::Count, Side::Server),
        life("life_faults_server", "Page faults over its life, server", Unit::Count, Side::Server),
    ],
};

const fn life(name: &'static str, title: &'static str, unit: Unit, side: Side) -> Metric {
    let meaning = "From the start of the process to its end, with children that it waited for; the resident set is \
                   that of the largest of these processes.";
    let vantage = "the kernel's account of the reaped process (wait4(2))";
    Metric { name, title, unit, side, vantage, better: Better::Lower, meaning }
}

/// The observer.
#[derive(Debug, Default)]
pub struct Rusage {
    reaped: Option<Reaped>,
}

impl Observer for Rusage {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn begin(&mut self, _: &Targets) {}

    fn end(&mut self, _: &Targets) {}

    fn reaped(&mut self, reaped: &Reaped) {
        self.reaped = Some(*reaped);
    }

    fn values(&mut self, _: &Window) -> Values {
        let (client, server) = self.reaped.map_or((None, None), |reaped| (reaped.client, reaped.server));
        let [a, b, c, d, e] = side(client, Side::Client);
        let [f, g, h, i, j] = side(server, Side::Server);
        values(ABOUT.metrics, [a, b, c, d, e, f, g, h, i, j])
    }
}

/// The five readings of a side, in the order of their declaration.
fn side(usage: Option<Usage>, side: Side) -> [Reading; 5] {
    let Some(usage) = usage else {
        return std::array::from_fn(|_| Err(Missing::NotReaped { side }));
    };
    let switches = usage.voluntary_switches + usage.involuntary_switches;
    let faults = usage.minor_faults + usage.major_faults;
    [usage.user_ns, usage.system_ns, usage.peak_memory, switches, faults].map(|count| Ok(count as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accounts_of_both_sides_are_kept_apart() {
        let usage = |n: u64| Usage { user_ns: n, system_ns: 2 * n, voluntary_switches: n, ..Usage::default() };
        let mut observer = Rusage::default();
        observer.reaped(&Reaped { client: Some(usage(5)), ..Reaped::default() });
        let values = observer.values(&Window { ns: 1, requests: 1, bytes: 1 });
        assert_eq!(values["life_cpu_client_system"].number(), Some(10.0));
        assert_eq!(values["life_switches_client"].number(), Some(5.0));
        assert_eq!(values["life_cpu_server_user"].number(), None);
    }
}
