//! Reads the results file of a client: records as JSON lines, histograms or totals.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;
use wirelab_model::histogram::Histograms;
use wirelab_model::page::PageLoad;
use wirelab_model::sample::Sample;
use wirelab_model::spec::Recording;
use wirelab_model::totals::Totals;

use crate::trial::results_error::ResultsError;

/// Measurements of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Results {
    /// One record per request.
    Samples(Vec<Sample>),
    Histograms(Box<Histograms>),
    /// One record per page load.
    Loads(Vec<PageLoad>),
    Totals(Totals),
}

/// The stored results of a trial.
pub(crate) struct Kept {
    /// Path relative to the run folder.
    pub path: String,
    /// SHA-256 of the file, hexadecimal.
    pub sha256: String,
}

/// More records exceed the memory of a small machine; histograms have no such limit.
const MOST_RECORDS: usize = 20_000_000;

/// Maximum bytes of a record, with a margin: records have at most about 400 bytes.
const LONGEST_LINE: u64 = 4096;

/// Maximum bytes of a page load: a thousand resources with URLs of a kilobyte.
const LONGEST_LOAD: u64 = 2 << 20;

/// Maximum bytes of histograms, with a margin: twelve megabytes hold every histogram at full width.
const LARGEST_HISTOGRAMS: u64 = 64 << 20;

/// Reads the results file.
///
/// # Errors
/// If the file is missing or does not match the spec. The client is to blame; the text names the position.
pub(crate) fn read(path: &Path, recording: Recording) -> Result<Results, ResultsError> {
    parse(File::open(path).map_err(ResultsError::Open)?, recording)
}

/// Reads the content of a results file.
///
/// # Errors
/// If it does not match the spec.
pub fn parse(content: impl Read, recording: Recording) -> Result<Results, ResultsError> {
    match recording {
        Recording::Samples => records(BufReader::new(content), LONGEST_LINE).map(Results::Samples),
        Recording::Loads => records(BufReader::new(content), LONGEST_LOAD).map(Results::Loads),
        Recording::Totals => serde_json::from_reader(BufReader::new(content.take(LONGEST_LINE)))
            .map(Results::Totals)
            .map_err(ResultsError::NotTotals),
        Recording::Histograms => {
            let mut text = String::new();
            content.take(LARGEST_HISTOGRAMS).read_to_string(&mut text).map_err(ResultsError::Read)?;
            serde_json::from_str(&text).map(Results::Histograms).map_err(ResultsError::NotHistograms)
        }
    }
}

fn records<T: DeserializeOwned>(mut lines: impl BufRead, longest: u64) -> Result<Vec<T>, ResultsError> {
    let mut records = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let number = records.len() + 1;
        let length = (&mut lines).take(longest).read_until(b'\n', &mut line).map_err(ResultsError::Read)?;
        if length == 0 {
            return Ok(records);
        }
        if number > MOST_RECORDS {
            return Err(ResultsError::TooManyRecords { limit: MOST_RECORDS });
        }
        let record =
            serde_json::from_slice(&line).map_err(|source| ResultsError::NotARecord { line: number, source })?;
        records.push(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_line_by_line_and_a_wrong_line_is_numbered() {
        let samples = |text: &[u8]| records::<Sample>(text, LONGEST_LINE);
        let good = r#"{"intended_ns":0,"start_ns":0,"first_byte_ns":1,"last_byte_ns":2,"bytes_out":0,"bytes_in":3,"connection":0}"#;
        assert_eq!(samples(format!("{good}\n{good}\n").as_bytes()).unwrap().len(), 2);
        let error = samples(format!("{good}\n{{}}\n").as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("line 2 of its results"), "{error}");
        let endless = "x".repeat(100_000);
        assert!(samples(endless.as_bytes()).unwrap_err().to_string().starts_with("line 1"));
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let error = read(Path::new("/nonexistent/results"), Recording::Samples).unwrap_err();
        assert!(error.to_string().contains("cannot be opened"), "{error}");
    }
}
