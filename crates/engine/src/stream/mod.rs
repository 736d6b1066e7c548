//! Links over TCP, with or without TLS, for every machine of bytes.

mod tls_session;

use std::cell::RefCell;
use std::io::{self, ErrorKind as IoKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::Instant;

use socket2::SockRef;
use wirelab_contract::event::Configured;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::{ClientSpec, Resumption};

use crate::accounts::{Account, Accounts};
use crate::failure;
use crate::link::{Dialer, Link};
use crate::machine::{Event, Inbox, Machine, Slot};
use crate::poller::{Poller, Readiness};
use crate::refusal::{Failure, Refusal};
use crate::servers::Servers;
use crate::socket::TcpOptions;
use crate::tls::{self, ClientSide};

use tls_session::Session;

/// Maximum bytes per read. The buffer belongs to the thread: its content is not used after a read.
const READ: usize = 256 * 1024;

/// Opens TCP connections for one machine.
pub struct StreamDialer<M: Machine> {
    plan: Rc<M::Plan>,
    common: Rc<Common>,
    accounts: Accounts,
}

/// State that all connections of a thread share.
struct Common {
    servers: Servers,
    options: TcpOptions,
    tls: Option<ClientSide>,
    alpn: Option<&'static str>,
    resumption: Resumption,
    /// Negotiated parameters of the first connection.
    negotiated: RefCell<Configured>,
    scratch: RefCell<Box<[u8]>>,
}

/// A TCP connection with its machine.
pub struct StreamLink<M> {
    /// The first field, because fields drop in order: it reads the socket, which must be open.
    _account: Account,
    socket: TcpStream,
    server: SocketAddr,
    phase: Phase,
    session: Option<Box<Session>>,
    machine: M,
    common: Rc<Common>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    /// The time is that of the TCP connection, unless Fast Open sends data earlier.
    Handshake(Option<Instant>),
    Open,
    /// The peer ended its stream.
    Ended,
}

impl<M: Machine> Dialer for StreamDialer<M> {
    type Link = StreamLink<M>;

    fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let options = TcpOptions::client(spec.protocol, &spec.transport, spec.qlog_dir.is_some())?;
        let tls = if spec.protocol.is_secure() { Some(tls::client(spec)?) } else { None };
        let common = Common {
            servers: Servers::new(spec),
            options,
            tls,
            alpn: spec.protocol.alpn(),
            resumption: spec.resumption,
            negotiated: RefCell::default(),
            scratch: RefCell::new(vec![0; READ].into()),
        };
        Ok(Self { plan: Rc::new(M::plan(spec)?), common: Rc::new(common), accounts: Accounts::default() })
    }

    fn dial(&mut self, poller: &Poller, token: u64) -> Result<StreamLink<M>, Failure> {
        let common = &self.common;
        let server = common.servers.next();
        let connecting = || {
            let socket = common.options.connecting(server)?;
            match socket.connect(&server.into()) {
                Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
                _ => {}
            }
            poller.add(&socket, token)?;
            Ok::<_, io::Error>(TcpStream::from(socket))
        };
        let socket = connecting().map_err(|error| failure::io(&format!("connecting to {server}"), &error))?;
        Ok(StreamLink {
            _account: self.accounts.tcp(&socket),
            socket,
            server,
            phase: Phase::Connecting,
            session: None,
            machine: M::new(&self.plan),
            common: Rc::clone(common),
        })
    }

    fn configured(&self) -> Configured {
        let mut configured = self.common.options.configured();
        configured.extend(M::configured(&self.plan));
        configured.extend(self.common.negotiated.borrow().clone());
        configured
    }

    fn tickets(&self) -> usize {
        self.common.tls.as_ref().map_or(0, |side| side.tickets.len())
    }

    fn accounts(&self) -> &Accounts {
        &self.accounts
    }
}

impl<M: Machine> Link for StreamLink<M> {
    fn is_open(&self) -> bool {
        self.phase == Phase::Open && self.machine.is_open()
    }

    fn rename(&self, poller: &Poller, token: u64) -> Result<(), Failure> {
        poller.rename(&self.socket, token).map_err(|error| failure::io("watching a connection that ends", &error))
    }

    fn start(&mut self, slot: Slot, number: usize) {
        self.machine.start(slot, number);
    }

    fn cancel(&mut self, slot: Slot) {
        self.machine.cancel(slot);
    }

    fn receive(&mut self, ready: Readiness, inbox: &mut Inbox) -> Result<(), Failure> {
        let received = self.read(ready, inbox);
        if received.is_err() {
            self.phase = Phase::Ended;
        }
        received
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let result = match (&mut self.session, self.phase) {
            (_, Phase::Connecting | Phase::Ended) => return Ok(()),
            (Some(session), _) => session.flush(&mut &self.socket, &mut self.machine),
            (None, _) => write(&self.socket, &mut self.machine),
        };
        result.map_err(|error| self.failed("sending the request", &error))
    }

    fn handshake(&self) -> Option<Handshake> {
        self.session.as_ref()?.handshake()
    }

    fn lacks_ticket(&self) -> bool {
        let wants = self.common.resumption != Resumption::None && self.phase == Phase::Open;
        wants && self.session.as_ref().is_some_and(|session| !session.has_ticket())
    }

    fn close(&mut self) {
        if matches!(self.phase, Phase::Connecting) {
            return;
        }
        // The peer may have closed first; nothing depends on the goodbye.
        self.machine.close();
        match &mut self.session {
            Some(session) => session.close(&mut &self.socket, &mut self.machine),
            None => drop(write(&self.socket, &mut self.machine)),
        }
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

impl<M: Machine> StreamLink<M> {
    fn read(&mut self, ready: Readiness, inbox: &mut Inbox) -> Result<(), Failure> {
        if self.phase == Phase::Connecting {
            if !(ready.writable || ready.ended) {
                return Ok(());
            }
            inbox.now = Instant::now();
            self.connected(inbox)?;
        }
        if ready.readable {
            let common = Rc::clone(&self.common);
            let scratch = &mut *common.scratch.borrow_mut();
            while self.phase != Phase::Ended {
                match (&self.socket).read(scratch) {
                    Ok(0) => {
                        inbox.now = Instant::now();
                        self.ended(inbox)?;
                    }
                    Ok(count) => {
                        inbox.now = Instant::now();
                        self.take(&scratch[..count], inbox)?;
                        // The end of the stream needs another read; see `poller`.
                        if count < scratch.len() && !ready.ended {
                            break;
                        }
                    }
                    Err(error) if error.kind() == IoKind::WouldBlock => break,
                    Err(error) if error.kind() == IoKind::Interrupted => {}
                    Err(error) => {
                        inbox.now = Instant::now();
                        return Err(self.failed("receiving the response", &error));
                    }
                }
            }
        }
        Ok(())
    }

    fn failed(&self, attempt: &str, error: &io::Error) -> Failure {
        match self.phase {
            Phase::Connecting => failure::io(&format!("connecting to {}", self.server), error),
            Phase::Handshake(_) => failure::io(&format!("the TLS handshake with {}", self.server), error),
            Phase::Open | Phase::Ended => failure::io(attempt, error),
        }
    }

    /// TCP is connected, or failed to.
    fn connected(&mut self, inbox: &mut Inbox) -> Result<(), Failure> {
        if let Some(error) = SockRef::from(&self.socket).take_error().ok().flatten() {
            return Err(self.failed("", &error));
        }
        let connected = (!self.common.options.fast_open()).then_some(inbox.now);
        let Some(side) = &self.common.tls else {
            self.phase = Phase::Open;
            inbox.events.push(Event::Opened { connected, ready: None });
            return Ok(());
        };
        self.phase = Phase::Handshake(connected);
        let session = Session::start(side).map_err(|error| {
            Failure::new(tls::classify(&error), format!("starting the TLS handshake with {}: {error}", self.server))
        })?;
        if session.is_early() {
            self.phase = Phase::Open;
            inbox.events.push(Event::Opened { connected, ready: Some(Instant::now()) });
        }
        self.session = Some(Box::new(session));
        self.flush()
    }

    fn take(&mut self, bytes: &[u8], inbox: &mut Inbox) -> Result<(), Failure> {
        let Some(session) = &mut self.session else { return self.machine.receive(bytes, inbox) };
        let was_handshaking = session.is_handshaking();
        let server = self.server;
        let attempt = || match was_handshaking {
            true => format!("the TLS handshake with {server}"),
            false => "receiving the response".to_owned(),
        };
        let mut settled = false;
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Err(error) = session.take(&mut rest) {
                session.send_alert(&mut &self.socket);
                return Err(failure::io(&attempt(), &error));
            }
            if was_handshaking && !settled && !session.is_handshaking() {
                settled = true;
                session.settle(self.common.alpn)?;
                if let Phase::Handshake(connected) = self.phase {
                    self.phase = Phase::Open;
                    inbox.events.push(Event::Opened { connected, ready: Some(Instant::now()) });
                }
                if self.common.negotiated.borrow().is_empty() {
                    self.common.negotiated.replace(session.facts());
                }
            }
            if session.deliver(&mut self.machine, inbox)? {
                self.phase = Phase::Ended;
                return self.machine.end(true, inbox);
            }
        }
        // Parts of the handshake, and answers of TLS itself.
        if session.has_output() {
            self.flush()?;
        }
        Ok(())
    }

    /// The peer ended the TCP stream.
    fn ended(&mut self, inbox: &mut Inbox) -> Result<(), Failure> {
        let before = std::mem::replace(&mut self.phase, Phase::Ended);
        match (before, &self.session) {
            (Phase::Handshake(_), _) => {
                self.phase = before;
                Err(self.failed("", &IoKind::UnexpectedEof.into()))
            }
            (_, session) => self.machine.end(session.is_none(), inbox),
        }
    }
}

/// Writes the output of a machine as far as the kernel takes it.
fn write(mut socket: &TcpStream, machine: &mut impl Machine) -> io::Result<()> {
    loop {
        let output = machine.output();
        if output.is_empty() {
            return Ok(());
        }
        match socket.write(output) {
            Ok(count) => machine.sent(count),
            Err(error) if error.kind() == IoKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == IoKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
