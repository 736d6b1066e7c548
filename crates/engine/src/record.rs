//! Records of requests during the window, and their conversion to results.
//!
//! During the window a thread only appends to a vector that was allocated and touched before, or increments counts of
//! histograms. Merging, sorting and writing follow `finish`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use indexmap::IndexMap;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::histogram::{Histogram, Histograms};
use wirelab_contract::sample::{Handshake, Sample};
use wirelab_contract::spec::Recording;

/// Maximum number of records allocated and touched before the window, per thread: 76 MB.
const PREALLOCATED: u64 = 500_000;

/// The engine's record of one request.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// Intended start.
    pub intended: Instant,
    /// Actual start.
    pub start: Instant,
    /// Time of the transport's connection.
    pub connected: Option<Instant>,
    /// Time from which it could send.
    pub ready: Option<Instant>,
    /// Arrival of the response's first byte.
    pub first_byte: Option<Instant>,
    /// Arrival of the response's last byte, or time of the failure.
    pub end: Instant,
    /// Size of the response body in bytes.
    pub bytes_in: u64,
    /// Number of the request in the mix.
    pub request: Option<u32>,
    /// Size of the request body in bytes.
    pub bytes_out: u64,
    /// The HTTP status.
    pub status: Option<u16>,
    /// Number of the connection.
    pub connection: u32,
    /// Whether the request opened the connection.
    pub opened: bool,
    /// Kind of handshake of the connection that it opened.
    pub handshake: Option<Handshake>,
    /// Kind of failure.
    pub error: Option<ErrorKind>,
}

impl Record {
    /// A record of a request that starts now.
    #[must_use]
    pub const fn begin(intended: Instant, start: Instant) -> Self {
        Self {
            intended,
            start,
            connected: None,
            ready: None,
            first_byte: None,
            end: start,
            bytes_in: 0,
            request: None,
            bytes_out: 0,
            status: None,
            connection: 0,
            opened: false,
            handshake: None,
            error: None,
        }
    }

    fn sample(&self, zero: Instant) -> Sample {
        let ns = |at: Instant| nanos(zero, at);
        Sample {
            intended_ns: ns(self.intended),
            start_ns: ns(self.start),
            connected_ns: self.connected.map(ns),
            handshake_ns: self.ready.map(ns),
            first_byte_ns: self.first_byte.map(ns),
            last_byte_ns: ns(self.end),
            request: self.request,
            bytes_out: self.bytes_out,
            bytes_in: self.bytes_in,
            status: self.status,
            connection: self.connection,
            handshake: self.handshake,
            error: self.error,
        }
    }
}

/// The records of one thread.
#[derive(Debug)]
pub enum Recorder {
    /// Every request.
    Samples(Vec<Record>),
    /// Distributions and sums.
    Histograms(Box<Counters>),
}

impl Recorder {
    /// Creates a recorder with room for `expected` requests.
    #[must_use]
    pub fn new(recording: Recording, expected: u64) -> Self {
        match recording {
            Recording::Samples => {
                let now = Instant::now();
                let mut records = vec![Record::begin(now, now); expected.min(PREALLOCATED) as usize];
                records.clear();
                Self::Samples(records)
            }
            // The client refuses `loads` before it records anything.
            Recording::Histograms | Recording::Loads | Recording::Totals => Self::Histograms(Box::default()),
        }
    }

    /// Adds a request.
    pub fn push(&mut self, record: Record) {
        match self {
            Self::Samples(records) => records.push(record),
            Self::Histograms(counters) => counters.count(&record),
        }
    }

    /// Adds another thread's records of the same kind.
    pub fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::Samples(all), Self::Samples(part)) => all.extend(part),
            (Self::Histograms(all), Self::Histograms(part)) => all.merge(&part),
            _ => unreachable!("every thread of a client records in the way of its spec"),
        }
    }

    /// Converts the records to results, with times from `zero` on; samples in the order of their intended starts.
    #[must_use]
    pub fn finish(self, zero: Instant) -> Results {
        match self {
            Self::Samples(mut records) => {
                records.sort_by_key(|record| (record.intended, record.start));
                Results::Samples(records.iter().map(|record| record.sample(zero)).collect())
            }
            Self::Histograms(counters) => Results::Histograms(Box::new(counters.finish())),
        }
    }
}

/// The results of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Results {
    /// One record per request, in the order of their intended starts.
    Samples(Vec<Sample>),
    /// Distributions and sums.
    Histograms(Box<Histograms>),
}

impl Results {
    /// Number of successful requests, and number of failed requests by kind.
    #[must_use]
    pub fn counts(&self) -> (u64, IndexMap<ErrorKind, u64>) {
        match self {
            Self::Samples(samples) => {
                let mut errors = IndexMap::new();
                for error in samples.iter().filter_map(|sample| sample.error) {
                    *errors.entry(error).or_insert(0) += 1;
                }
                (samples.iter().filter(|sample| sample.is_ok()).count() as u64, errors)
            }
            Self::Histograms(histograms) => (histograms.requests, histograms.errors.clone()),
        }
    }

    /// Writes the results file: one JSON object per line, or a single one.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        match self {
            Self::Samples(samples) => {
                for sample in samples {
                    serde_json::to_writer(&mut file, sample)?;
                    file.write_all(b"\n")?;
                }
            }
            Self::Histograms(histograms) => {
                serde_json::to_writer(&mut file, histograms)?;
                file.write_all(b"\n")?;
            }
        }
        file.into_inner()?.sync_data()
    }
}

/// Distributions and sums of one thread.
#[derive(Debug, Default)]
pub struct Counters {
    response: Distribution,
    service: Distribution,
    lag: Distribution,
    handshake: Distribution,
    first_byte: Distribution,
    failure: Distribution,
    requests: u64,
    bytes_in: u64,
    bytes_out: u64,
    connections: u64,
    errors: IndexMap<ErrorKind, u64>,
    handshakes: IndexMap<Handshake, u64>,
}

impl Counters {
    pub(crate) fn count(&mut self, record: &Record) {
        self.lag.add(nanos(record.intended, record.start));
        if record.opened {
            self.connections += 1;
        }
        if let Some(handshake) = record.handshake {
            *self.handshakes.entry(handshake).or_insert(0) += 1;
        }
        if let Some(error) = record.error {
            *self.errors.entry(error).or_insert(0) += 1;
            self.failure.add(nanos(record.intended, record.end));
            return;
        }
        self.requests += 1;
        self.bytes_in += record.bytes_in;
        self.bytes_out += record.bytes_out;
        self.response.add(nanos(record.intended, record.end));
        self.service.add(nanos(record.start, record.end));
        if let Some(at) = record.first_byte {
            self.first_byte.add(nanos(record.start, at));
        }
        if let Some(at) = record.ready.or(record.connected).filter(|_| record.opened) {
            self.handshake.add(nanos(record.start, at));
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.lag.merge(&other.lag);
        self.handshake.merge(&other.handshake);
        self.first_byte.merge(&other.first_byte);
        self.failure.merge(&other.failure);
        self.requests += other.requests;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.connections += other.connections;
        for (kind, count) in &other.errors {
            *self.errors.entry(*kind).or_insert(0) += count;
        }
        for (kind, count) in &other.handshakes {
            *self.handshakes.entry(*kind).or_insert(0) += count;
        }
    }

    pub(crate) fn finish(&self) -> Histograms {
        Histograms {
            response: self.response.finish(),
            service: self.service.finish(),
            lag: self.lag.finish(),
            handshake: self.handshake.finish(),
            first_byte: self.first_byte.finish(),
            failure: self.failure.finish(),
            requests: self.requests,
            errors: self.errors.clone(),
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            connections: self.connections,
            handshakes: self.handshakes.clone(),
        }
    }
}

/// An HDR histogram with exact extremes and sum.
#[derive(Debug)]
struct Distribution {
    hdr: Hdr<u64>,
    min: u64,
    max: u64,
    sum: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        // Covers one nanosecond to one hour without growing in the window; longer times make it grow.
        let mut hdr = Hdr::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are in order");
        hdr.auto(true);
        Self { hdr, min: u64::MAX, max: 0, sum: 0 }
    }
}

impl Distribution {
    fn add(&mut self, ns: u64) {
        self.hdr.saturating_record(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.sum = self.sum.saturating_add(ns);
    }

    fn merge(&mut self, other: &Self) {
        self.hdr.add(&other.hdr).expect("a histogram that grows takes every value");
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
    }

    fn finish(&self) -> Histogram {
        if self.hdr.is_empty() {
            return Histogram::default();
        }
        let mut v2 = Vec::new();
        V2Serializer::new().serialize(&self.hdr, &mut v2).expect("writing to memory does not fail");
        Histogram {
            v2: STANDARD.encode(v2),
            count: self.hdr.len(),
            min_ns: self.min,
            max_ns: self.max,
            sum_ns: self.sum,
        }
    }
}

/// Nanoseconds from one time to a later one.
fn nanos(from: Instant, to: Instant) -> u64 {
    to.saturating_duration_since(from).as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn record(zero: Instant, intended: u64, end: u64, error: Option<ErrorKind>) -> Record {
        let at = |us| zero + Duration::from_micros(us);
        let begin = Record::begin(at(intended), at(intended + 1));
        let first_byte = error.is_none().then_some(at(end));
        Record { first_byte, end: at(end), bytes_in: 10, error, ..begin }
    }

    #[test]
    fn samples_of_all_threads_are_merged_in_the_order_of_their_intended_starts() {
        let zero = Instant::now();
        let mut all = Recorder::new(Recording::Samples, 4);
        let mut part = Recorder::new(Recording::Samples, 4);
        all.push(record(zero, 30, 40, None));
        all.push(record(zero, 10, 50, Some(ErrorKind::Reset)));
        part.push(record(zero, 20, 60, None));
        all.merge(part);
        let results = all.finish(zero);
        assert_eq!(results.counts(), (2, IndexMap::from([(ErrorKind::Reset, 1)])));
        let Results::Samples(samples) = results else { panic!("not samples") };
        assert_eq!(samples.iter().map(|s| s.intended_ns).collect::<Vec<_>>(), [10_000, 20_000, 30_000]);
        assert_eq!(samples.iter().map(|s| s.response_ns()).collect::<Vec<_>>(), [40_000, 40_000, 10_000]);
        for sample in samples {
            sample.check().unwrap();
        }
    }

    #[test]
    fn merged_histograms_keep_exact_extremes_and_read_back() {
        let zero = Instant::now();
        let mut all = Recorder::new(Recording::Histograms, 0);
        let mut part = Recorder::new(Recording::Histograms, 0);
        for i in 0..1000 {
            all.push(record(zero, i, i + 100, None));
            part.push(record(zero, i, i + 300, None));
        }
        part.push(record(zero, 5, 7_205_000_000, Some(ErrorKind::Timeout)));
        all.merge(part);
        let Results::Histograms(histograms) = all.finish(zero) else { panic!("not histograms") };
        let response = &histograms.response;
        assert_eq!((response.count, response.min_ns, response.max_ns), (2000, 100_000, 300_000));
        assert_eq!(response.sum_ns, 400_000_000);
        assert_eq!((histograms.requests, histograms.bytes_in), (2000, 20_000));
        assert_eq!(histograms.errors, IndexMap::from([(ErrorKind::Timeout, 1)]));
        assert_eq!(histograms.failure.max_ns, 7_204_999_995_000);
        assert_eq!(histograms.handshake, Histogram::default());
        let bytes = STANDARD.decode(&response.v2).unwrap();
        let read: Hdr<u64> =
            hdrhistogram::serialization::Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(read.len(), 2000);
        let median = read.value_at_quantile(0.25);
        assert!(median.abs_diff(100_000) <= 100, "{median}");
    }
}
