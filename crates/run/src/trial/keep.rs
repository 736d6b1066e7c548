//! Stores results and artifacts of a trial in the run folder.

use std::fs;

use serde::Serialize;
use wirelab_model::plan::Trial;

use crate::error::RunError;
use crate::store::checksum::sha256;
use crate::store::{folder, parquet};
use crate::trial::context::TrialContext;
use crate::trial::results::{Kept, Results};

impl TrialContext<'_> {
    /// Stores the results under the trial's number.
    pub(crate) fn keep(&self, trial: &Trial, results: &Results) -> Result<Kept, RunError> {
        let stem = folder::stem(trial);
        let name = match results {
            Results::Samples(_) => format!("{stem}.parquet"),
            Results::Histograms(_) => format!("{stem}.json"),
            Results::Loads(_) => format!("{stem}.jsonl"),
            Results::Totals(_) => format!("{stem}.totals"),
        };
        let path = self.folder.samples().join(&name);
        let content = match results {
            Results::Samples(records) => parquet::file(&path, trial, records)?,
            Results::Histograms(histograms) => lines(std::slice::from_ref(histograms))?,
            Results::Loads(loads) => lines(loads)?,
            Results::Totals(totals) => lines(std::slice::from_ref(totals))?,
        };
        folder::write_whole(&path, &content)?;
        Ok(Kept { path: format!("samples/{name}"), sha256: sha256(&content) })
    }

    /// Moves the client's results of a failed trial to the logs, for diagnosis; they are not samples.
    pub(crate) fn keep_results(&self, trial: &Trial) -> Result<(), RunError> {
        let kept = self.folder.log(trial, "client-results.jsonl");
        match fs::metadata(&self.files.results) {
            Ok(about) if about.len() > 0 => {
                fs::rename(&self.files.results, &kept).map_err(RunError::io("cannot keep the results as", &kept))
            }
            _ => Ok(()),
        }
    }
}

/// Records as JSON lines.
fn lines<T: Serialize>(records: &[T]) -> Result<Vec<u8>, RunError> {
    let mut text = Vec::new();
    for record in records {
        let written = serde_json::to_writer(&mut text, record);
        written.map_err(|error| RunError::Refused { why: format!("results cannot be written as JSON: {error}") })?;
        text.push(b'\n');
    }
    Ok(text)
}
