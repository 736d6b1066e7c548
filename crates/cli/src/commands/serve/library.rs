//! The run folders below a folder, as the web page shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use wirelab_model::journal::TrialRecord;
use wirelab_model::outcome::Outcome;
use wirelab_model::plan::Cell;
use wirelab_report::JudgedClaim;
use wirelab_run::store::folder::Folder;
use wirelab_run::{Run, tags};
use wirelab_serve::{Claim, Entry, Format, Library, LibraryError, Progress, State, StudyClaims};

use super::runner::Runner;
use crate::args;
use crate::commands::{compare, history, report};
use crate::failure::Failure;

/// The number of failures that the page of a run shows.
const FAILURES: usize = 5;

/// The runs of a folder. A run is read again only if its files changed.
pub(super) struct RunFolders {
    folder: PathBuf,
    known: Mutex<BTreeMap<String, Known>>,
    /// The claims of runs, which are computed once for each mark.
    claims: Mutex<BTreeMap<String, (Mark, Vec<Claim>)>>,
    /// What starts runs, if the pages may.
    runner: Option<Arc<Runner>>,
}

#[derive(Clone)]
struct Known {
    mark: Mark,
    entry: Entry,
}

/// Facts that change with a run: the length and the time of its journal, and whether a process works on it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    journal: Option<(u64, SystemTime)>,
    is_running: bool,
}

impl RunFolders {
    /// # Errors
    /// If this is no folder.
    pub(super) fn of(folder: &Path, runner: Option<Arc<Runner>>) -> Result<Self, Failure> {
        if !folder.is_dir() {
            return Err(Failure::input(format!(
                "{} is no folder. Name the folder that contains run folders, or start with `wirelab run quick`",
                folder.display()
            )));
        }
        Ok(Self { folder: folder.to_owned(), known: Mutex::default(), claims: Mutex::default(), runner })
    }

    /// The names of all run folders. Names that are no text are left out: no address can have them.
    fn names(&self) -> Result<BTreeSet<String>, LibraryError> {
        let entries = std::fs::read_dir(&self.folder).map_err(|error| {
            LibraryError::Failed(format!("the folder {} cannot be read: {error}", self.folder.display()))
        })?;
        let runs = entries.flatten().filter(|entry| entry.path().join("manifest.json").is_file());
        Ok(runs.filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }

    /// The folder of a run. Only names that the folder lists are accepted, so no name leads out of it.
    pub(super) fn path(&self, run: &str) -> Result<PathBuf, LibraryError> {
        match self.names()?.contains(run) {
            true => Ok(self.folder.join(run)),
            false => Err(LibraryError::NoRun(run.to_owned())),
        }
    }

    /// The entry of a run. Its tags are always read; the other facts only if its files changed.
    fn entry(&self, name: &str) -> Entry {
        let path = self.folder.join(name);
        let mut entry = self.untagged(name, &path);
        // A run without readable tags is shown without them.
        entry.tags = tags::read(&path).unwrap_or_default().into_iter().collect();
        // After its last trial a process writes the report and says how the run went, without the lock.
        if self.runner.as_ref().is_some_and(|runner| runner.works_on(name)) {
            entry.progress.state = State::Running;
        }
        entry
    }

    /// The claims of a run.
    fn claims_of(&self, name: &str) -> Result<Vec<Claim>, LibraryError> {
        let path = self.folder.join(name);
        let mark = mark(&path);
        let known = || self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, claims)) = known().get(name).filter(|(of, _)| *of == mark) {
            return Ok(claims.clone());
        }
        let judged = report::claims(&path).map_err(|failure| refused(&failure))?;
        let in_words =
            |JudgedClaim { id, text, verdict, effects }| Claim { id, text, verdict: verdict.to_owned(), effects };
        let claims: Vec<_> = judged.into_iter().map(in_words).collect();
        known().insert(name.to_owned(), (mark, claims.clone()));
        Ok(claims)
    }

    fn untagged(&self, name: &str, path: &Path) -> Entry {
        let mark = mark(path);
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(name).filter(|found| found.mark == mark) {
            return found.entry.clone();
        }
        let entry = read(name, path, mark);
        known().insert(name.to_owned(), Known { mark, entry: entry.clone() });
        entry
    }
}

fn mark(path: &Path) -> Mark {
    let folder = Folder::at(path);
    let journal = [folder.journal(), folder.packed_journal()].into_iter().find_map(|journal| {
        let facts = std::fs::metadata(journal).ok()?;
        Some((facts.len(), facts.modified().ok()?))
    });
    // Without the right to read the lock, no process of this user works on the run.
    Mark { journal, is_running: folder.is_locked().unwrap_or(false) }
}

fn read(name: &str, path: &Path, mark: Mark) -> Entry {
    let run = match Run::open(path) {
        Ok(run) => run,
        Err(error) => return unreadable(name, &error.to_string()),
    };
    let manifest = run.manifest();
    Entry {
        name: name.to_owned(),
        study: manifest.study.name.clone(),
        title: manifest.study.title.clone(),
        created: manifest.created.clone(),
        lab: manifest.lab.clone(),
        machine: manifest.environment.cpu.clone(),
        tags: Vec::new(),
        progress: progress(&run, mark),
    }
}

fn unreadable(name: &str, why: &str) -> Entry {
    let progress = Progress { state: State::Unreadable(why.to_owned()), ..Progress::default() };
    let [study, title, created, lab, machine] = [const { String::new() }; 5];
    Entry { name: name.to_owned(), study, title, created, lab, machine, tags: Vec::new(), progress }
}

fn progress(run: &Run, mark: Mark) -> Progress {
    let trials = run.trials();
    let cells = &run.manifest().plan.cells;
    let failure = |record: &TrialRecord| match &record.outcome {
        Outcome::Failed { blame, reason } => {
            let label = cells.get(record.trial.cell).map(Cell::label).unwrap_or_default();
            Some(format!("trial {} ({label}), {blame}: {reason}", record.trial.number))
        }
        Outcome::Ok | Outcome::Unsupported { .. } => None,
    };
    let failures: Vec<_> = trials.iter().rev().filter_map(failure).collect();
    Progress {
        state: match (mark.is_running, report::has_ended(run)) {
            (true, _) => State::Running,
            (false, true) => State::Ended,
            (false, false) => State::Stopped,
        },
        blocks: trials.iter().map(|record| record.trial.block + 1).max().unwrap_or_default(),
        trials: trials.len(),
        failed: failures.len(),
        failures: failures.into_iter().take(FAILURES).collect(),
        revision: mark.journal.map_or(0, |(length, _)| length),
    }
}

/// A failure of a command, as the page shows it.
pub(super) fn refused(failure: &Failure) -> LibraryError {
    LibraryError::Refused(failure.to_string())
}

impl Library for RunFolders {
    fn runs(&self) -> Result<Vec<Entry>, LibraryError> {
        let mut entries: Vec<_> = self.names()?.iter().map(|name| self.entry(name)).collect();
        // RFC 3339 in UTC sorts as text; the names tell runs of the same moment apart.
        entries.sort_by(|one, other| (&other.created, &other.name).cmp(&(&one.created, &one.name)));
        Ok(entries)
    }

    fn progress(&self, run: &str) -> Result<Progress, LibraryError> {
        self.path(run)?;
        Ok(self.entry(run).progress)
    }

    fn tags(&self, run: &str) -> Result<Vec<String>, LibraryError> {
        self.path(run)?;
        Ok(self.entry(run).tags)
    }

    fn claims(&self) -> Result<Vec<StudyClaims>, LibraryError> {
        let mut newest = BTreeMap::new();
        for entry in self.runs()?.into_iter().filter(|entry| entry.progress.state == State::Ended) {
            newest.entry((entry.study, entry.lab)).or_insert(entry.name);
        }
        let mut found = Vec::new();
        for ((study, lab), run) in newest {
            let claims = self.claims_of(&run)?;
            if !claims.is_empty() {
                found.push(StudyClaims { study, lab, run, claims });
            }
        }
        Ok(found)
    }

    fn report(&self, run: &str, format: Format) -> Result<String, LibraryError> {
        let format = match format {
            Format::Html => args::Format::Html,
            Format::Csv => args::Format::Csv,
            Format::Json => args::Format::Json,
            Format::Markdown => args::Format::Markdown,
        };
        report::render(&self.path(run)?, format).map_err(|failure| refused(&failure))
    }

    fn compare(&self, [first, second]: [&str; 2]) -> Result<String, LibraryError> {
        compare::page([self.path(first)?, self.path(second)?]).map_err(|failure| refused(&failure))
    }

    fn history(&self, study: &str, metric: Option<&str>) -> Result<String, LibraryError> {
        history::page(&self.folder, study, metric).map_err(|failure| refused(&failure))
    }
}
