//! The ports where processes listen for TCP connections.

use std::collections::BTreeSet;

use procfs::process::FDTarget;
use wirelab_model::missing::Missing;

use crate::tree::{self, Pid};
use crate::witness::Listener;

/// The ports of listeners whose sockets are open in the processes below `roots`.
pub(super) fn of(roots: &[Pid], listeners: &[Listener]) -> Result<BTreeSet<u16>, Missing> {
    let mut held = BTreeSet::new();
    for pid in tree::tree(roots)?.into_keys() {
        let files = tree::process(pid).and_then(|process| process.fd());
        let files = files.map_err(|error| tree::unreadable(format!("/proc/{pid}/fd"), error))?;
        // A file that was closed after the folder was read is no listener.
        held.extend(files.flatten().filter_map(|file| match file.target {
            FDTarget::Socket(inode) => Some(inode),
            _ => None,
        }));
    }
    let is_held = |listener: &&Listener| held.contains(&u64::from(listener.inode));
    Ok(listeners.iter().filter(is_held).map(|listener| listener.port).collect())
}
