//! Duration of a trial's phases before its window. Runtimes with just-in-time compilers need this time to reach full
//! speed, so it is reported.

use std::time::{Duration, Instant};

use wirelab_model::metric::{Better, Metric, Side, Unit, Value, Values};
use wirelab_model::missing::Missing;

/// The metrics, in the order of the phases.
pub static PREPARATION_METRICS: [Metric; 3] = [
    time(
        "start_server",
        "Start-up, server",
        Side::Server,
        "From the start of the server's process to its `ready`; with several, from the first start to the last `ready`.",
    ),
    time("start_client", "Start-up, client", Side::Client, "From the start of the client's process to its `ready`."),
    time(
        "warm_up_time",
        "Check and warm-up",
        Side::Client,
        "From `go` to the client's `warm`: the check request, and the requests of `warm_up`, which are not recorded.",
    ),
];

const fn time(name: &'static str, title: &'static str, side: Side, meaning: &'static str) -> Metric {
    let (unit, better, vantage) = (Unit::Nanoseconds, Better::Lower, "wirelab's own monotonic clock");
    Metric { name, title, unit, side, vantage, better, meaning }
}

/// Durations of a trial so far.
#[derive(Debug, Default)]
pub(crate) struct Preparation([Option<Duration>; 3]);

/// A phase before the window.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    StartServer,
    StartClient,
    WarmUp,
}

impl Preparation {
    /// Records a phase that began at `since`. Processes without a local id have no value: the time to reach them
    /// would be included.
    pub(crate) fn took(&mut self, step: Step, since: Instant, pid: Option<u32>) {
        self.0[step as usize] = pid.map(|_| since.elapsed());
    }

    pub(crate) fn values(&self) -> Values {
        let value = |time: &Option<Duration>| match time {
            Some(time) => Value::Measured(time.as_nanos() as f64),
            None => Value::missing(Missing::RemoteProcess),
        };
        PREPARATION_METRICS.iter().zip(&self.0).map(|(metric, time)| (metric.name.to_owned(), value(time))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_has_its_metric_and_a_missing_one_is_not_0() {
        let mut preparation = Preparation::default();
        preparation.took(Step::StartClient, Instant::now(), Some(1));
        preparation.took(Step::WarmUp, Instant::now(), None);
        let values = preparation.values();
        let is_there = |name: &str| values[name].number().is_some();
        assert_eq!(["start_server", "start_client", "warm_up_time"].map(is_there), [false, true, false]);
    }
}
