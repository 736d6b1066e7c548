//! The log files of a run, each read from where the last reading ended.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::commands::logs::line::{Line, WIRELAB};
use crate::failure::{Failure, Result};
use crate::log::FILE;

/// The log files of a run.
pub(super) struct Files {
    folder: PathBuf,
    own: Reading,
    others: BTreeMap<Process, Reading>,
    /// The trial of the last line of wirelab itself.
    current: Option<u32>,
}

/// The process that a log belongs to. Servers come before clients.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    trial: Option<u32>,
    is_client: bool,
    name: String,
}

impl Process {
    /// The process whose log has this file name.
    fn of(file: &str) -> Option<Self> {
        let stem = file.strip_suffix(".log")?;
        let (trial, name) = match stem.strip_prefix("trial-") {
            Some(rest) => {
                let (number, name) = rest.split_once('-')?;
                (Some(number.parse().ok()?), name)
            }
            // A helper process of the run.
            None => (None, stem),
        };
        Some(Self { trial, is_client: name.starts_with("client"), name: name.to_owned() })
    }
}

impl Files {
    pub(super) fn new(folder: &Path) -> Self {
        let own = Reading::new(folder.join(FILE));
        Self { folder: folder.join("logs"), own, others: BTreeMap::new(), current: None }
    }

    /// The trials with a log of a process.
    pub(super) fn trials(&self) -> impl Iterator<Item = u32> + Clone {
        self.others.keys().filter_map(|process| process.trial)
    }

    /// The lines since the last reading, in the order of time. `is_over`: no more lines follow, so the last line of a
    /// file counts even if it has no end.
    pub(super) fn next(&mut self, is_over: bool) -> Result<Vec<Line>> {
        let mut lines = Vec::new();
        // Runs of older versions have no log of wirelab itself.
        self.own.next(is_over, &mut lines, Line::of_wirelab)?;
        for (process, path) in self.listed()? {
            self.others.entry(process).or_insert_with(|| Reading::new(path));
        }
        let newest = self.trials().max();
        for (process, reading) in self.others.iter_mut().filter(|(_, reading)| !reading.is_done) {
            reading
                .next(is_over, &mut lines, |text, last| Line::of_process(process.trial, &process.name, text, last))?;
            // A trial begins after the processes of the trial before it have ended.
            reading.is_done = process.trial.is_some() && process.trial < newest;
        }
        // The sort is stable, so lines without a time stay behind the line before them.
        lines.sort_by(|one, other| one.stamp.cmp(&other.stamp));
        for line in &mut lines {
            match (&*line.source, line.trial) {
                (WIRELAB, trial) => self.current = trial,
                // A line of a helper process belongs to the trial in progress.
                (_, None) => line.trial = self.current,
                (_, Some(_)) => {}
            }
        }
        Ok(lines)
    }

    fn listed(&self) -> Result<Vec<(Process, PathBuf)>> {
        let attempt = |error| Failure::failed(format!("cannot list {}: {error}", self.folder.display()));
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(attempt)? {
            let entry = entry.map_err(attempt)?;
            found.extend(Process::of(&entry.file_name().to_string_lossy()).map(|process| (process, entry.path())));
        }
        Ok(found)
    }
}

/// A file that is read in parts.
struct Reading {
    path: PathBuf,
    offset: u64,
    /// A line whose end was not written yet.
    rest: Vec<u8>,
    /// The time of the last line.
    stamp: String,
    /// Whether nothing more will be written.
    is_done: bool,
}

impl Reading {
    const fn new(path: PathBuf) -> Self {
        Self { path, offset: 0, rest: Vec::new(), stamp: String::new(), is_done: false }
    }

    /// Appends the lines since the last reading. `line` makes a line of its text and of the time of the line before it.
    fn next(&mut self, is_over: bool, lines: &mut Vec<Line>, line: impl Fn(&str, &str) -> Line) -> Result {
        let failure = |error| Failure::failed(format!("cannot read {}: {error}", self.path.display()));
        let mut file = match File::open(&self.path) {
            // The run removes empty logs, and logs of interrupted trials.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file.map_err(failure)?,
        };
        if file.metadata().map_err(failure)?.len() < self.offset {
            // A resumed run repeats a trial.
            (self.offset, self.rest) = (0, Vec::new());
        }
        file.seek(SeekFrom::Start(self.offset)).map_err(failure)?;
        self.offset += file.read_to_end(&mut self.rest).map_err(failure)? as u64;
        let end = match self.rest.iter().rposition(|byte| *byte == b'\n') {
            _ if is_over => self.rest.len(),
            Some(last) => last + 1,
            None => 0,
        };
        let complete: Vec<u8> = self.rest.drain(..end).collect();
        for text in String::from_utf8_lossy(&complete).lines() {
            let line = line(text, &self.stamp);
            line.stamp.clone_into(&mut self.stamp);
            lines.push(line);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const STAMP: &str = "2026-11-23T17:40:00.12345";

    fn own(trial: u32, second: u32) -> String {
        format!(r#"{{"timestamp":"{STAMP}{second}Z","message":"m","spans":[{{"name":"trial","number":{trial}}}]}}"#)
    }

    /// Trials, sources and texts of new lines.
    fn read(files: &mut Files, is_over: bool) -> Vec<String> {
        files.next(is_over).unwrap().iter().map(|line| line.row()[STAMP.len() + 2..].trim().to_owned()).collect()
    }

    #[test]
    fn each_reading_has_only_the_new_lines_and_a_line_counts_when_it_has_its_end() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("logs")).unwrap();
        let log = |name: &str| File::options().create(true).append(true).open(folder.path().join(name)).unwrap();
        let mut files = Files::new(folder.path());
        assert_eq!(read(&mut files, false), [""; 0]);
        let mut server = log("logs/trial-000007-server.log");
        write!(server, "{STAMP}6Z one\n{STAMP}6Z tw").unwrap();
        writeln!(log("log.jsonl"), "{}", own(7, 5)).unwrap();
        assert_eq!(read(&mut files, false), ["trial 7     wirelab         m", "trial 7     server    one"]);
        writeln!(server, "o").unwrap();
        assert_eq!(read(&mut files, false), ["trial 7     server    two"]);
        write!(server, "{STAMP}7Z three").unwrap();
        assert_eq!(read(&mut files, false), [""; 0]);
        assert_eq!(read(&mut files, true), ["trial 7     server    three"]);
    }

    #[test]
    fn a_line_of_a_helper_process_belongs_to_the_trial_in_progress() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("logs")).unwrap();
        let fabric = format!("{STAMP}1Z before\n{STAMP}3Z within\n");
        fs::write(folder.path().join("logs/fabric.log"), fabric).unwrap();
        fs::write(folder.path().join(FILE), own(4, 2)).unwrap();
        let mut files = Files::new(folder.path());
        let expected = ["fabric    before", "trial 4     wirelab         m", "trial 4     fabric    within"];
        assert_eq!(read(&mut files, true), expected);
        assert_eq!(files.trials().count(), 0);
    }
}
