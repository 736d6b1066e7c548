//! `wirelab load --find-rate`: the highest rate that meets requirements.

mod search;

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::json;
use wirelab_endpoint::load::Client;
use wirelab_model::metric::{Quantity, Unit, Value, Values};
use wirelab_model::requirement::{Limit, Statement};
use wirelab_model::spec::{Arrivals, ClientSpec};
use wirelab_model::units::Span;

use self::search::{Answer, MOST_STEPS, Tried};
use super::step::{self, Step, measure, per_second};
use super::{known, shown};
use crate::args::LoadArgs;
use crate::failure::{Failure, Result};
use crate::output::{print, print_json};
use crate::requests::Requests;
use crate::stderr;

/// The first rate without `--rate`.
const FIRST_RATE: f64 = 100.0;

/// A step waits in its own client if this share of the P99 of its response times passes before the request starts.
const MOSTLY: f64 = 0.5;

/// Highest deviation of the number of random arrivals of a step without a warning: half of the resolution.
const SMALL_SPREAD: f64 = 0.025;

/// A measured step, and whether it meets the requirements.
#[derive(Debug, Serialize)]
struct Judged {
    #[serde(flatten)]
    step: Step,
    met: bool,
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
    let first = args.rate.map_or(FIRST_RATE, |rate| rate.0);
    let length = step::length(args);
    if !args.show.quiet {
        let most = Quantity(length.nanos() as f64 * MOST_STEPS as f64, Unit::Nanoseconds);
        stderr::write_line(format_args!("at most {MOST_STEPS} steps of {length}, which is {most} without warm-ups"));
    }
    let mut steps: Vec<Judged> = Vec::new();
    let mut judged: Vec<search::Step> = Vec::new();
    while let Some(rate) = search::next(first, &judged) {
        let step = measure(args, requests, (spec, client), (steps.len(), rate), interrupted)?;
        let Some(step) = step else { break };
        let step = Judged { met: meets(&step, &args.find_rate)?, step };
        if !args.show.json {
            print(&line(steps.len() + 1, &step, &args.find_rate))?;
        }
        judged.push(search::Step { rate, met: step.met });
        steps.push(step);
    }
    let answer = Answer::of(&judged);
    let waits = steps
        .iter()
        .map(|judged| &judged.step)
        .filter(|step| Some(step.rate_per_s) == answer.lowest_unmet.map(|one| one.rate))
        .any(|step| waits_in_client(&step.values));
    let spread = answer.highest_met.map_or(0.0, |highest| arrival_spread(args.arrivals.into(), highest.rate, length));
    if args.show.json {
        print_json(&json!({
            "url": requests.url(),
            "address": requests.target.socket(),
        "via": requests.target.via.as_ref().map(ToString::to_string),
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

/// Whether a step meets all requirements.
fn meets(step: &Step, requirements: &[Statement]) -> Result<bool> {
    let mut met = !step.overloaded && !step.queue_grows && step.requests > 0;
    for that in requirements {
        if !met {
            break;
        }
        met = match step.values.get(&that.metric) {
            Some(Value::Measured(number)) => that.limit.keeps(*number) == Some(true),
            Some(Value::Infinite { .. }) => false,
            Some(Value::NotMeasured(reason)) => {
                return Err(Failure::failed(format!(
                    "a step at {} does not measure `{}`: {reason}. -d makes steps longer, --rate sets another first rate",
                    per_second(step.rate_per_s),
                    that.metric
                )));
            }
            None => return Err(Failure::failed(format!("a load does not measure `{}`", that.metric))),
        };
    }
    Ok(met)
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

/// A step for people.
fn line(number: usize, Judged { step, met }: &Judged, requirements: &[Statement]) -> String {
    let mut text = format!("step {number:<3} {:>10}  ", per_second(step.rate_per_s));
    text.push_str(if *met { "met    " } else { "not met" });
    let mut names: Vec<_> = requirements.iter().map(|that| that.metric.as_str()).collect();
    names.push("lag_p99");
    for name in names {
        let metric = wirelab_stats::METRICS.iter().find(|metric| metric.name == name);
        if let (Some(metric), Some(value)) = (metric, step.values.get(name)) {
            let _ = write!(text, "  {name} {}", shown(value, metric));
        }
    }
    let _ = writeln!(text, "  {}", step.remarks());
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
