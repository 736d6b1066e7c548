//! Time limits of endpoints outside the measured schedule.

use std::time::Duration;

use wirelab_model::plan::{Job, OwnServers};
use wirelab_model::spec::{Extent, Pause, Schedule};

/// Time limits for the unmeasured phases of endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From process start to `ready`. Virtual machines of some languages start slowly.
    pub startup: Duration,
    /// Added to the computed length of warm-up and window.
    pub slack: Duration,
    /// From `finish` to `done`, while the client writes the results of up to a million requests.
    pub finish: Duration,
    /// From `done` to the exit of the process.
    pub exit: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            startup: Duration::from_secs(30),
            slack: Duration::from_secs(10),
            finish: Duration::from_secs(120),
            exit: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// From process start to `ready` of these servers. A program of the user has its own limit, whose error says more.
    pub(crate) fn startup_of(&self, servers: &OwnServers) -> Duration {
        match servers.command {
            None => self.startup,
            Some(_) => self.startup.max(servers.start_timeout.to_std() + self.slack),
        }
    }
}

/// Maximum duration of an extent: its schedule, plus request time-outs, bounded by the stall time-out.
pub(crate) fn longest(job: &Job, extent: Extent) -> Duration {
    let stall_timeout = Duration::from_nanos(job.load.stall_timeout.nanos());
    let request = Duration::from_nanos(job.load.timeouts.request_ns.saturating_add(job.load.timeouts.connect_ns));
    let requests = match extent {
        Extent::DurationNs(ns) => return Duration::from_nanos(ns).saturating_add(request),
        Extent::Requests(requests) => requests,
    };
    match job.load.schedule {
        Schedule::Closed { workers, pause } => {
            let longest_pause = Duration::from_nanos(match pause {
                Pause::None => 0,
                Pause::Fixed { ns } => ns,
                Pause::Uniform { max_ns, .. } => max_ns,
            });
            let each = times(1, requests.div_ceil(workers.max(1).into()));
            let pauses = longest_pause.saturating_mul(each);
            pauses.saturating_add(request.saturating_mul(each).min(stall_timeout.max(request)))
        }
        Schedule::Open { rate_per_s, .. } => {
            // Ten standard deviations of a Poisson process, plus a constant for small counts.
            let arrivals = requests as f64 + 10.0 * (requests as f64).sqrt() + 20.0;
            let schedule = Duration::try_from_secs_f64(arrivals / rate_per_s).unwrap_or(Duration::MAX);
            let backlog = request.saturating_mul(times(1, requests)).min(stall_timeout.max(request));
            schedule.saturating_add(backlog)
        }
    }
}

/// A count as a factor for durations, at least `least`.
fn times(least: u32, count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX).max(least)
}

#[cfg(test)]
mod tests {
    use wirelab_model::plan::Load;
    use wirelab_model::spec::Arrivals;
    use wirelab_model::units::Span;

    use super::*;
    use crate::fixture::cell;

    #[test]
    fn a_program_of_the_user_may_start_more_slowly_than_an_endpoint() {
        let limits = Limits::default();
        let of = |command: Option<&str>, seconds| {
            let command = command.map(|word| vec![word.to_owned()]);
            limits.startup_of(&OwnServers { command, start_timeout: Span::from_secs(seconds), ..OwnServers::one("a") })
        };
        assert_eq!((of(None, 90), of(Some("java"), 90)), (limits.startup, Duration::from_secs(90) + limits.slack));
        assert_eq!(of(Some("java"), 1), limits.startup);
    }

    #[test]
    fn a_window_may_take_its_schedule_and_time_outs_within_reason() {
        let job = |schedule| Job { load: Load { schedule, ..Load::plain() }, ..cell().job };
        let closed = |workers, pause| job(Schedule::Closed { workers, pause });
        let request = Duration::from_secs(3);
        assert_eq!(
            longest(&closed(1, Pause::None), Extent::DurationNs(5_000_000_000)),
            Duration::from_secs(5) + request
        );
        assert_eq!(longest(&closed(1, Pause::None), Extent::Requests(10)), request * 10);
        assert_eq!(longest(&closed(4, Pause::None), Extent::Requests(10)), request * 3);
        let ten_minutes = Duration::from_secs(600);
        assert_eq!(longest(&closed(1, Pause::None), Extent::Requests(u64::MAX)), ten_minutes);
        let mut impatient = closed(1, Pause::None);
        impatient.load.stall_timeout = Span::from_secs(7);
        assert_eq!(longest(&impatient, Extent::Requests(1000)), Duration::from_secs(7));
        let spaced = closed(1, Pause::Uniform { min_ns: 0, max_ns: 1_000_000_000 });
        assert_eq!(longest(&spaced, Extent::Requests(10_000)), Duration::from_secs(10_000) + ten_minutes);
        let open = job(Schedule::Open { rate_per_s: 10.0, arrivals: Arrivals::Poisson });
        let hundred = longest(&open, Extent::Requests(100));
        assert!(hundred >= Duration::from_secs(20) && hundred <= Duration::from_secs(40) + ten_minutes, "{hundred:?}");
    }
}
