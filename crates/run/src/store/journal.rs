//! The journal on disk: each line is written completely or not at all.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use jiff::{Timestamp, Unit};
use wirelab_model::integrity::Integrity;
use wirelab_model::journal::Entry;

use crate::error::RunError;
use crate::store::checksum::{self, Checked};
use crate::store::folder::{read_regular, sync_folder};
use crate::store::packed::unpack;

/// Current time, as RFC 3339 in UTC with milliseconds.
#[must_use]
pub fn timestamp() -> String {
    let now = Timestamp::now();
    now.round(Unit::Millisecond).unwrap_or(now).to_string()
}

/// Content of a journal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contents {
    /// Entries in write order.
    pub entries: Vec<Entry>,
    /// Bytes of complete lines.
    pub whole: u64,
    /// Bytes after the last complete line, which a kill cut off. The trial of that line is lost.
    pub torn: u64,
    /// The result of checking the lines; `entries` has neither damaged nor repeated records.
    pub integrity: Integrity,
}

/// Reads a journal; a missing one is empty. An incomplete last line is counted, but not read.
///
/// # Errors
/// If the file cannot be read, or a complete line is not an entry although its checksum is right or absent.
pub fn read(path: &Path) -> Result<Contents, RunError> {
    match read_regular(path) {
        Ok(bytes) => parse(path, &bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Contents::default()),
        Err(error) => Err(RunError::io("cannot read the journal", path)(error)),
    }
}

/// Reads the journal of an archive.
///
/// # Errors
/// As for [`read`]; also if it is missing.
pub(crate) fn read_packed(path: &Path) -> Result<Contents, RunError> {
    let bytes = unpack(path).map_err(RunError::io("cannot read the journal", path))?;
    parse(path, &bytes)
}

/// Reads the bytes of a journal. `path` is for messages.
///
/// # Errors
/// As for [`read`].
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Contents, RunError> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let mut contents = Contents { whole: whole as u64, torn: (bytes.len() - whole) as u64, ..Contents::default() };
    let mut trials = HashSet::new();
    for (number, line) in (1..).zip(bytes[..whole].split_inclusive(|byte| *byte == b'\n')) {
        let integrity = &mut contents.integrity;
        match checksum::check(line.trim_ascii_end()) {
            Checked::Right => integrity.verified += 1,
            // Older versions wrote no checksums. Their records come first.
            Checked::Absent if integrity.verified == 0 => integrity.unverified += 1,
            Checked::Absent | Checked::Wrong => {
                integrity.damaged_lines.push(number);
                continue;
            }
        }
        let entry = serde_json::from_slice(line)
            .map_err(|error| RunError::Damaged { path: path.to_owned(), why: format!("line {number}: {error}") })?;
        if let Entry::Trial(record) = &entry
            && !trials.insert(record.trial.number)
        {
            integrity.repeated_lines.push(number);
            continue;
        }
        contents.entries.push(entry);
    }
    Ok(contents)
}

/// A journal opened for appending, only by the holder of the run's lock.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    path: PathBuf,
    end: u64,
}

impl Writer {
    /// Opens a journal behind its read content; cuts off an incomplete line.
    pub(crate) fn open(path: &Path, contents: &Contents) -> Result<Self, RunError> {
        let opened = (|| {
            let mut file = File::options().create(true).truncate(false).write(true).open(path)?;
            file.set_len(contents.whole)?;
            file.seek(SeekFrom::Start(contents.whole))?;
            file.sync_all()?;
            path.parent().map_or(Ok(()), sync_folder)?;
            Ok(file)
        })();
        let file = opened.map_err(RunError::io("cannot open the journal", path))?;
        Ok(Self { file, path: path.to_owned(), end: contents.whole })
    }

    /// Appends an entry and syncs it to disk. If that fails, no part of it stays in the file.
    pub(crate) fn append(&mut self, entry: &Entry) -> Result<(), RunError> {
        let mut line = serde_json::to_vec(entry).map_err(|error| RunError::Refused {
            why: format!("a journal entry cannot be written as JSON: {error}"),
        })?;
        checksum::add(&mut line);
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Truncation frees space and needs none. If it fails, the line stays incomplete, and the next opening
            // cuts it off.
            let _ = self.file.set_len(self.end).and_then(|()| self.file.seek(SeekFrom::Start(self.end)).map(drop));
            return Err(RunError::io("cannot append to the journal", &self.path)(error));
        }
        self.end += line.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wirelab_model::journal::StopReason;

    use super::*;

    fn entries() -> Vec<Entry> {
        vec![
            Entry::Started { at: "2025-01-02T03:04:05Z".to_owned() },
            Entry::Stopped { reason: StopReason::Interrupted, at: "2025-01-02T03:04:06Z".to_owned() },
            Entry::Started { at: "2025-01-02T03:04:07Z".to_owned() },
        ]
    }

    #[test]
    fn a_journal_cut_at_any_byte_keeps_its_whole_lines_and_can_be_continued() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut writer = Writer::open(&path, &Contents::default()).unwrap();
        for entry in entries() {
            writer.append(&entry).unwrap();
        }
        let full = fs::read(&path).unwrap();
        for cut in 0..=full.len() {
            fs::write(&path, &full[..cut]).unwrap();
            let contents = read(&path).unwrap();
            let lines = full[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(contents.entries, entries()[..lines], "cut at {cut}");
            assert_eq!(contents.whole + contents.torn, cut as u64);
            let mut writer = Writer::open(&path, &contents).unwrap();
            for entry in &entries()[lines..] {
                writer.append(entry).unwrap();
            }
            assert_eq!(fs::read(&path).unwrap(), full, "cut at {cut}");
        }
    }

    #[test]
    fn a_whole_line_that_is_no_entry_is_reported_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        fs::write(&path, "{\"entry\":\"started\",\"at\":\"x\"}\nhello\n").unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains("line 2"), "{message}");
    }

    #[test]
    fn a_changed_digit_and_a_removed_checksum_exclude_the_line_and_older_lines_count_as_unverified() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        fs::write(&path, "{\"entry\":\"started\",\"at\":\"x\"}\n").unwrap();
        let mut writer = Writer::open(&path, &read(&path).unwrap()).unwrap();
        for entry in entries() {
            writer.append(&entry).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        let integrity = read(&path).unwrap().integrity;
        assert_eq!((integrity.verified, integrity.unverified, integrity.damaged_lines), (3, 1, vec![]));
        let changed = text.replace("03:04:06", "03:04:08").replace(r#"07Z","checksum":"#, r#"07Z","checksums":"#);
        fs::write(&path, changed).unwrap();
        let contents = read(&path).unwrap();
        assert_eq!((contents.entries.len(), contents.integrity.damaged_lines), (2, vec![3, 4]));
    }

    /// `/dev/full` fails every write as a full disk does.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_reported_with_the_remedy() {
        let file = File::options().write(true).open("/dev/full").unwrap();
        let mut writer = Writer { file, path: PathBuf::from("journal.jsonl"), end: 0 };
        let message = writer.append(&entries()[0]).unwrap_err().to_string();
        assert!(message.contains("journal.jsonl") && message.contains("Free some space"), "{message}");
    }
}
