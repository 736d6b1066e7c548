//! The runs that the pages start: `wirelab run` as a child, one at a time.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use wirelab_model::visible::visible;
use wirelab_serve::{LibraryError, Started};

use crate::stderr;

/// The interval between two looks at a process that starts a run: at the lock that it holds as soon as there is a run.
const LOOK: Duration = Duration::from_millis(20);

/// The part of the output of a process that is shown, in bytes from its end.
const LAST_WORDS: u64 = 4096;

/// Starts runs and ends them.
pub(super) struct Runner {
    /// The folder that contains run folders, absolute.
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The server ends, so that no run may start.
    is_over: bool,
    newest: Option<Process>,
}

/// A child that works on a run.
struct Process {
    child: Child,
    output: [File; 2],
    what: String,
    run: Option<String>,
    is_stopping: bool,
    /// Its last words, once it has ended.
    end: Option<String>,
}

fn failed(attempt: &str, error: &dyn std::fmt::Display) -> LibraryError {
    LibraryError::Failed(format!("{attempt}: {error}"))
}

impl Runner {
    /// # Errors
    /// If the folder cannot be found.
    pub(super) fn of(folder: &Path) -> std::io::Result<Self> {
        Ok(Self { folder: fs::canonicalize(folder)?, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = &mut state.newest {
            process.look(&self.folder);
        }
        state
    }

    /// Starts a command that works on a run, and returns the name of the run as soon as the command holds its lock.
    ///
    /// # Errors
    /// If another command of this server runs, or this one ends without a run.
    pub(super) fn start(&self, command: &mut Command, what: &str) -> Result<String, LibraryError> {
        let id = {
            let mut state = self.state();
            if state.is_over {
                return Err(LibraryError::Refused("the server ends, so that no run may start".to_owned()));
            }
            if let Some(process) = state.newest.as_ref().filter(|process| process.end.is_none()) {
                return Err(in_progress(process.run.as_ref().unwrap_or(&process.what)));
            }
            let process = Process::start(command, what)?;
            let id = process.child.id();
            state.newest = Some(process);
            id
        };
        loop {
            std::thread::sleep(LOOK);
            let state = self.state();
            let Some(process) = state.newest.as_ref().filter(|process| process.child.id() == id) else {
                return Err(LibraryError::Failed(format!("the run of {what} has ended")));
            };
            match (&process.run, &process.end) {
                (Some(run), _) => return Ok(run.clone()),
                (None, Some(words)) if words.is_empty() => {
                    return Err(LibraryError::Failed(format!("`wirelab run` ended without a run of {what}")));
                }
                (None, Some(words)) => return Err(LibraryError::Refused(words.clone())),
                (None, None) => {}
            }
        }
    }

    /// Ends the command in progress as Ctrl-C does. Further calls change nothing, because a second signal would end it
    /// without its report.
    ///
    /// # Errors
    /// If no command of this server runs.
    pub(super) fn stop(&self) -> Result<(), LibraryError> {
        match &mut self.state().newest {
            Some(process) if process.end.is_none() => process.stop(),
            _ => Err(LibraryError::Refused("no run of this server is in progress".to_owned())),
        }
    }

    /// The newest run of this server.
    pub(super) fn started(&self) -> Option<Started> {
        let state = self.state();
        let process = state.newest.as_ref()?;
        Some(Started { what: process.what.clone(), run: process.run.clone(), end: process.end.clone() })
    }

    /// Whether the command in progress works on the run of this name.
    pub(super) fn works_on(&self, run: &str) -> bool {
        let state = self.state();
        state.newest.as_ref().is_some_and(|process| process.end.is_none() && process.run.as_deref() == Some(run))
    }

    /// Ends the command in progress as Ctrl-C does, and waits for its end. No other one starts.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        let Some(process) = state.newest.as_mut().filter(|process| process.end.is_none()) else { return };
        let run = process.run.as_deref().unwrap_or(&process.what).to_owned();
        stderr::write_line(format_args!("Ending {run}. `wirelab resume` continues it."));
        if let Err(error) = process.stop() {
            stderr::write_line(format_args!("! {error}"));
            return;
        }
        let _ = process.child.wait();
    }
}

/// The refusal of a second run.
pub(super) fn in_progress(run: &str) -> LibraryError {
    LibraryError::Refused(format!(
        "`{run}` is in progress, and runs disturb the measurements of each other. Stop it, or wait for its end"
    ))
}

impl Process {
    fn start(command: &mut Command, what: &str) -> Result<Self, LibraryError> {
        let file =
            || tempfile::tempfile().map_err(|error| failed("cannot make a file for the output of a run", &error));
        let output = [file()?, file()?];
        let copy = |file: &File| file.try_clone().map_err(|error| failed("cannot share a file", &error));
        // In a process group of its own it gets a Ctrl-C of the terminal once, from this server.
        let command = command.process_group(0).stdin(Stdio::null()).stdout(copy(&output[0])?).stderr(copy(&output[1])?);
        let child = command.spawn().map_err(|error| failed("cannot start wirelab", &error))?;
        Ok(Self { child, output, what: what.to_owned(), run: None, is_stopping: false, end: None })
    }

    /// Learns the name of its run, and whether it has ended.
    fn look(&mut self, folder: &Path) {
        if self.end.is_some() {
            return;
        }
        if self.run.is_none() {
            self.run = locked_run(self.child.id(), folder);
        }
        let ended = match self.child.try_wait() {
            Ok(None) => return,
            Ok(Some(status)) => self.last_words(status),
            Err(error) => format!("the end of the run cannot be read: {error}"),
        };
        if self.run.is_none() {
            // It held the lock between two looks.
            self.run = tail(&mut self.output[0]).lines().rev().find_map(reported_run);
        }
        self.end = Some(ended);
    }

    /// What it said if it did not succeed.
    fn last_words(&mut self, status: ExitStatus) -> String {
        if status.success() {
            return String::new();
        }
        let words = tail(&mut self.output[1]);
        match words.trim() {
            "" => format!("wirelab ended: {status}"),
            words => visible(words).into_owned(),
        }
    }

    fn stop(&mut self) -> Result<(), LibraryError> {
        if !self.is_stopping {
            kill_process(Pid::from_child(&self.child), Signal::INT)
                .map_err(|error| failed("cannot send the signal of Ctrl-C", &error))?;
            self.is_stopping = true;
        }
        Ok(())
    }
}

/// The end of a file as text.
fn tail(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let length = file.seek(SeekFrom::End(0)).unwrap_or_default();
    let begin = file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS)));
    let _ = begin.and_then(|_| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The run below a folder whose lock a process has open; `None` before its manifest is written.
fn locked_run(process: u32, folder: &Path) -> Option<String> {
    let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok()).find_map(|path| {
        let run = path.parent().filter(|run| path.ends_with("lock") && run.parent() == Some(folder))?;
        run.join("manifest.json").is_file().then(|| run.file_name()?.to_str().map(str::to_owned))?
    })
}

/// The run in the line `Report: FOLDER/RUN/report.html` of a command.
fn reported_run(line: &str) -> Option<String> {
    let run = Path::new(line.strip_prefix("Report: ")?).parent()?;
    run.file_name()?.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use wirelab_testkit::eventually;

    use super::*;

    fn runner() -> (tempfile::TempDir, Runner) {
        let folder = tempfile::tempdir().unwrap();
        let runner = Runner::of(folder.path()).unwrap();
        (folder, runner)
    }

    /// A command that opens the lock of the run `one`, like `wirelab run`, and waits for SIGINT.
    fn working(folder: &Path) -> Command {
        fs::create_dir(folder.join("one")).unwrap();
        fs::write(folder.join("one/manifest.json"), "{}").unwrap();
        let mut command = Command::new("sh");
        let script = "sleep infinity & trap 'kill $!; echo interrupted >&2; exit 130' INT; exec 9>one/lock; wait";
        command.args(["-c", script]).current_dir(folder);
        command
    }

    #[test]
    fn a_command_has_the_run_whose_lock_it_holds_and_ends_by_the_signal_of_ctrl_c() {
        let (folder, runner) = runner();
        assert_eq!(runner.start(&mut working(folder.path()), "my.toml").unwrap(), "one");
        let second = runner.start(&mut Command::new("true"), "other.toml").unwrap_err().to_string();
        assert!(second.contains("`one` is in progress, and runs disturb"), "{second}");
        assert_eq!(runner.started().unwrap().end, None);
        assert!(runner.works_on("one") && !runner.works_on("two"));
        runner.stop().unwrap();
        eventually("the end of the command", || runner.started().unwrap().end.is_some());
        assert!(!runner.works_on("one"));
        assert_eq!(runner.started().unwrap().end.as_deref(), Some("interrupted"));
        assert!(runner.stop().unwrap_err().to_string().contains("no run of this server"));
    }

    #[test]
    fn the_end_of_the_server_ends_the_command_and_no_other_one_starts() {
        let (folder, runner) = runner();
        runner.start(&mut working(folder.path()), "my.toml").unwrap();
        runner.end();
        assert_eq!(runner.started().unwrap().end.as_deref(), Some("interrupted"));
        assert!(runner.start(&mut Command::new("true"), "my.toml").unwrap_err().to_string().contains("server ends"));
    }

    #[test]
    fn a_command_without_a_run_is_refused_in_its_own_words() {
        let (_folder, runner) = runner();
        let refusal = |script: &str| {
            let refused = runner.start(Command::new("sh").args(["-c", script]), "my.toml");
            refused.unwrap_err().to_string()
        };
        assert_eq!(refusal("echo no such study >&2; exit 2"), "no such study");
        assert_eq!(refusal("exit 3"), "wirelab ended: exit status: 3");
        assert_eq!(refusal("exit 0"), "`wirelab run` ended without a run of my.toml");
    }

    #[test]
    fn a_run_that_ended_between_two_looks_is_the_reported_one() {
        let (_folder, runner) = runner();
        let mut command = Command::new("sh");
        command.args(["-c", "echo table; echo; echo 'Report: wirelab-runs/two/report.html'"]);
        assert_eq!(runner.start(&mut command, "my.toml").unwrap(), "two");
    }
}
