//! Detects whether the kernel killed processes for lack of memory, which makes a browser fail with a misleading error.
//!
//! The kernel counts such kills of the whole machine, those at a control group's limit included (`oom_kill` in
//! /proc/vmstat; since Linux 4.13). Which process it killed is only in its log, which needs privileges to read.

use std::fs;

use wirelab_model::outcome::Blame;

/// Detects kills since its creation.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// The number of kills at the start; `None` if this kernel does not count them.
    before: Option<u64>,
}

impl Memory {
    /// Starts detecting.
    pub fn watch() -> Self {
        Self { before: kills() }
    }

    /// Blames a failure on the machine if the kernel killed a process meanwhile.
    pub fn blame(self, blame: Blame, reason: String) -> (Blame, String) {
        explained(self.before, kills(), blame, reason)
    }
}

fn explained(before: Option<u64>, after: Option<u64>, blame: Blame, reason: String) -> (Blame, String) {
    match before.zip(after).map_or(0, |(before, after)| after.saturating_sub(before)) {
        0 => (blame, reason),
        kills => {
            let processes = if kills == 1 { "a process".to_owned() } else { format!("{kills} processes") };
            (
                Blame::Runner,
                format!("{reason}; meanwhile the kernel killed {processes} of this machine for lack of memory"),
            )
        }
    }
}

fn kills() -> Option<u64> {
    counted(&fs::read_to_string("/proc/vmstat").ok()?)
}

fn counted(vmstat: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix("oom_kill "))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kills_meanwhile_change_the_blame() {
        let after = |before, after| explained(before, after, Blame::Server, "timed out".to_owned());
        let as_it_was = (Blame::Server, "timed out".to_owned());
        assert_eq!(after(Some(3), Some(3)), as_it_was);
        assert_eq!(after(None, None), as_it_was);
        let (blame, reason) = after(Some(3), Some(4));
        assert_eq!(blame, Blame::Runner);
        assert_eq!(reason, "timed out; meanwhile the kernel killed a process of this machine for lack of memory");
        assert!(after(Some(3), Some(5)).1.contains("killed 2 processes"));
    }

    #[test]
    fn the_count_is_found_among_others() {
        assert_eq!(counted("nr_free_pages 9\noom_kill_other 7\noom_kill 2\ndrop_slab 0\n"), Some(2));
        assert_eq!(counted("nr_free_pages 9\n"), None);
    }
}
