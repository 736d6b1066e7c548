//! The progress of a load: a bar, and the values of each interval.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use wirelab_endpoint::load::{Interval, News, Progress};
use wirelab_model::metric::{Quantity, Unit, Value, Values};
use wirelab_model::ramp::Ramp;
use wirelab_model::spec::{ClientSpec, Extent};

use super::step::per_second;
use crate::args::ShowArgs;
use crate::failure::{Failure, Result};
use crate::output::{print, print_document};
use crate::stderr;

/// The length of the intervals that the progress bar shows.
const OF_BAR: Duration = Duration::from_secs(1);

/// The shortest interval: the client is asked ten times a second.
pub const SHORTEST: Duration = Duration::from_millis(100);

/// The values of an interval, as (metric, name in a line).
const SHOWN: [(&str, &str); 4] =
    [("request_rate", ""), ("response_median", "median "), ("response_p99", "p99 "), ("response_max", "max ")];

/// Shows a load: its progress on standard error, if that is a terminal, and its intervals on standard output, if they
/// are wanted.
pub struct Live<'a> {
    bar: ProgressBar,
    extent: Extent,
    /// The planned rates, if they change.
    ramp: Option<&'a Ramp>,
    every: Option<Duration>,
    json: bool,
    /// The values of the last interval, for the bar.
    last: RefCell<String>,
    /// Why an interval could not be printed.
    unprinted: Cell<Option<Failure>>,
}

impl<'a> Live<'a> {
    /// `every` is the length of the intervals that are printed.
    pub fn new(spec: &ClientSpec, ramp: Option<&'a Ramp>, every: Option<Duration>, show: &ShowArgs) -> Self {
        let length = match spec.extent {
            Extent::Requests(count) => count,
            Extent::DurationNs(ns) => ns,
        };
        let target = if show.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template("{wide_bar:.cyan/dim} {msg}").expect("the template is valid");
        let bar = ProgressBar::with_draw_target(Some(length), target).with_style(style.progress_chars("━━─"));
        stderr::keep_below(&bar);
        let (last, unprinted) = Default::default();
        Self { bar, extent: spec.extent, ramp, every, json: show.json, last, unprinted }
    }

    /// The length of the intervals to ask for; `None` if nothing shows them.
    pub fn every(&self) -> Option<Duration> {
        self.every.or((!self.bar.is_hidden()).then_some(OF_BAR))
    }

    /// Shows what is new.
    pub fn show(&self, news: &News<'_>) {
        match news {
            News::Progress(progress) => self.advance(*progress),
            News::Interval(interval) => {
                if let Err(failure) = self.interval(interval) {
                    self.unprinted.set(Some(failure));
                }
            }
        }
    }

    /// The outcome of printing the intervals.
    pub fn end(self) -> Result {
        self.unprinted.take().map_or(Ok(()), Err)
    }

    fn advance(&self, Progress { elapsed, requests, failed }: Progress) {
        let Some(elapsed) = elapsed else { return self.bar.set_message("connecting and warming up") };
        self.bar.set_position(match self.extent {
            Extent::Requests(_) => requests,
            Extent::DurationNs(_) => u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
        });
        let last = self.last.borrow();
        self.bar.set_message(format!("{:.1} s, {last}{requests} requests, {failed} failed", elapsed.as_secs_f64()));
    }

    fn interval(&self, interval: &Interval) -> Result {
        let values =
            wirelab_stats::summarise_histograms(&interval.histograms, interval.length_ns).map_err(Failure::failed)?;
        let planned = self.ramp.map(|ramp| ramp.mean_rate(interval.from_ns, interval.from_ns + interval.length_ns));
        let of_plan = planned.map_or_else(String::new, |rate| format!("planned {}, ", per_second(rate)));
        *self.last.borrow_mut() = format!("{of_plan}{}, ", words(&values).join(", "));
        if self.every.is_none() {
            return Ok(());
        }
        let line = if self.json { object(interval, planned, &values) } else { line_of(interval, &of_plan, &values) };
        self.bar.suspend(|| if self.json { print_document(&line) } else { print(&line) })
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The values of an interval with their names. `-` stands for a value that was not measured, such as a P99 of few
/// requests.
pub fn words(values: &Values) -> Vec<String> {
    let word = |(metric, name): (&str, &str)| {
        let unit = wirelab_stats::METRICS.iter().find(|one| one.name == metric)?.unit;
        Some(match values.get(metric)? {
            Value::Measured(number) => format!("{name}{}", Quantity(*number, unit)),
            Value::Infinite { .. } => format!("{name}infinite"),
            Value::NotMeasured(_) => format!("{name}-"),
        })
    };
    SHOWN.into_iter().filter_map(word).collect()
}

/// An interval for people.
fn line_of(interval: &Interval, of_plan: &str, values: &Values) -> String {
    let failed = interval.histograms.errors.values().sum();
    line(interval.from_ns + interval.length_ns, of_plan, (interval.histograms.requests, failed), values)
}

fn line(end_ns: u64, of_plan: &str, (succeeded, failed): (u64, u64), values: &Values) -> String {
    let mut line = format!("{:>10}", Quantity(end_ns as f64, Unit::Nanoseconds).to_string());
    for (word, width) in words(values).iter().zip([12, 17, 14, 14]) {
        line.push_str(&format!("  {word:>width$}"));
    }
    line.push_str(&format!("  {of_plan}{succeeded} succeeded, {failed} failed\n"));
    line
}

/// An interval for programs, on a line of its own.
fn object(interval: &Interval, planned_per_s: Option<f64>, values: &Values) -> String {
    let Interval { from_ns, length_ns, histograms } = interval;
    let mut interval = json!({
        "from_ns": from_ns,
        "length_ns": length_ns,
        "requests": histograms.requests,
        "errors": histograms.errors,
        "values": values,
    });
    if let Some(planned) = planned_per_s {
        interval["planned_per_s"] = planned.into();
    }
    format!("{}\n", json!({ "interval": interval }))
}

#[cfg(test)]
mod tests {
    use wirelab_model::missing::Missing;

    use super::*;

    #[test]
    fn a_line_has_the_values_of_its_interval_and_a_dash_for_what_was_not_measured() {
        let values: Values = [
            ("request_rate", Value::Measured(6.0)),
            ("response_median", Value::Measured(80_000.0)),
            ("response_p99", Value::NotMeasured(Missing::NotInHistograms)),
            ("response_max", Value::Infinite { infinite: "a request failed".to_owned() }),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        let line = line(2_500_000_000, "planned 7.00 /s, ", (3, 0), &values);
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "2.50 s 6.00 /s median 80.0 µs p99 - max infinite planned 7.00 /s, 3 succeeded, 0 failed"
        );
    }
}
