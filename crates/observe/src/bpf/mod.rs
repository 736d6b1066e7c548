//! eBPF maps and programs, by bpf(2).

mod instruction;

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub(crate) use instruction::Instruction;
use wirelab_model::missing::Missing;

/// `enum bpf_cmd`.
const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_NEXT_KEY: libc::c_int = 4;
const PROGRAM_LOAD: libc::c_int = 5;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;

/// The inode number of the initial PID namespace (`PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// The type of a map.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// A hash map with memory for all entries.
    Hash,
    /// A hash map that allocates memory for each entry. Programs for tracing can use it since Linux 6.1.
    GrowingHash,
    /// An array with one value per processor.
    PerProcessor,
}

impl Kind {
    /// The type and the flags.
    const fn attributes(self) -> (u32, u32) {
        const NO_PREALLOCATION: u32 = 1;
        match self {
            Self::Hash => (1, 0),
            Self::GrowingHash => (1, NO_PREALLOCATION),
            Self::PerProcessor => (6, 0),
        }
    }
}

/// The type of a program: what it is attached to and which argument it gets.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Attachment {
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

/// For `BPF_MAP_LOOKUP_ELEM`, `BPF_MAP_UPDATE_ELEM` and `BPF_MAP_GET_NEXT_KEY`.
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

/// A map with keys and values of fixed sizes.
#[derive(Debug)]
pub(crate) struct Map {
    fd: OwnedFd,
    key: usize,
    value: usize,
    /// Number of values of a key.
    values: usize,
}

impl Map {
    /// Creates a map with keys and values of these sizes in bytes. `processors` is the number of processors that a map
    /// per processor keeps values for; the other kinds ignore it.
    ///
    /// # Errors
    /// `EPERM` without the privilege (CAP_BPF), `ENOSYS` without bpf(2).
    pub(crate) fn create(kind: Kind, [key, value]: [usize; 2], entries: u32, processors: usize) -> io::Result<Self> {
        let (number, flags) = kind.attributes();
        let (key_size, value_size) = (key as u32, value as u32);
        let attributes = MapAttributes { kind: number, key_size, value_size, entries, flags };
        // SAFETY: the call makes a new descriptor, which nothing else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(bpf(MAP_CREATE, &attributes)?) };
        // The kernel rounds values per processor up to eight bytes.
        let (value, values) = match kind {
            Kind::PerProcessor => (value.next_multiple_of(8), processors),
            Kind::Hash | Kind::GrowingHash => (value, 1),
        };
        Ok(Self { fd, key, value, values })
    }

    /// Sets the value of a key, both 32-bit numbers.
    ///
    /// # Errors
    /// `E2BIG` if the map is full.
    pub(crate) fn put(&self, key: u32, value: u32) -> io::Result<()> {
        assert_eq!((self.key, self.value * self.values), (4, 4), "the map is one of 32-bit numbers");
        let (key, value) = (key.to_ne_bytes(), value.to_ne_bytes());
        bpf(MAP_UPDATE, &self.element(key.as_ptr(), value.as_ptr() as u64)).map(drop)
    }

    /// The values of a 32-bit key: one, or one per processor.
    ///
    /// # Errors
    /// Those of bpf(2).
    pub(crate) fn get(&self, key: u32) -> io::Result<Vec<u64>> {
        assert_eq!((self.key, self.value), (4, 8), "the map is one of 64-bit numbers by 32-bit ones");
        let key = key.to_ne_bytes();
        self.read(&key)
    }

    /// The sum of all processors' counters of a key.
    ///
    /// # Errors
    /// Those of bpf(2).
    pub(crate) fn sum(&self, key: u32) -> io::Result<u64> {
        Ok(self.get(key)?.iter().sum())
    }

    /// All values, as 64-bit numbers. The programs must no longer change the map.
    ///
    /// # Errors
    /// Those of bpf(2).
    pub(crate) fn entries(&self) -> io::Result<Vec<Vec<u64>>> {
        let (mut all, mut key) = (Vec::new(), None::<Vec<u8>>);
        loop {
            let mut next = vec![0_u8; self.key];
            let former = key.as_ref().map_or(std::ptr::null(), Vec::as_ptr);
            match bpf(MAP_NEXT_KEY, &self.element(former, next.as_mut_ptr() as u64)) {
                Ok(_) => all.push(self.read(&next)?),
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(all),
                Err(error) => return Err(error),
            }
            key = Some(next);
        }
    }

    fn read(&self, key: &[u8]) -> io::Result<Vec<u64>> {
        let mut values = vec![0_u64; self.value * self.values / 8];
        bpf(MAP_LOOKUP, &self.element(key.as_ptr(), values.as_mut_ptr() as u64))?;
        Ok(values)
    }

    fn element(&self, key: *const u8, value: u64) -> ElementAttributes {
        ElementAttributes { map: self.fd.as_raw_fd() as u32, padding: 0, key: key as u64, value, flags: 0 }
    }
}
impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A program that the kernel's verifier has accepted.
#[derive(Debug)]
pub(crate) struct Code(OwnedFd);

impl Code {
    /// Loads a program.
    ///
    /// # Errors
    /// `EPERM` without the privilege (CAP_BPF and CAP_PERFMON). `EACCES` or `EINVAL`, with the end of the verifier's
    /// log, if the kernel rejects the program.
    pub(crate) fn load(attachment: Attachment, code: &[Instruction]) -> io::Result<Self> {
        Self::load_with(attachment, code, None).or_else(|_| {
            // The verifier's log is only for its readers, and takes milliseconds.
            let mut log = vec![0_u8; 1 << 16];
            Self::load_with(attachment, code, Some(&mut log)).map_err(|error| {
                let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
                let last = log.trim_end().lines().rev().take(2).collect::<Vec<_>>().join("; ");
                if last.is_empty() { error } else { io::Error::new(error.kind(), format!("{error}: {last}")) }
            })
        })
    }

    fn load_with(attachment: Attachment, code: &[Instruction], log: Option<&mut [u8]>) -> io::Result<Self> {
        let attributes = ProgramAttributes {
            kind: attachment as u32,
            instructions: code.len() as u32,
            code: code.as_ptr() as u64,
            // Reading kernel memory is for programs that the GPL allows, as the MIT licence does.
            license: c"Dual MIT/GPL".as_ptr() as u64,
            log_level: log.is_some().into(),
            log_size: log.as_ref().map_or(0, |log| log.len() as u32),
            log: log.map_or(0, |log| log.as_mut_ptr() as u64),
            kernel: 0,
            flags: 0,
        };
        // SAFETY: the call makes a new descriptor, which nothing else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(bpf(PROGRAM_LOAD, &attributes)?) }))
    }

    /// Attaches the program to a raw tracepoint until the returned descriptor is dropped.
    ///
    /// # Errors
    /// `ENOENT` if the kernel has no such tracepoint.
    pub(crate) fn at_raw_tracepoint(&self, name: &CStr) -> io::Result<OwnedFd> {
        let program = self.0.as_raw_fd() as u32;
        let attributes = RawTracepointAttributes { name: name.as_ptr() as u64, program, padding: 0 };
        // SAFETY: the call makes a new descriptor, which nothing else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(bpf(RAW_TRACEPOINT_OPEN, &attributes)?) })
    }

    /// Attaches the program to the tracepoint of an event until the event is closed.
    ///
    /// # Errors
    /// Those of ioctl(2).
    pub(crate) fn at_event(&self, event: &File) -> io::Result<()> {
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

/// Checks that process ids mean here what programs assume, and that the byte order is that of the instructions.
pub(crate) fn suited() -> Result<(), Missing> {
    if cfg!(target_endian = "big") {
        return Err(Missing::BigEndian);
    }
    // In another PID namespace, such as a container's, process ids differ from the ids that the program sees.
    match fs::read_link("/proc/self/ns/pid") {
        Ok(namespace) if namespace.as_os_str() == FIRST_NAMESPACE => Ok(()),
        Ok(_) => Err(Missing::OwnPidNamespace),
        Err(error) => Err(Missing::unreadable("/proc/self/ns/pid", error)),
    }
}

/// The number of processors that the kernel keeps per-processor values for: all possible ones.
pub(crate) fn processors() -> io::Result<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = text.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1).ok_or_else(|| io::Error::other("/sys/devices/system/cpu/possible names no processor"))
}
