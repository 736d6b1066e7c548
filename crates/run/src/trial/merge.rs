//! Merges the records of several clients of a trial: shifts them to one clock, and renumbers connections.

use std::path::PathBuf;

use wirelab_model::histogram::Histograms;
use wirelab_model::journal::Portion;
use wirelab_model::metric::{Value, Values};
use wirelab_model::sample::Sample;
use wirelab_model::spec::Recording;
use wirelab_model::timeline::TimelineRecord;

use crate::spec::{Files, results_of};
use crate::trial::results::{self, Results};
use crate::trial::results_error::ResultsError;

/// Reads the samples of each client of a timeline, and records the number of its first connection.
///
/// # Errors
/// If a client wrote no valid results; the message has its number.
pub(crate) fn read(files: &Files, played: &mut TimelineRecord) -> Result<Results, ResultsError> {
    let mut all = Samples::default();
    for (number, client) in (0..).zip(&mut played.clients) {
        let Results::Samples(samples) = of_client(files, number, Recording::Samples)? else {
            return Err(ResultsError::of_client(number)(ResultsError::NoSamples));
        };
        client.first_connection = all.add(samples, client.from_ns);
    }
    Ok(all.sorted())
}

/// Reads the results of each client that shared the workload; records its counts, median and first connection.
///
/// # Errors
/// If a client wrote no valid results; the message has its number.
pub(crate) fn shared(files: &Files, recording: Recording, portions: &mut [Portion]) -> Result<Results, ResultsError> {
    let (mut all, mut histograms) = (Samples::default(), Vec::new());
    for (number, portion) in (0..).zip(portions) {
        match of_client(files, number, recording)? {
            Results::Samples(samples) => {
                let ok = samples.iter().filter(|sample| sample.is_ok()).count();
                (portion.requests, portion.failed) = (ok as u64, (samples.len() - ok) as u64);
                portion.response_median_ns = median(&wirelab_stats::summarise(&samples, portion.window_ns));
                portion.first_connection = all.add(samples, portion.told_ns);
            }
            Results::Histograms(one) => {
                let values = wirelab_stats::summarise_histograms(&one, portion.window_ns)
                    .map_err(|error| ResultsError::of_client(number)(error.into()))?;
                (portion.requests, portion.failed) = (one.requests, one.errors.values().sum());
                portion.response_median_ns = median(&values);
                histograms.push(*one);
            }
            Results::Totals(_) => return Err(ResultsError::of_client(number)(ResultsError::SharedTotals)),
            Results::Loads(_) => return Err(ResultsError::of_client(number)(ResultsError::SharedPage)),
        }
    }
    if recording == Recording::Histograms { merge_histograms(&histograms) } else { Ok(all.sorted()) }
}

fn merge_histograms(histograms: &[Histograms]) -> Result<Results, ResultsError> {
    Ok(Results::Histograms(Box::new(wirelab_stats::merge_histograms(histograms)?)))
}

fn of_client(files: &Files, number: u32, recording: Recording) -> Result<Results, ResultsError> {
    let path: PathBuf = results_of(files, number);
    results::read(&path, recording).map_err(ResultsError::of_client(number))
}

fn median(values: &Values) -> Option<u64> {
    values.get("response_median").and_then(Value::number).map(|ns| ns as u64)
}

/// Samples merged so far.
#[derive(Default)]
struct Samples {
    all: Vec<Sample>,
    connections: u32,
}

impl Samples {
    /// Adds the samples of a client that began at this time; returns the number of its first connection.
    fn add(&mut self, samples: Vec<Sample>, from_ns: u64) -> u32 {
        let first = self.connections;
        self.connections += samples.iter().map(|sample| sample.connection + 1).max().unwrap_or_default();
        self.all.extend(samples.into_iter().map(|sample| moved(sample, from_ns, first)));
        first
    }

    fn sorted(mut self) -> Results {
        self.all.sort_by_key(|sample| sample.start_ns);
        Results::Samples(self.all)
    }
}

fn moved(sample: Sample, by_ns: u64, first_connection: u32) -> Sample {
    let later = |ns: Option<u64>| ns.map(|ns| ns + by_ns);
    Sample {
        intended_ns: sample.intended_ns + by_ns,
        start_ns: sample.start_ns + by_ns,
        connected_ns: later(sample.connected_ns),
        handshake_ns: later(sample.handshake_ns),
        first_byte_ns: later(sample.first_byte_ns),
        last_byte_ns: sample.last_byte_ns + by_ns,
        connection: sample.connection + first_connection,
        ..sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_moves_by_the_same_and_durations_stay() {
        let sample: Sample = serde_json::from_str(
            r#"{"intended_ns":1,"start_ns":2,"connected_ns":3,"first_byte_ns":5,"last_byte_ns":8,"bytes_out":0,"bytes_in":3,"connection":4}"#,
        )
        .unwrap();
        let moved = moved(sample.clone(), 100, 10);
        assert_eq!((moved.intended_ns, moved.start_ns, moved.connected_ns), (101, 102, Some(103)));
        assert_eq!((moved.handshake_ns, moved.first_byte_ns, moved.last_byte_ns), (None, Some(105), 108));
        assert_eq!((moved.connection, moved.response_ns(), moved.service_ns()), (14, 7, 6));
        assert_eq!(moved.check(), Ok(()));
    }
}
