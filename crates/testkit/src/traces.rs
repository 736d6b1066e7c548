//! The state of a machine, to compare it with a later state.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::eventually_within;

/// The state by name. A cluster must not add to it.
#[derive(Debug, PartialEq)]
pub struct Machine {
    mounts: BTreeSet<String>,
    interfaces: BTreeSet<PathBuf>,
    folders: BTreeSet<PathBuf>,
    cgroups: BTreeSet<PathBuf>,
}

impl Machine {
    /// The current state.
    pub fn now() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let daemons_write_to = ["/run", "/var/lib", "/var/log", "/etc", "/opt", "/usr/libexec"];
        Self {
            mounts: mounts.lines().map(str::to_owned).collect(),
            interfaces: entries(Path::new("/sys/class/net")),
            folders: daemons_write_to.iter().flat_map(|folder| entries(Path::new(folder))).collect(),
            cgroups: entries(Path::new("/sys/fs/cgroup")).iter().flat_map(|path| folders_in(path)).collect(),
        }
    }
}

/// Processes, and their namespaces except for this process's own.
pub struct Processes {
    started: BTreeSet<(PathBuf, String)>,
    namespaces: BTreeSet<PathBuf>,
}

impl Processes {
    /// The processes in all cgroups of this name, and in their descendants.
    pub fn in_cgroups(name: &str) -> Self {
        let mut numbers = BTreeSet::new();
        let hierarchies = entries(Path::new("/sys/fs/cgroup"));
        for hierarchy in hierarchies.iter().map(PathBuf::as_path).chain([Path::new("/sys/fs/cgroup")]) {
            collect(&hierarchy.join(name), &mut numbers);
        }
        let processes = numbers.iter().map(|number| Path::new("/proc").join(number));
        let started: BTreeSet<_> =
            processes.filter_map(|process| Some((process.clone(), start_of(&process)?))).collect();
        let ours = namespaces_of(Path::new("/proc/self"));
        let theirs = started.iter().flat_map(|(process, _)| namespaces_of(process)).collect::<BTreeSet<_>>();
        Self { started, namespaces: &theirs - &ours }
    }

    /// The number of processes.
    pub fn count(&self) -> usize {
        self.started.len()
    }

    /// The number of namespaces.
    pub fn namespaces(&self) -> usize {
        self.namespaces.len()
    }

    /// Waits until all processes have ended. `down` looks at the cgroup, which the kernel removes a process from before
    /// its end.
    #[track_caller]
    pub fn end(&self) {
        eventually_within(Duration::from_secs(60), "the end of every process", || !self.are_left());
    }

    /// Whether one of the processes, or another process in their namespaces, still exists.
    fn are_left(&self) -> bool {
        entries(Path::new("/proc")).iter().any(|process| {
            let same = start_of(process).is_some_and(|start| self.started.contains(&(process.clone(), start)));
            same || !namespaces_of(process).is_disjoint(&self.namespaces)
        })
    }
}

fn entries(folder: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(folder).map(|list| list.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

fn folders_in(folder: &Path) -> BTreeSet<PathBuf> {
    entries(folder).into_iter().filter(|path| path.is_dir()).collect()
}

/// The ids of the processes of a cgroup and of its descendants.
fn collect(cgroup: &Path, numbers: &mut BTreeSet<String>) {
    let text = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    numbers.extend(text.lines().map(str::to_owned));
    for below in folders_in(cgroup) {
        collect(&below, numbers);
    }
}

/// The start time of a process, which distinguishes it from a later process with the same id; `None` if it has ended or
/// is no process.
fn start_of(process: &Path) -> Option<String> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    (fields[0] != "Z").then(|| fields[19].to_owned())
}

fn namespaces_of(process: &Path) -> BTreeSet<PathBuf> {
    entries(&process.join("ns")).iter().filter_map(|link| fs::read_link(link).ok()).collect()
}
