//! An endpoint as a process of this machine.
//!
//! The process leads a process group of its own, so that it can be killed with all its descendants, and so that a Ctrl-C in
//! the terminal reaches wirelab alone. Its end is noticed through a pidfd, without polling; it stays unreaped until its
//! group was killed, so that its number cannot have been given to someone else in between.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command as Program, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, kill_process_group, pidfd_open, set_parent_process_death_signal,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use wirelab_model::endpoint::Endpoint;
use wirelab_model::event::{Command, Event};

use crate::deadline::readable;
use crate::guard::Guard;
use crate::lines::{Lines, shortened};
use crate::log::Log;
use crate::names::Names;
use crate::reap::reap;
use crate::{EventError, Exit, ExitStatus, LabError, Process, Role};

/// How long a process may take to disappear after SIGKILL; it can only be that long in an uninterruptible system call.
const DYING: Duration = Duration::from_secs(10);

/// How long to wait for the rest of the standard error of a process that has ended.
const LAST_WORDS_PATIENCE: Duration = Duration::from_millis(500);

/// A running process on this machine.
///
/// It is killed by the kernel when the *thread* that spawned it ends (`PR_SET_PDEATHSIG`, prctl(2)): spawn it from a thread
/// that lives longer than the trial.
#[derive(Debug)]
pub struct LocalProcess {
    /// For messages: the endpoint and its role.
    who: String,
    pid: Pid,
    pidfd: OwnedFd,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    lines: Lines,
    log: Log,
    guard: Option<Arc<Guard>>,
    exit: Option<Exit>,
}

impl LocalProcess {
    /// Starts an endpoint in a role, with its spec (already written) and the file that takes its standard error.
    ///
    /// # Errors
    /// If its program, its folder or its log cannot be opened, or no process can be made.
    pub fn start(
        endpoint: &Endpoint,
        role: Role,
        spec: &Path,
        log: &Path,
        guard: Option<Arc<Guard>>,
    ) -> Result<Self, LabError> {
        Self::start_in(endpoint, role, spec, log, guard, None)
    }

    /// The same in another place than that of wirelab.
    pub(crate) fn start_in(
        endpoint: &Endpoint,
        role: Role,
        spec: &Path,
        log: &Path,
        guard: Option<Arc<Guard>>,
        home: Option<Arc<Home>>,
    ) -> Result<Self, LabError> {
        let spec = std::path::absolute(spec)
            .map_err(|error| LabError(format!("cannot resolve the spec {}: {error}", spec.display())))?;
        let arguments = [OsStr::new(role.word()), OsStr::new("--spec"), spec.as_os_str()];
        Self::spawn(endpoint, &arguments, Log::create(Some(log))?, guard, home)
    }

    /// Starts an endpoint with these arguments.
    pub(crate) fn spawn(
        endpoint: &Endpoint,
        arguments: &[&OsStr],
        log: Option<std::fs::File>,
        guard: Option<Arc<Guard>>,
        home: Option<Arc<Home>>,
    ) -> Result<Self, LabError> {
        let who = format!("{} ({})", endpoint.name, arguments[0].display());
        let (mut program, text) = command(endpoint, arguments, &who)?;
        if let Some(guard) = &guard {
            guard.check()?;
            program.env(crate::guard::MARK, guard.mark());
        }
        let registration = guard.as_ref().map(|guard| guard.registration()).transpose()?;
        prepare(&mut program, registration, home);
        let child = program.spawn().map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::NotFound => "; is it installed, and does its `command` (and folder) exist?",
                io::ErrorKind::PermissionDenied => "; is it executable?",
                _ => "",
            };
            LabError(format!("cannot start {who} with `{text}`: {error}{remedy}"))
        })?;
        Self::adopt(child, who, log, guard)
    }

    /// Starts any program of this machine, with nothing on its standard input and nobody to read its standard output.
    ///
    /// # Errors
    /// If it cannot be started, or the guard has ended.
    pub fn program(who: &str, mut program: Program, guard: &Arc<Guard>) -> Result<Self, LabError> {
        guard.check()?;
        program.env(crate::guard::MARK, guard.mark());
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        prepare(&mut program, Some(guard.registration()?), None);
        let child = program
            .spawn()
            .map_err(|error| LabError(format!("cannot start {who}: {}: {error}", program.get_program().display())))?;
        Self::adopt(child, who.to_owned(), None, Some(Arc::clone(guard)))
    }

    /// Waits until the deadline for the end of what [`Self::program`] started; absent: it still runs.
    pub fn ends_by(&mut self, deadline: Instant) -> Option<Exit> {
        if self.exit.is_none() && matches!(self.step(deadline), Step::Ended) {
            self.bury(false);
        }
        self.exit.clone()
    }

    fn adopt(
        mut child: Child,
        who: String,
        log: Option<std::fs::File>,
        guard: Option<Arc<Guard>>,
    ) -> Result<Self, LabError> {
        let pid = Pid::from_child(&child);
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                let _ = kill_process_group(pid, Signal::KILL);
                let _ = child.wait();
                return Err(LabError(format!("cannot watch {who}: pidfd_open: {error}; wirelab needs Linux 5.3")));
            }
        };
        let stderr = child.stderr.take().expect("standard error is piped");
        Ok(Self {
            who,
            pid,
            pidfd,
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            lines: Lines::default(),
            log: Log::follow(stderr, log),
            guard,
            exit: None,
        })
    }

    /// Reads the whole standard output, up to `limit` bytes.
    ///
    /// # Errors
    /// [`EventError::Deadline`], or [`EventError::Nonsense`] if there is more.
    pub(crate) fn read_all(&mut self, limit: usize, deadline: Instant) -> Result<Vec<u8>, EventError> {
        let mut all = Vec::new();
        loop {
            match self.step(deadline) {
                Step::Deadline => return Err(EventError::Deadline),
                Step::Read(bytes) => all.extend(bytes),
                Step::Closed | Step::Ended => return Ok(all),
            }
            if all.len() > limit {
                return Err(EventError::Nonsense(format!("more than {limit} bytes: {}", shortened(&all))));
            }
        }
    }

    /// Waits for output, its end, or the process's end, in this order where several are there.
    fn step(&mut self, deadline: Instant) -> Step {
        let stdout = self.stdout.as_ref().map(AsFd::as_fd);
        let Ok([output, ended]) = readable([stdout, Some(self.pidfd.as_fd())], deadline) else {
            return Step::Deadline;
        };
        if let (true, Some(stdout)) = (output, &mut self.stdout) {
            let mut buffer = [0; 8192];
            return match stdout.read(&mut buffer) {
                Ok(count @ 1..) => Step::Read(buffer[..count].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Step::Read(Vec::new()),
                Ok(0) | Err(_) => {
                    self.stdout = None;
                    Step::Closed
                }
            };
        }
        if ended { Step::Ended } else { Step::Deadline }
    }

    /// The process has ended: kills what is left of its group, and reaps it.
    fn bury(&mut self, killed: bool) -> Exit {
        // While the leader is unreaped its number cannot be given away, so this hits nobody else.
        let _ = kill_process_group(self.pid, Signal::KILL);
        if let Some(guard) = &self.guard {
            guard.forget(self.pid);
        }
        let exit = match reap(self.pid) {
            Ok((status, usage)) => {
                let ours = killed && status == ExitStatus::Signal(libc::SIGKILL);
                let status = if ours { ExitStatus::Killed } else { status };
                Exit { status, usage: Some(usage), last_words: self.log.last_words(LAST_WORDS_PATIENCE) }
            }
            Err(error) => self.lost(&format!("wirelab could not learn how {} ended: {error}", self.who)),
        };
        self.exit = Some(exit.clone());
        exit
    }

    /// An end without the kernel's account.
    fn lost(&self, why: &str) -> Exit {
        let words = self.log.last_words(LAST_WORDS_PATIENCE);
        Exit {
            status: ExitStatus::Killed,
            usage: None,
            last_words: format!("{words}\n[{why}]").trim_start().to_owned(),
        }
    }

    fn kill(&mut self) -> Exit {
        let _ = kill_process_group(self.pid, Signal::KILL);
        match readable([Some(self.pidfd.as_fd())], Instant::now() + DYING) {
            Ok([true]) => self.bury(true),
            _ => {
                let exit = self.lost(&format!("{} did not end within {DYING:?} after SIGKILL", self.who));
                self.exit = Some(exit.clone());
                exit
            }
        }
    }
}

/// What happened first.
enum Step {
    Read(Vec<u8>),
    /// Standard output was closed.
    Closed,
    /// The process ended, and everything that it printed was read.
    Ended,
    Deadline,
}

impl Process for LocalProcess {
    fn next_event(&mut self, deadline: Instant) -> Result<Event, EventError> {
        loop {
            if let Some(line) = self.lines.next_event() {
                return line.map_err(EventError::Nonsense);
            }
            if let Some(exit) = &self.exit {
                return Err(EventError::Ended(exit.clone()));
            }
            match self.step(deadline) {
                Step::Deadline => return Err(EventError::Deadline),
                Step::Read(bytes) => self.lines.push(&bytes),
                Step::Closed => self.lines.end(),
                Step::Ended => {
                    self.lines.end();
                    self.bury(false);
                }
            }
        }
    }

    fn send(&mut self, command: Command) -> Result<(), LabError> {
        let word = command.word();
        let stdin = self.stdin.as_mut();
        let written = stdin.map_or_else(
            || Err(io::ErrorKind::BrokenPipe.into()),
            // In one write: a line is far shorter than what a pipe takes atomically.
            |stdin| stdin.write_all(format!("{word}\n").as_bytes()),
        );
        written.map_err(|error| {
            LabError(format!("cannot send `{word}` to {}: {error}; it no longer reads its standard input", self.who))
        })
    }

    fn pid(&self) -> Option<u32> {
        u32::try_from(self.pid.as_raw_nonzero().get()).ok()
    }

    fn end(&mut self, deadline: Instant) -> Exit {
        if let Some(exit) = &self.exit {
            return exit.clone();
        }
        self.stdin = None;
        loop {
            match self.step(deadline) {
                // Nobody wants it, but while it fills the pipe the process cannot end.
                Step::Read(_) if Instant::now() < deadline => {}
                Step::Closed => {}
                Step::Ended => return self.bury(false),
                Step::Read(_) | Step::Deadline => return self.kill(),
            }
        }
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.kill();
        }
    }
}

/// The command of an endpoint, and how it reads.
fn command(endpoint: &Endpoint, arguments: &[&OsStr], who: &str) -> Result<(Program, String), LabError> {
    let mut program = program(endpoint, arguments)
        .ok_or_else(|| LabError(format!("cannot start {who}: its `command` is empty; name a program in it")))?;
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let arguments = arguments.iter().map(|word| word.to_string_lossy().into_owned());
    let text: Vec<_> = endpoint.command.iter().cloned().chain(arguments).collect();
    Ok((program, text.join(" ")))
}

/// What starts an endpoint with these arguments, in its folder, with the streams of whoever starts it; absent: its command is empty.
#[must_use]
pub fn program(endpoint: &Endpoint, arguments: &[&OsStr]) -> Option<Program> {
    let (name, leading) = endpoint.command.split_first()?;
    let mut program = Program::new(name);
    program.args(leading).args(arguments).envs(&endpoint.environment);
    if let Some(folder) = &endpoint.folder {
        program.current_dir(folder);
    }
    Some(program)
}

/// The namespaces that a process lives in; those that are absent are wirelab's own.
#[derive(Debug, Default)]
pub(crate) struct Home {
    /// The user namespace that owns the network namespace; entering that needs its rights.
    pub owner: Option<OwnedFd>,
    /// The network namespace.
    pub network: Option<OwnedFd>,
    /// What names resolve to there; absent: to what they resolve everywhere.
    pub names: Option<Names>,
}

impl Home {
    /// Moves the calling process there. It makes at most five system calls and does not allocate.
    fn enter(&self) -> io::Result<()> {
        for (namespace, kind) in [(&self.owner, LinkNameSpaceType::User), (&self.network, LinkNameSpaceType::Network)] {
            if let Some(namespace) = namespace {
                move_into_link_name_space(namespace.as_fd(), Some(kind))?;
            }
        }
        self.names.as_ref().map_or(Ok(()), Names::enter)
    }
}

/// Makes the process its group's leader, ties its life to this thread's, registers it with the guard before it can do anything
/// of its own, and moves it to its home.
pub(crate) fn prepare(program: &mut Program, registration: Option<OwnedFd>, home: Option<Arc<Home>>) {
    let parent = getpid();
    program.process_group(0);
    let hook = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(parent) {
            // wirelab ended before the line above; nobody is there to read this.
            return Err(io::ErrorKind::NotConnected.into());
        }
        registration.as_ref().map_or(Ok(()), |pipe| Guard::register(pipe, getpid()))?;
        home.as_ref().map_or(Ok(()), |home| home.enter())
    };
    // SAFETY: between fork and exec only async-signal-safe functions may be called (signal-safety(7)). The closure makes
    // at most eight system calls, formats an integer on the stack, and neither allocates nor takes a lock.
    unsafe { program.pre_exec(hook) };
}
