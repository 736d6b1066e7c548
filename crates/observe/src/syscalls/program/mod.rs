//! System calls counted by a program in the kernel (eBPF), on its way into every call.
//!
//! It looks up the side of the current process, and counts by number of the call. So it costs the same whether calls are told apart by
//! name or not, and nothing when threads take turns, where counters of single threads cost most (see [`super::TOTAL`]).

mod bpf;
mod code;

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use self::bpf::{Code, Kind, Map, Place};
use self::code::{MISSED, SLOTS};
use super::Counts;
use super::calls::{CALLS, number};
use super::counter::Counter;
use super::tracefs;
use crate::tree::{Pid, tree};
use crate::window::Sides;

/// The most processes and threads that can be followed.
const FOLLOWED: u32 = 16_384;

/// How often the processes are listed anew because some came or went meanwhile. Both sides wait, so once is usual.
const TRIES: usize = 10;

/// The kernel's number of the first namespace of process numbers (`PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// The counting of both sides. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Program {
    /// The first to go: the window ends with it.
    enter: OwnedFd,
    _fork: Counter,
    counts: Map,
}

/// Client and server in the map of sides.
const CLIENT: u32 = 0;
const SERVER: u32 = 1;

impl Program {
    /// Counts from now on, in the processes of both sides, their children included. A side without processes is not counted.
    ///
    /// # Errors
    /// Why this kernel, or this user, cannot; then single counters may.
    pub(super) fn start(clients: &[Pid], servers: &[Pid]) -> Result<Self, String> {
        suited()?;
        let events = tracefs::events()?;
        let fork = format!("{events}/sched/sched_process_fork");
        let child = offset(&fs::read_to_string(format!("{fork}/format")).map_err(|error| format!("{fork}: {error}"))?)
            .ok_or_else(|| format!("{fork}/format says nothing of child_pid"))?;
        let event = tracefs::number(&events, "sched/sched_process_fork")?
            .ok_or_else(|| "the kernel has no tracepoint of forks".to_owned())?;
        for _ in 0..TRIES {
            let listed = Self::sides(clients, servers)?;
            let started = Self::attach(child, event, &listed).map_err(|error| format!("eBPF: {error}"))?;
            if Self::sides(clients, servers)? == listed {
                return Ok(started);
            }
        }
        Err("processes kept starting and ending while their system calls were to be counted".to_owned())
    }

    fn sides(clients: &[Pid], servers: &[Pid]) -> Result<Vec<(Pid, u32)>, String> {
        let mut all = Vec::new();
        for (roots, side) in [(clients, CLIENT), (servers, SERVER)] {
            // Nothing below no root; and a search of all processes saved.
            if !roots.is_empty() {
                all.extend(tree(roots)?.into_keys().map(|pid| (pid, side)));
            }
        }
        Ok(all)
    }

    fn attach(child: i16, event: u64, listed: &[(Pid, u32)]) -> io::Result<Self> {
        let trees = Map::create(Kind::Hash, FOLLOWED, 0)?;
        let counts = Map::create(Kind::PerProcessor, MISSED + 1, processors()?)?;
        for (pid, side) in listed {
            is_64_bit(*pid)?;
            trees.put(*pid, *side)?;
        }
        let at_fork = Code::load(Place::Tracepoint, &code::fork(child, trees.as_fd(), counts.as_fd()))?;
        let at_enter = Code::load(Place::RawTracepoint, &code::sys_enter(trees.as_fd(), counts.as_fd()))?;
        let fork = Counter::of_all(event)?;
        at_fork.at_event(fork.file())?;
        fork.enable()?;
        let enter = at_enter.at_raw_tracepoint(c"sys_enter")?;
        Ok(Self { enter, _fork: fork, counts })
    }

    /// Counts no more. What was counted.
    pub(super) fn stop(self) -> Result<Sides<Counts>, String> {
        drop(self.enter);
        let read = |slot| self.counts.sum(slot).map_err(|error| format!("the counts of system calls: {error}"));
        let missed = read(MISSED)?;
        if missed > 0 {
            return Err(format!("{missed} processes or threads more than the {FOLLOWED} that can be followed"));
        }
        let side = |side: u32| {
            let slots = (0..SLOTS).map(|slot| read(side * SLOTS + slot)).collect::<Result<Vec<_>, _>>()?;
            let named = CALLS.iter().map(|(call, _)| {
                let count = number(call).and_then(|number| slots.get(usize::try_from(number).ok()?).copied());
                (*call, count)
            });
            Ok::<_, String>(Counts { total: slots.iter().sum(), named: named.collect() })
        };
        Ok(Sides { client: side(CLIENT)?, server: side(SERVER)? })
    }
}

/// Whether the numbers of processes and calls mean here what the program takes them for.
fn suited() -> Result<(), String> {
    if cfg!(target_endian = "big") {
        return Err("eBPF: not on machines of this byte order".to_owned());
    }
    // In another one, such as a container's, processes have other numbers than the program sees.
    match fs::read_link("/proc/self/ns/pid") {
        Ok(namespace) if namespace.as_os_str() == FIRST_NAMESPACE => Ok(()),
        Ok(_) => Err("eBPF: this namespace numbers its processes by itself".to_owned()),
        Err(error) => Err(format!("eBPF: /proc/self/ns/pid: {error}")),
    }
}

/// Programs of 32 bits number their calls in another way.
fn is_64_bit(pid: Pid) -> io::Result<()> {
    let mut head = [0; 5];
    fs::File::open(format!("/proc/{pid}/exe"))?.read_exact(&mut head)?;
    match head {
        [0x7f, b'E', b'L', b'F', 2] => Ok(()),
        _ => Err(io::Error::other(format!("process {pid} is no program of 64 bits"))),
    }
}

/// How many processors the kernel keeps counters for: those that could ever come.
fn processors() -> io::Result<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = text.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1).ok_or_else(|| io::Error::other("/sys/devices/system/cpu/possible says nothing"))
}

/// Where the record of a fork has the child's number, by the kernel's description of it.
fn offset(format: &str) -> Option<i16> {
    let field = format.lines().find(|line| line.contains(" child_pid;"))?;
    field.split("offset:").nth(1)?.split(';').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_childs_number_is_found_in_the_kernels_description_of_a_fork() {
        let format = "\tfield:pid_t parent_pid;\toffset:12;\tsize:4;\tsigned:1;\n\
                      \tfield:pid_t child_pid;\toffset:20;\tsize:4;\tsigned:1;\n";
        assert_eq!(offset(format), Some(20));
        assert_eq!(offset("field:pid_t pid;\toffset:8;"), None);
    }

    #[test]
    fn this_program_has_64_bits_and_a_script_has_none() {
        assert!(cfg!(target_pointer_width = "32") || is_64_bit(std::process::id()).is_ok());
    }
}
