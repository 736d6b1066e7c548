//! The guard: a process that outlives wirelab and ends what wirelab started.
//!
//! SIGKILL leaves wirelab no chance to clean up. So wirelab starts itself a second time as `wirelab guard`, in a
//! separate process group, and holds a pipe to it. The pipe closes when wirelab ends, for whatever reason. Each
//! endpoint writes its process group into the pipe between fork and exec. When the pipe closes, the guard kills every
//! group on its list. It then kills every process with wirelab's mark in its environment, which finds descendants
//! that left their group (setsid(2)), and ends.
//!
//! Limits: the guard cannot find a descendant that left its group *and* cleared its environment. If the guard itself
//! is killed first, `PR_SET_PDEATHSIG` still ends the endpoints, but not their descendants.
//!
//! The pipe carries lines: `mark TEXT` once, then `+group N` and `-group N`, `+folder PATH` and `-folder PATH`.
//! Folders are removed after the processes have ended. `log PATH` names the file for the log of the guard. The guard
//! ignores unknown words, so further kinds of resources can be added.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, kill_process_group, pidfd_open};
use tracing::{info, warn};

use crate::LabError;
use crate::deadline::readable;

/// Subcommand that makes wirelab a guard.
pub const SUBCOMMAND: &str = "guard";

/// Environment variable that marks endpoints and their descendants.
pub(crate) const MARK: &str = "WIRELAB_GUARD_MARK";

/// Time limit for the start of the guard.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for the guard's clean-up, which takes milliseconds.
const END_TIMEOUT: Duration = Duration::from_secs(10);

const READY: &[u8] = b"ready\n";

static SHARED: Mutex<Weak<Guard>> = Mutex::new(Weak::new());

/// Handle of the guard process. Drop ends everything on its list.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    /// `None` only during drop.
    pipe: Option<ChildStdin>,
    mark: String,
}

impl Guard {
    /// Starts `program guard` and waits until it is ready.
    ///
    /// # Errors
    /// If the program cannot be started, or does not become ready in time.
    pub fn start(program: &Path) -> Result<Self, LabError> {
        let attempt = format!("cannot start the guard `{} {SUBCOMMAND}`", program.display());
        let mut child = Command::new(program)
            .arg(SUBCOMMAND)
            // A guarded wirelab may start its own guard, which must outlive it: remove the outer mark.
            .env_remove(MARK)
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                LabError::process(&attempt)
                    .because(error)
                    .remedy("check that wirelab's program file was not moved or deleted")
            })?;
        let pipe = child.stdin.take();
        let mut guard = Self { child, pipe, mark: mark() };
        // Wait for readiness before writing: a program that is not a guard has often ended before a write.
        let ready = guard
            .await_ready()
            .map_err(|error| LabError::process(&attempt).because(error).remedy("check that this program is wirelab"));
        let started = ready.and_then(|()| guard.write(&format!("mark {}\n", guard.mark)));
        if started.is_err() {
            // A program that is not a guard may not end with its standard input.
            let _ = guard.child.kill();
        }
        tracing::debug!(pid = guard.child.id(), "guard started");
        started.map(|()| guard)
    }

    /// Makes this the guard of processes started without a lab: `describe`, and the probe for unknown protocols.
    pub fn share(self: &Arc<Self>) {
        *SHARED.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(self);
    }

    /// The guard that was shared last, if its lab is still open.
    pub fn shared() -> Option<Arc<Self>> {
        SHARED.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    fn await_ready(&mut self) -> io::Result<()> {
        let mut stdout = self.child.stdout.take().expect("standard output is piped");
        let deadline = Instant::now() + START_TIMEOUT;
        let mut output = Vec::new();
        while output.len() < READY.len() {
            let mut buffer = [0; 64];
            match readable([Some(stdout.as_fd())], deadline) {
                Ok([true]) => match stdout.read(&mut buffer) {
                    Ok(0) => return Err(io::Error::other("it ended at once")),
                    Ok(count) => output.extend(&buffer[..count]),
                    Err(error) => return Err(error),
                },
                Ok([false]) => return Err(io::Error::other(format!("it was not ready after {START_TIMEOUT:?}"))),
                Err(error) => return Err(error),
            }
        }
        if output != READY {
            return Err(io::Error::other(format!("it printed {}", crate::lines::shortened(&output))));
        }
        Ok(())
    }

    /// Checks that the guard still runs.
    ///
    /// # Errors
    /// If the guard has ended.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        self.write("\n")
    }

    /// Value of the environment variable [`MARK`] for endpoints.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// A copy of the pipe, closed on exec, for [`Guard::register`].
    pub(crate) fn registration(&self) -> Result<OwnedFd, LabError> {
        let pipe = self.pipe.as_ref().expect("the pipe is there until the guard is dropped");
        let copy = pipe.as_fd().try_clone_to_owned();
        copy.map_err(|error| {
            LabError::process("cannot reach the guard").because(error).remedy("raise the limit of open files")
        })
    }

    /// Adds a process group to the list. Called between fork and exec: it does not allocate.
    pub(crate) fn register(pipe: &OwnedFd, group: Pid) -> io::Result<()> {
        let mut line = [0; 32];
        let size = line.len();
        let mut rest = &mut line[..];
        writeln!(rest, "+group {}", group.as_raw_nonzero())?;
        let used = size - rest.len();
        // A write of less than PIPE_BUF bytes is atomic (pipe(7)).
        rustix::io::retry_on_intr(|| rustix::io::write(pipe, &line[..used]))?;
        Ok(())
    }

    /// Removes a process group from the list. Call it before its leader is reaped, while the number cannot be reused.
    pub(crate) fn forget(&self, group: Pid) {
        // If the guard has ended there is nothing to remove; the next start reports it.
        let _ = self.write(&format!("-group {}\n", group.as_raw_nonzero()));
    }

    /// Adds a folder to the list, or removes it.
    pub(crate) fn folder(&self, path: &str, listed: bool) -> Result<(), LabError> {
        self.write(&format!("{}folder {path}\n", if listed { '+' } else { '-' }))
    }

    /// Names the file for the guard's log of what it ended. Without processes to end, the guard creates no file.
    ///
    /// # Errors
    /// If the guard has ended.
    pub fn log_at(&self, path: &Path) -> Result<(), LabError> {
        self.write(&format!("log {}\n", path.display()))
    }

    fn write(&self, line: &str) -> Result<(), LabError> {
        let mut pipe = self.pipe.as_ref().expect("the pipe is there until the guard is dropped");
        pipe.write_all(line.as_bytes()).map_err(|error| {
            LabError::process(format!(
                "the guard process has ended ({error}), so wirelab could no longer clean up after a crash"
            ))
            .remedy("check what killed it, and start wirelab again")
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The guard waits for the end of the pipe.
        drop(self.pipe.take());
        let ended = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty())
            .map_err(io::Error::from)
            .and_then(|pidfd| readable([Some(pidfd.as_fd())], Instant::now() + 2 * END_TIMEOUT));
        if !matches!(ended, Ok([true])) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// A text that no other wirelab process uses at the same time.
fn mark() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", getpid().as_raw_nonzero(), now.as_nanos())
}

/// The program `wirelab guard`: waits for the end of standard input, then ends everything on its list. `keep_log` opens
/// its log.
#[must_use]
pub fn main(keep_log: &dyn Fn(&Path)) -> ExitCode {
    outlive_signals();
    let mut stdout = io::stdout();
    if stdout.write_all(READY).and_then(|()| stdout.flush()).is_err() {
        return ExitCode::FAILURE;
    }
    let list = read_list(BufReader::new(io::stdin().lock()));
    list.log.as_deref().into_iter().for_each(keep_log);
    let deadline = Instant::now() + END_TIMEOUT;
    for group in &list.groups {
        let found = kill_process_group(*group, Signal::KILL).is_ok();
        warn!(group = group.as_raw_nonzero(), found, "wirelab ended before it ended this process group");
    }
    // A round can miss a process that is just being forked, so repeat until a round finds none.
    while let Some(mark) = &list.mark
        && let killed @ 1.. = kill_marked(mark)
        && Instant::now() < deadline
    {
        // Some of them may be those of the groups, as long as the kernel has not ended them.
        info!(killed, "killed processes with the mark of wirelab");
        std::thread::sleep(Duration::from_millis(5));
    }
    for folder in list.own_folders() {
        info!(folder = %folder.display(), "removed a folder");
        crate::folder::remove(folder);
    }
    ExitCode::SUCCESS
}

/// Processes and folders to remove.
#[derive(Debug, Default, PartialEq, Eq)]
struct List {
    mark: Option<String>,
    groups: HashSet<Pid>,
    folders: HashSet<PathBuf>,
    log: Option<PathBuf>,
}

impl List {
    /// The listed folders whose name carries this wirelab's mark; the guard must not remove any other folder.
    fn own_folders(&self) -> impl Iterator<Item = &Path> {
        let begin = self.mark.as_deref().map(crate::folder::name_begins);
        let is_own = move |path: &&PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            begin.as_deref().zip(name).is_some_and(|(begin, name)| name.starts_with(begin))
        };
        self.folders.iter().filter(is_own).map(PathBuf::as_path)
    }
}

/// Reads until wirelab ends. A read error counts as the end.
fn read_list(lines: impl BufRead) -> List {
    let mut list = List::default();
    for line in lines.lines().map_while(Result::ok) {
        match line.split_once(' ') {
            Some(("mark", text)) if !text.is_empty() => list.mark = Some(text.to_owned()),
            Some(("+group", number)) => list.groups.extend(group(number)),
            Some(("-group", number)) => list.groups.retain(|listed| Some(*listed) != group(number)),
            Some(("+folder", path)) if path.starts_with('/') => {
                list.folders.insert(PathBuf::from(path));
            }
            Some(("log", path)) if path.starts_with('/') => list.log = Some(PathBuf::from(path)),
            Some(("-folder", path)) => {
                list.folders.remove(Path::new(path));
            }
            _ => {}
        }
    }
    list
}

/// Parses a process group that may be killed: not init's, and not the number that means every process.
fn group(number: &str) -> Option<Pid> {
    number.parse().ok().filter(|number| *number > 1).and_then(Pid::from_raw)
}

/// Kills every process with the mark in its environment; returns their number.
fn kill_marked(mark: &str) -> usize {
    let entry = format!("{MARK}={mark}");
    let Ok(folder) = std::fs::read_dir("/proc") else { return 0 };
    let processes = folder.flatten().filter_map(|process| group(process.file_name().to_str()?));
    let marked = processes.filter(|pid| {
        // The environment of another user's process is unreadable, that of an ended process is empty.
        let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
    });
    marked.filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count()
}

/// Ignores the signals by which terminals and users end programs: the guard ends only with wirelab.
fn outlive_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: setting a signal to be ignored installs no handler, so no code can run at an unsafe moment.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_keeps_entries_until_they_are_removed() {
        let list = read_list(&b"mark 1-2\n\n+group 10\n+group 11\n-group 10\n+ns later\nlog /r\n+group 12\n"[..]);
        let groups = [11, 12].into_iter().filter_map(Pid::from_raw).collect();
        let log = Some(PathBuf::from("/r"));
        assert_eq!(list, List { mark: Some("1-2".to_owned()), groups, folders: HashSet::new(), log });
    }

    #[test]
    fn only_listed_folders_that_carry_the_mark_are_removed() {
        let lines = "mark 1-2\n+folder /tmp/wirelab-1-2-0\n+folder /tmp/wirelab-1-2-1\n-folder /tmp/wirelab-1-2-0\n\
                     +folder /home\n+folder wirelab-1-2-3\n+folder /\n";
        let list = read_list(lines.as_bytes());
        assert_eq!(list.own_folders().collect::<Vec<_>>(), [Path::new("/tmp/wirelab-1-2-1")]);
        assert_eq!(read_list(&b"+folder /tmp/wirelab-1-2-0\n"[..]).own_folders().count(), 0);
    }

    #[test]
    fn no_line_makes_the_guard_kill_init_or_everything() {
        for line in ["+group 1", "+group 0", "+group -1", "+group -7", "+group x", "+group", "mark "] {
            assert_eq!(read_list(line.as_bytes()), List::default(), "{line}");
        }
    }
}
