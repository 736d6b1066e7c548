//! Runs `wirelab` as a user does.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The program `wirelab` that was built beside the tests.
pub fn program() -> PathBuf {
    // Test programs are in its subfolder `deps`.
    let own = std::env::current_exe().unwrap();
    let path = own.parent().and_then(Path::parent).unwrap().join("wirelab");
    assert!(path.exists(), "there is no {}: cargo build --profile tests -p wirelab", path.display());
    path
}

/// The folder of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The program with an empty standard input and without colours.
pub fn wirelab(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(args).current_dir(folder).stdin(Stdio::null()).env("NO_COLOR", "1").env("COLUMNS", "110");
    // What foreign hosts were sent must not last longer than the test.
    command.env("XDG_STATE_HOME", folder);
    // Endpoints are those of the test, unless it asks for others.
    command.env("WIRELAB_CARRIED", "off");
    command
}

/// A process that is killed when this is dropped, so that a failed test leaves nothing.
#[derive(Debug)]
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Output and exit status of a finished process.
#[derive(Debug)]
pub struct Said {
    /// The exit status.
    pub status: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

/// Runs the program to its end.
#[track_caller]
pub fn run(folder: &Path, args: &[&str]) -> Said {
    said(wirelab(folder, args).output().unwrap())
}

/// Output and exit status of a finished process.
#[track_caller]
pub fn said(output: Output) -> Said {
    Said {
        status: output.status.code().unwrap_or_else(|| panic!("it was killed: {output:?}")),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Said {
    /// Demands an exit status.
    #[track_caller]
    pub fn with_status(self, status: i32) -> Self {
        assert_eq!(self.status, status, "standard output:\n{}\nstandard error:\n{}", self.out, self.err);
        self
    }

    /// Demands words on standard error.
    #[track_caller]
    pub fn complains(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.err.contains(word), "`{word}` is missing in:\n{}", self.err);
        }
        self
    }
}

/// The only run folder below `wirelab-runs`.
#[track_caller]
pub fn only_run(folder: &Path) -> PathBuf {
    let runs: Vec<_> =
        std::fs::read_dir(folder.join("wirelab-runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.into_iter().next().unwrap()
}

/// The process ids of every process whose command line contains `word`.
pub fn processes(word: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(word) {
            found.push(pid);
        }
    }
    found
}

/// Waits until `holds`, with a time-out for a machine under full load. Only a failed test waits that long.
#[track_caller]
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    eventually_within(Duration::from_secs(120), what, holds);
}

/// Waits until `holds`, with a time-out.
#[track_caller]
pub fn eventually_within(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}
