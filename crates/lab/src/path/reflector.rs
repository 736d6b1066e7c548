//! The end of a path that answers.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom, SystemRandom};

use crate::path::Meeting;
use crate::path::load::{Load, Stretch};
use crate::path::order::Arrivals;
use crate::path::packet::{Kind, Packet, SIZE, Token};
use crate::path::report::Report;
use crate::path::socket::{Received, Socket};

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// Largest number of questions of a phase that it remembers.
const MOST: usize = 1 << 16;

/// Largest payload of UDP over IPv4 in bytes.
const LARGEST: usize = 65_507;

/// Answers the prober that knows its token, and nothing else.
#[derive(Debug)]
pub struct Reflector {
    socket: Socket,
    token: Token,
}

/// What arrived in a phase.
#[derive(Debug, Default)]
struct Phase {
    number: u32,
    /// The numbers of questions in the order of their arrival.
    questions: Vec<u32>,
    load: Stretch,
    /// Rate at which it sent load itself, in bits per second; `None`: it has not.
    sent: Option<u64>,
}

impl Reflector {
    /// Listens at a free port of this address.
    ///
    /// # Errors
    /// If this host does not have the address, or the system gives no random numbers.
    pub fn bind(address: IpAddr) -> io::Result<Self> {
        let mut secret = [0; 16];
        SystemRandom::new().fill(&mut secret).map_err(|_| io::Error::other("the system gives no random numbers"))?;
        let word = |at: usize| u64::from_be_bytes(secret[at..at + 8].try_into().expect("8 bytes"));
        Ok(Self { socket: Socket::bind(SocketAddr::new(address, 0))?, token: [word(0), word(8)] })
    }

    /// What the prober must know.
    ///
    /// # Errors
    /// If the system does not tell the port.
    pub fn meeting(&self) -> io::Result<Meeting> {
        Ok(Meeting { port: self.socket.address()?.port(), token: self.token })
    }

    /// Answers until the flag is raised.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn serve(&self, is_over: &AtomicBool) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        let mut phase = Phase::default();
        while !is_over.load(Ordering::Relaxed) {
            let Some((length, from)) = self.socket.receive_from(&mut buffer, Instant::now() + LOOK)? else { continue };
            if let Some(packet) = Packet::read(&buffer[..length], self.token) {
                self.socket.connect(from)?;
                self.answer(&mut phase, packet, Received { length, mark: 0, hops_left: 0 }, &mut buffer)?;
                break;
            }
        }
        while !is_over.load(Ordering::Relaxed) {
            let Some(received) = self.socket.receive(&mut buffer, Instant::now() + LOOK)? else { continue };
            if let Some(packet) = Packet::read(&buffer[..received.length], self.token) {
                self.answer(&mut phase, packet, received, &mut buffer)?;
            }
        }
        Ok(())
    }

    fn answer(&self, phase: &mut Phase, asked: Packet, received: Received, buffer: &mut [u8]) -> io::Result<()> {
        if asked.phase != phase.number && asked.kind != Kind::Report {
            *phase = Phase { number: asked.phase, ..Phase::default() };
        }
        let answer = Packet {
            length: received.length as u32,
            mark: received.mark,
            hops_left: received.hops_left,
            answer: phase.questions.len() as u32,
            ..asked
        };
        match asked.kind {
            Kind::Load => phase.load.add(received.length),
            Kind::Echo if phase.questions.len() < MOST => {
                phase.questions.push(asked.number);
                let more = [self.socket.mtu()?.into(), 0, 0, 0];
                let length = (asked.length as usize).clamp(SIZE, LARGEST);
                self.send(&Packet { more, ..answer }, length, asked.mark, buffer)?;
            }
            Kind::Echo => {}
            // The load that it sends is not over.
            Kind::Report if phase.sent == Some(0) => {}
            Kind::Report => {
                // Nothing of another phase arrived.
                let nothing = Phase::default();
                let counted: &Phase = if asked.phase == phase.number { phase } else { &nothing };
                let more = counted.report(self.socket.overhead()).to_numbers();
                self.send(&Packet { more, ..answer }, SIZE, 0, buffer)?;
            }
            Kind::Flood if phase.sent.is_none() => {
                phase.sent = Some(0);
                let load = Load::of(asked.more);
                let mut heard = vec![0; 1 << 16];
                let sent = load.send(&self.socket, self.token, asked.phase, || {
                    while let Some(received) = self.socket.poll(&mut heard)? {
                        if let Some(packet) = Packet::read(&heard[..received.length], self.token) {
                            self.answer(phase, packet, received, buffer)?;
                        }
                    }
                    Ok(())
                })?;
                phase.sent = Some(sent as u64);
            }
            Kind::Flood => {}
        }
        Ok(())
    }

    fn send(&self, packet: &Packet, length: usize, mark: u8, buffer: &mut [u8]) -> io::Result<()> {
        packet.write(buffer);
        self.socket.send(&buffer[..length], mark).map(drop)
    }
}

impl Phase {
    fn report(&self, overhead: usize) -> Report {
        Report {
            arrivals: Arrivals::of(&self.questions),
            arrived: self.load.rate(overhead) as u64,
            sent: self.sent.unwrap_or(0),
        }
    }
}
