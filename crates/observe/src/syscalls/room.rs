//! Room for open files: a counter is one, and a process of many threads needs more than the usual limit of 1024.

use std::io;

/// The limit on open files, raised as far as this process may, until this is dropped. The endpoints of other trials must not
/// inherit a limit that those of the first did not have.
#[derive(Debug)]
pub struct Room {
    before: libc::rlimit,
}

impl Room {
    /// Raises the limit.
    ///
    /// # Errors
    /// Those of getrlimit(2) and setrlimit(2).
    pub fn make() -> io::Result<Self> {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structure is valid for a write during the call.
        if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut before) } != 0 {
            return Err(io::Error::last_os_error());
        }
        set(libc::rlimit { rlim_cur: before.rlim_max, ..before })?;
        Ok(Self { before })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // It was this process's limit, so it is allowed.
        let _ = set(self.before);
    }
}

fn set(limit: libc::rlimit) -> io::Result<()> {
    // SAFETY: the structure is valid for a read during the call.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
