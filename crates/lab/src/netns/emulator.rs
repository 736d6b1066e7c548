//! Carries frames between two ports over two emulated lines, and delivers each frame at its time.
//!
//! The loop sleeps until shortly before the next delivery and then polls the clock and the ports, because a sleeping
//! processor takes tens of microseconds to wake. The delay of a frame counts from its reception by the kernel, not by
//! this loop.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirelab_model::link::Link;

use crate::netns::line::{Direction, Line, Tally};
use crate::netns::port::Port;

/// Nanoseconds before a delivery at which the loop starts to poll.
const LEAD: u64 = 80_000;

/// Maximum frames from one port before the other port is served.
const BATCH: usize = 64;

/// Maximum frame length: an MTU of 65535 and the Ethernet header.
const LONGEST: usize = 65_535 + 14;

/// Orders between trials.
#[derive(Debug)]
pub(crate) enum Order {
    /// Restart with this link and this seed; frames under way are dropped.
    Shape(Link, u64),
    /// Send the counters of the lines since the last restart.
    Tally(Sender<io::Result<Tallies>>),
}

/// Counters of both lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Tallies {
    /// From the client to the server.
    pub up: Tally,
    /// From the server to the client.
    pub down: Tally,
    /// Frames that the emulator lost because it was too slow, not by the loss model.
    pub missed: u64,
}

/// The emulation loop with its ports.
pub(crate) struct Emulator {
    /// Ports of the client and of the server.
    pub ports: [Port; 2],
    /// Orders; each is announced by a byte in `bell`.
    pub orders: Receiver<Order>,
    /// Pipe that signals orders; when its other end closes, the loop ends.
    pub bell: OwnedFd,
}

impl Emulator {
    /// Runs until the other end of the bell is closed.
    pub(crate) fn run(self) -> io::Result<()> {
        let zero = Instant::now();
        let mut lines = shaped(&Link::wire(), 0);
        let mut missed = 0;
        let mut buffer = vec![0; LONGEST];
        loop {
            let mut idle = true;
            for (side, line) in lines.iter_mut().enumerate() {
                for _ in 0..BATCH {
                    let Some((length, age)) = self.ports[side].receive(&mut buffer)? else { break };
                    let now = nanos(zero);
                    line.arrive(now.saturating_sub(age), buffer[..length].to_vec());
                    idle = false;
                }
                while let Some(frame) = line.deliver(nanos(zero)) {
                    // A frame that the interface has no room for is an unintended loss.
                    missed += u64::from(!self.ports[1 - side].send(&frame)?);
                    idle = false;
                }
            }
            if !idle {
                continue;
            }
            let next = lines.iter().filter_map(Line::next_delivery).min();
            let ahead = next.map(|next| next.saturating_sub(nanos(zero)));
            if ahead.is_some_and(|ahead| ahead <= LEAD) {
                std::hint::spin_loop();
                continue;
            }
            if self.wait(ahead.map(|ahead| Duration::from_nanos(ahead - LEAD)))? {
                while let Ok(order) = self.orders.try_recv() {
                    match order {
                        Order::Shape(link, seed) => {
                            self.missed()?;
                            missed = 0;
                            lines = shaped(&link, seed);
                        }
                        Order::Tally(answer) => {
                            let tallies = self.missed().map(|more| {
                                missed += more;
                                Tallies { up: lines[0].tally(), down: lines[1].tally(), missed }
                            });
                            // The receiver may have timed out.
                            let _ = answer.send(tallies);
                        }
                    }
                }
                if self.is_over()? {
                    return Ok(());
                }
            }
        }
    }

    /// Sleeps until a port or the bell is readable, or the time is up. Returns true if the bell is readable.
    fn wait(&self, length: Option<Duration>) -> io::Result<bool> {
        let time = length
            .map(|length| Timespec { tv_sec: length.as_secs().cast_signed(), tv_nsec: length.subsec_nanos().into() });
        let mut sources = [
            PollFd::new(&self.ports[0], PollFlags::IN),
            PollFd::new(&self.ports[1], PollFlags::IN),
            PollFd::new(&self.bell, PollFlags::IN),
        ];
        match poll(&mut sources, time.as_ref()) {
            Ok(_) => Ok(!sources[2].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Empties the bell. Returns true if its other end is closed.
    fn is_over(&self) -> io::Result<bool> {
        let mut bytes = [0; 64];
        match rustix::io::read(self.bell.as_fd(), &mut bytes) {
            Ok(count) => Ok(count == 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn missed(&self) -> io::Result<u64> {
        Ok(self.ports[0].dropped()? + self.ports[1].dropped()?)
    }
}

fn shaped(link: &Link, seed: u64) -> [Line<Vec<u8>>; 2] {
    [Line::new(link, Direction::Up, seed), Line::new(link, Direction::Down, seed)]
}

fn nanos(zero: Instant) -> u64 {
    zero.elapsed().as_nanos() as u64
}
