//! A step of an open loop: one rate for a limited time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indexmap::IndexMap;
use serde::Serialize;
use wirelab_endpoint::load::{Client, News, Results};
use wirelab_model::metric::{Quantity, Unit, Values};
use wirelab_model::outcome::ErrorKind;
use wirelab_model::sample::Sample;
use wirelab_model::spec::{Arrivals, ClientSpec, Recording, Schedule};
use wirelab_model::units::Span;

use super::live::Live;
use super::{DEFAULT_DURATION, values_of};
use crate::args::LoadArgs;
use crate::failure::{Failure, Result};
use crate::requests::Requests;

/// The queue of a server grows if the median response time of the second half of a step is this many times that of the
/// first half. With a constant surplus of requests it is three times.
const GROWTH: f64 = 2.0;

/// Fewest successful requests for which halves are compared.
const FEWEST_FOR_HALVES: usize = 40;

/// A measured step.
#[derive(Debug, Serialize)]
pub struct Step {
    /// Requests that should start per second.
    pub rate_per_s: f64,
    /// Whether the responses did not end in time, so that the step was ended.
    pub overloaded: bool,
    /// Whether response times grew during the step as those of a queue that gets longer.
    pub queue_grows: bool,
    /// Successful requests.
    pub requests: u64,
    /// Failed requests by kind.
    pub errors: IndexMap<ErrorKind, u64>,
    /// The metrics.
    pub values: Values,
}

impl Step {
    /// The numbers of requests and what is wrong with the step, for people.
    pub fn remarks(&self) -> String {
        let mut text = format!("{} succeeded, {} failed", self.requests, self.errors.values().sum::<u64>());
        if self.overloaded {
            text.push_str(", overloaded");
        }
        if self.queue_grows {
            text.push_str(", queue grows");
        }
        text
    }
}

/// The length of a step.
pub fn length(args: &LoadArgs) -> Span {
    args.duration.unwrap_or(DEFAULT_DURATION)
}

/// A rate for people.
pub fn per_second(rate: f64) -> String {
    Quantity(rate, Unit::PerSecond).to_string()
}

/// Measures step `number` of a load, at this rate; `None` after Ctrl-C. Each step has its own connections.
pub fn measure(
    args: &LoadArgs,
    requests: &Requests,
    (spec, client): (&ClientSpec, Client),
    (number, rate): (usize, f64),
    interrupted: &AtomicBool,
) -> Result<Option<Step>> {
    let spec = of_step(spec, args.arrivals.into(), rate, number);
    // A server that is too slow by far would take many times the step's length to answer all requests.
    let longest = Duration::from_nanos(length(args).nanos().saturating_add(args.reach.timeout.nanos()));
    let stop = AtomicBool::new(false);
    let live = Live::new(&spec, None, None, &args.show);
    let watch = |news: News<'_>| {
        live.show(&news);
        let News::Progress(progress) = news else { return };
        let is_too_long = progress.elapsed.is_some_and(|elapsed| elapsed > longest);
        stop.fetch_or(is_too_long || interrupted.load(Ordering::Relaxed), Ordering::Relaxed);
    };
    let result = wirelab_endpoint::load::run(&spec, client, live.every(), watch, &stop);
    drop(live);
    if interrupted.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let result = result.map_err(|refusal| Failure::failed(requests.target.unanswered(spec.protocol, &refusal)))?;
    let values = values_of(&result)?;
    let queue_grows = matches!(&result.results, Results::Samples(samples) if queue_grows(samples));
    let (overloaded, requests, errors) = (result.stopped, result.requests, result.errors);
    Ok(Some(Step { rate_per_s: rate, overloaded, queue_grows, requests, errors, values }))
}

/// The spec of a step. Each step has other random arrivals.
fn of_step(spec: &ClientSpec, arrivals: Arrivals, rate: f64, number: usize) -> ClientSpec {
    let seed = spec.seed.wrapping_add(number as u64);
    let schedule = Schedule::Open { rate_per_s: rate, arrivals };
    // Histograms do not show when a response was slow.
    ClientSpec { schedule, seed, recording: Recording::Samples, ..spec.clone() }
}

/// Whether the responses of the second half of a step are slower than those of the first half by far. A server that
/// gets more requests than it can answer is slower the longer a step lasts, so that a short one says little.
fn queue_grows(samples: &[Sample]) -> bool {
    let times: Vec<_> = samples.iter().filter(|sample| sample.is_ok()).map(Sample::response_ns).collect();
    if times.len() < FEWEST_FOR_HALVES {
        return false;
    }
    let (first, second) = times.split_at(times.len() / 2);
    median(second) as f64 > median(first) as f64 * GROWTH
}

/// The upper median.
fn median(times: &[u64]) -> u64 {
    let mut times = times.to_vec();
    let middle = times.len() / 2;
    *times.select_nth_unstable(middle).1
}

#[cfg(test)]
mod tests {
    use super::super::hdr::tests::sample;
    use super::*;

    #[test]
    fn a_queue_that_grows_is_told_from_one_that_varies() {
        let samples = |response_ns: fn(u64) -> u64| -> Vec<Sample> {
            (0..100).map(|number| sample(number * 1000, number * 1000 + response_ns(number))).collect()
        };
        assert!(queue_grows(&samples(|number| 1_000_000 + number * 1_000_000)));
        assert!(!queue_grows(&samples(|number| 1_000_000 + number % 7 * 1_000_000)));
        assert!(!queue_grows(&samples(|number| 1_000_000 + number * 1_000_000)[..30]), "too few");
    }
}
