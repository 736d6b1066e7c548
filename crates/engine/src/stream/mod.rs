//! Links over TCP, a proxy or a Unix socket, with or without TLS, for every machine of bytes.

mod tls_session;

use std::cell::RefCell;
use std::io::{self, ErrorKind as IoKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;
use std::time::Instant;

use socket2::Socket;
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
use crate::tunnel::{Tunnel, Tunnels};
use crate::unix::{RETRY, UnixSocket};

use tls_session::Session;

/// Maximum bytes per read. The buffer belongs to the thread: its content is not used after a read.
const READ: usize = 256 * 1024;

/// Opens connections for one machine.
pub struct StreamDialer<M: Machine> {
    plan: Rc<M::Plan>,
    common: Rc<Common>,
    accounts: Accounts,
}

/// State that all connections of a thread share.
struct Common {
    way: Way,
    tls: Option<ClientSide>,
    alpn: Option<&'static str>,
    resumption: Resumption,
    /// Negotiated parameters of the first connection.
    negotiated: RefCell<Configured>,
    scratch: RefCell<Box<[u8]>>,
}

/// The way to the server.
enum Way {
    /// By TCP to the server, or to a proxy and through its tunnel.
    Tcp { servers: Servers, options: TcpOptions, tunnels: Option<Rc<Tunnels>> },
    /// By a Unix socket.
    Unix(UnixSocket),
}

/// A connection with its machine.
pub struct StreamLink<M> {
    /// The first field, because fields drop in order: it reads the socket, which must be open.
    _account: Account,
    socket: Socket,
    /// The address that the socket connects to; absent with a Unix socket.
    server: Option<SocketAddr>,
    phase: Phase,
    /// The tunnel through a proxy, until it stands.
    tunnel: Option<Box<Tunnel>>,
    session: Option<Box<Session>>,
    machine: M,
    common: Rc<Common>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The queue of a Unix socket is full until this time at least.
    Queued(Instant),
    Connecting,
    /// The proxy opens the tunnel.
    Tunnel,
    /// The time is that of the connection to the server, unless Fast Open sends data earlier.
    Handshake(Option<Instant>),
    Open,
    /// The peer ended its stream.
    Ended,
}

impl<M: Machine> Dialer for StreamDialer<M> {
    type Link = StreamLink<M>;

    fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let way = match UnixSocket::of(spec)? {
            Some(unix) => Way::Unix(unix),
            None => Way::Tcp {
                servers: Servers::new(spec),
                options: TcpOptions::client(spec.protocol, &spec.transport, spec.qlog_dir.is_some())?,
                tunnels: Tunnels::of(spec)?,
            },
        };
        let tls = if spec.protocol.is_secure() { Some(tls::client(spec)?) } else { None };
        let common = Common {
            way,
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
        let (socket, server, phase) = common.way.connect()?;
        poller
            .add(&socket, token)
            .map_err(|error| failure::io(&format!("watching a connection to {}", common.way.name(server)), &error))?;
        Ok(StreamLink {
            _account: self.accounts.of_socket(&socket),
            socket,
            server,
            phase,
            tunnel: None,
            session: None,
            machine: M::new(&self.plan),
            common: Rc::clone(common),
        })
    }

    fn configured(&self) -> Configured {
        let mut configured = self.common.way.configured();
        configured.extend(M::configured(&self.plan));
        configured.extend(self.common.negotiated.borrow().clone());
        configured
    }

    fn tickets(&self) -> usize {
        self.common.tls.as_ref().map_or(0, |side| side.tickets.len())
    }

    fn accounts(&self) -> Option<&Accounts> {
        Some(&self.accounts)
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
            (_, Phase::Queued(_) | Phase::Connecting | Phase::Ended) => return Ok(()),
            (_, Phase::Tunnel) => match &mut self.tunnel {
                Some(tunnel) => write(&self.socket, &mut **tunnel, Tunnel::output, Tunnel::sent),
                None => return Ok(()),
            },
            (Some(session), _) => session.flush(&mut &self.socket, &mut self.machine),
            (None, _) => write(&self.socket, &mut self.machine, M::output, M::sent),
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

    fn timer(&self) -> Option<Instant> {
        match self.phase {
            Phase::Queued(until) => Some(until),
            _ => None,
        }
    }

    fn tick(&mut self, now: Instant, inbox: &mut Inbox) -> Result<(), Failure> {
        let Way::Unix(unix) = &self.common.way else { return Ok(()) };
        match unix.connect(&self.socket) {
            Ok(()) => {
                inbox.now = Instant::now();
                self.connected(inbox)
            }
            Err(error) if error.kind() == IoKind::WouldBlock => {
                self.phase = Phase::Queued(now + RETRY);
                Ok(())
            }
            Err(error) => Err(unix.failure(&error)),
        }
    }

    fn awaits(&self) -> Option<String> {
        match self.phase {
            Phase::Tunnel => self.tunnel.as_ref().map(|tunnel| tunnel.awaits()),
            Phase::Queued(_) => Some(format!(
                "the queue of {} is full; does the server accept connections?",
                self.common.way.name(None)
            )),
            _ => None,
        }
    }

    fn close(&mut self) {
        if matches!(self.phase, Phase::Queued(_) | Phase::Connecting | Phase::Tunnel) {
            return;
        }
        // The peer may have closed first; nothing depends on the goodbye.
        self.machine.close();
        match &mut self.session {
            Some(session) => session.close(&mut &self.socket, &mut self.machine),
            None => drop(write(&self.socket, &mut self.machine, M::output, M::sent)),
        }
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

impl<M: Machine> StreamLink<M> {
    fn read(&mut self, ready: Readiness, inbox: &mut Inbox) -> Result<(), Failure> {
        if let Phase::Queued(_) = self.phase {
            return Ok(());
        }
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
        let way = &self.common.way;
        match (self.phase, &self.tunnel) {
            (Phase::Queued(_) | Phase::Connecting, _) => way.unreached(self.server, error),
            (Phase::Tunnel, Some(tunnel)) => tunnel.broke(error),
            (Phase::Handshake(_), _) => {
                failure::io(&format!("the TLS handshake with {}", way.name(self.server)), error)
            }
            (Phase::Tunnel | Phase::Open | Phase::Ended, _) => failure::io(attempt, error),
        }
    }

    /// The socket is connected, or failed to.
    fn connected(&mut self, inbox: &mut Inbox) -> Result<(), Failure> {
        if let Some(error) = self.socket.take_error().ok().flatten() {
            return Err(self.failed("", &error));
        }
        match &self.common.way {
            Way::Tcp { tunnels: Some(tunnels), .. } => {
                self.tunnel = Some(Box::new(Tunnel::new(tunnels)));
                self.phase = Phase::Tunnel;
                self.flush()
            }
            // Fast Open sends the first data before the connection.
            Way::Tcp { options, tunnels: None, .. } => self.reached((!options.fast_open()).then_some(inbox.now), inbox),
            Way::Unix(_) => self.reached(Some(inbox.now), inbox),
        }
    }

    /// From now on bytes go to the server and come from it.
    fn reached(&mut self, connected: Option<Instant>, inbox: &mut Inbox) -> Result<(), Failure> {
        let Some(side) = &self.common.tls else {
            self.phase = Phase::Open;
            inbox.events.push(Event::Opened { connected, ready: None });
            return Ok(());
        };
        self.phase = Phase::Handshake(connected);
        let session = Session::start(side).map_err(|error| {
            let name = self.common.way.name(self.server);
            Failure::new(tls::classify(&error), format!("starting the TLS handshake with {name}: {error}"))
        })?;
        if session.is_early() {
            self.phase = Phase::Open;
            inbox.events.push(Event::Opened { connected, ready: Some(Instant::now()) });
        }
        self.session = Some(Box::new(session));
        self.flush()
    }

    fn take(&mut self, mut bytes: &[u8], inbox: &mut Inbox) -> Result<(), Failure> {
        if let Some(tunnel) = &mut self.tunnel {
            let used = tunnel.receive(bytes)?;
            bytes = &bytes[used..];
            if !tunnel.is_open() {
                return self.flush();
            }
            self.tunnel = None;
            self.reached(Some(inbox.now), inbox)?;
            if bytes.is_empty() {
                return Ok(());
            }
        }
        let Some(session) = &mut self.session else { return self.machine.receive(bytes, inbox) };
        let was_handshaking = session.is_handshaking();
        let attempt = || match was_handshaking {
            true => format!("the TLS handshake with {}", self.common.way.name(self.server)),
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

    /// The peer ended its stream.
    fn ended(&mut self, inbox: &mut Inbox) -> Result<(), Failure> {
        if let Some(tunnel) = &self.tunnel {
            return Err(tunnel.ended());
        }
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

impl Way {
    /// Starts to connect a socket. Returns it with its address and its phase.
    fn connect(&self) -> Result<(Socket, Option<SocketAddr>, Phase), Failure> {
        match self {
            Self::Tcp { servers, options, .. } => {
                let server = servers.next();
                let connecting = || {
                    let socket = options.connecting(server)?;
                    match socket.connect(&server.into()) {
                        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
                        _ => Ok(socket),
                    }
                };
                let socket = connecting().map_err(|error| self.unreached(Some(server), &error))?;
                Ok((socket, Some(server), Phase::Connecting))
            }
            Self::Unix(unix) => {
                let socket = unix.socket().map_err(|error| unix.failure(&error))?;
                match unix.connect(&socket) {
                    Ok(()) => Ok((socket, None, Phase::Connecting)),
                    Err(error) if error.kind() == IoKind::WouldBlock => {
                        Ok((socket, None, Phase::Queued(Instant::now() + RETRY)))
                    }
                    Err(error) => Err(unix.failure(&error)),
                }
            }
        }
    }

    /// The failure of a socket to connect.
    fn unreached(&self, server: Option<SocketAddr>, error: &io::Error) -> Failure {
        match self {
            Self::Tcp { tunnels: Some(tunnels), .. } => tunnels.unreached(error),
            Self::Tcp { .. } => failure::io(&format!("connecting to {}", self.name(server)), error),
            Self::Unix(unix) => unix.failure(error),
        }
    }

    /// The server in words.
    fn name(&self, server: Option<SocketAddr>) -> String {
        match self {
            Self::Tcp { tunnels: Some(tunnels), .. } => tunnels.title(),
            Self::Tcp { .. } => server.map_or_else(|| "the server".to_owned(), |server| server.to_string()),
            Self::Unix(unix) => format!("the Unix socket {}", unix.path().display()),
        }
    }

    fn configured(&self) -> Configured {
        match self {
            Self::Tcp { options, tunnels, .. } => {
                let mut configured = options.configured();
                configured.extend(tunnels.as_ref().map(|tunnels| tunnels.configured()));
                configured
            }
            Self::Unix(unix) => unix.configured(),
        }
    }
}

/// Writes an output as far as the kernel takes it. `rest` is what is left of it, and `sent` removes what was written.
fn write<T>(
    mut socket: &Socket,
    source: &mut T,
    rest: impl Fn(&T) -> &[u8],
    sent: impl Fn(&mut T, usize),
) -> io::Result<()> {
    loop {
        let output = rest(source);
        if output.is_empty() {
            return Ok(());
        }
        match socket.write(output) {
            Ok(count) => sent(source, count),
            Err(error) if error.kind() == IoKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == IoKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
