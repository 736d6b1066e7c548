//! The values of one trial from the records of its client.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::serialization::Deserializer;
use wirelab_model::histogram::{Histogram, Histograms};
use wirelab_model::metric::{Value, Values};
use wirelab_model::missing::Missing;
use wirelab_model::sample::{Handshake, Sample};

use crate::histogram_error::HistogramError;
use crate::metrics::TABLE;
use crate::quantile;

/// A request is a stall if it takes more than this many times the P99.
const STALL: f64 = 10.0;

/// The values of every metric in [`crate::METRICS`], from one record per request.
///
/// `window_ns` is the length of the measured window. A quantity without records, or with too few for its percentile, is
/// missing with a reason and never 0. The count of successes and the share of failures are exact and may be 0.
#[must_use]
pub fn summarise(samples: &[Sample], window_ns: u64) -> Values {
    let ok = || samples.iter().filter(|sample| sample.is_ok());
    let since_start = |time: fn(&Sample) -> Option<u64>| {
        ok().filter_map(|sample| Some(time(sample)?.saturating_sub(sample.start_ns))).collect::<Vec<_>>()
    };
    let began = |kind| samples.iter().filter(|sample| sample.handshake == Some(kind)).count() as u64;
    let requests = Requests {
        response: Recorded::exact(ok().map(Sample::response_ns).collect()),
        service: Recorded::exact(ok().map(Sample::service_ns).collect()),
        lag: Recorded::exact(samples.iter().map(Sample::lag_ns).collect()),
        connected: Ok(Recorded::exact(since_start(|sample| sample.connected_ns))),
        handshake: Recorded::exact(since_start(|sample| sample.handshake_ns)),
        first_byte: Recorded::exact(since_start(|sample| sample.first_byte_ns)),
        failure: Recorded::exact(samples.iter().filter(|sample| !sample.is_ok()).map(Sample::response_ns).collect()),
        window_ns,
        ok: ok().count() as u64,
        failed: samples.iter().filter(|sample| !sample.is_ok()).count() as u64,
        bytes: ok().map(|sample| sample.bytes_in + sample.bytes_out).sum(),
        handshakes: samples.iter().filter(|sample| sample.handshake.is_some()).count() as u64,
        resumed: began(Handshake::Resumed) + began(Handshake::EarlyAccepted),
        early: began(Handshake::EarlyAccepted),
    };
    requests.values()
}

/// The same from histograms, whose percentiles are within 0.1 %; smallest, largest and mean are exact.
///
/// # Errors
/// If a histogram cannot be decoded or contradicts the counts beside it; the client's results are then unusable.
pub fn summarise_histograms(histograms: &Histograms, window_ns: u64) -> Result<Values, HistogramError> {
    let began = |kind| histograms.handshakes.get(&kind).copied().unwrap_or(0);
    if histograms.response.count != histograms.requests {
        let (held, requests) = (histograms.response.count, histograms.requests);
        return Err(HistogramError::OtherRequests { requests, held });
    }
    let requests = Requests {
        response: decode("response", &histograms.response)?,
        service: decode("service", &histograms.service)?,
        lag: decode("lag", &histograms.lag)?,
        connected: Err(Missing::NotInHistograms),
        handshake: decode("handshake", &histograms.handshake)?,
        first_byte: decode("first_byte", &histograms.first_byte)?,
        failure: decode("failure", &histograms.failure)?,
        window_ns,
        ok: histograms.requests,
        failed: total(histograms.errors.values())?,
        bytes: total([&histograms.bytes_in, &histograms.bytes_out])?,
        handshakes: total(histograms.handshakes.values())?,
        resumed: total([&began(Handshake::Resumed), &began(Handshake::EarlyAccepted)])?,
        early: began(Handshake::EarlyAccepted),
    };
    Ok(requests.values())
}

/// The sum of a client's counts.
fn total<'a>(counts: impl IntoIterator<Item = &'a u64>) -> Result<u64, HistogramError> {
    counts.into_iter().try_fold(0_u64, |sum, count| sum.checked_add(*count)).ok_or(HistogramError::TooLarge)
}

/// The response times of a histogram with their counts, ascending, for drawing a distribution.
///
/// # Errors
/// As [`summarise_histograms`].
pub fn response_counts(histograms: &Histograms) -> Result<Vec<(u64, u64)>, HistogramError> {
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
    fn exact(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        Self::Exact(values)
    }

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

    pub(crate) fn mean(&self) -> f64 {
        let sum = match self {
            Self::Exact(sorted) => sorted.iter().map(|ns| *ns as f64).sum(),
            Self::Quantised(_, facts) => facts.sum_ns as f64,
        };
        sum / self.count() as f64
    }

    /// The sum of all values above a limit.
    fn sum_above(&self, limit: f64) -> f64 {
        match self {
            Self::Exact(sorted) => sorted.iter().map(|ns| *ns as f64).filter(|ns| *ns > limit).sum(),
            Self::Quantised(histogram, _) => {
                let steps =
                    histogram.iter_recorded().map(|step| (step.value_iterated_to() as f64, step.count_at_value()));
                steps.filter(|(ns, _)| *ns > limit).map(|(ns, count)| ns * count as f64).sum()
            }
        }
    }

    pub(crate) fn smallest(&self) -> f64 {
        match self {
            Self::Exact(sorted) => sorted.first().map_or(f64::NAN, |ns| *ns as f64),
            Self::Quantised(_, facts) => facts.min_ns as f64,
        }
    }

    pub(crate) fn largest(&self) -> f64 {
        match self {
            Self::Exact(sorted) => sorted.last().map_or(f64::NAN, |ns| *ns as f64),
            Self::Quantised(_, facts) => facts.max_ns as f64,
        }
    }

    /// A property of the times of successful requests.
    pub(crate) fn fact(&self, of: fn(&Self) -> f64) -> Value {
        Value::finite(of(self), Missing::NoSuccess)
    }

    /// The third quartile minus the first.
    pub(crate) fn quartile_range(&self) -> Value {
        match self.count() {
            0 => Value::missing(Missing::NoSuccess),
            count @ 1..4 => Value::missing(Missing::TooFewForQuartiles { count }),
            _ => Value::finite(self.quantile(0.75) - self.quantile(0.25), Missing::NoSuccess),
        }
    }
}

/// The requests of a trial: distributions of their times, and their counts.
pub(crate) struct Requests {
    pub(crate) response: Recorded,
    pub(crate) service: Recorded,
    pub(crate) lag: Recorded,
    connected: Result<Recorded, Missing>,
    pub(crate) handshake: Recorded,
    pub(crate) first_byte: Recorded,
    pub(crate) failure: Recorded,
    window_ns: u64,
    /// Requests that succeeded.
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    /// Payload bytes of the requests that succeeded, both directions.
    pub(crate) bytes: u64,
    pub(crate) handshakes: u64,
    pub(crate) resumed: u64,
    pub(crate) early: u64,
}

impl Requests {
    fn values(&self) -> Values {
        TABLE.iter().map(|row| (row.metric.name.to_owned(), (row.compute)(self))).collect()
    }

    pub(crate) fn response_percentile(&self, q: f64, needed: u64) -> Value {
        joint_percentile(&self.response, q, needed, self.failed)
    }

    pub(crate) fn total_time(&self) -> Value {
        if self.ok == 0 { Value::missing(Missing::NoSuccess) } else { Value::Measured(self.window_ns as f64) }
    }

    /// The share of service time in requests far beyond the P99, which no percentile up to the P99 shows.
    pub(crate) fn stalled_share(&self) -> Value {
        let (count, needed) = (self.service.count(), 100);
        if count < needed {
            return Value::missing(too_few(count, 0.99, needed));
        }
        let limit = STALL * self.service.quantile(0.99);
        // The sum of nothing is -0, which would be printed as such.
        let stalled = 0.0 + self.service.sum_above(limit) + self.failure.sum_above(limit);
        Value::finite(stalled / (self.service.sum_above(0.0) + self.failure.sum_above(0.0)), Missing::NoSuccess)
    }

    pub(crate) fn connected_median(&self) -> Value {
        match &self.connected {
            Ok(connected) if connected.count() == 0 && self.handshake.count() > 0 => {
                Value::missing(Missing::ConnectsWithHandshake)
            }
            Ok(connected) => percentile(connected, 0.5, 1, Missing::NoNewConnection),
            Err(why) => Value::missing(why.clone()),
        }
    }

    pub(crate) fn per_second(&self, amount: f64) -> Value {
        if self.ok == 0 {
            return Value::missing(Missing::NoSuccess);
        }
        Value::finite(amount / (self.window_ns as f64 / 1e9), Missing::EmptyWindow)
    }
}

/// The header of an HdrHistogram in V2 encoding, in bytes. Its second number of four bytes is the length of the rest.
const V2_HEADER: usize = 40;

pub(crate) fn decode(name: &'static str, facts: &Histogram) -> Result<Recorded, HistogramError> {
    if facts.count == 0 {
        return Ok(Recorded::Exact(Vec::new()));
    }
    let bytes = BASE64_STANDARD.decode(&facts.v2).map_err(|cause| HistogramError::NotBase64 { name, cause })?;
    // The library reserves memory for as many bytes as the header says.
    let said = bytes.get(4..8).and_then(|said| said.try_into().ok()).map_or(0, u32::from_be_bytes);
    let held = bytes.len().saturating_sub(V2_HEADER);
    if said as usize > held {
        return Err(HistogramError::CutShort { name, held, said });
    }
    let histogram: hdrhistogram::Histogram<u64> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|cause| HistogramError::NotV2 { name, cause })?;
    if histogram.len() != facts.count {
        return Err(HistogramError::OtherCount { name, held: histogram.len(), said: facts.count });
    }
    if facts.min_ns > facts.max_ns {
        return Err(HistogramError::NoRange { name });
    }
    Ok(Recorded::Quantised(histogram, facts.clone()))
}

/// A percentile, where there are enough values for it: below 1/(1-q) values it would be just another name of the
/// largest one.
pub(crate) fn percentile(recorded: &Recorded, q: f64, needed: u64, none: Missing) -> Value {
    match recorded.count() {
        0 => Value::missing(none),
        count if count < needed => Value::missing(too_few(count, q, needed)),
        _ => Value::finite(recorded.quantile(q), none),
    }
}

pub(crate) fn too_few(count: u64, q: f64, needed: u64) -> Missing {
    Missing::TooFewForPercentile { count, percent: percent(q), needed }
}

/// A percentile over successful and failed requests, each failed one slower than every success; infinite if it falls
/// among these.
pub(crate) fn joint_percentile(recorded: &Recorded, q: f64, needed: u64, failed: u64) -> Value {
    let (succeeded, all) = (recorded.count(), recorded.count() + failed);
    let rank = quantile::rank(q, all);
    match all {
        0 => Value::missing(Missing::NoSuccess),
        count if count < needed => Value::missing(too_few(count, q, needed)),
        _ if rank > succeeded => Value::Infinite { infinite: format!("{failed} of {all} requests failed") },
        _ => Value::finite(recorded.quantile(rank as f64 / succeeded as f64), Missing::NoSuccess),
    }
}

/// A quantile in percent, without the digits that binary fractions add: 99.9 for 0.999.
fn percent(q: f64) -> f64 {
    (q * 1000.0).round() / 10.0
}

pub(crate) fn share(part: u64, whole: u64, none: Missing) -> Value {
    Value::finite(part as f64 / whole as f64, none)
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
