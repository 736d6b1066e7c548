//! How often the kernel killed a process because the pod used more memory than it may.

use std::fs;

/// Where the pod's cgroup says so, in version 2 (cgroups(7)) and in version 1; a line each is called `oom_kill`.
const COUNTERS: [&str; 2] = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];

/// So often since the pod was made; absent: its cgroup is not to be seen.
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
