//! Waits until servers answer at an address, as seen from the client's pod.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use wirelab_model::protocol::Protocol;

/// Time-out of one attempt.
const ANSWERING: Duration = Duration::from_secs(1);

/// The pause after a failed attempt, so that probing does not take CPU time from the servers. A node does not announce
/// that it routes to the servers; only a packet shows it.
const BETWEEN: Duration = Duration::from_millis(20);

/// The kind of probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A TCP connection that is closed at once.
    Tcp,
    /// A QUIC packet of a version that does not exist; every QUIC server answers it (RFC 9000, section 6.1).
    Quic,
    /// An empty message of bare UDP.
    Udp,
}

impl Kind {
    /// The probe for a protocol.
    #[must_use]
    pub fn of(protocol: Protocol) -> Self {
        match (protocol.uses_quic(), protocol.uses_udp()) {
            (true, _) => Self::Quic,
            (false, true) => Self::Udp,
            (false, false) => Self::Tcp,
        }
    }

    /// The transport protocol, as services name it.
    #[must_use]
    pub const fn transport(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Quic | Self::Udp => "UDP",
        }
    }

    /// The word on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Quic => "quic",
            Self::Udp => "udp",
        }
    }
}

/// Probes until `times` attempts in a row were answered, each from a new socket; fails after `timeout`.
pub(crate) fn run(kind: &str, address: &str, times: &str, timeout: Duration) -> io::Result<()> {
    let wrong = || io::Error::other(format!("cannot probe `{kind}` at `{address}` `{times}` times"));
    let kind = [Kind::Tcp, Kind::Quic, Kind::Udp].into_iter().find(|known| known.word() == kind).ok_or_else(wrong)?;
    let address: SocketAddr = address.parse().map_err(|_| wrong())?;
    let times: u32 = times.parse().map_err(|_| wrong())?;
    in_a_row(times, Instant::now() + timeout, || ask(kind, address))
        .map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")))
}

fn in_a_row(times: u32, deadline: Instant, mut ask: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match (0..times).try_for_each(|_| ask()) {
            Err(_) if Instant::now() < deadline => sleep(BETWEEN),
            answered => return answered,
        }
    }
}

fn ask(kind: Kind, address: SocketAddr) -> io::Result<()> {
    match kind {
        Kind::Tcp => TcpStream::connect_timeout(&address, ANSWERING).map(drop),
        Kind::Quic => answered(address, &of_no_version()),
        // Five numbers of eight bytes, all 0: no payload in either direction.
        Kind::Udp => answered(address, &[0; 40]),
    }
}

fn answered(address: SocketAddr, datagram: &[u8]) -> io::Result<()> {
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(ANSWERING))?;
    socket.send(datagram)?;
    match socket.recv(&mut [0; 2048]) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Err(io::Error::new(ErrorKind::TimedOut, "no answer"))
        }
        answer => answer.map(drop),
    }
}

/// A QUIC packet with a long header (RFC 8999) and a reserved version, as long as an Initial packet must be.
fn of_no_version() -> Vec<u8> {
    let mut packet = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a];
    for id in [[0x77; 8], [0x70; 8]] {
        packet.push(id.len() as u8);
        packet.extend(id);
    }
    packet.resize(1200, 0);
    packet
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_is_found_and_a_closed_port_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        run("tcp", &address, "3", Duration::ZERO).unwrap();
        drop(listener);
        assert!(run("tcp", &address, "1", Duration::ZERO).unwrap_err().to_string().starts_with(&address));
        assert!(run("tcp", "here", "1", Duration::ZERO).unwrap_err().to_string().contains("`here`"));
    }

    #[test]
    fn a_datagram_has_to_be_answered() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap().to_string();
        let answering = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            let (length, client) = server.recv_from(&mut buffer).unwrap();
            server.send_to(b"x", client).unwrap();
            (length, server)
        });
        run("quic", &address, "1", Duration::ZERO).unwrap();
        let (length, server) = answering.join().unwrap();
        assert_eq!(length, 1200, "servers ignore shorter ones");
        // The server is running, but silent.
        assert!(run("udp", &address, "1", Duration::ZERO).unwrap_err().to_string().contains("no answer"));
        drop(server);
        assert!(run("udp", &address, "1", Duration::ZERO).is_err(), "the server has ended");
    }

    #[test]
    fn a_server_that_comes_late_is_waited_for() {
        // An address without a listener.
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        drop(server);
        let mut late = None;
        in_a_row(2, Instant::now() + Duration::from_secs(20), || {
            let asked = ask(Kind::Udp, address);
            if asked.is_err() && late.is_none() {
                let server = UdpSocket::bind(address).unwrap();
                late = Some(std::thread::spawn(move || {
                    let mut buffer = [0; 2048];
                    for _ in 0..2 {
                        let (_, client) = server.recv_from(&mut buffer).unwrap();
                        server.send_to(b"x", client).unwrap();
                    }
                }));
            }
            asked
        })
        .unwrap();
        late.expect("asked before it came").join().unwrap();
    }
}
