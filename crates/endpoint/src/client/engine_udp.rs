//! Bare UDP for the load engine: a connection is a connected socket, which carries one request at a time.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::ErrorKind as Io;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Instant;

use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::{ClientSpec, Transport};
use wirelab_engine::link::{Dialer, Link};
use wirelab_engine::machine::{Event, Inbox, Slot};
use wirelab_engine::poller::{Poller, Readiness};

use crate::client::servers::Servers;
use crate::client::transport::Failure;
use crate::client::udp::failure;
use crate::raw;
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;
use crate::udp_message::{Coverage, Header, Outgoing, configured, datagram_size};
use crate::udp_socket;

/// Opens sockets for bare requests.
pub(crate) struct UdpDialer {
    servers: Servers,
    settings: Transport,
    common: Rc<Common>,
    configured: Configured,
}

/// State that all connections of a thread share.
struct Common {
    request: raw::Header,
    /// The size of datagrams.
    size: usize,
    /// Number of the next request, from a random start, so that a reused port does not get answers to its old requests.
    next: Cell<u64>,
    buffer: RefCell<Vec<u8>>,
}

impl Dialer for UdpDialer {
    type Link = UdpLink;

    fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        if !spec.mix.is_empty() {
            return Err(Refusal::unsupported("`mix`: a client of a raw transport repeats one request"));
        }
        let size = datagram_size(&spec.transport)?;
        let servers = Servers::new(spec);
        // Opened once now, so that an unsupported setting is known before the measurement.
        let socket = udp_socket::open(udp_socket::any_port(servers.first().ip()), &spec.transport)?;
        let common = Common {
            request: raw::Header::of(spec),
            size,
            next: Cell::new(RandomState::new().hash_one(servers.first())),
            buffer: RefCell::new(vec![0; usize::from(u16::MAX)]),
        };
        Ok(Self {
            servers,
            settings: spec.transport.clone(),
            common: Rc::new(common),
            configured: configured(&socket, size),
        })
    }

    fn dial(&mut self, poller: &Poller, token: u64) -> Result<UdpLink, Failure> {
        let server: SocketAddr = self.servers.next();
        let attempt = format!("opening a UDP socket to {server}");
        let socket = udp_socket::open(udp_socket::any_port(server.ip()), &self.settings);
        let socket = socket.map_err(Refusal::into_failure)?;
        socket.connect(server).map_err(|error| failure(&attempt, &error))?;
        poller.add(&socket, token).map_err(|error| failure(&attempt, &error))?;
        Ok(UdpLink { socket, common: Rc::clone(&self.common), is_open: false, current: None })
    }

    fn configured(&self) -> Configured {
        self.configured.clone()
    }

    fn tickets(&self) -> usize {
        0
    }

    fn accounts(&self) -> Option<&Accounts> {
        None
    }
}

/// A connected socket.
pub(crate) struct UdpLink {
    socket: UdpSocket,
    common: Rc<Common>,
    is_open: bool,
    /// The request under way.
    current: Option<Exchange>,
}

struct Exchange {
    slot: Slot,
    number: u64,
    outgoing: Outgoing,
    /// A datagram that the kernel did not take yet.
    unsent: Option<Vec<u8>>,
    has_begun: bool,
    coverage: Coverage,
    /// The response, whose pieces arrive in any order, if its bytes are checked.
    whole: Vec<u8>,
}

impl Link for UdpLink {
    fn is_open(&self) -> bool {
        self.is_open
    }

    fn rename(&self, poller: &Poller, token: u64) -> Result<(), Failure> {
        poller.rename(&self.socket, token).map_err(|error| failure("watching a socket that ends", &error))
    }

    fn start(&mut self, slot: Slot, _: usize) {
        let common = &self.common;
        let request = common.next.replace(common.next.get().wrapping_add(1));
        let raw::Header { wanted, body: total, delay_us } = common.request;
        self.current = Some(Exchange {
            slot,
            number: request,
            outgoing: Outgoing::new(Header { request, offset: 0, total, wanted, delay_us }, common.size),
            unsent: None,
            has_begun: false,
            coverage: Coverage::default(),
            whole: Vec::new(),
        });
    }

    fn cancel(&mut self, _: Slot) {
        // Late datagrams have the number of no request.
        self.current = None;
    }

    fn receive(&mut self, ready: Readiness, inbox: &mut Inbox) -> Result<(), Failure> {
        if !self.is_open {
            self.is_open = true;
            inbox.events.push(Event::Opened { connected: None, ready: None });
        }
        if !ready.readable {
            return Ok(());
        }
        let common = Rc::clone(&self.common);
        let buffer = &mut *common.buffer.borrow_mut();
        loop {
            match self.socket.recv(buffer) {
                Ok(length) => {
                    inbox.now = Instant::now();
                    self.take(&buffer[..length], inbox);
                }
                Err(error) if error.kind() == Io::WouldBlock => return Ok(()),
                Err(error) if error.kind() == Io::Interrupted => {}
                Err(error) => {
                    inbox.now = Instant::now();
                    return Err(failure(RECEIVING, &error));
                }
            }
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let Some(exchange) = &mut self.current else { return Ok(()) };
        if let Some(datagram) = exchange.unsent.take()
            && !send(&self.socket, &datagram)?
        {
            exchange.unsent = Some(datagram);
            return Ok(());
        }
        while let Some(datagram) = exchange.outgoing.next() {
            if !send(&self.socket, datagram)? {
                exchange.unsent = Some(datagram.to_vec());
                return Ok(());
            }
        }
        Ok(())
    }

    fn handshake(&self) -> Option<Handshake> {
        None
    }

    fn lacks_ticket(&self) -> bool {
        false
    }

    fn close(&mut self) {}
}

/// The attempted operation in failure messages.
const RECEIVING: &str = "receiving a response by UDP";

impl UdpLink {
    /// Takes a datagram. Those of other requests came too late.
    fn take(&mut self, datagram: &[u8], inbox: &mut Inbox) {
        let wanted = self.common.request.wanted;
        let Some(exchange) = &mut self.current else { return };
        let Some((header, piece)) = Header::split(datagram).filter(|(h, _)| h.request == exchange.number) else {
            return;
        };
        if !exchange.has_begun {
            exchange.has_begun = true;
            inbox.first_byte(exchange.slot);
        }
        let problem = if header.total != wanted {
            Some((ErrorKind::Protocol, format!("it has {} bytes instead of {wanted}", header.total)))
        } else if !exchange.coverage.add(header.offset, header.offset + piece.len() as u64) {
            Some((ErrorKind::Lost, "too many of its datagrams are missing".to_owned()))
        } else {
            None
        };
        if let Some((kind, what)) = problem {
            inbox.failed(exchange.slot, Failure::new(kind, format!("{RECEIVING}: {what}")));
            self.current = None;
            return;
        }
        if inbox.digest.is_some() {
            exchange.whole.resize(wanted as usize, 0);
            exchange.whole[header.offset as usize..][..piece.len()].copy_from_slice(piece);
        }
        if exchange.coverage.bytes() == wanted {
            inbox.body(exchange.slot, &exchange.whole);
            inbox.done(exchange.slot, None, wanted);
            self.current = None;
        }
    }
}

/// Sends a datagram. Returns false if the kernel takes none now.
fn send(socket: &UdpSocket, datagram: &[u8]) -> Result<bool, Failure> {
    loop {
        match socket.send(datagram) {
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == Io::WouldBlock => return Ok(false),
            Err(error) if error.kind() == Io::Interrupted => {}
            Err(error) => return Err(failure("sending a request by UDP", &error)),
        }
    }
}
