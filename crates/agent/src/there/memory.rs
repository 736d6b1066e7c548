//! Counts of processes that the kernel killed because the pod exceeded its memory limit.

use std::fs;

/// The pod's cgroup counters, version 2 (cgroups(7)) and version 1; the line is `oom_kill` in both.
const COUNTERS: [&str; 2] = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];

/// The number of kills since the pod's start; `None` if its cgroup cannot be read.
pub(crate) fn kills() -> Option<u64> {
    COUNTERS.iter().find_map(|path| counted(&fs::read_to_string(path).ok()?))
}

fn counted(text: &str) -> Option<u64> {
    let mut fields = text.lines().filter_map(|line| line.split_once(' '));
    fields.find(|(name, _)| *name == "oom_kill")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_cgroups_are_read() {
        assert_eq!(counted("low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\n"), Some(3));
        assert_eq!(counted("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), Some(1));
        assert_eq!(counted("oom_kill_disable 0\nunder_oom 0\n"), None, "older kernels do not count");
    }
}
