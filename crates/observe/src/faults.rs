//! Page faults of client and server in the measured window.

use procfs::process::Stat;
use wirelab_model::metric::{Better, Metric, Side, Unit, Values};
use wirelab_model::missing::Missing;

use crate::tree::{Tree, growth, tree};
use crate::window::{Sides, per_request, values};
use crate::{About, Observer, Targets, Window};

/// Name, cost and metrics.
pub const ABOUT: About = About {
    name: "faults",
    summary: "Page faults of client and server in the measured window.",
    cost: "/proc is searched before and after the window; the kernel counts in any case.",
    needs: None,
    by_default: true,
    metrics: &[
        minor("faults_client_per_request", "Page faults per request, client", Side::Client),
        minor("faults_server_per_request", "Page faults per request, server", Side::Server),
        major("faults_client_major", "Page faults with disk access, client", Side::Client),
        major("faults_server_major", "Page faults with disk access, server", Side::Server),
    ],
};

const VANTAGE: &str = "the kernel's account of the process and its children (/proc/PID/stat)";

const fn minor(name: &'static str, title: &'static str, side: Side) -> Metric {
    let meaning = "Page faults of the process and its children in the measured window, minor and major, divided by the \
                   requests that succeeded in it.";
    Metric { name, title, unit: Unit::Count, side, vantage: VANTAGE, better: Better::Lower, meaning }
}

const fn major(name: &'static str, title: &'static str, side: Side) -> Metric {
    let meaning = "Page faults of the process and its children in the measured window that had to read from a disk.";
    Metric { name, title, unit: Unit::Count, side, vantage: VANTAGE, better: Better::Lower, meaning }
}

/// The observer.
#[derive(Debug, Default)]
pub struct Faults {
    begin: Option<Sides<Result<Tree, Missing>>>,
    end: Option<Sides<Result<Tree, Missing>>>,
}

impl Observer for Faults {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn begin(&mut self, targets: &Targets) {
        self.begin = Some(Sides::read(targets, tree));
    }

    fn end(&mut self, targets: &Targets) {
        self.end = Some(Sides::read(targets, tree));
    }

    fn values(&mut self, window: &Window) -> Values {
        let grown = |count: fn(&Stat) -> u64| {
            Sides::join(self.begin.as_ref(), self.end.as_ref(), |begin, end| {
                growth(begin, end, count).map(|count| count as f64)
            })
        };
        let major = grown(|stat| stat.majflt + stat.cmajflt);
        let all = grown(|stat| stat.minflt + stat.cminflt + stat.majflt + stat.cmajflt);
        values(
            ABOUT.metrics,
            [per_request(&all.client, window), per_request(&all.server, window), major.client, major.server],
        )
    }
}
