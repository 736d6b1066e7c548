//! The distribution of response times as HdrHistogram's programs print it (`outputPercentileDistribution`), which its
//! plotter reads.

use std::fmt::Write;

use hdrhistogram::Histogram;
use wirelab_endpoint::load::Results;

use crate::failure::{Failure, Result};

/// Lines for each halving of the distance to 100 %, as HdrHistogram's programs have by default.
const LINES_PER_HALF: u32 = 5;

/// Nanoseconds in the unit of the values, a millisecond.
const UNIT: f64 = 1e6;

/// The distribution of the response times of successful requests, in milliseconds.
pub fn text(results: &Results) -> Result<String> {
    let histogram = histogram(results)?;
    let failed: u64 = results.counts().1.values().sum();
    let mut text = format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut below = 0;
    for step in histogram.iter_quantiles(LINES_PER_HALF) {
        below += step.count_since_last_iteration();
        let (value, quantile) = (step.value_iterated_to() as f64 / UNIT, step.quantile_iterated_to());
        let _ = write!(text, "{value:12.3} {quantile:2.12} {below:10}");
        // The last line has no finite number.
        let _ = if quantile < 1.0 { writeln!(text, " {:14.2}", 1.0 / (1.0 - quantile)) } else { writeln!(text) };
    }
    let (mean, deviation) = (histogram.mean() / UNIT, histogram.stdev() / UNIT);
    let _ = writeln!(text, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]");
    let (max, count) = (histogram.max() as f64 / UNIT, histogram.len());
    let _ = writeln!(text, "#[Max     = {max:12.3}, Total count    = {count:12}]");
    let _ = writeln!(text, "#[Failed  = {failed:12}, which have no response time and are not in this distribution]");
    Ok(text)
}

fn histogram(results: &Results) -> Result<Histogram<u64>> {
    let mut histogram = Histogram::new(3).map_err(Failure::failed)?;
    match results {
        Results::Samples(samples) => {
            for sample in samples.iter().filter(|sample| sample.is_ok()) {
                histogram.record(sample.response_ns()).map_err(Failure::failed)?;
            }
        }
        Results::Histograms(histograms) => {
            for (value, count) in wirelab_stats::response_counts(histograms).map_err(Failure::failed)? {
                histogram.record_n(value, count).map_err(Failure::failed)?;
            }
        }
    }
    Ok(histogram)
}

#[cfg(test)]
pub mod tests {
    use wirelab_model::outcome::ErrorKind;
    use wirelab_model::sample::Sample;

    use super::*;

    /// A successful request.
    pub fn sample(start_ns: u64, end_ns: u64) -> Sample {
        Sample {
            intended_ns: start_ns,
            start_ns,
            connected_ns: None,
            handshake_ns: None,
            first_byte_ns: Some(end_ns),
            last_byte_ns: end_ns,
            request: None,
            bytes_out: 0,
            bytes_in: 0,
            status: Some(200),
            connection: 0,
            handshake: None,
            error: None,
        }
    }

    #[test]
    fn a_distribution_has_every_success_once_and_counts_failures_apart() {
        let mut samples: Vec<_> = (1..=1000).map(|ms| sample(0, ms * 1_000_000)).collect();
        samples.push(Sample { error: Some(ErrorKind::Timeout), status: None, ..sample(0, 9_000_000_000) });
        let text = text(&Results::Samples(samples)).unwrap();
        let rows: Vec<Vec<f64>> = text
            .lines()
            .skip(2)
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
            .collect();
        assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][2] <= pair[1][2]), "{text}");
        let half = rows.iter().find(|row| row[1] == 0.5).unwrap();
        assert!((half[0] - 500.0).abs() <= 0.5 && half[3] == 2.0, "{half:?}");
        let last = rows.last().unwrap();
        assert!((last[0] - 1000.0).abs() <= 1.0 && last[1..] == [1.0, 1000.0], "{last:?}");
        assert!(text.contains("Total count    =         1000]"), "{text}");
        assert!(text.contains("#[Failed  =            1, "), "{text}");
    }
}
