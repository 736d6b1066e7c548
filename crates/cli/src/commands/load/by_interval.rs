//! The results of a ramp by the interval in which requests should start. Percentiles of the whole load mix its rates.

use std::fmt::Write;

use indexmap::IndexMap;
use serde::Serialize;
use wirelab_endpoint::load::{LoadResult, Results};
use wirelab_model::metric::{Quantity, Unit, Value, Values};
use wirelab_model::outcome::ErrorKind;
use wirelab_model::ramp::Ramp;
use wirelab_model::requirement::Statement;
use wirelab_model::sample::Sample;
use wirelab_model::units::Span;

use super::step::per_second;
use super::{metric, shown};
use crate::failure::{Failure, Result};

/// The length of an interval without `--every`.
const LENGTH: Span = Span::from_secs(1);

/// The results of a ramp.
#[derive(Debug, Serialize)]
pub struct ByInterval {
    stages: String,
    intervals: Vec<OfInterval>,
    /// Where failures and the conditions of `--fail-on` begin.
    begins: Vec<Begin>,
    /// Conditions that no interval had enough requests to judge.
    #[serde(skip)]
    unmeasured: Vec<Statement>,
}

/// Requests with a planned start in one interval.
#[derive(Debug, Serialize)]
struct OfInterval {
    from_ns: u64,
    length_ns: u64,
    /// The mean rate of the plan. Random arrivals vary around it.
    planned_per_s: f64,
    /// Successful requests.
    requests: u64,
    errors: IndexMap<ErrorKind, u64>,
    values: Values,
}

/// The first interval with failures, or outside of a requirement.
#[derive(Debug, Serialize)]
struct Begin {
    /// The requirement that is not met; absent: requests failed.
    not_met: Option<Statement>,
    from_ns: u64,
    planned_per_s: f64,
    /// The value in this interval, for people.
    value: String,
    /// Number of such intervals.
    intervals: usize,
    /// Number of intervals that could be judged.
    of: usize,
}

impl ByInterval {
    /// Divides the results of a ramp. A load that was stopped early has no intervals after its end.
    pub fn of(ramp: &Ramp, every: Option<Span>, result: &LoadResult, fail_on: &[Statement]) -> Self {
        let length_ns = every.unwrap_or(LENGTH).nanos();
        let whole = ramp.length().nanos();
        let until = if result.stopped { result.window_ns.min(whole) } else { whole };
        let mut planned: Vec<&Sample> = match &result.results {
            Results::Samples(samples) => samples.iter().collect(),
            Results::Histograms(_) => Vec::new(),
        };
        planned.sort_by_key(|sample| sample.intended_ns);
        let mut rest = planned.as_slice();
        let mut intervals = Vec::new();
        for from_ns in (0..until).step_by(length_ns as usize) {
            let length_ns = length_ns.min(until - from_ns);
            let (of_interval, later) =
                rest.split_at(rest.partition_point(|sample| sample.intended_ns < from_ns + length_ns));
            rest = later;
            let samples: Vec<_> = of_interval.iter().copied().cloned().collect();
            let values = wirelab_stats::summarise(&samples, length_ns);
            let (requests, errors) = Results::Samples(samples).counts();
            let planned_per_s = ramp.mean_rate(from_ns, from_ns + length_ns);
            intervals.push(OfInterval { from_ns, length_ns, planned_per_s, requests, errors, values });
        }
        let mut begins: Vec<_> = failures(&intervals).into_iter().collect();
        let mut unmeasured = Vec::new();
        for that in fail_on {
            match unmet(&intervals, that) {
                Judged::Met => {}
                Judged::Unmet(begin) => begins.push(begin),
                Judged::Unmeasured => unmeasured.push(that.clone()),
            }
        }
        Self { stages: ramp.to_string(), intervals, begins, unmeasured }
    }

    /// Fails if an interval does not meet one of the requirements of `--fail-on`, or no interval can be judged.
    pub fn judge(&self) -> Result {
        let unmet = self.begins.iter().filter(|begin| begin.not_met.is_some()).map(Begin::text);
        let unmeasured = |that| format!("{that}: not measured in any interval; --every makes them longer");
        let all: Vec<_> = unmet.chain(self.unmeasured.iter().map(unmeasured)).collect();
        if all.is_empty() {
            return Ok(());
        }
        Err(Failure::unmet(format!("the ramp does not meet what is required of it.\n{}", all.join("\n"))))
    }

    /// A table with a line for each interval, and where failures begin.
    pub fn text(&self) -> String {
        let mut text = format!(
            "\n{:>12} {:>12} {:>10} {:>8} {:>12} {:>12} {:>12}\n",
            "planned from", "planned rate", "succeeded", "failed", "median", "p99", "max"
        );
        for one in &self.intervals {
            let time = |name| short(one.values.get(name));
            let _ = writeln!(
                text,
                "{:>12} {:>12} {:>10} {:>8} {:>12} {:>12} {:>12}",
                time_of(one.from_ns),
                per_second(one.planned_per_s),
                one.requests,
                one.errors.values().sum::<u64>(),
                time("response_median"),
                time("response_p99"),
                time("response_max"),
            );
        }
        if !self.begins.is_empty() {
            text.push('\n');
        }
        self.begins.iter().for_each(|begin| {
            let _ = writeln!(text, "{}", begin.text());
        });
        text
    }
}

impl Begin {
    /// The first of the intervals that have such a value.
    fn of(not_met: Option<&Statement>, found: &[(&OfInterval, String)], of: usize) -> Option<Self> {
        let (first, value) = found.first()?;
        let (from_ns, planned_per_s) = (first.from_ns, first.planned_per_s);
        Some(Self {
            not_met: not_met.cloned(),
            from_ns,
            planned_per_s,
            value: value.clone(),
            intervals: found.len(),
            of,
        })
    }

    fn text(&self) -> String {
        let Self { value, intervals, of, .. } = self;
        let what = self.not_met.as_ref().map_or("requests failed".to_owned(), |that| format!("not met: {that}"));
        let (from, rate) = (time_of(self.from_ns), per_second(self.planned_per_s));
        format!("{what}, first in the interval from {from} at {rate} ({value}), in {intervals} of {of} intervals")
    }
}

fn failures(intervals: &[OfInterval]) -> Option<Begin> {
    let failed = |one: &OfInterval| one.errors.values().sum::<u64>();
    let with_any = intervals.iter().filter(|one| failed(one) > 0);
    let found: Vec<_> =
        with_any.map(|one| (one, format!("{} of {}", failed(one), failed(one) + one.requests))).collect();
    Begin::of(None, &found, intervals.len())
}

/// The judgement of a requirement over all intervals.
enum Judged {
    Met,
    Unmet(Begin),
    /// No interval measures the metric.
    Unmeasured,
}

/// Judges each interval. An interval without a value, such as a P99 of few requests, counts for neither side.
fn unmet(intervals: &[OfInterval], that: &Statement) -> Judged {
    let mut measured = 0;
    let mut found = Vec::new();
    for one in intervals {
        let Some(value) = one.values.get(&that.metric) else { continue };
        let keeps = match value {
            Value::Measured(number) => that.limit.keeps(*number) == Some(true),
            Value::Infinite { .. } => false,
            Value::NotMeasured(_) => continue,
        };
        measured += 1;
        if !keeps {
            let value = metric(&that.metric).map_or_else(String::new, |metric| shown(value, metric));
            found.push((one, value));
        }
    }
    match Begin::of(Some(that), &found, measured) {
        Some(begin) => Judged::Unmet(begin),
        None if measured == 0 => Judged::Unmeasured,
        None => Judged::Met,
    }
}

/// A time of the plan, in full.
fn time_of(ns: u64) -> String {
    format!("{} s", Span(ns).secs())
}

/// A time in a table. `-` stands for one that was not measured.
fn short(value: Option<&Value>) -> String {
    match value {
        Some(Value::Measured(number)) => Quantity(*number, Unit::Nanoseconds).to_string(),
        Some(Value::Infinite { .. }) => "infinite".to_owned(),
        Some(Value::NotMeasured(_)) | None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::hdr::tests::sample;
    use super::*;

    const MS: u64 = 1_000_000;

    /// A ramp from 0 to 400/s in 2 s, with responses in 1 ms at first, and in 90 ms from 300/s on; the last request
    /// fails.
    fn slow_at_the_top(every: Span, fail_on: &[&str]) -> ByInterval {
        let ramp: Ramp = "0..400/s in 2 s".parse().unwrap();
        let mut samples: Vec<_> = (0..400_u64)
            .map(|number| {
                let at = ((number as f64).sqrt() / 10.0 * 1e9) as u64;
                sample(at, at + if at < 1500 * MS { MS } else { 90 * MS })
            })
            .collect();
        samples.last_mut().unwrap().error = Some(ErrorKind::Reset);
        let (requests, errors) = Results::Samples(samples.clone()).counts();
        let result = LoadResult {
            results: Results::Samples(samples),
            window_ns: 2090 * MS,
            stopped: false,
            requests,
            errors,
            sent_again: 0,
            first_failure: None,
            configured: Default::default(),
            warmed_up: None,
        };
        let fail_on: Vec<_> = fail_on.iter().map(|text| Statement::from_failure(text).unwrap()).collect();
        ByInterval::of(&ramp, Some(every), &result, &fail_on)
    }

    #[test]
    fn requests_belong_to_the_interval_of_their_planned_start() {
        let found = slow_at_the_top(Span::from_millis(500), &[]);
        let counts: Vec<_> = found.intervals.iter().map(|one| (one.planned_per_s, one.requests)).collect();
        assert_eq!(counts, [(50.0, 25), (150.0, 75), (250.0, 125), (350.0, 174)]);
        assert_eq!(found.intervals[3].errors.values().sum::<u64>(), 1);
        let text = found.text();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<_> = text.lines().map(words).collect();
        assert_eq!(lines[2], "0 s 50.0 /s 25 0 1.00 ms - 1.00 ms");
        assert!(lines[5].starts_with("1.5 s 350 /s 174 1 90.0 ms 90.0 ms"), "{text}");
        assert!(
            text.ends_with(
                "requests failed, first in the interval from 1.5 s at 350 /s (1 of 175), in 1 of 4 intervals\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_condition_is_judged_in_each_interval_that_can_be_and_the_first_is_named() {
        let found = slow_at_the_top(Span::from_millis(500), &["p99 > 50 ms", "max > 1 s"]);
        let said = found.judge().unwrap_err().to_string();
        assert!(said.contains("response_p99 at most 50 ms, first in the interval from 1.5 s at 350 /s"), "{said}");
        // Of 25 and of 75 requests there is no P99.
        assert!(said.contains("(90.0 ms), in 1 of 2 intervals") && !said.contains("response_max"), "{said}");
        assert!(slow_at_the_top(Span::from_millis(500), &["p99 > 100 ms"]).judge().is_ok());
        let never = slow_at_the_top(Span::from_millis(100), &["p99 > 100 ms"]).judge().unwrap_err().to_string();
        assert!(never.contains("not measured in any interval"), "{never}");
    }
}
