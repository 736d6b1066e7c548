//! Load on a path, which measures its rate.

use std::io;
use std::time::{Duration, Instant};

use crate::path::packet::{Kind, Packet, SIZE, Token};
use crate::path::sleep_until;
use crate::path::socket::Socket;

/// How often a sender looks for questions while it waits.
const LOOK: Duration = Duration::from_micros(200);

/// Largest time between such looks in numbers of datagrams, if it does not wait.
const LOOK_EVERY: u64 = 8;

/// A stream of datagrams of equal size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Load {
    /// Bits per second, with all headers.
    pub rate: f64,
    pub length: Duration,
    /// Bytes of a datagram.
    pub size: usize,
}

impl Load {
    /// The order as numbers of a packet.
    pub(super) fn to_numbers(self) -> [u64; 4] {
        [self.rate as u64, self.length.as_nanos() as u64, self.size as u64, 0]
    }

    /// Reads an order; a senseless one becomes harmless.
    pub(super) fn of([rate, length, size, _]: [u64; 4]) -> Self {
        Self {
            rate: (rate as f64).max(1.0),
            length: Duration::from_nanos(length).min(Duration::from_secs(10)),
            size: (size as usize).clamp(SIZE, 65_507),
        }
    }

    /// Sends it, and calls `between` often meanwhile. Returns the rate in bits per second.
    pub(super) fn send(
        self,
        socket: &Socket,
        token: Token,
        phase: u32,
        mut between: impl FnMut() -> io::Result<()>,
    ) -> io::Result<f64> {
        let mut datagram = vec![0; self.size];
        let bits = ((self.size + socket.overhead()) * 8) as f64;
        let every = Duration::from_secs_f64(bits / self.rate);
        let zero = Instant::now();
        let mut sent: u64 = 0;
        while zero.elapsed() < self.length {
            let due = zero + every.mul_f64(sent as f64);
            let now = Instant::now();
            if now < due || sent.is_multiple_of(LOOK_EVERY) {
                between()?;
            }
            if now < due {
                sleep_until(due.min(now + LOOK));
                continue;
            }
            Packet::question(token, Kind::Load, phase, sent as u32).write(&mut datagram);
            // A full queue of this host is a part of the path.
            socket.send(&datagram, 0)?;
            sent += 1;
        }
        Ok(sent as f64 * bits / zero.elapsed().as_secs_f64())
    }
}

/// Load that arrived.
#[derive(Debug, Default)]
pub(super) struct Stretch {
    first: Option<Instant>,
    last: Option<Instant>,
    /// Datagrams after the first, which only starts the interval.
    datagrams: u64,
    bytes: u64,
}

impl Stretch {
    pub(super) fn add(&mut self, bytes: usize) {
        let now = Instant::now();
        if self.first.is_none() {
            self.first = Some(now);
            return;
        }
        self.last = Some(now);
        self.datagrams += 1;
        self.bytes += bytes as u64;
    }

    /// Bits per second between the first and the last arrival, with so many bytes of headers around each datagram; 0
    /// without two arrivals.
    pub(super) fn rate(&self, overhead: usize) -> f64 {
        let (Some(first), Some(last)) = (self.first, self.last) else { return 0.0 };
        let bits = (self.bytes + self.datagrams * overhead as u64) * 8;
        let length = last.saturating_duration_since(first).as_secs_f64();
        if length > 0.0 { bits as f64 / length } else { 0.0 }
    }
}
