//! Measures an emulated link from its two ends with UDP datagrams: round trip, rate in each direction, loss, MTU.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use wirelab_model::link::{Link, Loss, Reading};
use wirelab_model::units::BitRate;

use crate::LabError;
use crate::netns::emulator::Tallies;
use crate::netns::namespace::Namespace;
use crate::netns::option::set;

/// Bytes of Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;

/// Payload bytes of a ping: its number and its send time.
const PING: usize = 16;

/// Number and interval of pings; the interval keeps them from queueing behind each other.
const PINGS: u64 = 25;
const PING_EVERY: Duration = Duration::from_millis(4);

/// Number of pings while a direction is busy.
const LOADED_PINGS: u32 = 20;

/// Duration of the load that measures the rate of a direction.
const FLOOD: Duration = Duration::from_millis(400);

/// Numbered datagrams that measure loss: maximum number, duration and rate.
const NUMBERED: u64 = 4000;
const NUMBERED_TIME: Duration = Duration::from_millis(500);
const NUMBERED_RATE: f64 = 10_000.0;

/// Time beyond its round trip after which a datagram counts as lost.
const LOSS_TIMEOUT: Duration = Duration::from_millis(250);

/// Measures the link between two hosts; `tally` returns the emulator's counters, for unintended losses.
pub(crate) fn measure(
    hosts: &[Namespace; 2],
    addresses: [Ipv4Addr; 2],
    link: &Link,
    tally: impl Fn() -> Result<Tallies, LabError>,
) -> Result<Reading, LabError> {
    let attempt = |what: &'static str| {
        move |error: io::Error| LabError::network(format!("measuring the link's {what}")).because(error)
    };
    let [client, server] = [0, 1].map(|side| open(&hosts[side], addresses[side]));
    let (client, server) = (client.map_err(attempt("ends"))?, server.map_err(attempt("ends"))?);
    join(&client, &server).map_err(attempt("ends"))?;
    let mtus = [mtu(&client, &server, link), mtu(&server, &client, link)];
    let mtus = mtus.into_iter().collect::<io::Result<Vec<_>>>().map_err(attempt("MTU"))?;
    let mut round_trips = round_trips(&client, &server, link).map_err(attempt("round trip"))?;
    let up = link.rate_up.or(link.rate);
    let flood = |from, to, rate: Option<BitRate>| rate.map(|rate| flood(from, to, rate, link)).transpose();
    let loaded_up = flood(&client, &server, up).map_err(attempt("rate"))?;
    let loaded = flood(&server, &client, link.rate).map_err(attempt("rate"))?;
    let loss = [(&client, &server, up), (&server, &client, link.rate)]
        .map(|(from, to, rate)| losses(from, to, rate, link))
        .into_iter()
        .collect::<io::Result<Vec<_>>>()
        .map_err(attempt("loss"))?;
    Ok(Reading {
        round_trip_min_ns: round_trips.iter().min().copied(),
        round_trip_ns: median(&mut round_trips),
        round_trip_loaded_ns: loaded.as_ref().and_then(|loaded| loaded.round_trip_ns),
        rate_up: loaded_up.map(|loaded| loaded.rate),
        rate: loaded.map(|loaded| loaded.rate),
        loss_up: loss[0],
        loss: loss[1],
        mtu: mtus[0].min(mtus[1]),
        missed: tally()?.missed,
    })
}

fn open(host: &Namespace, address: Ipv4Addr) -> io::Result<UdpSocket> {
    host.within(|| {
        let socket = UdpSocket::bind(SocketAddrV4::new(address, 0))?;
        // The kernel must neither fragment large packets nor cache a path MTU.
        let (option, value) = (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE);
        set(&socket, libc::IPPROTO_IP, option, value)?;
        // One thread receives a flood; an overflow of its buffer would count as loss.
        set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 8 << 20)
            .or_else(|_| set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, 8 << 20))?;
        Ok(socket)
    })
}

fn join(client: &UdpSocket, server: &UdpSocket) -> io::Result<()> {
    client.connect(server.local_addr()?)?;
    server.connect(client.local_addr()?)
}

/// Size of the largest IP packet that arrives, in bytes.
fn mtu(from: &UdpSocket, to: &UdpSocket, link: &Link) -> io::Result<u32> {
    let mut largest = 0;
    let timeout = Duration::from_nanos(link.round_trip.nanos()) + LOSS_TIMEOUT;
    let mut buffer = vec![0; 65_536];
    for size in [link.mtu - 1, link.mtu, link.mtu + 1] {
        let payload = vec![0; size as usize - 28];
        // Several attempts, because the link may lose some.
        for _ in 0..8 {
            match from.send(&payload) {
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => break,
                other => other?,
            };
            let deadline = Instant::now() + timeout;
            if receive(to, &mut buffer, deadline)?.is_some_and(|length| length == payload.len()) {
                largest = size;
                break;
            }
        }
    }
    // Discard late duplicates, so that the next size is not mistaken.
    while receive(to, &mut buffer, Instant::now() + Duration::from_millis(20))?.is_some() {}
    Ok(largest)
}

fn ping(number: u64, zero: Instant) -> [u8; PING] {
    let mut ping = [0; PING];
    ping[..8].copy_from_slice(&number.to_be_bytes());
    ping[8..].copy_from_slice(&(zero.elapsed().as_nanos() as u64).to_be_bytes());
    ping
}

fn field(ping: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(ping[at..at + 8].try_into().expect("8 bytes"))
}

/// Echoes datagrams until the deadline.
fn echo(socket: &UdpSocket, deadline: Instant) -> io::Result<()> {
    let mut buffer = [0; PING];
    while let Some(length) = receive(socket, &mut buffer, deadline)? {
        socket.send(&buffer[..length])?;
    }
    Ok(())
}

fn median(values: &mut [u64]) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Round trip of each ping that returned, in nanoseconds.
fn round_trips(client: &UdpSocket, server: &UdpSocket, link: &Link) -> io::Result<Vec<u64>> {
    let length = PING_EVERY * PINGS as u32 + Duration::from_nanos(link.round_trip.nanos()) + LOSS_TIMEOUT;
    let deadline = Instant::now() + length;
    std::thread::scope(|scope| {
        let echo = scope.spawn(move || echo(server, deadline));
        let zero = Instant::now();
        let sender = scope.spawn(move || -> io::Result<()> {
            for number in 0..PINGS {
                sleep_until(zero + PING_EVERY * number as u32);
                client.send(&ping(number, zero))?;
            }
            Ok(())
        });
        let mut times: Vec<Option<u64>> = vec![None; PINGS as usize];
        let mut buffer = [0; PING];
        while times.iter().any(Option::is_none) {
            let Some(PING) = receive(client, &mut buffer, deadline)? else { break };
            let sent = field(&buffer, 8);
            if let Some(time) = times.get_mut(field(&buffer, 0) as usize) {
                time.get_or_insert((zero.elapsed().as_nanos() as u64).saturating_sub(sent));
            }
        }
        for thread in [echo, sender] {
            thread.join().map_err(|_| io::Error::other("a thread panicked"))??;
        }
        Ok(times.into_iter().flatten().collect())
    })
}

/// Measured values of a direction under overload.
struct Loaded {
    /// Arriving bits per second, including frame headers.
    rate: f64,
    /// Median round trip; `None`: no ping returned.
    round_trip_ns: Option<u64>,
}

/// Overloads a direction, and pings through it from its far end.
fn flood(from: &UdpSocket, to: &UdpSocket, rate: BitRate, link: &Link) -> io::Result<Loaded> {
    let payload = link.mtu as usize - 28;
    let frame_bits = ((payload + HEADERS) * 8) as f64;
    // The kernel cuts one write into several datagrams; fewer calls keep the sender from being the limit.
    let at_once = (SENT_AT_ONCE / payload).clamp(1, 32).min((rate.0 as f64 / frame_bits / 100.0).ceil() as usize);
    let piece = vec![0; payload * at_once];
    set(from, libc::SOL_UDP, libc::UDP_SEGMENT, payload as libc::c_int)?;
    // 20 % more than the line's rate, corrected for losses before the line.
    let surplus = 1.2 / (1.0 - link.loss.0).max(0.1);
    let every = Duration::from_secs_f64(frame_bits * at_once as f64 / (rate.0 as f64 * surplus));
    // A slow line needs some frames before an interval can be measured.
    let length = FLOOD.max(every * 40);
    let queued = Duration::from_nanos(link.queue_ns(rate) as u64);
    // Fills the queue at once; the overload keeps it full.
    let burst = link.queue.bytes_full_of(link.largest_frame()) as usize / piece.len() + 1;
    let received = std::thread::scope(|scope| {
        // Pings sent now reach the other end when the flood begins.
        let now = Instant::now();
        let zero = now + Duration::from_nanos(link.round_trip.nanos() / 2);
        let sender = scope.spawn(move || {
            sleep_until(zero);
            // A write that the kernel has no room for is lost, as at a full queue.
            for _ in 0..burst {
                let _ = from.send(&piece);
            }
            let mut sent = 0;
            while Instant::now() < zero + length {
                sleep_until(zero + every * sent);
                let _ = from.send(&piece);
                sent += 1;
            }
        });
        let deadline = zero + length + Duration::from_nanos(link.round_trip.nanos()) + queued + LOSS_TIMEOUT;
        let echo = scope.spawn(move || echo(from, deadline));
        let pinger = scope.spawn(move || -> io::Result<()> {
            // Start when the queue is full.
            let first = now + length / 4;
            for number in 0..LOADED_PINGS {
                sleep_until(first + length / 2 * number / LOADED_PINGS);
                to.send(&ping(u64::from(number), now))?;
            }
            Ok(())
        });
        let mut round_trips = Vec::new();
        let mut buffer = vec![0; 65_536];
        let mut arrivals = Arrivals::default();
        // Set the timeout once: a call per datagram would be a large part of this thread's work.
        to.set_read_timeout(Some(LOSS_TIMEOUT))?;
        while Instant::now() < deadline {
            match to.recv(&mut buffer) {
                Ok(bytes) => {
                    let (at, bits) = (now.elapsed(), ((bytes + HEADERS) * 8) as f64);
                    if bytes == PING {
                        arrivals.between += bits;
                        round_trips.push((at.as_nanos() as u64).saturating_sub(field(&buffer, 8)));
                    } else {
                        arrivals.add(at, bits);
                    }
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                    if sender.is_finished() && arrivals.bits > 0.0 {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        sender.join().map_err(|_| io::Error::other("a thread panicked"))?;
        for thread in [echo, pinger] {
            thread.join().map_err(|_| io::Error::other("a thread panicked"))??;
        }
        Ok(Loaded { rate: arrivals.rate(), round_trip_ns: median(&mut round_trips) })
    });
    set(from, libc::SOL_UDP, libc::UDP_SEGMENT, 0)?;
    received
}

/// Maximum bytes per write (the kernel accepts 65535 with headers).
const SENT_AT_ONCE: usize = 60_000;

/// Bits that arrived between the first and the last arrival.
#[derive(Default)]
struct Arrivals {
    first: Option<(Duration, f64)>,
    last: Duration,
    bits: f64,
    /// Bits of pings since the last arrival; they count only if another frame follows, because they took its place.
    between: f64,
}

impl Arrivals {
    fn add(&mut self, at: Duration, bits: f64) {
        self.first.get_or_insert((at, bits));
        self.last = at;
        self.bits += bits + std::mem::take(&mut self.between);
    }

    /// Mean rate in bits per second. The first arrival only starts the interval.
    fn rate(&self) -> f64 {
        match self.first {
            Some((first, bits)) if self.last > first => (self.bits - bits) / (self.last - first).as_secs_f64(),
            _ => 0.0,
        }
    }
}

/// Loss of numbered datagrams.
fn losses(from: &UdpSocket, to: &UdpSocket, rate: Option<BitRate>, link: &Link) -> io::Result<Loss> {
    let bits = ((PING + HEADERS) * 8) as f64;
    // At most half of the line's rate, so that no queue overflows.
    let per_second = rate.map_or(NUMBERED_RATE, |rate| (rate.0 as f64 / bits / 2.0).min(NUMBERED_RATE));
    let sent = ((per_second * NUMBERED_TIME.as_secs_f64()) as u64).clamp(20, NUMBERED);
    let every = Duration::from_secs_f64(1.0 / per_second);
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || -> io::Result<()> {
            let mut due = Instant::now();
            for number in 0..sent {
                sleep_until(due);
                let mut datagram = [0; PING];
                datagram[..8].copy_from_slice(&number.to_be_bytes());
                from.send(&datagram)?;
                // A delayed sender does not catch up in a burst, which a short queue would drop.
                due = (due + every).max(Instant::now() + every / 2);
            }
            Ok(())
        });
        let mut came = vec![false; sent as usize];
        let mut buffer = [0; PING];
        let mut last = None;
        while !came.iter().all(|came| *came) {
            if last.is_none() && sender.is_finished() {
                last = Some(Instant::now() + Duration::from_nanos(link.round_trip.nanos()) + LOSS_TIMEOUT);
            }
            let deadline = last.unwrap_or_else(|| Instant::now() + LOSS_TIMEOUT);
            let Some(length) = receive(to, &mut buffer, deadline)? else {
                if last.is_some() {
                    break;
                }
                continue;
            };
            let number = u64::from_be_bytes(buffer[..8].try_into().expect("8 bytes"));
            if let (PING, Some(came)) = (length, came.get_mut(number as usize)) {
                *came = true;
            }
        }
        sender.join().map_err(|_| io::Error::other("a thread panicked"))??;
        Ok(Loss { lost: came.iter().filter(|came| !**came).count() as u64, of: sent })
    })
}

/// Length of the next datagram; `None`: the deadline passed.
fn receive(socket: &UdpSocket, buffer: &mut [u8], deadline: Instant) -> io::Result<Option<usize>> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(None);
    }
    socket.set_read_timeout(Some(left))?;
    match socket.recv(buffer) {
        Ok(length) => Ok(Some(length)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Some(0)),
        Err(error) => Err(error),
    }
}

/// Paces a schedule; never used to wait for a condition.
fn sleep_until(at: Instant) {
    std::thread::sleep(at.saturating_duration_since(Instant::now()));
}
