//! Arrival times of an open loop, at a constant rate or by the stages of a ramp.
//!
//! Let Λ(t) be the integral of the rate, the number of arrivals that are expected until t. Arrivals are drawn as values
//! of Λ, for which the rate is 1, and the inverse of Λ gives their times. Steps of 1 are the times at which Λ is 0, 1,
//! 2, ...; sums of exponentials with mean 1 give the Poisson process of this rate (L. Devroye, Non-Uniform Random
//! Variate Generation, 1986, section VI.1.3: inversion of the integrated rate).

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};
use wirelab_contract::spec::{Arrivals, ClientSpec, Schedule, Stage};

use crate::schedule::{Phase, Share, random};

/// Arrival times of one thread of an open loop, in nanoseconds from its start; endless at a constant rate.
#[derive(Debug)]
pub struct ArrivalTimes {
    expected: Expected,
    rate: Rate,
}

impl ArrivalTimes {
    /// Creates the arrivals of one thread; `None` if the spec has a closed loop, or its rate is not a positive number.
    #[must_use]
    pub fn of(spec: &ClientSpec, share: Share, phase: Phase) -> Option<Self> {
        let Schedule::Open { rate_per_s, arrivals } = spec.schedule else { return None };
        let expected = match arrivals {
            Arrivals::Uniform => Expected::Uniform { next: share.index.into(), stride: share.of.into() },
            Arrivals::Poisson => Expected::Poisson {
                last: 0.0,
                mean: share.of.into(),
                random: Box::new(random(spec.seed, share, phase, 0)),
            },
        };
        let rate = match spec.ramp.as_slice() {
            [] if !(rate_per_s.is_finite() && rate_per_s > 0.0) => return None,
            [] => Rate::Constant { interval_ns: 1e9 / rate_per_s },
            _ => Rate::Ramp { stages: spec.ramp.clone().into_iter(), current: None, begins_ns: 0, before: 0.0 },
        };
        Some(Self { expected, rate })
    }

    /// The next arrival; `None` after the last stage of a ramp.
    pub fn next_ns(&mut self) -> Option<u64> {
        let expected = self.expected.next();
        self.rate.time_ns(expected)
    }
}

/// Arrivals of one thread as values of Λ of all threads, ascending.
#[derive(Debug)]
enum Expected {
    /// Steps of 1. The threads take turns, so that the arrivals of all threads are equally spaced too.
    Uniform {
        /// Number, over all threads, of this thread's next arrival.
        next: u64,
        /// Number of threads.
        stride: u64,
    },
    /// A Poisson process. The sum of all threads' processes has the whole rate.
    Poisson {
        last: f64,
        /// Mean distance: the number of threads.
        mean: f64,
        random: Box<ChaCha8Rng>,
    },
}

impl Expected {
    fn next(&mut self) -> f64 {
        match self {
            // From the number of the arrival, so that rounding errors do not accumulate.
            Self::Uniform { next, stride } => {
                let number = *next as f64;
                *next += *stride;
                number
            }
            Self::Poisson { last, mean, random } => {
                let distance: f64 = Exp1.sample(&mut **random);
                *last += distance * *mean;
                *last
            }
        }
    }
}

/// The rate of all threads over time.
#[derive(Debug)]
enum Rate {
    Constant {
        interval_ns: f64,
    },
    Ramp {
        /// The stages after the current one.
        stages: std::vec::IntoIter<Stage>,
        /// The stage of the last arrival; `None` before the first one.
        current: Option<Stage>,
        /// The beginning of the current stage.
        begins_ns: u64,
        /// Λ at that time.
        before: f64,
    },
}

impl Rate {
    /// The time at which Λ exceeds `expected`, which must not be below that of the last call.
    fn time_ns(&mut self, expected: f64) -> Option<u64> {
        match self {
            Self::Constant { interval_ns } => Some((expected * *interval_ns) as u64),
            Self::Ramp { stages, current, begins_ns, before } => {
                // A stage without its end: an arrival there belongs to the next one, as at the end of a window.
                while current.is_none_or(|stage| expected - *before >= stage.arrivals()) {
                    let next = stages.next()?;
                    if let Some(past) = current.replace(next) {
                        *begins_ns += past.duration_ns;
                        *before += past.arrivals();
                    }
                }
                current.map(|stage| *begins_ns + time_within(stage, expected - *before))
            }
        }
    }
}

/// The time from the beginning of a stage at which the integral of its rate reaches `expected`.
///
/// With the rate `from` + `slope` t, this is the root of `slope` t²/2 + `from` t = `expected`, in the form that is
/// exact for a slope near 0.
fn time_within(stage: Stage, expected: f64) -> u64 {
    let (from, duration) = (stage.from_per_s / 1e9, stage.duration_ns as f64);
    let slope = (stage.to_per_s / 1e9 - from) / duration;
    let reached = (from * from + 2.0 * slope * expected).max(0.0).sqrt();
    // Both are 0 at the beginning of a stage from rate 0.
    let time = if from + reached > 0.0 { 2.0 * expected / (from + reached) } else { 0.0 };
    (time.round() as u64).min(stage.duration_ns)
}

#[cfg(test)]
#[path = "arrivals_tests.rs"]
mod tests;
