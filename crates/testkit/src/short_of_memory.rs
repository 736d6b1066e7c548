//! A control group with little memory, in which the kernel ends whoever wants more.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Skip, skip};

/// Removed when dropped, as soon as nobody is in it any more.
pub struct ShortOfMemory(PathBuf);

impl ShortOfMemory {
    /// None where such a group cannot be made: it needs root and the controller `memory`, of either version (cgroups(7)). Then the test
    /// is skipped.
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

    /// A process and what it takes from now on.
    pub fn take(&self, pid: u32) {
        // It may have ended by itself.
        let _ = fs::write(self.0.join("cgroup.procs"), pid.to_string());
    }
}

impl Drop for ShortOfMemory {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
