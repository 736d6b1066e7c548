//! What the schedules of all loops share: shares of threads, seeds, limits and pauses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wirelab_contract::spec::{ClientSpec, ConnectionPolicy, Extent, Pause, Schedule};

use crate::steady::Judge;

/// One thread's share of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of the thread, from 0.
    pub index: u32,
    /// Number of threads.
    pub of: u32,
}

impl Share {
    /// The shares of all threads. The number of threads does not exceed the number of workers or connections to divide.
    pub fn all(spec: &ClientSpec) -> impl Iterator<Item = Self> {
        let mut of = u32::from(spec.threads.unwrap_or(1)).max(1);
        if let ConnectionPolicy::Persistent { connections, .. } = spec.connections {
            of = of.min(connections);
        }
        if let Schedule::Closed { workers, .. } = spec.schedule {
            of = of.min(workers);
        }
        (0..of).map(move |index| Self { index, of })
    }

    /// This thread's part of `whole`. The parts of all threads add up to `whole` and differ by at most one.
    #[must_use]
    pub fn part(self, whole: u64) -> u64 {
        whole / u64::from(self.of) + u64::from(u64::from(self.index) < whole % u64::from(self.of))
    }

    /// Like [`Self::part`] for 32-bit numbers.
    #[must_use]
    pub fn part32(self, whole: u32) -> u32 {
        whole / self.of + u32::from(self.index < whole % self.of)
    }
}

/// The use of random numbers. Each use in each thread has a stream of its own, so that they are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The warm-up before the measured window.
    WarmUp,
    /// The measured window.
    Measured,
}

/// The generator of one user (a worker of a closed loop, or the arrivals) in one thread and phase.
#[must_use]
pub fn random(seed: u64, share: Share, phase: Phase, user: u32) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let phase = u64::from(phase == Phase::Measured);
    random.set_stream(phase << 63 | u64::from(share.index) << 32 | u64::from(user));
    random
}

/// The limit of a thread's requests, by number or by time.
#[derive(Debug, Clone)]
pub enum Limit {
    /// Number of further requests.
    Requests(u64),
    /// No request from this time on.
    Until(Instant),
    /// The same, or as soon as response times are steady.
    UntilSteady(Instant, Arc<Judge>),
}

impl Limit {
    /// This thread's share of an extent that begins at `start`.
    #[must_use]
    pub fn of(extent: Extent, share: Share, start: Instant) -> Self {
        match extent {
            Extent::Requests(count) => Self::Requests(share.part(count)),
            Extent::DurationNs(ns) => Self::Until(start + Duration::from_nanos(ns)),
        }
    }

    /// This thread's share of a warm-up that begins at `start`, and ends as soon as the judge, if any, allows it.
    #[must_use]
    pub fn of_warm_up(extent: Extent, share: Share, start: Instant, judge: Option<&Arc<Judge>>) -> Self {
        match (Self::of(extent, share, start), judge) {
            (Self::Until(end), Some(judge)) => {
                judge.begin(start);
                Self::UntilSteady(end, Arc::clone(judge))
            }
            (limit, _) => limit,
        }
    }

    /// Takes one request that starts at `at`. Returns false if none is left.
    pub fn take(&mut self, at: Instant) -> bool {
        match self {
            Self::Requests(0) => false,
            Self::Requests(left) => {
                *left -= 1;
                true
            }
            Self::Until(end) => at < *end,
            Self::UntilSteady(end, judge) => at < *end && !judge.is_steady(),
        }
    }
}

/// The next pause of a closed loop.
pub fn pause(pause: Pause, random: &mut ChaCha8Rng) -> Duration {
    Duration::from_nanos(match pause {
        Pause::None => 0,
        Pause::Fixed { ns } => ns,
        Pause::Uniform { min_ns, max_ns } => random.random_range(min_ns..=max_ns.max(min_ns)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(of: u32) -> impl Iterator<Item = Share> {
        (0..of).map(move |index| Share { index, of })
    }

    #[test]
    fn parts_add_up_to_the_whole_and_differ_by_one_at_most() {
        for (whole, of) in [(10, 3), (2, 3), (0, 4), (1_000_003, 7)] {
            let parts: Vec<_> = shares(of).map(|share| share.part(whole)).collect();
            assert_eq!(parts.iter().sum::<u64>(), whole);
            assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn threads_phases_and_workers_draw_different_numbers() {
        let first = |index, phase, user| random(1, Share { index, of: 2 }, phase, user).random::<u64>();
        let drawn = [
            first(0, Phase::Measured, 0),
            first(1, Phase::Measured, 0),
            first(0, Phase::WarmUp, 0),
            first(0, Phase::Measured, 1),
        ];
        assert_eq!(drawn.iter().collect::<std::collections::HashSet<_>>().len(), drawn.len());
    }
}
