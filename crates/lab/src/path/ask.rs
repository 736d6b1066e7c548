//! Questions to a reflector, on a schedule.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use wirelab_model::missing::Missing;

use crate::path::packet::{Kind, Packet, SIZE, Token};
use crate::path::report::Report;
use crate::path::socket::{Received, Socket};
use crate::path::{LOSS_TIMEOUT, Order, sleep_until};

/// Attempts to reach the reflector, and the time between them.
const GREETINGS: u32 = 10;
const GREET_EVERY: Duration = Duration::from_millis(300);

/// Attempts to get a report.
const REPORTS: u32 = 20;

/// A question: its datagram's length and mark, and those of the wanted answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    pub length: usize,
    pub mark: u8,
    pub answer_length: u32,
    pub answer_mark: u8,
}

impl Question {
    /// A question and an answer of the smallest size, without marks.
    pub(super) const PLAIN: Self = Self { length: SIZE, mark: 0, answer_length: SIZE as u32, answer_mark: 0 };
}

/// A packet from the reflector.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heard {
    pub packet: Packet,
    pub received: Received,
    /// Time since the question, in nanoseconds.
    pub took_ns: u64,
}

/// The prober's end of a path whose reflector answers.
#[derive(Debug)]
pub(super) struct Asker {
    pub socket: Socket,
    pub token: Token,
    /// A round trip that was seen.
    round_trip: Duration,
    /// MTU of the interface at the reflector's end.
    pub far_mtu: u32,
    zero: Instant,
    phases: AtomicU32,
}

impl Asker {
    /// Reaches the reflector.
    pub(super) fn reach(order: &Order) -> Result<Self, Missing> {
        let failed = |error| Missing::failed("opening a socket to measure the path", error);
        let any = if order.server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = Socket::bind(SocketAddr::new(any, 0)).map_err(failed)?;
        socket.connect(SocketAddr::new(order.server, order.reflector.port)).map_err(failed)?;
        let mut asker = Self {
            socket,
            token: order.reflector.token,
            round_trip: GREET_EVERY,
            far_mtu: 0,
            zero: Instant::now(),
            phases: AtomicU32::new(1),
        };
        for number in 0..GREETINGS {
            let greeting = Packet::question(asker.token, Kind::Echo, 0, number);
            if let Some(heard) = asker.ask_once(greeting, GREET_EVERY)? {
                asker.round_trip = Duration::from_nanos(heard.took_ns);
                asker.far_mtu = heard.packet.more[0] as u32;
                return Ok(asker);
            }
        }
        Err(Missing::NoDatagramCameBack)
    }

    /// Time without an answer after which it counts as lost.
    pub(super) fn patience(&self) -> Duration {
        self.round_trip * 2 + LOSS_TIMEOUT
    }

    /// A number for the next part of the measurement.
    pub(super) fn new_phase(&self) -> u32 {
        self.phases.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks these questions at their times after now, and hands over each packet of the phase. Ends when all questions
    /// have an answer and the least time has passed, or when the last answer is overdue by `patience`.
    pub(super) fn ask(
        &self,
        phase: u32,
        questions: &[Question],
        at: impl Fn(u32) -> Duration + Sync,
        least: Duration,
        patience: Duration,
        mut hear: impl FnMut(Heard),
    ) -> Result<(), Missing> {
        let begin = Instant::now();
        let end = begin + at(questions.len() as u32).max(least) + patience;
        // Questions that did not leave, so that no answer is waited for.
        let unsent = AtomicUsize::new(0);
        let mut answered = HashSet::new();
        let mut buffer = vec![0; 1 << 16];
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| -> std::io::Result<()> {
                let mut datagram = vec![0; 1 << 16];
                for (number, question) in (0..).zip(questions) {
                    sleep_until(begin + at(number));
                    let packet = Packet {
                        asked_ns: self.zero.elapsed().as_nanos() as u64,
                        length: question.answer_length,
                        mark: question.answer_mark,
                        ..Packet::question(self.token, Kind::Echo, phase, number)
                    };
                    packet.write(&mut datagram);
                    if !self.socket.send(&datagram[..question.length], question.mark)? {
                        unsent.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(())
            });
            let is_complete = |answered: usize| answered + unsent.load(Ordering::Relaxed) >= questions.len();
            while !is_complete(answered.len()) || begin.elapsed() < least {
                // Short, because questions that did not leave are no event.
                let step = (Instant::now() + LOSS_TIMEOUT / 4).min(end);
                match self.socket.receive(&mut buffer, step).map_err(failed)? {
                    None if Instant::now() >= end => break,
                    None => {}
                    Some(received) => {
                        let Some(heard) = self.heard(&buffer, received).filter(|heard| heard.packet.phase == phase)
                        else {
                            continue;
                        };
                        if heard.packet.kind == Kind::Echo {
                            answered.insert(heard.packet.number);
                        }
                        hear(heard);
                    }
                }
            }
            sender.join().expect("the sender does not panic").map_err(failed)
        })
    }

    /// What the reflector counted in a phase.
    pub(super) fn report(&self, phase: u32) -> Result<Report, Missing> {
        for number in 0..REPORTS {
            let question = Packet::question(self.token, Kind::Report, phase, number);
            if let Some(heard) = self.ask_once(question, self.patience())? {
                return Ok(Report::of(heard.packet.more));
            }
        }
        Err(Missing::NoDatagramCameBack)
    }

    /// Sends a packet that is not answered.
    pub(super) fn tell(&self, packet: &Packet) -> Result<(), Missing> {
        let mut datagram = [0; SIZE];
        packet.write(&mut datagram);
        self.socket.send(&datagram, 0).map(drop).map_err(failed)
    }

    /// Asks, and waits for an answer of the same kind and phase.
    fn ask_once(&self, question: Packet, patience: Duration) -> Result<Option<Heard>, Missing> {
        self.tell(&Packet { asked_ns: self.zero.elapsed().as_nanos() as u64, ..question })?;
        let deadline = Instant::now() + patience;
        let mut buffer = vec![0; 1 << 16];
        while let Some(received) = self.socket.receive(&mut buffer, deadline).map_err(failed)? {
            let answers = |heard: &Heard| (heard.packet.kind, heard.packet.phase) == (question.kind, question.phase);
            if let Some(heard) = self.heard(&buffer, received).filter(answers) {
                return Ok(Some(heard));
            }
        }
        Ok(None)
    }

    fn heard(&self, buffer: &[u8], received: Received) -> Option<Heard> {
        let now = self.zero.elapsed().as_nanos() as u64;
        let packet = Packet::read(&buffer[..received.length], self.token)?;
        Some(Heard { packet, received, took_ns: now.saturating_sub(packet.asked_ns) })
    }
}

pub(super) fn failed(error: std::io::Error) -> Missing {
    Missing::failed("measuring the path", error)
}
