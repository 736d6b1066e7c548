//! `wirelab load --find-rate`: the highest rate that meets requirements.

mod search;

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::json;
use wirelab_endpoint::load::{Client, Progress, Results};
use wirelab_model::metric::{Quantity, Unit, Value, Values};
use wirelab_model::outcome::ErrorKind;
use wirelab_model::requirement::{Limit, Statement};
use wirelab_model::sample::Sample;
use wirelab_model::spec::{Arrivals, ClientSpec, Recording, Schedule};
use wirelab_model::units::Span;

use self::search::{Answer, MOST_STEPS, Tried};
use super::{Bar, known, shown, values_of};
use crate::args::LoadArgs;
use crate::failure::{Failure, Result};
use crate::output::{print, print_json};
use crate::requests::Requests;
use crate::stderr;

/// The first rate without `--rate`.
const FIRST_RATE: f64 = 100.0;

/// A step waits in its own client if this share of the P99 of its response times passes before the request starts.
const MOSTLY: f64 = 0.5;

/// The queue of a server grows if the median response time of the second half of a step is this many times that of the
/// first half. With a constant surplus of requests it is three times.
const GROWTH: f64 = 2.0;

/// Fewest successful requests for which halves are compared.
const FEWEST_FOR_HALVES: usize = 40;

/// Highest deviation of the number of random arrivals of a step without a warning: half of the resolution.
const SMALL_SPREAD: f64 = 0.025;

/// A measured step.
#[derive(Debug, Serialize)]
struct Step {
    rate_per_s: f64,
    met: bool,
    /// Whether the responses did not end in time, so that the step was ended.
    overloaded: bool,
    /// Whether response times grew during the step as those of a queue that gets longer.
    queue_grows: bool,
    /// Successful requests.
    requests: u64,
    errors: IndexMap<ErrorKind, u64>,
    values: Values,
}

/// Refuses requirements for which there is no highest rate.
pub fn check(requirements: &[Statement]) -> Result {
    for that in requirements {
        known("--find-rate", that)?;
        if !matches!(that.limit, Limit::AtMost(_)) {
            return Err(Failure::input(format!(
                "--find-rate: `{that}` has no upper bound, which high rates would exceed; give one such as 'p99 at most 50 \
                 ms' or 'errors at most 0.1 %'"
            )));
        }
    }
    Ok(())
}

/// Measures steps of different rates, and prints the highest rate that meets the requirements.
pub fn find_rate(
    args: &LoadArgs,
    requests: &Requests,
    spec: &ClientSpec,
    client: Client,
    interrupted: &AtomicBool,
) -> Result {
    let arrivals = args.arrivals.into();
    let first = args.rate.map_or(FIRST_RATE, |rate| rate.0);
    let length = args.duration.unwrap_or(super::DEFAULT_DURATION);
    if !args.show.quiet {
        let most = Quantity(length.nanos() as f64 * MOST_STEPS as f64, Unit::Nanoseconds);
        stderr::write_line(format_args!("at most {MOST_STEPS} steps of {length}, which is {most} without warm-ups"));
    }
    let mut steps: Vec<Step> = Vec::new();
    let mut judged: Vec<search::Step> = Vec::new();
    while let Some(rate) = search::next(first, &judged) {
        let spec = of_step(spec, arrivals, rate, steps.len());
        let Some(step) = measure(args, requests, (&spec, client), length, interrupted)? else { break };
        if !args.show.json {
            print(&line(steps.len() + 1, &step, &args.find_rate))?;
        }
        judged.push(search::Step { rate, met: step.met });
        steps.push(step);
    }
    let answer = Answer::of(&judged);
    let waits = steps
        .iter()
        .filter(|step| Some(step.rate_per_s) == answer.lowest_unmet.map(|one| one.rate))
        .any(|step| waits_in_client(&step.values));
    let spread = answer.highest_met.map_or(0.0, |highest| arrival_spread(arrivals, highest.rate, length));
    if args.show.json {
        print_json(&json!({
            "url": requests.url(),
            "address": requests.target.socket(),
            "protocol": spec.protocol,
            "client": client.name(),
            "requirements": args.find_rate,
            "highest_met_per_s": answer.highest_met.map(|one| one.rate),
            "confirmed": answer.is_confirmed(),
            "lowest_unmet_per_s": answer.lowest_unmet.map(|one| one.rate),
            "contradictory": answer.contradictory,
            "arrival_spread": spread,
            "waits_in_client": waits,
            "steps": steps,
        }))?;
    } else {
        print(&text(&answer, spread, waits))?;
    }
    if interrupted.load(Ordering::Relaxed) {
        return Err(Failure::interrupted("interrupted; the answer covers the steps until then"));
    }
    match answer.highest_met {
        Some(_) => Ok(()),
        None => Err(Failure::unmet("no rate meets the requirements. --rate sets a lower first rate")),
    }
}

/// The spec of a step. Each step has other random arrivals.
fn of_step(spec: &ClientSpec, arrivals: Arrivals, rate: f64, number: usize) -> ClientSpec {
    let seed = spec.seed.wrapping_add(number as u64);
    let schedule = Schedule::Open { rate_per_s: rate, arrivals };
    // Histograms do not show when a response was slow.
    ClientSpec { schedule, seed, recording: Recording::Samples, ..spec.clone() }
}

/// Measures a step; `None` after Ctrl-C.
fn measure(
    args: &LoadArgs,
    requests: &Requests,
    (spec, client): (&ClientSpec, Client),
    length: Span,
    interrupted: &AtomicBool,
) -> Result<Option<Step>> {
    let Schedule::Open { rate_per_s, .. } = spec.schedule else { unreachable!("steps are open loops") };
    // A server that is too slow by far would take many times the step's length to answer all requests.
    let longest = Duration::from_nanos(length.nanos().saturating_add(args.reach.timeout.nanos()));
    let stop = AtomicBool::new(false);
    let bar = Bar::new(spec, args.show.quiet);
    let watch = |progress: Progress| {
        bar.show(progress);
        let is_too_long = progress.elapsed.is_some_and(|elapsed| elapsed > longest);
        stop.fetch_or(is_too_long || interrupted.load(Ordering::Relaxed), Ordering::Relaxed);
    };
    let result = wirelab_endpoint::load::run(spec, client, watch, &stop);
    drop(bar);
    if interrupted.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let result = result.map_err(|refusal| Failure::failed(requests.target.unanswered(spec.protocol, &refusal)))?;
    let values = values_of(&result)?;
    let overloaded = result.stopped;
    let queue_grows = matches!(&result.results, Results::Samples(samples) if queue_grows(samples));
    let mut met = !overloaded && !queue_grows && result.requests > 0;
    for that in &args.find_rate {
        if !met {
            break;
        }
        met = match values.get(&that.metric) {
            Some(Value::Measured(number)) => that.limit.keeps(*number) == Some(true),
            Some(Value::Infinite { .. }) => false,
            Some(Value::NotMeasured(reason)) => {
                return Err(Failure::failed(format!(
                    "a step at {} does not measure `{}`: {reason}. -d makes steps longer, --rate sets another first rate",
                    per_second(rate_per_s),
                    that.metric
                )));
            }
            None => return Err(Failure::failed(format!("a load does not measure `{}`", that.metric))),
        };
    }
    let (requests, errors) = (result.requests, result.errors);
    Ok(Some(Step { rate_per_s, met, overloaded, queue_grows, requests, errors, values }))
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

/// The relative standard deviation of the number of arrivals in a step at this rate.
fn arrival_spread(arrivals: Arrivals, rate: f64, length: Span) -> f64 {
    match arrivals {
        Arrivals::Uniform => 0.0,
        Arrivals::Poisson => (rate * length.nanos() as f64 / 1e9).sqrt().recip(),
    }
}

/// Whether requests spend most of their time before they start: no connection or stream is free, or the client is slow.
fn waits_in_client(values: &Values) -> bool {
    let number = |name| values.get(name).and_then(Value::number);
    match (number("lag_p99"), number("response_p99")) {
        (Some(lag), Some(response)) => lag > response * MOSTLY,
        _ => false,
    }
}

fn per_second(rate: f64) -> String {
    Quantity(rate, Unit::PerSecond).to_string()
}

/// A step for people.
fn line(number: usize, step: &Step, requirements: &[Statement]) -> String {
    let mut text = format!("step {number:<3} {:>10}  ", per_second(step.rate_per_s));
    text.push_str(if step.met { "met    " } else { "not met" });
    let mut names: Vec<_> = requirements.iter().map(|that| that.metric.as_str()).collect();
    names.push("lag_p99");
    for name in names {
        let metric = wirelab_stats::METRICS.iter().find(|metric| metric.name == name);
        if let (Some(metric), Some(value)) = (metric, step.values.get(name)) {
            let _ = write!(text, "  {name} {}", shown(value, metric));
        }
    }
    let _ = write!(text, "  {} succeeded, {} failed", step.requests, step.errors.values().sum::<u64>());
    if step.overloaded {
        text.push_str(", overloaded");
    }
    if step.queue_grows {
        text.push_str(", queue grows");
    }
    text.push('\n');
    text
}

/// The answer for people.
fn text(answer: &Answer, spread: f64, waits: bool) -> String {
    let mut text = String::new();
    match answer.highest_met {
        Some(Tried { rate, met, unmet }) => {
            let steps = met + unmet;
            let _ = writeln!(text, "{:<22} {}, met in {met} of {steps} steps", "highest rate", per_second(rate));
        }
        None => {
            let _ = writeln!(text, "{:<22} none that was tried", "highest rate");
        }
    }
    match answer.lowest_unmet {
        Some(Tried { rate, met, unmet }) => {
            let rate = per_second(rate);
            let _ = writeln!(text, "{:<22} {rate}, not met in {unmet} of {} steps", "lowest rate not met", met + unmet);
        }
        None => {
            let _ =
                writeln!(text, "{:<22} none that was tried; --rate sets a higher first rate", "lowest rate not met");
        }
    }
    if answer.contradictory {
        let _ = writeln!(
            text,
            "{:<22} steps at equal or similar rates disagree. Noise decides; make steps longer (-d)",
            "warning"
        );
    }
    if spread > SMALL_SPREAD {
        let share = Quantity(spread, Unit::Share);
        let _ = writeln!(
            text,
            "{:<22} the number of random arrivals in a step varies by {share}; make steps longer (-d)",
            "warning"
        );
    }
    if waits {
        let _ = writeln!(text, "{:<22} requests waited in the client at the lowest rate not met;", "warning");
        let _ = writeln!(text, "{:<22} more connections (-c), streams (-m) or --threads may allow a higher rate", "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::hdr::tests::sample;
    use super::*;

    #[test]
    fn only_upper_bounds_can_be_searched() {
        let check = |text: &str| check(&[text.parse().unwrap()]).map_err(|failure| format!("{failure:?}"));
        assert_eq!(check("p99 at most 50 ms"), Ok(()));
        for wrong in ["rate at least 900/s", "p99 no more than 5 % worse than the baseline"] {
            assert!(check(wrong).unwrap_err().contains("p99 at most 50 ms"));
        }
        assert!(check("p9 at most 50 ms").unwrap_err().contains("p90"));
    }

    #[test]
    fn requests_that_wait_for_a_connection_are_told_from_a_slow_server() {
        let values = |lag: f64, response: f64| {
            [("lag_p99", lag), ("response_p99", response)]
                .map(|(name, number)| (name.to_owned(), Value::Measured(number)))
                .into_iter()
                .collect::<Values>()
        };
        assert!(waits_in_client(&values(60e6, 100e6)));
        assert!(!waits_in_client(&values(40e6, 100e6)));
        assert!(!waits_in_client(&Values::new()));
    }

    #[test]
    fn a_queue_that_grows_is_told_from_one_that_varies() {
        let samples = |response_ns: fn(u64) -> u64| -> Vec<Sample> {
            (0..100).map(|number| sample(number * 1000, number * 1000 + response_ns(number))).collect()
        };
        assert!(queue_grows(&samples(|number| 1_000_000 + number * 1_000_000)));
        assert!(!queue_grows(&samples(|number| 1_000_000 + number % 7 * 1_000_000)));
        assert!(!queue_grows(&samples(|number| 1_000_000 + number * 1_000_000)[..30]), "too few");
    }

    #[test]
    fn an_answer_says_how_sure_it_is() {
        let answer = Answer {
            highest_met: Some(Tried { rate: 950.0, met: 2, unmet: 1 }),
            lowest_unmet: Some(Tried { rate: 990.0, met: 0, unmet: 2 }),
            contradictory: true,
        };
        let said = text(&answer, 0.04, true);
        for words in [
            "950 /s, met in 2 of 3 steps",
            "990 /s, not met in 2 of 2 steps",
            "Noise decides",
            "varies by 4.00 %",
            "--threads",
        ] {
            assert!(said.contains(words), "{said}");
        }
        let sure = text(&Answer { contradictory: false, ..answer }, 0.01, false);
        assert!(!sure.contains("warning"), "{sure}");
    }
}
