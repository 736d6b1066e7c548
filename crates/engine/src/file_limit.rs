//! The limit of open files.

/// Raises the soft limit of open files to the hard one: a load of many connections needs it.
pub fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls are given the address of a live `rlimit`.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            // A failure leaves the limit unchanged; requests that need more files then fail visibly.
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}
