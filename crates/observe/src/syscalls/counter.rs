//! Counters of kernel tracepoints on single threads, by perf_event_open(2).
//!
//! Each event has a counter of its own, not a group per thread. A group is cheaper when the kernel switches threads.
//! While a thread ends, though, the counts of a group's members are missing from every readable sum for a moment.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

use crate::tree::Pid;

/// `struct perf_event_attr` in its first version, which every kernel accepts; the fields of later versions are zero.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    breakpoint_address: u64,
}

/// `PERF_ATTR_SIZE_VER0`.
const SIZE: u32 = 64;
const _: () = assert!(size_of::<Attributes>() == SIZE as usize);

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;

/// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `PERF_FORMAT_TOTAL_TIME_RUNNING`.
const TIMES: u64 = 1 | 2;

/// The bit fields `disabled` and `inherit`.
const DISABLED: u64 = bit(0);
const INHERIT: u64 = bit(1);

/// A bit field of one bit by its position in the C structure; the order depends on the byte order of the machine.
const fn bit(place: u32) -> u64 {
    if cfg!(target_endian = "big") { 1 << (63 - place) } else { 1 << place }
}

const ANY_PROCESSOR: libc::c_int = -1;

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// `PERF_EVENT_IOC_ENABLE` and `PERF_EVENT_IOC_DISABLE`.
const ENABLE: libc::Ioctl = libc::_IO(b'$' as u32, 0);
const DISABLE: libc::Ioctl = libc::_IO(b'$' as u32, 1);

/// Counts how often a thread, and its later threads and child processes, passed a tracepoint.
#[derive(Debug)]
pub struct Counter(File);

impl Counter {
    /// Opens a disabled counter of a thread and its later threads and child processes.
    ///
    /// # Errors
    /// `EACCES` or `EPERM` without the privilege, `ESRCH` if the thread has ended, `EMFILE` with too many open files.
    pub fn open(tracepoint: u64, thread: Pid) -> io::Result<Self> {
        let thread = libc::pid_t::try_from(thread).map_err(io::Error::other)?;
        Self::new(tracepoint, thread, ANY_PROCESSOR, DISABLED | INHERIT)
    }

    /// Opens a disabled counter of all processes on one processor, to attach a program to; the program runs on all
    /// processors.
    ///
    /// # Errors
    /// As [`Counter::open`].
    pub fn of_all(tracepoint: u64) -> io::Result<Self> {
        let (any_thread, processor) = (-1, 0);
        Self::new(tracepoint, any_thread, processor, DISABLED)
    }

    /// The counter's descriptor.
    pub const fn file(&self) -> &File {
        &self.0
    }

    /// Opens a counter that never counts. While one is open, closing others does not wait until every processor has
    /// left the tracepoint, which takes about 40 ms each.
    ///
    /// # Errors
    /// As [`Counter::open`].
    pub fn idle(tracepoint: u64) -> io::Result<Self> {
        let this_thread = 0;
        Self::new(tracepoint, this_thread, ANY_PROCESSOR, DISABLED)
    }

    fn new(tracepoint: u64, thread: libc::pid_t, processor: libc::c_int, flags: u64) -> io::Result<Self> {
        let attributes = Attributes {
            kind: TRACEPOINT,
            size: SIZE,
            config: tracepoint,
            read_format: TIMES,
            flags,
            ..Attributes::default()
        };
        let no_group: libc::c_int = -1;
        // SAFETY: the attributes are valid for the call and for the size that they state; counting writes to no memory
        // of this process.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, thread, processor, no_group, CLOSE_ON_EXEC)
        };
        let fd = libc::c_int::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    /// Starts counting, also in the threads and processes that inherited the counter.
    ///
    /// # Errors
    /// Those of ioctl(2).
    pub fn enable(&self) -> io::Result<()> {
        self.control(ENABLE)
    }

    /// Stops counting.
    ///
    /// # Errors
    /// Those of ioctl(2).
    pub fn disable(&self) -> io::Result<()> {
        self.control(DISABLE)
    }

    fn control(&self, what: libc::Ioctl) -> io::Result<()> {
        // SAFETY: neither request takes a pointer, and the descriptor is open.
        if unsafe { libc::ioctl(self.0.as_raw_fd(), what, 0) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The count, ended threads included.
    ///
    /// # Errors
    /// Those of read(2), and if the kernel did not count all the time.
    pub fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; 24];
        (&self.0).read_exact(&mut bytes)?;
        let [count, enabled, running] = [0, 8, 16].map(|at| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(word)
        });
        complete(count, enabled, running)
    }
}

/// The count, if the kernel counted during all of the enabled time.
fn complete(count: u64, enabled: u64, running: u64) -> io::Result<u64> {
    if running == enabled {
        Ok(count)
    } else {
        Err(io::Error::other(format!("the kernel counted in only {running} ns of {enabled} ns")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_over_part_of_the_time_is_an_error() {
        assert_eq!(complete(5, 0, 0).unwrap(), 5);
        assert_eq!(complete(5, 70, 70).unwrap(), 5);
        assert_eq!(complete(5, 70, 60).unwrap_err().to_string(), "the kernel counted in only 60 ns of 70 ns");
    }
}
