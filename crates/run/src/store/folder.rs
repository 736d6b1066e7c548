//! Layout of the run folder, and crash-safe writes.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use wirelab_model::manifest::{FORMAT, Manifest};
use wirelab_model::plan::Trial;

use crate::error::RunError;

/// Time within which a process that only looks whether the run is locked has released the lock again.
const LOOK: Duration = Duration::from_millis(100);

/// The paths of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a new folder `NAME-TIMESTAMP` below `parent`, and `parent` if necessary. Names never collide: a second
    /// run in the same second gets the suffix `-2`.
    ///
    /// # Errors
    /// If the folder cannot be created; the message names it.
    pub fn create(parent: &Path, name: &str, stamp: &str) -> Result<Self, RunError> {
        fs::create_dir_all(parent).map_err(RunError::io("cannot make the folder", parent))?;
        // An upper bound on the loop: no study starts 1000 runs per second.
        for attempt in 1..1000 {
            let suffix = if attempt == 1 { String::new() } else { format!("-{attempt}") };
            let folder = Self(parent.join(format!("{name}-{stamp}{suffix}")));
            match fs::create_dir(&folder.0) {
                Ok(()) => {
                    for inner in [folder.samples(), folder.logs()] {
                        fs::create_dir(&inner).map_err(RunError::io("cannot make the folder", &inner))?;
                    }
                    let above = parent.parent().into_iter();
                    for changed in [&folder.0, parent].into_iter().chain(above) {
                        sync_folder(changed).map_err(RunError::io("cannot write", changed))?;
                    }
                    return Ok(folder);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(RunError::io("cannot make the run folder", &folder.0)(error)),
            }
        }
        Err(RunError::Refused { why: format!("no free name for a run of `{name}` below `{}`", parent.display()) })
    }

    /// The folder of an existing run.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// `manifest.json`.
    #[must_use]
    pub fn manifest(&self) -> PathBuf {
        self.0.join("manifest.json")
    }

    /// `journal.jsonl`.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.0.join("journal.jsonl")
    }

    /// `journal.jsonl.gz`, the journal of an archive.
    #[must_use]
    pub fn packed_journal(&self) -> PathBuf {
        self.0.join("journal.jsonl.gz")
    }

    /// `tags.txt`, the user's words for the run, one a line; only if it has some.
    #[must_use]
    pub fn tags(&self) -> PathBuf {
        self.0.join("tags.txt")
    }

    /// Whether it is an archive, which has neither samples nor logs, and cannot be continued.
    #[must_use]
    pub fn is_archive(&self) -> bool {
        self.packed_journal().exists()
    }

    #[must_use]
    pub fn samples(&self) -> PathBuf {
        self.0.join("samples")
    }

    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// `qlog/`, with a folder for each trial whose endpoints wrote qlog files; only if the study keeps them.
    #[must_use]
    pub fn qlog(&self) -> PathBuf {
        self.0.join("qlog")
    }

    /// `har/`, with an archive for each trial of a browser; only if the study keeps them.
    #[must_use]
    pub fn har(&self) -> PathBuf {
        self.0.join("har")
    }

    /// `films/`, with a folder for each filmed trial; only if the study films.
    #[must_use]
    pub fn films(&self) -> PathBuf {
        self.0.join("films")
    }

    /// `keys/`, with the key log of each trial; only if the study keeps them.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.0.join("keys")
    }

    /// `netlog/`, with a folder for each trial of Chromium; only if the study keeps them.
    #[must_use]
    pub fn netlog(&self) -> PathBuf {
        self.0.join("netlog")
    }

    /// All folders with artifacts of trials beside their results.
    fn kept(&self) -> [PathBuf; 6] {
        [self.captures(), self.qlog(), self.har(), self.films(), self.keys(), self.netlog()]
    }

    /// `captures/`; only if the study keeps them.
    #[must_use]
    pub fn captures(&self) -> PathBuf {
        self.0.join("captures")
    }

    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// Path of a trial's log, for example that of its `server`.
    #[must_use]
    pub fn log(&self, trial: &Trial, what: &str) -> PathBuf {
        self.logs().join(format!("{}-{what}", stem(trial)))
    }

    /// Path prefix of a trial's captures; absolute, because another process writes them.
    pub(crate) fn capture(&self, trial: &Trial) -> PathBuf {
        let path = self.captures().join(stem(trial));
        std::path::absolute(&path).unwrap_or(path)
    }

    /// Locks the run for this process until the returned file is dropped.
    ///
    /// # Errors
    /// [`RunError::Busy`] if another process holds the lock.
    pub fn lock(&self) -> Result<File, RunError> {
        let path = self.lock_file();
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(RunError::io("cannot open the lock", &path))?;
        let deadline = Instant::now() + LOOK;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOOK / 20),
                Err(TryLockError::WouldBlock) => return Err(RunError::Busy { path: self.0.clone() }),
                Err(TryLockError::Error(error)) => return Err(RunError::io("cannot lock", &path)(error)),
            }
        }
    }

    /// Whether a process holds the lock. Holds it for an instant if none does.
    ///
    /// # Errors
    /// If the lock cannot be read.
    pub fn is_locked(&self) -> Result<bool, RunError> {
        let path = self.lock_file();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(RunError::io("cannot open the lock", &path)(error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(RunError::io("cannot lock", &path)(error)),
        }
    }

    fn lock_file(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Writes the manifest, as the last step of creating a run: a folder without it is not a run.
    ///
    /// # Errors
    /// If the manifest cannot be written.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), RunError> {
        let mut text = serde_json::to_string_pretty(manifest)
            .map_err(|error| RunError::Refused { why: format!("the manifest cannot be written as JSON: {error}") })?;
        text.push('\n');
        write_whole(&self.manifest(), text.as_bytes())
    }

    /// Reads the manifest.
    ///
    /// # Errors
    /// If it is missing, or its layout version is unsupported.
    pub fn read_manifest(&self) -> Result<Manifest, RunError> {
        let path = self.manifest();
        let not_a_run = |why: String| RunError::NotARun { path: self.0.clone(), why };
        let text = read_regular(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => not_a_run("it has no `manifest.json`".to_owned()),
            _ => RunError::io("cannot read", &path)(error),
        })?;
        self.parse_manifest(&text)
    }

    /// Reads the text of the manifest.
    ///
    /// # Errors
    /// If it is damaged, or its layout version is unsupported.
    pub fn parse_manifest(&self, text: &[u8]) -> Result<Manifest, RunError> {
        let path = self.manifest();
        let not_a_run = |why: String| RunError::NotARun { path: self.0.clone(), why };
        let damaged = |error: serde_json::Error| RunError::Damaged { path: path.clone(), why: error.to_string() };
        // Check the version first: newer layouts may have unknown fields.
        let value: serde_json::Value = serde_json::from_slice(text).map_err(damaged)?;
        let manifest: Manifest = match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if format == u64::from(FORMAT) => serde_json::from_value(value).map_err(damaged)?,
            Some(format) => {
                return Err(not_a_run(format!("its layout has version {format}, this wirelab reads {FORMAT}")));
            }
            None => return Err(not_a_run("its `manifest.json` has no `format`".to_owned())),
        };
        match manifest.plan.missing_cell() {
            None => Ok(manifest),
            Some(cell) => {
                let why = format!("its plan names cell {cell}, but has {} cells", manifest.plan.cells.len());
                Err(RunError::Damaged { path, why })
            }
        }
    }

    /// Creates an empty `work/`, readable by its owner only, because it contains private keys.
    pub(crate) fn make_work(&self) -> Result<PathBuf, RunError> {
        self.remove_work()?;
        let path = self.work();
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(RunError::io("cannot make the folder", &path))?;
        // Paths in specs are absolute, because endpoints may run in their own folder.
        fs::canonicalize(&path).map_err(RunError::io("cannot find", &path))
    }

    /// Creates `captures/`, readable by its owner only, because it contains all traffic.
    pub(crate) fn make_captures(&self) -> Result<(), RunError> {
        make_private(&self.captures())
    }

    /// Removes artifacts of a trial beside its results: captures, logs, archives, films.
    pub(crate) fn remove_kept(&self, trial: &Trial) -> Result<(), RunError> {
        let is_its = |name: &str| number_in(name) == Some(trial.number);
        self.kept().iter().try_for_each(|folder| remove_files(folder, is_its))
    }

    /// Removes `work/` and its content.
    pub(crate) fn remove_work(&self) -> Result<(), RunError> {
        let path = self.work();
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(RunError::io("cannot remove the folder", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Fails if the disk is full, determined by a write. A trial that failed for lack of space is then no result, and
    /// no endpoint is to blame.
    pub(crate) fn has_room(&self) -> Result<(), RunError> {
        const ROOM: usize = 64 * 1024;
        let path = self.work().join("room");
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&[0; ROOM])?;
            file.sync_all()
        });
        match written.and_then(|()| fs::remove_file(&path)) {
            Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                Err(RunError::io("no space left for a trial in", &self.0)(error))
            }
            _ => Ok(()),
        }
    }

    /// Creates the folder for an endpoint's qlog files in a trial: `qlog/trial-000042/server`, absolute, because
    /// endpoints may run in their own folder.
    pub(crate) fn make_qlog(&self, trial: &Trial, role: &str) -> Result<PathBuf, RunError> {
        let path = self.qlog().join(stem(trial)).join(role);
        fs::create_dir_all(&path).map_err(RunError::io("cannot make the folder", &path))?;
        fs::canonicalize(&path).map_err(RunError::io("cannot find", &path))
    }

    /// Path of a trial's archive: `har/trial-000042.har`, absolute.
    pub(crate) fn make_har(&self, trial: &Trial) -> Result<PathBuf, RunError> {
        let path = self.har();
        fs::create_dir_all(&path).map_err(RunError::io("cannot make the folder", &path))?;
        let path = fs::canonicalize(&path).map_err(RunError::io("cannot find", &path))?;
        Ok(path.join(format!("{}.har", stem(trial))))
    }

    /// Creates the folder for a trial's films: `films/trial-000042`, absolute.
    pub(crate) fn make_films(&self, trial: &Trial) -> Result<PathBuf, RunError> {
        made(&self.films().join(stem(trial)))
    }

    /// Creates the folder for a trial's netlog: `netlog/trial-000042`, absolute.
    pub(crate) fn make_netlog(&self, trial: &Trial) -> Result<PathBuf, RunError> {
        made(&self.netlog().join(stem(trial)))
    }

    /// Copies the clients' key log of a trial to `keys/trial-000042.log`, in a folder readable by its owner only.
    /// Trials without encryption have none.
    pub(crate) fn keep_keys(&self, trial: &Trial, written: &Path) -> Result<(), RunError> {
        if !written.exists() {
            return Ok(());
        }
        make_private(&self.keys())?;
        let path = self.keys().join(format!("{}.log", stem(trial)));
        fs::copy(written, &path).map(drop).map_err(RunError::io("cannot keep the key log as", &path))
    }

    /// Removes files of trials that never reached the journal: readers of `samples/*.parquet` would count them.
    pub(crate) fn remove_orphans(&self, is_recorded: impl Fn(u32) -> bool) -> Result<(), RunError> {
        let is_orphan =
            |name: &str| number_in(name).is_some_and(|number| !is_recorded(number)) || name.ends_with(TEMPORARY);
        [self.samples(), self.logs()].iter().chain(&self.kept()).try_for_each(|folder| remove_files(folder, is_orphan))
    }
}

/// Creates a folder if it is missing; returns its absolute path, because endpoints may run in their own folder.
fn made(path: &Path) -> Result<PathBuf, RunError> {
    fs::create_dir_all(path).map_err(RunError::io("cannot make the folder", path))?;
    fs::canonicalize(path).map_err(RunError::io("cannot find", path))
}

/// Creates a folder that only its owner can read, if it is missing.
fn make_private(path: &Path) -> Result<(), RunError> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path).map_err(RunError::io("cannot make the folder", path))
}

/// Removes matching files from a folder; a missing folder is no error.
fn remove_files(folder: &Path, is_such: impl Fn(&str) -> bool) -> Result<(), RunError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(RunError::io("cannot list the folder", folder))?,
    };
    for entry in entries {
        let path = entry.map_err(RunError::io("cannot list the folder", folder))?.path();
        if is_such(&path.file_name().unwrap_or_default().to_string_lossy()) {
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(RunError::io("cannot remove", &path))?;
        }
    }
    Ok(())
}

/// Prefix of every file name of a trial: `trial-000042`.
pub(crate) fn stem(trial: &Trial) -> String {
    format!("trial-{:06}", trial.number)
}

/// Number of the trial that a file belongs to.
fn number_in(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("trial-")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    digits.parse().ok()
}

/// Reads a regular file. A named pipe would block the reader until another program writes to it.
pub(crate) fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    fs::read(path)
}

const TEMPORARY: &str = ".part";

/// Syncs a folder: only then are its new, renamed and removed files durable (fsync(2)). A folder that this user may
/// write to but not read cannot be synced.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync_all(),
    }
}

/// Writes a file atomically: under a temporary name, synced, renamed.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(TEMPORARY);
    let temporary = path.with_file_name(name);
    let written = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        path.parent().map_or(Ok(()), sync_folder)
    })();
    written.map_err(|error| {
        // If even the removal fails, the next opening removes the file.
        let _ = fs::remove_file(&temporary);
        RunError::io("cannot write", path)(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_of_the_same_second_get_two_folders() {
        let parent = tempfile::tempdir().unwrap();
        let first = Folder::create(parent.path(), "quick", "20250102T030405Z").unwrap();
        let second = Folder::create(parent.path(), "quick", "20250102T030405Z").unwrap();
        assert!(first.path().ends_with("quick-20250102T030405Z"));
        assert!(second.path().ends_with("quick-20250102T030405Z-2"));
    }

    #[test]
    fn a_manifest_that_is_no_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("manifest.json")).unwrap();
        let message = Folder::at(folder.path()).read_manifest().unwrap_err().to_string();
        assert!(message.contains("manifest.json") && message.contains("not a regular file"), "{message}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named_with_a_remedy() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        let message = Folder::create(&file, "quick", "x").unwrap_err().to_string();
        assert!(message.contains("file") && message.contains("--out"), "{message}");
    }

    #[test]
    fn a_second_process_cannot_take_the_run() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::create(parent.path(), "quick", "x").unwrap();
        let held = folder.lock().unwrap();
        assert!(matches!(folder.lock(), Err(RunError::Busy { .. })));
        assert!(folder.is_locked().unwrap());
        drop(held);
        assert!(!folder.is_locked().unwrap());
        folder.lock().unwrap();
    }

    #[test]
    fn files_of_trials_that_never_reached_the_journal_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::create(parent.path(), "quick", "x").unwrap();
        for name in ["trial-000000.parquet", "trial-000001.parquet", "trial-000000.parquet.part", "notes.txt"] {
            fs::write(folder.samples().join(name), "x").unwrap();
        }
        for number in [0, 1] {
            let trial = Trial { number, block: 0, position: 0, cell: 0, seed: 0 };
            fs::write(folder.make_qlog(&trial, "server").unwrap().join("server-000000.sqlog"), "x").unwrap();
        }
        folder.remove_orphans(|number| number == 0).unwrap();
        assert!(folder.qlog().join("trial-000000/server/server-000000.sqlog").exists());
        assert!(!folder.qlog().join("trial-000001").exists());
        let mut left: Vec<_> =
            fs::read_dir(folder.samples()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["notes.txt", "trial-000000.parquet"]);
    }

    #[test]
    fn unfinished_captures_and_those_without_a_trial_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::create(parent.path(), "quick", "x").unwrap();
        folder.make_captures().unwrap();
        folder.make_captures().unwrap();
        let names = ["trial-000000-client.pcapng", "trial-000000-client.pcapng.part", "trial-000001-client.pcapng"];
        for name in names {
            fs::write(folder.captures().join(name), "x").unwrap();
        }
        folder.remove_orphans(|number| number == 0).unwrap();
        let left: Vec<_> = fs::read_dir(folder.captures()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, [names[0]]);
    }

    #[test]
    fn a_folder_without_a_manifest_is_not_a_run() {
        let parent = tempfile::tempdir().unwrap();
        let message = Folder::at(parent.path()).read_manifest().unwrap_err().to_string();
        assert!(message.contains("no `manifest.json`"), "{message}");
        fs::write(parent.path().join("manifest.json"), r#"{"format": 99}"#).unwrap();
        let message = Folder::at(parent.path()).read_manifest().unwrap_err().to_string();
        assert!(message.contains("version 99"), "{message}");
    }
}
