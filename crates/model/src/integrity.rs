//! Integrity of a run folder: which of its records and files are what wirelab wrote.

use serde::Serialize;

use crate::warning::Warning;

/// The counts from checking a run folder's checksums. Damaged and repeated records are never used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Integrity {
    /// Journal records with a right checksum.
    pub verified: u32,
    /// Journal records without a checksum, which an older version of wirelab wrote.
    pub unverified: u32,
    /// Lines of the journal, from 1, whose content does not have their checksum.
    pub damaged_lines: Vec<u64>,
    /// Lines of the journal, from 1, that repeat the record of an earlier trial.
    pub repeated_lines: Vec<u64>,
    /// Files of samples that are missing, unreadable or changed, relative to the run folder.
    pub damaged_files: Vec<String>,
}

impl Integrity {
    /// The damage as warnings; none if everything is as it was written, or has no checksum.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let Self { damaged_lines, repeated_lines, damaged_files, .. } = self;
        let damaged = (!damaged_lines.is_empty()).then(|| Warning::DamagedRecords { lines: damaged_lines.clone() });
        let repeated = (!repeated_lines.is_empty()).then(|| Warning::RepeatedRecords { lines: repeated_lines.clone() });
        let files = (!damaged_files.is_empty()).then(|| Warning::DamagedFiles { files: damaged_files.clone() });
        [damaged, repeated, files].into_iter().flatten().collect()
    }
}
