//! Converts samples to histograms.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use indexmap::IndexMap;
use wirelab_model::histogram::{Histogram, Histograms};
use wirelab_model::sample::Sample;

/// The histograms that a client would have recorded for these samples.
pub fn histograms(samples: &[Sample]) -> Histograms {
    let ok = || samples.iter().filter(|sample| sample.is_ok());
    let failed = || samples.iter().filter(|sample| !sample.is_ok());
    let mut errors = IndexMap::new();
    for kind in samples.iter().filter_map(|sample| sample.error) {
        *errors.entry(kind).or_default() += 1;
    }
    let mut handshakes = IndexMap::new();
    for handshake in ok().filter_map(|sample| sample.handshake) {
        *handshakes.entry(handshake).or_default() += 1;
    }
    let since_start = |sample: &Sample, time: Option<u64>| Some(time?.saturating_sub(sample.start_ns));
    Histograms {
        response: histogram(ok().map(Sample::response_ns)),
        service: histogram(ok().map(Sample::service_ns)),
        lag: histogram(samples.iter().map(Sample::lag_ns)),
        handshake: histogram(ok().filter_map(|sample| since_start(sample, sample.handshake_ns))),
        first_byte: histogram(ok().filter_map(|sample| since_start(sample, sample.first_byte_ns))),
        failure: histogram(failed().map(Sample::response_ns)),
        requests: ok().count() as u64,
        errors,
        bytes_in: ok().map(|sample| sample.bytes_in).sum(),
        bytes_out: ok().map(|sample| sample.bytes_out).sum(),
        connections: samples.iter().map(|sample| u64::from(sample.connection) + 1).max().unwrap_or_default(),
        handshakes,
    }
}

fn histogram(values: impl Iterator<Item = u64>) -> Histogram {
    let mut counts = hdrhistogram::Histogram::<u64>::new(3).expect("three digits are in the range of the format");
    let mut histogram = Histogram { min_ns: u64::MAX, ..Histogram::default() };
    for value in values {
        counts.record(value).expect("a histogram that resizes itself takes any value");
        histogram.count += 1;
        histogram.min_ns = histogram.min_ns.min(value);
        histogram.max_ns = histogram.max_ns.max(value);
        histogram.sum_ns += value;
    }
    if histogram.count == 0 {
        return Histogram::default();
    }
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&counts, &mut bytes).expect("a vector takes any bytes");
    histogram.v2 = STANDARD.encode(bytes);
    histogram
}
