//! Counts system calls with an eBPF program at the entry of every call.
//!
//! The program looks up the side of the current process and counts by call number. Its cost is the same with and
//! without names, and context switches add nothing; they are what makes counters per thread expensive (see
//! [`super::TOTAL`]).

mod code;

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use wirelab_model::missing::Missing;

use self::code::{MISSED, SLOTS};
use super::Counts;
use super::calls::{CALLS, number};
use super::counter::Counter;
use super::tracefs;
use crate::bpf::{Attachment, Code, Kind, Map, processors, suited};
use crate::tree::{Pid, tree};
use crate::window::Sides;

/// The maximum number of processes and threads in the map.
const FOLLOWED: u32 = 16_384;

/// How often processes are listed again because one started or ended meanwhile. Both sides wait, so one try is usual.
const TRIES: usize = 10;

/// The running program, counting both sides until it is dropped.
#[derive(Debug)]
pub(super) struct Program {
    /// Dropped first, which ends the counting.
    enter: OwnedFd,
    _fork: Counter,
    counts: Map,
}

/// The sides in the map.
const CLIENT: u32 = 0;
const SERVER: u32 = 1;

impl Program {
    /// Starts counting in the processes of both sides and their children. A side without processes is not counted.
    ///
    /// # Errors
    /// The reason why this kernel or user cannot; counters per thread may still work.
    pub(super) fn start(clients: &[Pid], servers: &[Pid]) -> Result<Self, Missing> {
        suited()?;
        let events = tracefs::events()?;
        let fork = format!("{events}/sched/sched_process_fork");
        let format = format!("{fork}/format");
        let read = fs::read_to_string(&format)
            .and_then(|text| offset(&text).ok_or_else(|| io::Error::other("it has no field child_pid")));
        let child = read.map_err(|error| Missing::unreadable(format, error))?;
        let event = tracefs::number(&events, "sched/sched_process_fork")?
            .ok_or_else(|| Missing::kernel_lacks("tracepoint sched_process_fork"))?;
        for _ in 0..TRIES {
            let listed = Self::sides(clients, servers)?;
            let started = Self::attach(child, event, &listed).map_err(|error| Missing::failed("eBPF", error))?;
            if Self::sides(clients, servers)? == listed {
                return Ok(started);
            }
        }
        Err(Missing::ProcessesKeepChanging)
    }

    fn sides(clients: &[Pid], servers: &[Pid]) -> Result<Vec<(Pid, u32)>, Missing> {
        let mut all = Vec::new();
        for (roots, side) in [(clients, CLIENT), (servers, SERVER)] {
            // Saves a search of all processes if a side has none.
            if !roots.is_empty() {
                all.extend(tree(roots)?.into_keys().map(|pid| (pid, side)));
            }
        }
        Ok(all)
    }

    fn attach(child: i16, event: u64, listed: &[(Pid, u32)]) -> io::Result<Self> {
        let trees = Map::create(Kind::Hash, [4, 4], FOLLOWED, 0)?;
        let counts = Map::create(Kind::PerProcessor, [4, 8], MISSED + 1, processors()?)?;
        for (pid, side) in listed {
            is_64_bit(*pid)?;
            trees.put(*pid, *side)?;
        }
        let at_fork = Code::load(Attachment::Tracepoint, &code::fork(child, trees.as_fd(), counts.as_fd()))?;
        let at_enter = Code::load(Attachment::RawTracepoint, &code::sys_enter(trees.as_fd(), counts.as_fd()))?;
        let fork = Counter::of_all(event)?;
        at_fork.at_event(fork.file())?;
        fork.enable()?;
        let enter = at_enter.at_raw_tracepoint(c"sys_enter")?;
        Ok(Self { enter, _fork: fork, counts })
    }

    /// Stops counting and returns the counts.
    pub(super) fn stop(self) -> Result<Sides<Counts>, Missing> {
        drop(self.enter);
        let read =
            |slot| self.counts.sum(slot).map_err(|error| Missing::unreadable("the counts of system calls", error));
        let missed = read(MISSED)?;
        if missed > 0 {
            return Err(Missing::TooManyProcesses { most: FOLLOWED, missed });
        }
        let side = |side: u32| {
            let slots = (0..SLOTS).map(|slot| read(side * SLOTS + slot)).collect::<Result<Vec<_>, _>>()?;
            let named = CALLS.iter().map(|(call, _)| {
                let count = number(call).and_then(|number| slots.get(usize::try_from(number).ok()?).copied());
                (*call, count)
            });
            Ok::<_, Missing>(Counts { total: slots.iter().sum(), named: named.collect() })
        };
        Ok(Sides { client: side(CLIENT)?, server: side(SERVER)? })
    }
}

/// Checks that a process is a 64-bit program; 32-bit programs have other call numbers.
fn is_64_bit(pid: Pid) -> io::Result<()> {
    let mut head = [0; 5];
    fs::File::open(format!("/proc/{pid}/exe"))?.read_exact(&mut head)?;
    match head {
        [0x7f, b'E', b'L', b'F', 2] => Ok(()),
        _ => Err(io::Error::other(format!("process {pid} is not a 64-bit program"))),
    }
}

/// The offset of the child's process id in a fork's record, from the kernel's description of the record.
fn offset(format: &str) -> Option<i16> {
    let field = format.lines().find(|line| line.contains(" child_pid;"))?;
    field.split("offset:").nth(1)?.split(';').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_childs_id_is_found_in_the_kernels_description_of_a_fork() {
        let format = "\tfield:pid_t parent_pid;\toffset:12;\tsize:4;\tsigned:1;\n\
                      \tfield:pid_t child_pid;\toffset:20;\tsize:4;\tsigned:1;\n";
        assert_eq!(offset(format), Some(20));
        assert_eq!(offset("field:pid_t pid;\toffset:8;"), None);
    }

    #[test]
    fn this_program_has_64_bits() {
        assert!(cfg!(target_pointer_width = "32") || is_64_bit(std::process::id()).is_ok());
    }
}
