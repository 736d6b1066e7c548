//! Maps and programs in the kernel, bpf(2).

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

/// What kind of map.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// From keys to values.
    Hash = 1,
    /// By number, a value for each processor.
    PerProcessor = 6,
}

/// Where a program is put.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// At a tracepoint, seeing the record that tracing would write.
    Tracepoint = 5,
    /// At a tracepoint, seeing its arguments.
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

/// A map from 32-bit keys.
#[derive(Debug)]
pub(super) struct Map {
    fd: OwnedFd,
    /// Bytes that a lookup writes.
    value: usize,
}

impl Map {
    /// A map of numbers of 32 bits, or a counter of 64 bits for each of `processors`.
    ///
    /// # Errors
    /// `EPERM` without the privilege (CAP_BPF), `ENOSYS` without bpf(2).
    pub(super) fn create(kind: Kind, entries: u32, processors: usize) -> io::Result<Self> {
        let (value_size, value) = match kind {
            Kind::Hash => (4, 4),
            Kind::PerProcessor => (8, 8 * processors),
        };
        let attributes = MapAttributes { kind: kind as u32, key_size: 4, value_size, entries, flags: 0 };
        // SAFETY: it makes a new descriptor, which nobody else has.
        let fd = unsafe { OwnedFd::from_raw_fd(bpf(MAP_CREATE, &attributes)?) };
        Ok(Self { fd, value })
    }

    /// Puts a value.
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

/// A program that the kernel has checked.
#[derive(Debug)]
pub(super) struct Code(OwnedFd);

impl Code {
    /// Hands it to the kernel.
    ///
    /// # Errors
    /// `EPERM` without the privilege (CAP_BPF and CAP_PERFMON); `EACCES` or `EINVAL`, with what the kernel says of it, if the kernel does
    /// not take it.
    pub(super) fn load(place: Place, code: &[Instruction]) -> io::Result<Self> {
        let mut log = vec![0_u8; 1 << 16];
        let attributes = ProgramAttributes {
            kind: place as u32,
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
            // SAFETY: it makes a new descriptor, which nobody else has.
            Ok(fd) => Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) })),
            Err(error) => {
                let said = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
                let last = said.trim_end().lines().rev().take(2).collect::<Vec<_>>().join("; ");
                Err(if last.is_empty() { error } else { io::Error::new(error.kind(), format!("{error}: {last}")) })
            }
        }
    }

    /// Puts it at a raw tracepoint, where it runs until what is returned is dropped.
    ///
    /// # Errors
    /// `ENOENT` if the kernel has no such tracepoint.
    pub(super) fn at_raw_tracepoint(&self, name: &CStr) -> io::Result<OwnedFd> {
        let program = self.0.as_raw_fd() as u32;
        let attributes = RawTracepointAttributes { name: name.as_ptr() as u64, program, padding: 0 };
        // SAFETY: it makes a new descriptor, which nobody else has.
        Ok(unsafe { OwnedFd::from_raw_fd(bpf(RAW_TRACEPOINT_OPEN, &attributes)?) })
    }

    /// Puts it at the tracepoint of an event, where it runs until that is closed.
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
    // SAFETY: the attributes are as long as is said, live through the call, and so does all that they point to: callers take the addresses
    // from borrows and locals that outlive it, of the sizes that they tell the kernel or that the map was created with.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<A>()) };
    libc::c_int::try_from(result).ok().filter(|result| *result >= 0).ok_or_else(io::Error::last_os_error)
}
