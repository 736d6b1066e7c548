//! eBPF maps and programs, by bpf(2).

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::code::Instruction;

/// `enum bpf_cmd`.
const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;

/// The type of a map.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// A hash map from keys to values.
    Hash = 1,
    /// An array with one value per processor.
    PerProcessor = 6,
}

/// The type of a program: what it is attached to and which argument it gets.
#[derive(Debug, Clone, Copy)]
pub(super) enum Attachment {
    /// A tracepoint; the argument is the trace record.
    Tracepoint = 5,
    /// A raw tracepoint; the argument is the tracepoint's arguments.
    RawTracepoint = 17,
}

/// The part of `union bpf_attr` for `BPF_MAP_CREATE` that every kernel with raw tracepoints has.
#[repr(C)]
struct MapAttributes {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
}

/// For `BPF_MAP_LOOKUP_ELEM` and `BPF_MAP_UPDATE_ELEM`.
#[repr(C)]
struct ElementAttributes {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// For `BPF_PROG_LOAD`.
#[repr(C)]
struct ProgramAttributes {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel: u32,
    flags: u32,
}

/// For `BPF_RAW_TRACEPOINT_OPEN`.
#[repr(C)]
struct RawTracepointAttributes {
    name: u64,
    program: u32,
    padding: u32,
}

/// A map with 32-bit keys.
#[derive(Debug)]
pub(super) struct Map {
    fd: OwnedFd,
    /// Bytes that a lookup writes.
    value: usize,
}

impl Map {
    /// Creates a map of 32-bit numbers, or of a 64-bit counter for each of `processors`.
    ///
    /// # Errors
    /// `EPERM` without the privilege (CAP_BPF), `ENOSYS` without bpf(2).
    pub(super) fn create(kind: Kind, entries: u32, processors: usize) -> io::Result<Self> {
        let (value_size, value) = match kind {
            Kind::Hash => (4, 4),
            Kind::PerProcessor => (8, 8 * processors),
        };
        let attributes = MapAttributes { kind: kind as u32, key_size: 4, value_size, entries, flags: 0 };
        // SAFETY: the call makes a new descriptor, which nothing else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(bpf(MAP_CREATE, &attributes)?) };
        Ok(Self { fd, value })
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// `E2BIG` if the map is full.
    pub(super) fn put(&self, key: u32, value: u32) -> io::Result<()> {
        let attributes = self.element(&key, (&raw const value) as u64);
        bpf(MAP_UPDATE, &attributes).map(drop)
    }

    /// The sum of all processors' counters of a key.
    ///
    /// # Errors
    /// Those of bpf(2).
    pub(super) fn sum(&self, key: u32) -> io::Result<u64> {
        let mut values = vec![0_u64; self.value / 8];
        let attributes = self.element(&key, values.as_mut_ptr() as u64);
        bpf(MAP_LOOKUP, &attributes)?;
        Ok(values.iter().sum())
    }

    fn element(&self, key: &u32, value: u64) -> ElementAttributes {
        let map = self.fd.as_raw_fd() as u32;
        ElementAttributes { map, padding: 0, key: std::ptr::from_ref(key) as u64, value, flags: 0 }
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A program that the kernel's verifier has accepted.
#[derive(Debug)]
pub(super) struct Code(OwnedFd);

impl Code {
    /// Loads a program.
    ///
    /// # Errors
    /// `EPERM` without the privilege (CAP_BPF and CAP_PERFMON). `EACCES` or `EINVAL`, with the end of the verifier's
    /// log, if the kernel rejects the program.
    pub(super) fn load(attachment: Attachment, code: &[Instruction]) -> io::Result<Self> {
        let mut log = vec![0_u8; 1 << 16];
        let attributes = ProgramAttributes {
            kind: attachment as u32,
            instructions: code.len() as u32,
            code: code.as_ptr() as u64,
            license: c"MIT OR Apache-2.0".as_ptr() as u64,
            log_level: 1,
            log_size: log.len() as u32,
            log: log.as_mut_ptr() as u64,
            kernel: 0,
            flags: 0,
        };
        match bpf(PROGRAM_LOAD, &attributes) {
            // SAFETY: the call makes a new descriptor, which nothing else owns.
            Ok(fd) => Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) })),
            Err(error) => {
                let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
                let last = log.trim_end().lines().rev().take(2).collect::<Vec<_>>().join("; ");
                Err(if last.is_empty() { error } else { io::Error::new(error.kind(), format!("{error}: {last}")) })
            }
        }
    }

    /// Attaches the program to a raw tracepoint until the returned descriptor is dropped.
    ///
    /// # Errors
    /// `ENOENT` if the kernel has no such tracepoint.
    pub(super) fn at_raw_tracepoint(&self, name: &CStr) -> io::Result<OwnedFd> {
        let program = self.0.as_raw_fd() as u32;
        let attributes = RawTracepointAttributes { name: name.as_ptr() as u64, program, padding: 0 };
        // SAFETY: the call makes a new descriptor, which nothing else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(bpf(RAW_TRACEPOINT_OPEN, &attributes)?) })
    }

    /// Attaches the program to the tracepoint of an event until the event is closed.
    ///
    /// # Errors
    /// Those of ioctl(2).
    pub(super) fn at_event(&self, event: &File) -> io::Result<()> {
        /// `PERF_EVENT_IOC_SET_BPF`.
        const SET_PROGRAM: libc::Ioctl = libc::_IOW::<u32>(b'$' as u32, 8);
        // SAFETY: the request takes a descriptor, not a pointer, and both are open.
        if unsafe { libc::ioctl(event.as_raw_fd(), SET_PROGRAM, self.0.as_raw_fd()) } == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

/// bpf(2).
fn bpf<A>(command: libc::c_int, attributes: &A) -> io::Result<libc::c_int> {
    // SAFETY: the attributes have the stated size and live through the call, as does all memory that they point to.
    // Callers take these addresses from borrows and locals that outlive the call, with the sizes that the kernel is
    // given or that the map was created with.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<A>()) };
    libc::c_int::try_from(result).ok().filter(|result| *result >= 0).ok_or_else(io::Error::last_os_error)
}
