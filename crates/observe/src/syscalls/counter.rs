//! Counters of kernel tracepoints on single threads, perf_event_open(2).
//!
//! Each event has a counter of its own rather than one group per thread: a group is cheaper when the kernel switches threads,
//! but while a thread ends, the counts of a group's members are for a moment in no sum that can be read.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

use crate::tree::Pid;

/// `struct perf_event_attr` in its first version, which every kernel takes; what later ones added is zero then.
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

/// A bit field of one bit by its place in the structure; C begins at the other end on machines of the other byte order.
const fn bit(place: u32) -> u64 {
    if cfg!(target_endian = "big") { 1 << (63 - place) } else { 1 << place }
}

const ANY_PROCESSOR: libc::c_int = -1;

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// `PERF_EVENT_IOC_ENABLE` and `PERF_EVENT_IOC_DISABLE`.
const ENABLE: libc::Ioctl = libc::_IO(b'$' as u32, 0);
const DISABLE: libc::Ioctl = libc::_IO(b'$' as u32, 1);

/// How often a tracepoint was passed by a thread, and by every thread and process that came of it since.
#[derive(Debug)]
pub struct Counter(File);

impl Counter {
    /// A counter of a thread and of what comes of it; it does not count yet.
    ///
    /// # Errors
    /// `EACCES` or `EPERM` without the privilege, `ESRCH` if the thread has ended, `EMFILE` with too many open files.
    pub fn open(tracepoint: u64, thread: Pid) -> io::Result<Self> {
        let thread = libc::pid_t::try_from(thread).map_err(io::Error::other)?;
        Self::new(tracepoint, thread, ANY_PROCESSOR, DISABLED | INHERIT)
    }

    /// A counter of everybody on one processor, for a program to be put at: that runs on all of them.
    ///
    /// # Errors
    /// Those of [`Counter::open`].
    pub fn of_all(tracepoint: u64) -> io::Result<Self> {
        let (everybody, processor) = (-1, 0);
        Self::new(tracepoint, everybody, processor, DISABLED)
    }

    /// The open counter.
    pub const fn file(&self) -> &File {
        &self.0
    }

    /// A counter that counts nothing, ever. As long as there is one, closing others does not wait until every processor
    /// has left the tracepoint: some 40 ms for each.
    ///
    /// # Errors
    /// Those of [`Counter::open`].
    pub fn idle(tracepoint: u64) -> io::Result<Self> {
        let myself = 0;
        Self::new(tracepoint, myself, ANY_PROCESSOR, DISABLED)
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
        // SAFETY: the attributes are valid for the call, as long as they say, and ask for a count, which writes to no memory.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, thread, processor, no_group, CLOSE_ON_EXEC)
        };
        let fd = libc::c_int::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just made this descriptor, and nobody else has it.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    /// Begins to count, also in the threads that came of this one.
    ///
    /// # Errors
    /// Those of ioctl(2).
    pub fn enable(&self) -> io::Result<()> {
        self.control(ENABLE)
    }

    /// Ceases to count.
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

    /// The count; that of ended threads included.
    ///
    /// # Errors
    /// Those of read(2), and where the kernel did not count all the time.
    pub fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; 24];
        (&self.0).read_exact(&mut bytes)?;
        let [count, enabled, running] = [0, 8, 16].map(|at| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(word)
        });
        whole(count, enabled, running)
    }
}

/// A count is one only if the kernel counted all the time that it should have.
fn whole(count: u64, enabled: u64, running: u64) -> io::Result<u64> {
    if running == enabled {
        Ok(count)
    } else {
        Err(io::Error::other(format!("the kernel counted in {running} ns of {enabled} ns only")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_a_part_of_the_time_is_an_error_and_not_a_number() {
        assert_eq!(whole(5, 0, 0).unwrap(), 5);
        assert_eq!(whole(5, 70, 70).unwrap(), 5);
        assert_eq!(whole(5, 70, 60).unwrap_err().to_string(), "the kernel counted in 60 ns of 70 ns only");
    }
}
