//! Builds of the commits of a git repository, each in a working tree of its own.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use crate::failure::{Failure, Result};

/// Interval in which a build is checked for its end and for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Lines of a failed build in messages.
const LAST_WORDS: usize = 5;

/// A build command that failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{command}: {status}\n  | {}", last.join("\n  | "))]
pub(super) struct BuildError {
    command: String,
    status: ExitStatus,
    /// The last lines of its output.
    last: Vec<String>,
}

impl BuildError {
    fn new(command: &str, status: ExitStatus, log: &Path) -> Self {
        let output = std::fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<_> = output.lines().map(str::to_owned).collect();
        let last = lines[lines.len().saturating_sub(LAST_WORDS)..].to_vec();
        Self { command: command.to_owned(), status, last }
    }
}

/// The reason why git gave no answer.
#[derive(Debug, thiserror::Error)]
enum GitError {
    #[error("cannot run git: {0}")]
    NotRun(#[from] std::io::Error),
    #[error("git {command} failed: {words}")]
    Failed { command: String, words: String },
}

#[derive(Debug, Clone)]
pub(super) struct Commit {
    /// Its name, in full.
    pub(super) id: String,
    /// Abbreviation and subject.
    pub(super) title: String,
}

/// The good commit, and all commits after it up to the bad one, along the first parents.
///
/// # Errors
/// If this is no repository, or the range is none with the good commit before the bad one.
pub(super) fn commits(range: &str) -> Result<Vec<Commit>> {
    let Some((good, bad)) = range.split_once("..").filter(|(good, bad)| !good.is_empty() && !bad.starts_with('.'))
    else {
        return Err(Failure::input(format!(
            "--bisect {range}: with --build it is a range of git, GOOD..BAD, such as v1.2.0..HEAD"
        )));
    };
    let bad = if bad.is_empty() { "HEAD" } else { bad };
    let wrong = |what: &str| Failure::input(format!("--bisect {range}: {what}"));
    let of_input = |error: GitError| wrong(&error.to_string());
    let resolve =
        |name: &str| git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{name}^{{commit}}")]);
    git(&["rev-parse", "--git-dir"]).map_err(of_input)?;
    let [good, bad] = [good, bad].map(|name| {
        resolve(name)
            .map_err(|_| wrong(&format!("`{name}` is no commit of this repository; `git log --oneline` lists them")))
    });
    let (good, bad) = (good?, bad?);
    let ancestors = git(&["rev-list", "--first-parent", &bad]).map_err(of_input)?;
    if good == bad || !ancestors.lines().any(|ancestor| ancestor == good) {
        return Err(wrong(&format!(
            "GOOD is not among the commits before BAD, along first parents; `git log --first-parent {}` lists those",
            &bad[..12]
        )));
    }
    let log = |names: &[&str]| git(&[&["log", "--first-parent", "--reverse", "--format=%H %h %s"], names].concat());
    let lines = [log(&["--max-count=1", &good]), log(&[&format!("{good}..{bad}")])];
    let mut commits = Vec::new();
    for lines in lines {
        commits.extend(lines.map_err(of_input)?.lines().filter_map(|line| {
            let (id, title) = line.split_once(' ')?;
            Some(Commit { id: id.to_owned(), title: title.to_owned() })
        }));
    }
    Ok(commits)
}

/// Runs git in the current folder and returns its output.
fn git(args: &[&str]) -> std::result::Result<String, GitError> {
    let output = Command::new("git").args(args).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(GitError::Failed { command: args.first().copied().unwrap_or_default().to_owned(), words })
}

/// The folder of all working trees of a bisection; removed with them at its end.
#[derive(Debug)]
pub(super) struct Forest {
    folder: TempDir,
}

impl Forest {
    pub(super) fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("wirelab-bisect-").tempdir();
        let folder =
            folder.map_err(|error| Failure::failed(format!("cannot make a folder for working trees: {error}")))?;
        Ok(Self { folder })
    }

    /// Checks a commit out and runs the build command in it. `Err` within has the reason why it cannot be built.
    ///
    /// # Errors
    /// If git fails, or `stop` is raised.
    pub(super) fn build(
        &self,
        commit: &Commit,
        command: &str,
        stop: &AtomicBool,
    ) -> Result<std::result::Result<Tree, BuildError>> {
        let place = self.folder.path().join(&commit.id[..12]);
        let path = place.to_string_lossy();
        git(&["worktree", "add", "--quiet", "--detach", &path, &commit.id]).map_err(Failure::failed)?;
        let tree = Tree { place };
        let log = self.folder.path().join("log");
        Ok(run(command, &tree.place, &log, stop)?.map(|()| tree))
    }
}

/// A working tree, which is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Tree {
    place: PathBuf,
}

impl Tree {
    pub(super) fn place(&self) -> &Path {
        &self.place
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // The folder is removed with its parent in any case.
        let _ = git(&["worktree", "remove", "--force", &self.place.to_string_lossy()]);
    }
}

/// Runs a command in a folder, in a process group of its own, which `stop` ends.
fn run(command: &str, folder: &Path, log: &Path, stop: &AtomicBool) -> Result<std::result::Result<(), BuildError>> {
    let wrong = |error| Failure::failed(format!("cannot run the build command: {error}"));
    let output = File::create(log).map_err(wrong)?;
    let errors = output.try_clone().map_err(wrong)?;
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
    let mut child = shell.spawn().map_err(wrong)?;
    loop {
        if let Some(status) = child.try_wait().map_err(wrong)? {
            return Ok(if status.success() { Ok(()) } else { Err(BuildError::new(command, status, log)) });
        }
        if stop.load(Ordering::SeqCst) {
            // SAFETY: kill(2) touches no memory. The group is that of the child, which was not waited for yet.
            unsafe { libc::kill(-child.id().cast_signed(), libc::SIGKILL) };
            let _ = child.wait();
            return Err(Failure::interrupted("interrupted; the working trees are removed"));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
