//! The descendants of a process, from the parents that the kernel reports.

use std::collections::HashMap;
use std::fs;

/// A process and its command line, with words separated by spaces.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its command line.
    pub line: String,
}

/// All descendants of a process.
pub fn descendants(ancestor: u32) -> Vec<Process> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // The name in parentheses may contain any character (proc_pid_stat(5)); state and parent follow it.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        children.entry(parent.unwrap_or_default()).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut open = vec![ancestor];
    while let Some(parent) = open.pop() {
        for &pid in children.get(&parent).into_iter().flatten() {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            found.push(Process { pid, line: String::from_utf8_lossy(&line).replace('\0', " ") });
            open.push(pid);
        }
    }
    found
}
