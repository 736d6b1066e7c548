//! Studies with endpoints that must be installed first.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgid, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::lab::{all_trials, folder_with};
use crate::{Skip, eventually_within, processes, root, said, skip, wirelab};

/// Time-out for the start of an installed endpoint on a busy machine.
pub const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// The endpoints that this program has installed. Locked during an installation, because wirelab does not wait for
/// another one.
static INSTALLED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// A folder with this study and its endpoint, installed in the user's cache. `None`, with a skip, if the lab or the
/// program that builds the endpoint is missing.
#[track_caller]
pub fn prepared(study: &str, endpoint: &str, [program, version]: [&str; 2]) -> Option<TempDir> {
    let folder = folder_with(study, &["services"])?;
    if Command::new(program).arg(version).stdout(Stdio::null()).status().is_err() {
        let remedy = format!("the endpoint {endpoint} names its package in endpoint.toml");
        skip(Skip::MissingProgram { program: program.to_owned(), remedy });
        return None;
    }
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !installed.contains(endpoint) {
        let mut install = wirelab(&root(), &["endpoints", "install", endpoint]);
        said(install.env("WIRELAB_ENDPOINTS", "").output().unwrap()).with_status(0);
        installed.insert(endpoint.to_owned());
    }
    drop(installed);
    Some(folder)
}

/// The command that runs the study in a folder, with all installed endpoints.
pub fn run(folder: &Path) -> Command {
    let mut command = wirelab(folder, &["run", "study.toml", "--quiet"]);
    command.env("WIRELAB_ENDPOINTS", root().join("endpoints"));
    command
}

/// Starts the run of the study in a folder, kills the process that was started with this spec, and stops the run after
/// its first trial. Returns that trial.
#[track_caller]
pub fn first_trial_without(folder: &Path, spec: &str) -> Value {
    let child = run(folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mark = folder.to_string_lossy();
    let is_ours = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&*mark)
    };
    // The leader of the group is the process that wirelab started. Other criteria are ambiguous: during `execve` a
    // process has no command line, and a script's short-lived children share its command line.
    let leader = |pid: u32| getpgid(Pid::from_raw(pid.cast_signed())).ok();
    let mut victim = None;
    eventually_within(LONGEST_WAIT, &format!("the start of a process with {spec}"), || {
        victim = processes(spec).into_iter().filter(is_ours).find_map(leader);
        victim.is_some()
    });
    kill_process(victim.unwrap(), Signal::KILL).unwrap();
    eventually_within(LONGEST_WAIT, "the end of the first trial", || has_ended_a_trial(folder));
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    said(child.wait_with_output().unwrap()).with_status(130);
    let (_, trial) = all_trials(folder).into_iter().next().unwrap();
    trial
}

fn has_ended_a_trial(folder: &Path) -> bool {
    let Some(run) = std::fs::read_dir(folder.join("wirelab-runs")).ok().and_then(|mut runs| runs.next()) else {
        return false;
    };
    let text = std::fs::read_to_string(run.unwrap().path().join("journal.jsonl")).unwrap_or_default();
    let mut entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    entries.any(|entry| entry["entry"] == "trial")
}
