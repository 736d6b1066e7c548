//! Loads, attaches and reads the programs of the witness.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use wirelab_model::missing::Missing;

use super::code::{self, Connection, HISTOGRAM, Maps, SLOTS, Slot};
use super::histogram::{BUCKETS, Durations};
use crate::bpf::{Attachment, Code, Instruction, Kind, Map, processors};
use crate::tree::Pid;

/// The maximum numbers of processes and ports of a trial, and of connections at a time.
const MOST_PROCESSES: u32 = 4096;
const MOST_PORTS: u32 = 1024;
const MOST_CONNECTIONS: u32 = 262_144;

/// The running programs. They watch until they are dropped.
#[derive(Debug)]
pub(super) struct Program {
    attached: Vec<OwnedFd>,
    connections: Map,
    numbers: Map,
}

/// The observations of the programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// Times of the first exchange's begin and of the last reading, in nanoseconds of the monotonic clock.
    pub first_ns: Option<u64>,
    pub last_ns: Option<u64>,
    pub durations: Durations,
}

/// A tracepoint, and what builds the program for it.
type Watched = (&'static CStr, fn(&Maps<'_>) -> Vec<Instruction>);

/// The tracepoints, in the order of attachment: a connection has a record before its packets and its data count.
const WATCHED: [Watched; 5] = [
    (c"inet_sock_set_state", code::state_changes),
    (c"net_dev_queue", code::packet_leaves),
    (c"sk_data_ready", code::data_arrive),
    (c"sock_recv_length", code::received),
    (c"sock_send_length", code::sent),
];

impl Program {
    /// Starts to watch the connections of these processes to these ports.
    ///
    /// # Errors
    /// The reason why this kernel or user cannot.
    pub(super) fn start(processes: &[Pid], ports: &[u16]) -> Result<Self, Missing> {
        Self::attach(processes, ports).map_err(|(point, error)| match error.kind() {
            io::ErrorKind::NotFound => Missing::kernel_lacks(format!("tracepoint {point} (Linux 6.3 has it)")),
            _ => Missing::failed(format!("eBPF at {point}"), error),
        })
    }

    fn attach(processes: &[Pid], ports: &[u16]) -> Result<Self, (String, io::Error)> {
        let of_maps = |error| ("its maps".to_owned(), error);
        let by_number = |most| Map::create(Kind::Hash, [4, 4], most, 0).map_err(of_maps);
        let (followed, reached) = (by_number(MOST_PROCESSES)?, by_number(MOST_PORTS)?);
        let size = [8, Connection::BYTES];
        let connections = Map::create(Kind::GrowingHash, size, MOST_CONNECTIONS, 0).map_err(of_maps)?;
        let processors = processors().map_err(of_maps)?;
        let numbers = Map::create(Kind::PerProcessor, [4, 8], SLOTS, processors).map_err(of_maps)?;
        for process in processes {
            followed.put(*process, 0).map_err(of_maps)?;
        }
        for port in ports {
            reached.put(port.to_be().into(), 0).map_err(of_maps)?;
        }
        let maps = Maps {
            processes: followed.as_fd(),
            ports: reached.as_fd(),
            connections: connections.as_fd(),
            numbers: numbers.as_fd(),
        };
        let mut attached = Vec::new();
        for (point, make) in WATCHED {
            let code = Code::load(Attachment::RawTracepoint, &make(&maps));
            let at = code.and_then(|code| code.at_raw_tracepoint(point));
            attached.push(at.map_err(|error| (point.to_string_lossy().into_owned(), error))?);
        }
        Ok(Self { attached, connections, numbers })
    }

    /// Stops watching, and returns what was seen.
    ///
    /// # Errors
    /// If the maps cannot be read, or were too small.
    pub(super) fn stop(mut self) -> Result<Seen, Missing> {
        self.attached.clear();
        self.read().map_err(|error| Missing::unreadable("the exchanges of the client", error))
    }

    fn read(&self) -> io::Result<Seen> {
        if self.numbers.sum(Slot::Missed as u32)? > 0 {
            return Err(io::Error::other(format!("there were more than {MOST_CONNECTIONS} connections at a time")));
        }
        let counts = (0..BUCKETS as u32).map(|bucket| self.numbers.sum(HISTOGRAM + bucket));
        let mut durations = Durations::new(counts.collect::<io::Result<_>>()?);
        // The last exchange of each open connection.
        for record in self.connections.entries()? {
            let [begun, ended] = [Connection::BEGUN, Connection::ENDED].map(|at| record[at as usize / 8]);
            if begun > 0 && ended > 0 {
                durations.add(ended - begun);
            }
        }
        let times = |slot: Slot| {
            self.numbers.get(slot as u32).map(|times| times.into_iter().filter(|time| *time > 0).collect::<Vec<_>>())
        };
        Ok(Seen {
            first_ns: times(Slot::First)?.into_iter().min(),
            last_ns: times(Slot::Last)?.into_iter().max(),
            durations,
        })
    }
}
