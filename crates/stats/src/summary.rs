//! The values of one trial from the records of its client.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::serialization::Deserializer;
use wirelab_model::histogram::{Histogram, Histograms};
use wirelab_model::metric::{Value, Values};
use wirelab_model::sample::{Handshake, Sample};

use crate::metrics::METRICS;
use crate::quantile;

/// The values of every metric in [`METRICS`], from one record per request.
///
/// `window_ns` is the length of the measured window. A quantity without records, or with too few for its percentile, is missing with
/// a reason and never 0. The count of successes and the share of failures are exact and may be 0.
#[must_use]
pub fn summarise(samples: &[Sample], window_ns: u64) -> Values {
    let ok = || samples.iter().filter(|sample| sample.is_ok());
    let since_start = |time: fn(&Sample) -> Option<u64>| {
        ok().filter_map(|sample| Some(time(sample)?.saturating_sub(sample.start_ns))).collect::<Vec<_>>()
    };
    let began = |kind| samples.iter().filter(|sample| sample.handshake == Some(kind)).count() as u64;
    let times = Times {
        response: Times::exact(ok().map(Sample::response_ns).collect()),
        service: Times::exact(ok().map(Sample::service_ns).collect()),
        lag: Times::exact(samples.iter().map(Sample::lag_ns).collect()),
        connected: Ok(Times::exact(since_start(|sample| sample.connected_ns))),
        handshake: Times::exact(since_start(|sample| sample.handshake_ns)),
        first_byte: Times::exact(since_start(|sample| sample.first_byte_ns)),
        failure: Times::exact(samples.iter().filter(|sample| !sample.is_ok()).map(Sample::response_ns).collect()),
    };
    let counts = Counts {
        window_ns,
        requests: ok().count() as u64,
        failed: samples.iter().filter(|sample| !sample.is_ok()).count() as u64,
        bytes: ok().map(|sample| sample.bytes_in + sample.bytes_out).sum(),
        handshakes: samples.iter().filter(|sample| sample.handshake.is_some()).count() as u64,
        resumed: began(Handshake::Resumed) + began(Handshake::EarlyAccepted),
        early: began(Handshake::EarlyAccepted),
    };
    values(&times, &counts)
}

/// The same from histograms, whose percentiles are within 0.1 %; smallest, largest and mean are exact.
///
/// # Errors
/// If a histogram cannot be decoded or contradicts the counts beside it; the client's results are then unusable.
pub fn summarise_histograms(histograms: &Histograms, window_ns: u64) -> Result<Values, String> {
    let began = |kind| histograms.handshakes.get(&kind).copied().unwrap_or(0);
    if histograms.response.count != histograms.requests {
        let (held, said) = (histograms.response.count, histograms.requests);
        return Err(format!(
            "the client reports {said} successful requests, but its histogram of response times holds {held}"
        ));
    }
    let times = Times {
        response: decode("response", &histograms.response)?,
        service: decode("service", &histograms.service)?,
        lag: decode("lag", &histograms.lag)?,
        connected: Err("histograms do not record when the transport was connected"),
        handshake: decode("handshake", &histograms.handshake)?,
        first_byte: decode("first_byte", &histograms.first_byte)?,
        failure: decode("failure", &histograms.failure)?,
    };
    let counts = Counts {
        window_ns,
        requests: histograms.requests,
        failed: histograms.errors.values().sum(),
        bytes: histograms.bytes_in + histograms.bytes_out,
        handshakes: histograms.handshakes.values().sum(),
        resumed: began(Handshake::Resumed) + began(Handshake::EarlyAccepted),
        early: began(Handshake::EarlyAccepted),
    };
    Ok(values(&times, &counts))
}

/// The response times of a histogram with their counts, ascending, for drawing a distribution.
///
/// # Errors
/// As [`summarise_histograms`].
pub fn response_counts(histograms: &Histograms) -> Result<Vec<(u64, u64)>, String> {
    Ok(match decode("response", &histograms.response)? {
        Recorded::Exact(values) => values.into_iter().map(|value| (value, 1)).collect(),
        Recorded::Quantised(histogram, _) => {
            histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
        }
    })
}

/// A distribution of nanoseconds, recorded as values or as a histogram.
pub(crate) enum Recorded {
    /// Every value, in ascending order.
    Exact(Vec<u64>),
    /// A decoded histogram, with the exact facts beside it.
    Quantised(hdrhistogram::Histogram<u64>, Histogram),
}

impl Recorded {
    fn count(&self) -> u64 {
        match self {
            Self::Exact(sorted) => sorted.len() as u64,
            Self::Quantised(_, facts) => facts.count,
        }
    }

    /// The nearest-rank quantile of at least one value.
    fn quantile(&self, q: f64) -> f64 {
        match self {
            Self::Exact(sorted) => quantile::nearest_rank(sorted, q).map_or(f64::NAN, |ns| ns as f64),
            Self::Quantised(histogram, facts) => {
                histogram.value_at_quantile(quantile::without_slip(q)).clamp(facts.min_ns, facts.max_ns) as f64
            }
        }
    }

    fn mean(&self) -> f64 {
        let sum = match self {
            Self::Exact(sorted) => sorted.iter().map(|ns| *ns as f64).sum(),
            Self::Quantised(_, facts) => facts.sum_ns as f64,
        };
        sum / self.count() as f64
    }
}

/// The distributions of a trial.
struct Times {
    response: Recorded,
    service: Recorded,
    lag: Recorded,
    connected: Result<Recorded, &'static str>,
    handshake: Recorded,
    first_byte: Recorded,
    failure: Recorded,
}

impl Times {
    fn exact(mut values: Vec<u64>) -> Recorded {
        values.sort_unstable();
        Recorded::Exact(values)
    }
}

pub(crate) fn decode(name: &str, facts: &Histogram) -> Result<Recorded, String> {
    if facts.count == 0 {
        return Ok(Recorded::Exact(Vec::new()));
    }
    let unusable = |why: String| format!("the client's histogram `{name}` is unusable: {why}");
    let bytes = BASE64_STANDARD.decode(&facts.v2).map_err(|error| unusable(format!("it is not base64 ({error})")))?;
    let histogram: hdrhistogram::Histogram<u64> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| unusable(format!("it is not an HdrHistogram in V2 encoding ({error})")))?;
    if histogram.len() != facts.count {
        return Err(unusable(format!("it holds {} values, but says {}", histogram.len(), facts.count)));
    }
    if facts.min_ns > facts.max_ns {
        return Err(unusable("its smallest value is above its largest".to_owned()));
    }
    Ok(Recorded::Quantised(histogram, facts.clone()))
}

/// The counts of a trial.
struct Counts {
    window_ns: u64,
    requests: u64,
    failed: u64,
    bytes: u64,
    handshakes: u64,
    resumed: u64,
    early: u64,
}

const NO_SUCCESS: &str = "no request succeeded";
const NOT_APART: &str = "this transport connects at the end of its handshake";
const NO_CONNECTION: &str = "no successful request opened a connection in the measured window";

fn values(times: &Times, counts: &Counts) -> Values {
    METRICS.iter().map(|metric| (metric.name.to_owned(), value(metric.name, times, counts))).collect()
}

fn value(metric: &str, times: &Times, counts: &Counts) -> Value {
    let some = |recorded: &Recorded, number: f64| match recorded.count() {
        0 => Value::missing(NO_SUCCESS),
        _ => Value::finite(number, NO_SUCCESS),
    };
    match metric {
        "response_median" => joint_percentile(&times.response, 0.5, 1, counts.failed),
        "response_p90" => joint_percentile(&times.response, 0.9, 10, counts.failed),
        "response_p99" => joint_percentile(&times.response, 0.99, 100, counts.failed),
        "response_p999" => joint_percentile(&times.response, 0.999, 1000, counts.failed),
        "response_mean" => some(&times.response, times.response.mean()),
        "response_min" => some(&times.response, smallest(&times.response)),
        "response_max" => some(&times.response, largest(&times.response)),
        "response_iqr" => match times.response.count() {
            0 => Value::missing(NO_SUCCESS),
            count @ 1..4 => Value::missing(format!("only {count} requests; quartiles need 4")),
            _ => Value::finite(times.response.quantile(0.75) - times.response.quantile(0.25), NO_SUCCESS),
        },
        "total_time" => match counts.requests {
            0 => Value::missing(NO_SUCCESS),
            _ => Value::Measured(counts.window_ns as f64),
        },
        "service_median" => joint_percentile(&times.service, 0.5, 1, counts.failed),
        "lag_p99" => percentile(&times.lag, 0.99, 100, "no request was made"),
        "connected_median" => match &times.connected {
            Ok(connected) if connected.count() == 0 && times.handshake.count() > 0 => Value::missing(NOT_APART),
            Ok(connected) => percentile(connected, 0.5, 1, NO_CONNECTION),
            Err(why) => Value::missing(*why),
        },
        "handshake_median" => percentile(&times.handshake, 0.5, 1, NO_CONNECTION),
        "first_byte_median" => percentile(&times.first_byte, 0.5, 1, NO_SUCCESS),
        "failure_median" => percentile(&times.failure, 0.5, 1, "no request failed"),
        "request_rate" => per_second(counts.requests as f64, counts),
        "goodput" => per_second(counts.bytes as f64 * 8.0, counts),
        "requests" => Value::Measured(counts.requests as f64),
        "error_share" => share(counts.failed, counts.failed + counts.requests, "no request was made"),
        "resumed_share" => share(counts.resumed, counts.handshakes, NO_HANDSHAKE),
        "early_share" => share(counts.early, counts.handshakes, NO_HANDSHAKE),
        other => unreachable!("`{other}` is declared and not computed"),
    }
}

const NO_HANDSHAKE: &str = "no TLS or QUIC handshake happened in the measured window";

/// A percentile, where there are enough values for it: below 1/(1-q) values it would be just another name of the largest one.
fn percentile(recorded: &Recorded, q: f64, needed: u64, none: &str) -> Value {
    match recorded.count() {
        0 => Value::missing(none),
        count if count < needed => Value::missing(too_few(count, q, needed)),
        _ => Value::finite(recorded.quantile(q), none),
    }
}

fn too_few(count: u64, q: f64, needed: u64) -> String {
    let requests = if count == 1 { "request" } else { "requests" };
    format!("only {count} {requests}; a P{} needs {needed}", percent(q))
}

/// A percentile over successful and failed requests, each failed one slower than every success; infinite if it falls among these.
fn joint_percentile(recorded: &Recorded, q: f64, needed: u64, failed: u64) -> Value {
    let (succeeded, all) = (recorded.count(), recorded.count() + failed);
    let rank = quantile::rank(q, all);
    match all {
        0 => Value::missing(NO_SUCCESS),
        count if count < needed => Value::missing(too_few(count, q, needed)),
        _ if rank > succeeded => Value::Infinite { infinite: format!("{failed} of {all} requests failed") },
        _ => Value::finite(recorded.quantile(rank as f64 / succeeded as f64), NO_SUCCESS),
    }
}

/// A quantile in percent, without the digits that binary fractions add: 99.9 for 0.999.
fn percent(q: f64) -> f64 {
    (q * 1000.0).round() / 10.0
}

fn smallest(recorded: &Recorded) -> f64 {
    match recorded {
        Recorded::Exact(sorted) => sorted.first().map_or(f64::NAN, |ns| *ns as f64),
        Recorded::Quantised(_, facts) => facts.min_ns as f64,
    }
}

fn largest(recorded: &Recorded) -> f64 {
    match recorded {
        Recorded::Exact(sorted) => sorted.last().map_or(f64::NAN, |ns| *ns as f64),
        Recorded::Quantised(_, facts) => facts.max_ns as f64,
    }
}

fn per_second(amount: f64, counts: &Counts) -> Value {
    if counts.requests == 0 {
        return Value::missing(NO_SUCCESS);
    }
    Value::finite(amount / (counts.window_ns as f64 / 1e9), "the measured window has no length")
}

fn share(part: u64, whole: u64, none: &str) -> Value {
    Value::finite(part as f64 / whole as f64, none)
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
