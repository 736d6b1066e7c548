//! The limit on open files. Each counter is an open file, and a process with many threads needs more than the usual
//! limit of 1024.

use std::io;

/// Raises the limit on open files to the hard limit until it is dropped. Without the reset, endpoints of later trials
/// would inherit another limit than those of the first.
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
        // Lowering a soft limit is always allowed.
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
