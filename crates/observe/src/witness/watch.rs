//! A watched interface and its packet counts.
//!
//! Frames count by the kernel's time stamp. The begin and the end of the window only record the time, and frames that
//! are still in the ring are not lost. The interface's own counters, over the whole watch, show whether frames were
//! missed. The counters of a shared interface do not show that, so the caller must compare with another interface.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use wirelab_model::missing::Missing;
use wirelab_model::network::{Between, Vantage};

use crate::packets::frame::Frame;
use crate::packets::pcapng::Writer;
use crate::packets::split::datagrams;
use crate::packets::tally::Tally;
use crate::witness::ring::{Captured, Ring};

/// Time-out until ring and interface counters agree after a trial. The kernel hands over partly filled blocks after 50
/// ms; the rest is for busy machines.
pub(crate) const SETTLING: Duration = Duration::from_secs(2);

/// Wait for the kernel to hand over all frames at an interface without usable counters: several times `ring::RETIRE`.
const HANDED_OVER_NS: u64 = 250_000_000;

/// How often the start is repeated until no packet passes meanwhile, so that counters and ring start equal.
const TRIES: u32 = 100;

/// An interface that is looked at.
pub(crate) struct Watch {
    ring: Ring,
    /// The interface's counters, and their values when the ring started; `None` at a shared interface.
    counters: Option<(Counters, Counts)>,
    /// The hosts whose packets count; `None`: all packets count.
    between: Option<Between>,
    has_tunnels: bool,
    /// Frames read from the ring, and frames that were dropped because it was full.
    captured: u64,
    dropped: u64,
    /// Frames of the window that were dropped.
    dropped_in_window: u64,
    begin_ns: Option<u64>,
    end_ns: Option<u64>,
    tally: Tally,
    file: Option<Writer>,
    /// Whether every frame that passed was read.
    is_whole: bool,
    trouble: Option<Missing>,
}

impl Watch {
    /// Starts watching; writes all frames to `capture`, if given.
    pub(crate) fn open(vantage: &Vantage, capture: Option<&Path>) -> Result<Self, Missing> {
        let attempt = |what: &str, error: io::Error| {
            Missing::failed(format!("cannot capture at the interface {}: {what}", vantage.interface), error)
        };
        let namespace = File::open(&vantage.namespace).map_err(|error| attempt("opening its namespace", error))?;
        let begun = within(&namespace, || match vantage.is_shared() {
            true => Ok((Ring::open(&vantage.interface, capture.is_some())?, None)),
            false => begin(&vantage.interface, capture.is_some()),
        });
        let (ring, counters) = begun.map_err(|error| attempt("opening a packet socket", error))?;
        let file = capture.map(|path| Writer::create(path, &vantage.interface)).transpose();
        Ok(Self {
            ring,
            counters,
            between: vantage.between.clone(),
            has_tunnels: vantage.is_encapsulated,
            captured: 0,
            dropped: 0,
            dropped_in_window: 0,
            begin_ns: None,
            end_ns: None,
            tally: Tally::default(),
            file: file.map_err(|error| attempt("writing its capture", error))?,
            is_whole: false,
            trouble: None,
        })
    }

    /// Frames from this moment on count.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.account();
        self.begin_ns = Some(now_ns);
    }

    /// Frames until this moment count.
    pub(crate) fn end(&mut self, now_ns: u64) {
        self.dropped_in_window = self.account();
        self.end_ns = Some(now_ns);
    }

    /// Reads the frames that have arrived.
    pub(crate) fn look(&mut self) {
        let Self { ring, captured, begin_ns, end_ns, tally, file, trouble, has_tunnels, between, .. } = self;
        ring.read(|frame| {
            *captured += 1;
            let Captured { at_ns, bytes, length, segment, is_sent } = frame;
            let frame = Frame { bytes, length: length as usize, segment };
            if let Some(writer) = file
                && let Err(error) = keep(writer, &frame, *has_tunnels, at_ns, is_sent)
            {
                trouble.get_or_insert_with(|| Missing::failed("writing the capture", error));
                *file = None;
            }
            let is_in_window = begin_ns.is_some_and(|begin| begin <= at_ns) && end_ns.is_none_or(|end| at_ns <= end);
            if is_in_window && between.as_ref().is_none_or(|between| frame.is_between(between, *has_tunnels)) {
                tally.add(&frame, is_sent, *has_tunnels);
            }
        });
        if let Some(error) = self.ring.error() {
            self.trouble.get_or_insert_with(|| Missing::failed("the interface failed during the capture", error));
        }
    }

    /// Reads frames until every frame that passed was read; returns whether that is so. Later packets are ignored: they
    /// were sent after the trial and would only disturb the comparison.
    pub(crate) fn settle(&mut self, now_ns: u64) -> bool {
        if !self.is_whole {
            self.look();
            self.account();
            let is_handed_over = self.end_ns.is_none_or(|end| now_ns > end + HANDED_OVER_NS);
            self.is_whole = if self.counters.is_some() { self.missed().is_ok() } else { is_handed_over };
        }
        self.is_whole
    }

    /// The counts of the window. Call [`Watch::settle`] first.
    pub(crate) fn finish(mut self) -> Result<Tally, Missing> {
        if let Some(writer) = self.file.take() {
            writer.finish().map_err(|error| Missing::failed("writing the capture", error))?;
        }
        if let Some(trouble) = self.trouble.take().or_else(|| self.tally.trouble.take()) {
            return Err(trouble);
        }
        if self.begin_ns.is_none() || self.end_ns.is_none() {
            return Err(Missing::NoWindow);
        }
        if self.dropped_in_window > 0 {
            return Err(Missing::FramesLost { count: self.dropped_in_window });
        }
        if !self.is_whole {
            self.missed()?;
        }
        Ok(self.tally)
    }

    /// Asks the kernel for dropped frames; returns their number since the last call.
    fn account(&mut self) -> u64 {
        match self.ring.dropped() {
            Ok(dropped) => {
                self.dropped += dropped;
                dropped
            }
            Err(error) => {
                self.trouble.get_or_insert_with(|| Missing::failed("asking for dropped frames", error));
                0
            }
        }
    }

    /// Compares the captured frames with the interface's counters.
    fn missed(&mut self) -> Result<(), Missing> {
        let Some((counters, before)) = &mut self.counters else { return Ok(()) };
        let now = counters.read().map_err(|error| Missing::failed("reading the interface's counters", error))?;
        let counted = now.packets.wrapping_sub(before.packets);
        // A frame that the interface failed to send was captured before that, and counts as sent: the host did send it.
        let given_up = now.given_up.wrapping_sub(before.given_up);
        let captured = self.captured + self.dropped;
        if (counted..=counted + given_up).contains(&captured) {
            return Ok(());
        }
        Err(Missing::OtherFrames { captured, counted })
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

/// Writes a frame to the capture, or the datagrams of a super-packet one by one.
fn keep(writer: &mut Writer, frame: &Frame<'_>, has_tunnels: bool, at_ns: u64, is_sent: bool) -> io::Result<()> {
    match datagrams(frame, has_tunnels) {
        None => writer.frame(at_ns, frame.bytes, frame.length as u32, is_sent),
        Some(parts) => parts.iter().try_for_each(|part| writer.frame(at_ns, part, part.len() as u32, is_sent)),
    }
}

/// Opens ring and counters in this thread's namespace so that both start at the same moment.
fn begin(interface: &str, whole: bool) -> io::Result<(Ring, Option<(Counters, Counts)>)> {
    let mut counters = Counters::open(interface)?;
    for _ in 0..TRIES {
        let before = counters.read()?;
        let ring = Ring::open(interface, whole)?;
        if counters.read()? == before {
            return Ok((ring, Some((counters, before))));
        }
    }
    Err(io::Error::other("packets kept passing before the trial, so ring and counters could not start together"))
}

/// Runs `work` in a network namespace, on a new thread, because the thread stays in the namespace.
pub(crate) fn within<T: Send>(namespace: &File, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The interface's counters, from its line of /proc/net/dev.
#[derive(Debug)]
struct Counters {
    /// Opened in the namespace; keeps showing that namespace's interfaces.
    file: File,
    interface: String,
}

/// The counters of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    /// Frames received and sent.
    packets: u64,
    /// Frames that the interface failed to send.
    given_up: u64,
}

impl Counters {
    fn open(interface: &str) -> io::Result<Self> {
        Ok(Self { file: File::open("/proc/thread-self/net/dev")?, interface: interface.to_owned() })
    }

    fn read(&mut self) -> io::Result<Counts> {
        let mut text = String::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_string(&mut text)?;
        counts(&text, &self.interface)
            .ok_or_else(|| io::Error::other(format!("/proc/net/dev has no interface {}", self.interface)))
    }
}

/// Parses eight numbers for receiving, then eight for sending: bytes, packets, errors, dropped, ...
fn counts(text: &str, interface: &str) -> Option<Counts> {
    let numbers = text.lines().find_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        (name.trim() == interface).then_some(numbers)
    })?;
    let numbers: Vec<u64> = numbers.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect();
    Some(Counts { packets: numbers.get(1)? + numbers.get(9)?, given_up: *numbers.get(11)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_an_interface_are_found_by_its_whole_name() {
        let text = "Inter-|   Receive   |  Transmit\n face |bytes packets\n  eth0: 900 9 0 0 0 0 0 0 500 5 0 1 0 0 0 \
                    0\n\
                    veth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        assert_eq!(counts(text, "eth0"), Some(Counts { packets: 14, given_up: 1 }));
        assert_eq!(counts(text, "veth0"), Some(Counts { packets: 12, given_up: 12 }));
        assert_eq!(counts(text, "eth"), None);
        assert_eq!(counts("eth0: 1 2\n", "eth0"), None);
    }
}
