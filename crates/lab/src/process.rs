//! Endpoints as local processes.
//!
//! The process leads its own process group, so that it can be killed with all its descendants, and so that Ctrl-C in
//! the terminal reaches only wirelab. A pidfd reports its end without polling. The process stays unreaped until its
//! group is killed, so that its number cannot be reused in between.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command as Program, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, kill_process_group, pidfd_open, set_parent_process_death_signal,
};
use rustix::thread::{
    CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_setaffinity, set_current_timer_slack,
};
use wirelab_model::endpoint::Endpoint;
use wirelab_model::event::{Command, Event};

use crate::deadline::readable;
use crate::guard::Guard;
use crate::lines::{Lines, shortened};
use crate::log::Log;
use crate::names::Names;
use crate::reap::reap;
use crate::rights;
use crate::{EventError, Exit, ExitStatus, LabError, Process, Role};

/// Time limit for a process to disappear after SIGKILL; only an uninterruptible system call can take that long.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for the rest of the standard error of an ended process.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(500);

/// A running process on this machine.
///
/// The kernel kills it when the *thread* that spawned it ends (`PR_SET_PDEATHSIG`, prctl(2)), so that thread must
/// outlive the trial.
#[derive(Debug)]
pub struct LocalProcess {
    /// Endpoint and role, for messages.
    label: String,
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
    /// Starts an endpoint in a role, with the path of its existing spec and of the log for its standard error.
    ///
    /// # Errors
    /// If the program, its folder or the log cannot be opened, or if the process cannot be created.
    pub fn start(
        endpoint: &Endpoint,
        role: Role,
        spec: &Path,
        log: &Path,
        guard: Option<Arc<Guard>>,
    ) -> Result<Self, LabError> {
        Self::start_in(endpoint, role, spec, log, guard, None)
    }

    /// Starts an endpoint as [`Self::start`] does, in the namespaces of `home`.
    pub(crate) fn start_in(
        endpoint: &Endpoint,
        role: Role,
        spec: &Path,
        log: &Path,
        guard: Option<Arc<Guard>>,
        home: Option<Arc<Home>>,
    ) -> Result<Self, LabError> {
        let spec = std::path::absolute(spec)
            .map_err(|error| LabError::process(format!("cannot resolve the spec {}", spec.display())).because(error))?;
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
        let label = format!("{} ({})", endpoint.name, arguments[0].display());
        let (mut program, text) = command(endpoint, arguments, &label)?;
        if let Some(guard) = &guard {
            guard.check()?;
            program.env(crate::guard::MARK, guard.mark());
        }
        let registration = guard.as_ref().map(|guard| guard.registration()).transpose()?;
        prepare(&mut program, registration, home, Rights::of(endpoint));
        let child = program.spawn().map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::NotFound => Some("is it installed, and does its `command` (and folder) exist?"),
                io::ErrorKind::PermissionDenied => Some("is it executable?"),
                _ => None,
            };
            let failure = LabError::start(format!("cannot start {label} with `{text}`"), error);
            remedy.into_iter().fold(failure, LabError::remedy)
        })?;
        Self::adopt(child, label, log, guard)
    }

    /// Starts a local program with empty standard input; its standard output is discarded.
    ///
    /// # Errors
    /// If the program cannot be started, or the guard has ended.
    pub fn program(label: &str, mut program: Program, guard: &Arc<Guard>) -> Result<Self, LabError> {
        guard.check()?;
        program.env(crate::guard::MARK, guard.mark());
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        prepare(&mut program, Some(guard.registration()?), None, Rights::Few);
        let child = program.spawn().map_err(|error| {
            LabError::start(format!("cannot start {label}: {}", program.get_program().display()), error)
        })?;
        Self::adopt(child, label.to_owned(), None, Some(Arc::clone(guard)))
    }

    /// Waits until the deadline for the exit of a process started by [`Self::program`]. `None`: it still runs.
    pub fn ends_by(&mut self, deadline: Instant) -> Option<Exit> {
        if self.exit.is_none() && matches!(self.step(deadline), Step::Ended) {
            self.reap_group(false);
        }
        self.exit.clone()
    }

    fn adopt(
        mut child: Child,
        label: String,
        log: Option<std::fs::File>,
        guard: Option<Arc<Guard>>,
    ) -> Result<Self, LabError> {
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| {
            LabError::process(format!("cannot watch {label}: pidfd_open"))
                .because(error)
                .remedy("wirelab needs Linux 5.3")
        });
        let stderr = child.stderr.take().expect("standard error is piped");
        let watched = pidfd.and_then(|pidfd| Ok((pidfd, Log::follow(stderr, log)?)));
        let (pidfd, log) = watched.inspect_err(|_| {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = child.wait();
        })?;
        Ok(Self {
            label,
            pid,
            pidfd,
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            lines: Lines::default(),
            log,
            guard,
            exit: None,
        })
    }

    /// Reads the whole standard output, up to `limit` bytes.
    ///
    /// # Errors
    /// [`EventError::Deadline`], or [`EventError::Nonsense`] if the output is longer.
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

    /// Waits for output, the end of output, or the end of the process; if several are available, in this order.
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

    /// Kills the remaining group of an ended process, and reaps the process.
    fn reap_group(&mut self, killed: bool) -> Exit {
        // The number cannot be reused while the leader is unreaped, so this kills no other process.
        let _ = kill_process_group(self.pid, Signal::KILL);
        if let Some(guard) = &self.guard {
            guard.forget(self.pid);
        }
        let exit = match reap(self.pid) {
            Ok((status, usage)) => {
                let ours = killed && status == ExitStatus::Signal(libc::SIGKILL);
                let status = if ours { ExitStatus::Killed } else { status };
                Exit { status, usage: Some(usage), last_words: self.log.last_words(LAST_WORDS_TIMEOUT) }
            }
            Err(error) => self.lost(&format!("wirelab could not learn how {} ended: {error}", self.label)),
        };
        self.exit = Some(exit.clone());
        exit
    }

    /// An exit without resource usage.
    fn lost(&self, why: &str) -> Exit {
        let words = self.log.last_words(LAST_WORDS_TIMEOUT);
        Exit {
            status: ExitStatus::Killed,
            usage: None,
            last_words: format!("{words}\n[{why}]").trim_start().to_owned(),
        }
    }

    fn kill(&mut self) -> Exit {
        let _ = kill_process_group(self.pid, Signal::KILL);
        match readable([Some(self.pidfd.as_fd())], Instant::now() + KILL_TIMEOUT) {
            Ok([true]) => self.reap_group(true),
            _ => {
                let exit = self.lost(&format!("{} did not end within {KILL_TIMEOUT:?} after SIGKILL", self.label));
                self.exit = Some(exit.clone());
                exit
            }
        }
    }
}

/// First event of a wait.
enum Step {
    Read(Vec<u8>),
    /// Standard output was closed.
    Closed,
    /// The process ended, and all its output was read.
    Ended,
    Deadline,
}

impl Process for LocalProcess {
    fn next_event(&mut self, deadline: Instant) -> Result<Event, EventError> {
        loop {
            if let Some(line) = self.lines.next_event() {
                return line;
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
                    self.reap_group(false);
                }
            }
        }
    }

    fn send(&mut self, command: Command) -> Result<(), LabError> {
        let word = command.word();
        let stdin = self.stdin.as_mut();
        let written = stdin.map_or_else(
            || Err(io::ErrorKind::BrokenPipe.into()),
            // One write: a line is far shorter than an atomic pipe write.
            |stdin| stdin.write_all(format!("{word}\n").as_bytes()),
        );
        written.map_err(|error| {
            LabError::process(format!("cannot send `{word}` to {}", self.label))
                .because(error)
                .remedy("it no longer reads its standard input")
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
                // Discard output, because a full pipe would keep the process from ending.
                Step::Read(_) if Instant::now() < deadline => {}
                Step::Closed => {}
                Step::Ended => return self.reap_group(false),
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

/// The command of an endpoint, and its text for messages.
fn command(endpoint: &Endpoint, arguments: &[&OsStr], label: &str) -> Result<(Program, String), LabError> {
    let mut program = program(endpoint, arguments).ok_or_else(|| {
        LabError::process(format!("cannot start {label}: its `command` is empty")).remedy("name a program in it")
    })?;
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let arguments = arguments.iter().map(|word| word.to_string_lossy().into_owned());
    let text: Vec<_> = endpoint.command.iter().cloned().chain(arguments).collect();
    Ok((program, text.join(" ")))
}

/// The command of an endpoint with these arguments, in its folder, with inherited streams. `None`: the endpoint's
/// command is empty.
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

/// Namespaces and processors of a process; absent ones are inherited from wirelab.
#[derive(Debug, Default)]
pub(crate) struct Home {
    /// The processors on which it and its descendants may run.
    pub processors: Option<CpuSet>,
    /// User namespace that owns the network namespace; entering the latter needs its rights.
    pub owner: Option<OwnedFd>,
    /// The network namespace.
    pub network: Option<OwnedFd>,
    /// Host names; absent: those of the machine.
    pub names: Option<Names>,
}

impl Home {
    /// Moves the calling process into the namespaces and onto its processors. Makes at most six system calls and does
    /// not allocate.
    fn enter(&self) -> io::Result<()> {
        if let Some(processors) = &self.processors {
            sched_setaffinity(None, processors)?;
        }
        for (namespace, kind) in [(&self.owner, LinkNameSpaceType::User), (&self.network, LinkNameSpaceType::Network)] {
            if let Some(namespace) = namespace {
                move_into_link_name_space(namespace.as_fd(), Some(kind))?;
            }
        }
        self.names.as_ref().map_or(Ok(()), Names::enter)
    }
}

/// The rights of a program that root starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Those of wirelab.
    All,
    /// None over the whole machine ([`rights::withhold`]).
    Few,
}

impl Rights {
    /// An endpoint with a folder is a program of others. One without is wirelab itself, which gives up its rights
    /// unless it starts a program of the user.
    fn of(endpoint: &Endpoint) -> Self {
        if endpoint.folder.is_some() { Self::Few } else { Self::All }
    }
}

/// The time by which the kernel may delay an endpoint's timers, in nanoseconds; the default of 50 us is an error of
/// every delay and schedule. Threads and programs inherit it (`PR_SET_TIMERSLACK(2const)`).
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

/// Configures a program to lead its own process group, die with the calling thread, register with the guard before
/// exec, wake on time, enter its namespaces and processors, and do without rights.
pub(crate) fn prepare(program: &mut Program, registration: Option<OwnedFd>, home: Option<Arc<Home>>, rights: Rights) {
    let parent = getpid();
    program.process_group(0);
    let hook = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(parent) {
            // wirelab ended before the line above, so no process reads this error.
            return Err(io::ErrorKind::NotConnected.into());
        }
        registration.as_ref().map_or(Ok(()), |pipe| Guard::register(pipe, getpid()))?;
        set_current_timer_slack(Some(TIMER_SLACK_NS))?;
        home.as_ref().map_or(Ok(()), |home| home.enter())?;
        match rights {
            Rights::All => Ok(()),
            Rights::Few => rights::withhold(),
        }
    };
    // SAFETY: between fork and exec only async-signal-safe functions may be called (signal-safety(7)). The closure
    // makes a few dozen system calls, formats an integer on the stack, and neither allocates nor takes a lock.
    unsafe { program.pre_exec(hook) };
}
