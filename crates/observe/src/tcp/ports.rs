//! The ports where processes listen for TCP connections.

use std::collections::BTreeSet;
use std::fs;

use wirelab_model::missing::Missing;

use crate::tree::{self, Pid};
use crate::witness::Listener;

/// The ports of listeners whose sockets are open in the processes below `roots`.
pub(super) fn of(roots: &[Pid], listeners: &[Listener]) -> Result<BTreeSet<u16>, Missing> {
    let mut held = BTreeSet::new();
    for pid in tree::tree(roots)?.into_keys() {
        let path = format!("/proc/{pid}/fd");
        let folder = fs::read_dir(&path).map_err(|error| Missing::unreadable(path, error))?;
        // A file that was closed after the folder was read is no listener.
        let files = folder.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        held.extend(files.filter_map(|file| inode(file.to_str()?)));
    }
    Ok(listeners.iter().filter(|listener| held.contains(&listener.inode)).map(|listener| listener.port).collect())
}

/// The inode number in a socket's link in `/proc`: `socket:[1234]`.
fn inode(link: &str) -> Option<u32> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_distinguished_from_other_files() {
        assert_eq!(inode("socket:[1234]"), Some(1234));
        for other in ["pipe:[1234]", "/dev/null", "socket:[x]", "socket:[12"] {
            assert_eq!(inode(other), None);
        }
    }
}
