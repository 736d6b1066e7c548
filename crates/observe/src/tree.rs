//! The processes that belong to an endpoint, and their counters in `/proc/PID/stat` (proc_pid_stat(5)).

use std::collections::BTreeMap;
use std::fs;
use std::io;

use wirelab_model::missing::Missing;

/// A process id.
pub type Pid = u32;

/// One process, as `/proc/PID/stat` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Process id of the parent.
    pub parent: Pid,
    /// Process group.
    pub group: Pid,
    /// Minor page faults of all threads, ended ones included.
    pub minor_faults: u64,
    /// Minor page faults of children that the process waited for.
    pub reaped_minor_faults: u64,
    /// Major page faults of all threads, ended ones included.
    pub major_faults: u64,
    /// Major page faults of children that the process waited for.
    pub reaped_major_faults: u64,
    /// User CPU time in clock ticks.
    pub user_ticks: u64,
    /// System CPU time in clock ticks.
    pub system_ticks: u64,
    /// User and system CPU time in clock ticks of children that the process waited for.
    pub reaped_ticks: u64,
    /// Start in clock ticks since boot; identifies the process together with its id.
    pub started: u64,
}

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
    let mut all = Tree::new();
    let folder = fs::read_dir("/proc").map_err(|error| Missing::unreadable("/proc", error))?;
    for entry in folder.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process may have ended since the folder was read.
        if let Ok(stat) = stat(pid) {
            all.insert(pid, stat);
        }
    }
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
        let path = format!("/proc/{pid}/task");
        let folder = fs::read_dir(&path).map_err(|error| Missing::unreadable(path, error))?;
        let listed = folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        threads.extend(listed.map(|thread: Pid| (thread, pid)));
    }
    Ok(threads)
}

fn below(root: Pid, all: &Tree) -> Result<Tree, Missing> {
    let own = *all.get(&root).ok_or(Missing::ProcessEnded { pid: root })?;
    let mut tree = Tree::from([(root, own)]);
    loop {
        let before = tree.len();
        for (pid, stat) in all {
            if tree.contains_key(&stat.parent) || (stat.group == root && own.group == root) {
                tree.insert(*pid, *stat);
            }
        }
        if tree.len() == before {
            return Ok(tree);
        }
    }
}

fn stat(pid: Pid) -> io::Result<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse(&text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// Parses the fields by their numbers in proc_pid_stat(5). The second field, the name, may contain anything, even `) `.
fn parse(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat {
        parent: Pid::try_from(field(4)?).ok()?,
        group: Pid::try_from(field(5)?).ok()?,
        minor_faults: field(10)?,
        reaped_minor_faults: field(11)?,
        major_faults: field(12)?,
        reaped_major_faults: field(13)?,
        user_ticks: field(14)?,
        system_ticks: field(15)?,
        reaped_ticks: field(16)? + field(17)?,
        started: field(22)?,
    })
}

/// Checks that counters which a process hands to its waiting parent can be summed over the window: each process that
/// ended must have had a parent in the tree that is still alive.
///
/// # Errors
/// If such a process had none.
pub fn accounted(begin: &Tree, end: &Tree) -> Result<(), Missing> {
    let alive =
        |pid: Pid| end.get(&pid).is_some_and(|now| Some(now.started) == begin.get(&pid).map(|then| then.started));
    let mut gone = begin.iter().filter(|(pid, _)| !alive(**pid));
    match gone.find(|(_, stat)| !alive(stat.parent)) {
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
    use super::*;

    fn process(parent: Pid, group: Pid, faults: u64, reaped: u64) -> Stat {
        let text = format!("1 (a) b) S {parent} {group} 0 0 0 0 {faults} {reaped} 0 0 3 4 5 6 0 0 0 0 99 0");
        parse(&text).unwrap()
    }

    fn faults(begin: &Tree, end: &Tree) -> Result<u64, Missing> {
        growth(begin, end, |stat| stat.minor_faults + stat.reaped_minor_faults)
    }

    #[test]
    fn fields_are_read_by_number_for_any_process_name() {
        let stat = process(7, 8, 10, 20);
        assert_eq!((stat.parent, stat.group, stat.minor_faults, stat.reaped_minor_faults), (7, 8, 10, 20));
        assert_eq!((stat.user_ticks, stat.system_ticks, stat.reaped_ticks, stat.started), (3, 4, 11, 99));
        assert_eq!(parse("1 (x) S 1"), None);
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
