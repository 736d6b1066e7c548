//! Runs the steps of an installation in order; resumes after a failed step, and stops on request.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, getpriority_process, kill_process_group, pidfd_open, setpriority_process,
};

use crate::LabError;
use crate::deadline::readable;
use crate::endpoints::day;
use crate::endpoints::installation::{Attempt, Installation, Record, disk_usage, remedies};
use crate::guard::{self, Guard};
use crate::process::{Rights, prepare};

/// Time limit of a step.
const STEP_TIMEOUT: Duration = Duration::from_secs(3600);

/// Interval for progress reports and stop requests during a step.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Niceness of steps: a build must leave the machine usable (nice(1)).
const NICENESS: i32 = 10;

/// Bytes at the end of the log that are searched for its last lines.
const TAIL: u64 = 2048;

/// Number of log lines in an error message.
const LAST_WORDS: usize = 8;

/// Progress of an installation.
#[derive(Debug, Clone, Copy)]
pub struct StepProgress<'a> {
    /// Current step, from 1.
    pub step: usize,
    /// Number of steps.
    pub steps: usize,
    /// Command of the step.
    pub command: &'a str,
    /// Last line of its output.
    pub says: &'a str,
}

impl Installation {
    /// Installs this version, or resumes after a failed attempt. Returns `None` if the endpoint has no steps. `stop`
    /// cancels the current step, and the call fails; `guard` ends the step's processes if wirelab is killed; `now`
    /// returns the time of day, as RFC 3339 in UTC.
    ///
    /// # Errors
    /// If a required program is missing, another wirelab is installing the same version, a step fails or takes over
    /// an hour, or `stop` was raised. The message has the end of the log and its path.
    pub fn install(
        &self,
        guard: &Arc<Guard>,
        stop: &AtomicBool,
        now: fn() -> String,
        progress: &mut dyn FnMut(StepProgress<'_>),
    ) -> Result<Option<Record>, LabError> {
        let missing = self.missing();
        if !missing.is_empty() {
            return Err(LabError::endpoint(format!("`{}` needs {}", self.name, remedies(&missing))));
        }
        let steps = &self.install.steps;
        if steps.is_empty() {
            return Ok(None);
        }
        for folder in [self.files(), self.work(), self.shared()] {
            std::fs::create_dir_all(&folder)
                .map_err(|error| self.wrong(&format!("making {}", folder.display()), error))?;
        }
        let _lock = self.lock()?;
        if let Some(record) = self.record() {
            return Ok(Some(record));
        }
        let mut attempt: Attempt = self.read("attempt.json").unwrap_or_default();
        for (number, words) in steps.iter().enumerate().skip(attempt.completed) {
            let begin = Instant::now();
            let (of, program) = (format!("step {} of {}", number + 1, steps.len()), words.first());
            let words: Vec<_> = words.iter().map(|word| self.step_word(word)).collect();
            let command = words.join(" ");
            let mut report_step =
                |says: &str| progress(StepProgress { step: number + 1, steps: steps.len(), command: &command, says });
            attempt.failure = None;
            self.write("attempt.json", &attempt)?;
            let done = self.step(&words, guard, stop, &mut report_step);
            attempt.seconds += begin.elapsed().as_secs_f64();
            match &done {
                Ok(()) => attempt.completed = number + 1,
                // This text is published in the list of endpoints, so it has no local paths.
                Err(why) => {
                    let (program, at) = (program.map_or("", String::as_str), now());
                    let text = format!("installing it failed on {} at {of}, `{program}`: {why}", day(&at));
                    attempt.failure = Some(text);
                }
            }
            self.write("attempt.json", &attempt)?;
            done.map_err(|why| {
                let (name, log) = (&self.name, self.log());
                let last = last_lines(&log, LAST_WORDS).join("\n  | ");
                let words = format!("{why}\n  | {last}\n  the log: {}", log.display());
                LabError::endpoint(format!("installing `{name}` failed at {of}, `{command}`")).because(words)
            })?;
        }
        let record = Record { seconds: attempt.seconds, bytes: disk_usage(&self.files()), at: Some(now()) };
        self.write("installed.json", &record)?;
        // Clean-up; leftovers are harmless.
        let _ = std::fs::remove_dir_all(self.work());
        let _ = std::fs::remove_file(self.place().join("attempt.json"));
        Ok(Some(record))
    }

    fn work(&self) -> std::path::PathBuf {
        self.place().join("work")
    }

    fn step_word(&self, word: &str) -> String {
        self.filled(word)
            .replace("{work}", &self.work().to_string_lossy())
            .replace("{shared}", &self.shared().to_string_lossy())
    }

    /// Locks this version against concurrent installation, until the file is dropped.
    fn lock(&self) -> Result<File, LabError> {
        let path = self.place().join("lock");
        let file = File::create(&path).map_err(|error| self.wrong(&format!("opening {}", path.display()), error))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                Err(LabError::endpoint(format!("another wirelab is installing `{}`", self.name))
                    .remedy("wait until it has ended"))
            }
            Err(TryLockError::Error(error)) => Err(self.wrong("locking its place in the cache", error)),
        }
    }

    fn step(
        &self,
        words: &[String],
        guard: &Arc<Guard>,
        stop: &AtomicBool,
        report_step: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        let log = self.log();
        let attempt = |what: &'static str| move |error: io::Error| LabError::file(what).because(error);
        let mut output = File::options().create(true).append(true).open(&log).map_err(attempt("opening the log"))?;
        writeln!(output, "$ {}", words.join(" ")).map_err(attempt("writing the log"))?;
        let (program, arguments) = words.split_first().ok_or_else(|| LabError::endpoint("it is empty"))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("WIRELAB_INSTALLED", self.files())
            .env("WIRELAB_WORK", self.work())
            .env("WIRELAB_SHARED", self.shared())
            .env(guard::MARK, guard.mark())
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(attempt("opening the log"))?)
            .stderr(output);
        prepare(&mut command, Some(guard.registration()?), None, Rights::All);
        // SAFETY: two system calls between fork and exec, which touch no memory; if the machine forbids them, the
        // step runs without.
        unsafe {
            command.pre_exec(|| {
                // Keep a higher niceness that the user set with nice(1).
                let own = getpriority_process(None).unwrap_or(0);
                let _ = setpriority_process(None, own.max(NICENESS));
                Ok(())
            })
        };
        let mut child = command.spawn().map_err(|error| LabError::process("cannot start it").because(error))?;
        let group = Pid::from_child(&child);
        let done = wait(&mut child, stop, &mut || report_step(last_lines(&log, 1).last().map_or("", String::as_str)));
        // The guard finds processes that a successful step left running, by their mark.
        if done.is_err() {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
        }
        guard.forget(group);
        match done? {
            status if status.success() => Ok(()),
            status => Err(LabError::endpoint(status.to_string())),
        }
    }
}

/// Waits for the end of a step.
fn wait(child: &mut Child, stop: &AtomicBool, report: &mut dyn FnMut()) -> Result<ExitStatus, LabError> {
    let deadline = Instant::now() + STEP_TIMEOUT;
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).map_err(|error| {
        LabError::process("watching it: pidfd_open").because(error).remedy("wirelab needs Linux 5.3")
    })?;
    let waiting = |error: io::Error| LabError::process("waiting for it").because(error);
    loop {
        if let Some(status) = child.try_wait().map_err(waiting)? {
            return Ok(status);
        }
        if stop.load(Ordering::SeqCst) {
            return Err(LabError::interrupted("cancelled on request; the next attempt resumes here"));
        }
        if Instant::now() > deadline {
            let minutes = STEP_TIMEOUT.as_secs() / 60;
            return Err(LabError::endpoint(format!("it took more than {minutes} minutes")));
        }
        report();
        readable([Some(pidfd.as_fd())], Instant::now() + POLL_INTERVAL).map_err(waiting)?;
    }
}

/// Up to `most` last non-empty lines of a file.
fn last_lines(path: &Path, most: usize) -> Vec<String> {
    let tail = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = tail().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    // Progress bars use carriage returns.
    let lines: Vec<_> =
        text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    lines[lines.len().saturating_sub(most)..].to_vec()
}
