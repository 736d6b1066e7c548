//! A control group with little memory. The kernel kills processes in it that need more.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Skip, skip};

/// Removed when dropped, as soon as no process is in it.
pub struct ShortOfMemory(PathBuf);

impl ShortOfMemory {
    /// `None` if the group cannot be created: it needs root and the controller `memory`, of either version
    /// (cgroups(7)). The test is then skipped.
    #[track_caller]
    pub fn new(bytes: u64) -> Option<Self> {
        let name = format!("wirelab-test-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/memory").join(&name);
        let second = Path::new("/sys/fs/cgroup").join(&name);
        let made = [(first, "memory.limit_in_bytes"), (second, "memory.max")].into_iter().find_map(|(group, limit)| {
            fs::create_dir(&group).ok()?;
            let group = Self(group);
            fs::write(group.0.join(limit), bytes.to_string()).ok().map(|()| group)
        });
        if made.is_none() {
            let (what, why) = ("a control group with a limit of memory", "none can be made in /sys/fs/cgroup");
            skip(Skip::KernelLacks { what: what.to_owned(), why: why.to_owned() });
        }
        made
    }

    /// Moves a process into the group; the limit covers only memory that it allocates afterwards.
    pub fn take(&self, pid: u32) {
        // The process may have ended by itself.
        let _ = fs::write(self.0.join("cgroup.procs"), pid.to_string());
    }
}

impl Drop for ShortOfMemory {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
