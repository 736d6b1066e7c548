//! Integer socket options.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Sets an option (setsockopt(2)).
pub(crate) fn set(socket: impl AsFd, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the value lives through the call, and its exact size is passed.
    let status = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
