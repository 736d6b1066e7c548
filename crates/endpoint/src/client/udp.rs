//! The client of bare UDP: a connection is a connected socket, and a request with a missing datagram counts as lost.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::rc::Rc;
use std::time::Instant;

use tokio::net::UdpSocket;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::{ClientSpec, Transport as Settings};

use crate::client::servers::Servers;
use crate::client::transport::{Answer, Connection, Failure, Opened, Sink, Transport};
use crate::raw;
use crate::refusal::Refusal;
use crate::udp_message::{Coverage, Header, Outgoing, configured, datagram_size};
use crate::udp_socket;

/// Opens sockets for bare requests.
pub struct UdpTransport {
    servers: Servers,
    settings: Settings,
    request: raw::Header,
    size: usize,
    /// Number of the next request, from a random start, so that a reused port does not get answers to its old requests.
    next: Rc<Cell<u64>>,
    configured: Configured,
}

impl Transport for UdpTransport {
    type Connection = UdpConnection;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        let size = datagram_size(&spec.transport)?;
        let servers = Servers::new(spec);
        let server = servers.first();
        // Opened once now, so that an unsupported setting is known before the measurement.
        let socket = udp_socket::open(udp_socket::any_port(server.ip()), &spec.transport)?;
        let configured = configured(&socket, size);
        let next = Rc::new(Cell::new(RandomState::new().hash_one(server)));
        Ok(Self { servers, settings: spec.transport.clone(), request: raw::Header::of(spec), size, next, configured })
    }

    async fn connect(&self) -> Result<Opened<UdpConnection>, Failure> {
        let server = self.servers.next();
        let attempt = format!("opening a UDP socket to {server}");
        let socket = udp_socket::open(udp_socket::any_port(server.ip()), &self.settings);
        let socket = socket.map_err(Refusal::into_failure)?;
        socket.connect(server).map_err(|error| failure(&attempt, &error))?;
        let socket = UdpSocket::from_std(socket).map_err(|error| failure(&attempt, &error))?;
        let connection = UdpConnection {
            socket,
            request: self.request,
            size: self.size,
            next: Rc::clone(&self.next),
            buffer: vec![0; usize::from(u16::MAX)],
        };
        Ok(Opened { connection, connected: None, ready: None })
    }

    fn configured(&self) -> Configured {
        self.configured.clone()
    }
}

/// A connected socket.
pub struct UdpConnection {
    socket: UdpSocket,
    request: raw::Header,
    size: usize,
    next: Rc<Cell<u64>>,
    buffer: Vec<u8>,
}

impl Connection for UdpConnection {
    async fn request(&mut self, _: usize, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let number = self.next.replace(self.next.get().wrapping_add(1));
        let raw::Header { wanted, body: total, delay_us } = self.request;
        let mut outgoing = Outgoing::new(Header { request: number, offset: 0, total, wanted, delay_us }, self.size);
        while let Some(datagram) = outgoing.next() {
            self.socket.send(datagram).await.map_err(|error| failure("sending a request by UDP", &error))?;
        }
        self.receive(number, body).await
    }

    fn another(&self) -> Option<Self> {
        None
    }

    fn handshake(&self) -> Option<Handshake> {
        None
    }

    async fn close(self) {}
}

impl UdpConnection {
    async fn receive(&mut self, number: u64, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        const ATTEMPT: &str = "receiving a response by UDP";
        let wanted = self.request.wanted;
        // Pieces arrive in any order; the sink needs them in order.
        let mut whole = vec![0; if body.is_some() { wanted as usize } else { 0 }];
        let mut coverage = Coverage::default();
        let mut first_byte = None;
        loop {
            let length = self.socket.recv(&mut self.buffer).await.map_err(|error| failure(ATTEMPT, &error))?;
            let now = Instant::now();
            // Late datagrams of an abandoned request do not count for this one.
            let Some((header, piece)) = Header::split(&self.buffer[..length]).filter(|(h, _)| h.request == number)
            else {
                continue;
            };
            let first_byte = *first_byte.get_or_insert(now);
            if header.total != wanted {
                let message = format!("{ATTEMPT}: it has {} bytes instead of {wanted}", header.total);
                return Err(Failure { kind: ErrorKind::Protocol, message });
            }
            if body.is_some() {
                let start = header.offset as usize;
                whole[start..start + piece.len()].copy_from_slice(piece);
            }
            if !coverage.add(header.offset, header.offset + piece.len() as u64) {
                let message = format!("{ATTEMPT}: too many of its datagrams are missing");
                return Err(Failure { kind: ErrorKind::Lost, message });
            }
            if coverage.bytes() == wanted {
                if let Some(body) = body {
                    body(&whole);
                }
                return Ok(Answer { first_byte, last_byte: now, bytes_in: wanted, status: None });
            }
        }
    }
}

/// The failure of a call of the kernel.
pub fn failure(attempt: &str, error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => ErrorKind::Refused,
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => ErrorKind::Unreachable,
        _ => ErrorKind::Other,
    };
    Failure { kind, message: format!("{attempt}: {error}") }
}
