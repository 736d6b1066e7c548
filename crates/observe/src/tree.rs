//! The processes that belong to an endpoint, and their counters in `/proc/PID/stat` (proc_pid_stat(5)).

use std::collections::BTreeMap;
use std::io;

use procfs::process::{Process, Stat, all_processes};
use procfs::{ProcError, ProcResult};
use wirelab_model::missing::Missing;

/// A process id.
pub type Pid = u32;

/// The processes of an endpoint: the process that the lab started, its descendants, and orphans in its process group.
pub type Tree = BTreeMap<Pid, Stat>;

/// Reads the trees below `roots` as one tree.
///
/// Searches `/proc`, because many kernels are built without the list of children, and that list misses orphans. Takes
/// tens of microseconds per process of the machine.
///
/// # Errors
/// If a root has ended, or `/proc` cannot be read.
pub fn tree(roots: &[Pid]) -> Result<Tree, Missing> {
    let processes = all_processes().map_err(|error| unreadable("/proc", error))?;
    // A process may have ended since the folder was read.
    let stats = processes.filter_map(|process| process.ok()?.stat().ok());
    let all = stats.map(|stat| (stat.pid.cast_unsigned(), stat)).collect();
    roots.iter().try_fold(Tree::new(), |mut trees, root| {
        trees.extend(below(*root, &all)?);
        Ok(trees)
    })
}

/// The threads of the trees below `roots`, with their processes.
///
/// # Errors
/// If a root has ended, or `/proc` cannot be read.
pub fn threads(roots: &[Pid]) -> Result<BTreeMap<Pid, Pid>, Missing> {
    let mut threads = BTreeMap::new();
    for pid in tree(roots)?.into_keys() {
        let tasks = process(pid).and_then(|process| process.tasks());
        let tasks = tasks.map_err(|error| unreadable(format!("/proc/{pid}/task"), error))?;
        threads.extend(tasks.flatten().map(|task| (task.tid.cast_unsigned(), pid)));
    }
    Ok(threads)
}

/// The files of a process.
pub fn process(pid: Pid) -> ProcResult<Process> {
    Process::new(pid.cast_signed())
}

/// The reason for a file of `/proc` that cannot be read.
pub fn unreadable(path: impl Into<String>, error: ProcError) -> Missing {
    Missing::unreadable(path, plain(error))
}

/// The error without its path.
pub fn plain(error: ProcError) -> io::Error {
    match error {
        ProcError::PermissionDenied(_) => io::ErrorKind::PermissionDenied.into(),
        ProcError::NotFound(_) => io::ErrorKind::NotFound.into(),
        ProcError::Io(error, _) => error,
        error => io::Error::other(error),
    }
}

fn below(root: Pid, all: &Tree) -> Result<Tree, Missing> {
    let own = all.get(&root).ok_or(Missing::ProcessEnded { pid: root })?;
    let mut tree = Tree::from([(root, own.clone())]);
    loop {
        let before = tree.len();
        for (pid, stat) in all {
            let is_of_group = [stat.pgrp, own.pgrp] == [root.cast_signed(); 2];
            if tree.contains_key(&stat.ppid.cast_unsigned()) || is_of_group {
                tree.insert(*pid, stat.clone());
            }
        }
        if tree.len() == before {
            return Ok(tree);
        }
    }
}

/// Checks that counters which a process hands to its waiting parent can be summed over the window: each process that
/// ended must have had a parent in the tree that is still alive.
///
/// # Errors
/// If such a process had none.
pub fn accounted(begin: &Tree, end: &Tree) -> Result<(), Missing> {
    let alive =
        |pid: Pid| end.get(&pid).is_some_and(|now| Some(now.starttime) == begin.get(&pid).map(|then| then.starttime));
    let mut gone = begin.iter().filter(|(pid, _)| !alive(**pid));
    match gone.find(|(_, stat)| !alive(stat.ppid.cast_unsigned())) {
        None => Ok(()),
        Some(_) => Err(Missing::OrphanEnded),
    }
}

/// Growth of a counter in the window, summed over the tree. `count` adds a process's own count and that of the children
/// that it waited for. The sum is exact if [`accounted`] holds: the count of an ended child moves to its parent.
///
/// # Errors
/// If the count of an ended process is lost.
pub fn growth(begin: &Tree, end: &Tree, count: impl Fn(&Stat) -> u64) -> Result<u64, Missing> {
    accounted(begin, end)?;
    let sum = |tree: &Tree| tree.values().map(&count).sum::<u64>();
    sum(end).checked_sub(sum(begin)).ok_or(Missing::EndedUnwaited)
}

#[cfg(test)]
mod tests {
    use procfs::FromRead;

    use super::*;

    fn process(parent: Pid, group: Pid, faults: u64, reaped: u64) -> Stat {
        let zeros = "0 ".repeat(30);
        let text = format!("1 (a) b) S {parent} {group} 0 0 0 0 {faults} {reaped} 0 0 3 4 5 6 0 0 0 0 99 {zeros}");
        Stat::from_read(text.as_bytes()).unwrap()
    }

    fn faults(begin: &Tree, end: &Tree) -> Result<u64, Missing> {
        growth(begin, end, |stat| stat.minflt + stat.cminflt)
    }

    #[test]
    fn a_tree_has_descendants_and_orphans_of_the_group_only() {
        let all = Tree::from([
            (1, process(0, 1, 0, 0)),
            (5, process(1, 5, 0, 0)),
            (4, process(6, 6, 0, 0)),
            (6, process(5, 6, 0, 0)),
            (9, process(1, 5, 0, 0)),
            (10, process(1, 10, 0, 0)),
        ]);
        assert_eq!(below(5, &all).unwrap().into_keys().collect::<Vec<_>>(), [4, 5, 6, 9]);
        assert_eq!(below(77, &all).unwrap_err(), Missing::ProcessEnded { pid: 77 });
    }

    #[test]
    fn a_process_that_is_not_its_groups_leader_does_not_claim_the_group() {
        let all = Tree::from([(5, process(1, 2, 0, 0)), (6, process(1, 2, 0, 0))]);
        assert_eq!(below(5, &all).unwrap().len(), 1);
    }

    #[test]
    fn counts_of_children_that_were_waited_for_are_neither_lost_nor_counted_twice() {
        let begin = Tree::from([(5, process(1, 5, 100, 0)), (6, process(5, 5, 40, 0))]);
        // The child adds 2 faults, ends, and is waited for; the parent adds 3; a new child adds 7.
        let end = Tree::from([(5, process(1, 5, 103, 42)), (8, process(5, 5, 7, 0))]);
        assert_eq!(faults(&begin, &end), Ok(12));
    }

    #[test]
    fn counts_lost_with_an_orphan_give_a_reason() {
        let begin = Tree::from([(5, process(1, 5, 100, 0)), (6, process(1, 5, 40, 0))]);
        let end = Tree::from([(5, process(1, 5, 200, 0))]);
        assert_eq!(faults(&begin, &end), Err(Missing::OrphanEnded));
    }
}
