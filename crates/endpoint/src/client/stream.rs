//! Byte streams to the server: TCP, a proxy's tunnel or a Unix socket, with or without TLS.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rustls::HandshakeKind;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::{ClientSpec, Resumption};
use wirelab_engine::tunnel::{Tunnel, Tunnels};
use wirelab_engine::unix::{RETRY, UnixSocket};

use crate::client::failure;
use crate::client::servers::Servers;
use crate::client::transport::Failure;
use crate::metered::Metered;
use crate::refusal::Refusal;
use crate::socket::TcpOptions;
use crate::tls::{self, ClientSide};
use crate::transport_accounts::Accounts;

/// Time limit of a closing connection's wait for its session ticket.
pub(crate) const TICKET_WAIT: Duration = Duration::from_millis(500);

/// Limit of the bytes from a request to the end of its response head. A head is smaller than hyper's buffer (400 KiB);
/// more bytes are interim responses (1xx), which a server may send without end.
const HEAD_LIMIT: u64 = 512 * 1024;

/// Opens byte streams to the server of a spec.
pub(crate) struct Dialer {
    way: Way,
    tls: Option<ClientSide>,
    alpn: Option<&'static str>,
    early_data: bool,
    /// Whether a closing connection waits for its ticket.
    wants_tickets: bool,
    /// Negotiated parameters of the first connection.
    negotiated: Rc<RefCell<Configured>>,
    accounts: Accounts,
}

/// The way to the server.
enum Way {
    /// By TCP to the server, or to a proxy and through its tunnel.
    Tcp { servers: Servers, options: TcpOptions, tunnels: Option<Rc<Tunnels>> },
    /// By a Unix socket.
    Unix(UnixSocket),
}

/// An opened stream.
pub(crate) struct Dialed {
    pub stream: Stream,
    /// Time of the connection to the server, through the proxy if there is one; absent with Fast Open, which sends data
    /// earlier.
    pub connected: Option<Instant>,
    /// Time from which TLS could send.
    pub ready: Option<Instant>,
}

/// The server sent interim responses (1xx) instead of a final one.
#[derive(Debug)]
pub(crate) struct InterimFlood;

impl fmt::Display for InterimFlood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flooded with interim responses (1xx): {HEAD_LIMIT} bytes without a final response")
    }
}

impl Error for InterimFlood {}

/// Facts about a stream and its TLS session, available while another component owns the stream.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    handshake: Cell<Option<Handshake>>,
    tickets: Cell<u32>,
    reset: Cell<bool>,
    /// Bytes received since the request; `None` while no HTTP/1.1 response head is expected.
    head: Cell<Option<u64>>,
}

impl Proof {
    /// Expects a response head. Reads fail if none arrives within [`HEAD_LIMIT`] bytes.
    pub fn expect_head(&self) {
        self.head.set(Some(0));
    }

    /// The response head arrived.
    pub fn has_head(&self) {
        self.head.set(None);
    }

    /// Fails if a server sends interim responses without end: hyper reads and skips them within one poll, which would
    /// delay every deadline.
    fn check_flood(&self) -> io::Result<()> {
        match self.head.get() {
            Some(received) if received > HEAD_LIMIT => Err(io::Error::other(InterimFlood)),
            _ => Ok(()),
        }
    }

    fn count(&self, bytes: usize) {
        self.head.update(|head| head.map(|received| received + bytes as u64));
    }

    /// The kind of handshake; `None` until it is decided, and without TLS.
    pub fn handshake(&self) -> Option<Handshake> {
        self.handshake.get()
    }

    /// Whether a session ticket arrived.
    pub fn has_ticket(&self) -> bool {
        self.tickets.get() > 0
    }

    /// Whether the server has reset the connection.
    pub fn was_reset(&self) -> bool {
        self.reset.get()
    }

    /// Records a reset. The kernel reports it once, to the next read or write; later it reports a broken pipe.
    fn note<R>(&self, polled: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if let Poll::Ready(Err(error)) = &polled
            && error.kind() == io::ErrorKind::ConnectionReset
        {
            self.reset.set(true);
        }
        polled
    }
}

/// A byte stream to the server.
pub(crate) struct Stream {
    wire: Wire,
    proof: Rc<Proof>,
    sent_early: bool,
    negotiated: Rc<RefCell<Configured>>,
}

enum Wire {
    Plain(Metered),
    Tls(Box<TlsStream<Metered>>),
}

impl Dialer {
    /// Creates a dialer from the spec; refuses options that this machine cannot honour.
    pub fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let way = match UnixSocket::of(spec)? {
            Some(unix) => Way::Unix(unix),
            None => Way::Tcp {
                servers: Servers::new(spec),
                options: TcpOptions::client(spec.protocol, &spec.transport, spec.qlog_dir.is_some())?,
                tunnels: Tunnels::of(spec)?,
            },
        };
        let tls = if spec.protocol.is_secure() { Some(tls::client(spec)?) } else { None };
        Ok(Self {
            way,
            tls,
            alpn: spec.protocol.alpn(),
            early_data: spec.resumption == Resumption::ZeroRtt,
            wants_tickets: spec.resumption != Resumption::None,
            negotiated: Rc::default(),
            accounts: Accounts::default(),
        })
    }

    /// Opens a stream.
    pub async fn dial(&self) -> Result<Dialed, Failure> {
        let (socket, connected, server) = self.way.connect(&self.accounts).await?;
        let (proof, negotiated) = (Rc::new(Proof::default()), Rc::clone(&self.negotiated));
        let Some(side) = &self.tls else {
            let stream = Stream { wire: Wire::Plain(socket), proof, sent_early: false, negotiated };
            return Ok(Dialed { stream, connected, ready: None });
        };
        let mut tls = TlsConnector::from(side.config.clone())
            .early_data(self.early_data)
            .connect(side.name.clone(), socket)
            .await
            .map_err(|error| failure::io(&format!("the TLS handshake with {server}"), &error))?;
        let ready = Some(Instant::now());
        let sent_early = tls.get_mut().1.early_data().is_some();
        let mut stream = Stream { wire: Wire::Tls(Box::new(tls)), proof, sent_early, negotiated };
        stream.prove();
        if let (false, Wire::Tls(tls)) = (sent_early, &stream.wire) {
            let got = tls.get_ref().1.alpn_protocol();
            if got != self.alpn.map(str::as_bytes) {
                let got = got.map_or("nothing".into(), String::from_utf8_lossy);
                let message =
                    format!("the server negotiated {got} (ALPN) instead of {}", self.alpn.unwrap_or("nothing"));
                return Err(Failure::new(ErrorKind::Protocol, message));
            }
        }
        Ok(Dialed { stream, connected, ready })
    }

    /// Whether a closing connection should wait for its session ticket.
    pub const fn wants_tickets(&self) -> bool {
        self.wants_tickets
    }

    /// Number of stored tickets.
    pub fn tickets(&self) -> usize {
        self.tls.as_ref().map_or(0, |side| side.tickets.len())
    }

    /// Transport statistics of the connections.
    pub const fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// The effective settings on the sockets, and the negotiated parameters of the first connection.
    pub fn configured(&self) -> Configured {
        let mut configured = self.way.configured();
        configured.extend(self.negotiated.borrow().clone());
        configured
    }
}

impl Way {
    /// Connects to the server. Returns the stream, the time of the connection if it is known, and the server in words.
    async fn connect(&self, accounts: &Accounts) -> Result<(Metered, Option<Instant>, String), Failure> {
        match self {
            Self::Tcp { servers, options, tunnels } => {
                let server = servers.next();
                let tcp = async {
                    let socket = options.connecting(server)?;
                    TcpSocket::from_std_stream(socket.into()).connect(server).await
                };
                let tcp = tcp.await.map_err(|error| match tunnels {
                    Some(tunnels) => tunnels.unreached(&error),
                    None => failure::io(&format!("connecting to {server}"), &error),
                });
                let mut tcp = tcp?;
                let Some(tunnels) = tunnels else {
                    let connected = (!options.fast_open()).then(Instant::now);
                    return Ok((Metered::new(accounts, tcp), connected, server.to_string()));
                };
                open(tunnels, &mut tcp).await?;
                Ok((Metered::new(accounts, tcp), Some(Instant::now()), tunnels.title()))
            }
            Self::Unix(unix) => {
                let connecting = async {
                    let socket = unix.socket()?;
                    while let Err(error) = unix.connect(&socket) {
                        if error.kind() != io::ErrorKind::WouldBlock {
                            return Err(error);
                        }
                        tokio::time::sleep(RETRY).await;
                    }
                    UnixStream::from_std(socket.into())
                };
                let stream = connecting.await.map_err(|error| unix.failure(&error))?;
                let server = format!("the Unix socket {}", unix.path().display());
                Ok((Metered::unix(accounts, stream), Some(Instant::now()), server))
            }
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

/// Has the proxy at the other end open a tunnel.
async fn open(tunnels: &Rc<Tunnels>, tcp: &mut TcpStream) -> Result<(), Failure> {
    let mut tunnel = Tunnel::new(tunnels);
    let mut bytes = [0; 1024];
    while !tunnel.is_open() {
        let output = tunnel.output().to_vec();
        tcp.write_all(&output).await.map_err(|error| tunnel.broke(&error))?;
        tunnel.sent(output.len());
        // Only what is the proxy's is taken from the socket: the next bytes are the server's.
        let seen = tcp.peek(&mut bytes).await.map_err(|error| tunnel.broke(&error))?;
        if seen == 0 {
            return Err(tunnel.ended());
        }
        let used = tunnel.receive(&bytes[..seen])?;
        tcp.read_exact(&mut bytes[..used]).await.map_err(|error| tunnel.broke(&error))?;
    }
    Ok(())
}

impl Stream {
    /// The facts about its session, updated later.
    pub fn proof(&self) -> Rc<Proof> {
        Rc::clone(&self.proof)
    }

    /// Passes received bytes to a function, without a copy if they are in the buffer of TLS; an empty slice means the
    /// end of the stream.
    pub fn poll_chunk<R>(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        limit: usize,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Poll<io::Result<R>> {
        let seen = match &mut self.wire {
            Wire::Plain(tcp) => {
                let length = scratch.len().min(limit);
                let mut buffer = ReadBuf::new(&mut scratch[..length]);
                std::task::ready!(Pin::new(tcp).poll_read(cx, &mut buffer))?;
                return Poll::Ready(Ok(look(buffer.filled())));
            }
            Wire::Tls(tls) => {
                let chunk = std::task::ready!(Pin::new(&mut **tls).poll_fill_buf(cx))?;
                let length = chunk.len().min(limit);
                let seen = look(&chunk[..length]);
                Pin::new(&mut **tls).consume(length);
                seen
            }
        };
        self.prove();
        Poll::Ready(Ok(seen))
    }

    /// Records the facts that the session can prove by now.
    fn prove(&mut self) {
        let Wire::Tls(tls) = &mut self.wire else { return };
        let session = tls.get_ref().1;
        self.proof.tickets.set(session.tls13_tickets_received());
        if self.proof.handshake.get().is_some() || session.is_handshaking() {
            return;
        }
        self.proof.handshake.set(match (session.handshake_kind(), self.sent_early) {
            (None, _) => None,
            (Some(_), true) if session.is_early_data_accepted() => Some(Handshake::EarlyAccepted),
            (Some(_), true) => Some(Handshake::EarlyRejected),
            (Some(HandshakeKind::Resumed), false) => Some(Handshake::Resumed),
            (Some(_), false) => Some(Handshake::Full),
        });
        if self.negotiated.borrow().is_empty() {
            self.negotiated.replace(tls::facts(session));
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.proof.check_flood()?;
        let before = buffer.filled().len();
        let polled = match &mut this.wire {
            Wire::Plain(tcp) => Pin::new(tcp).poll_read(cx, buffer),
            Wire::Tls(tls) => {
                let polled = Pin::new(&mut **tls).poll_read(cx, buffer);
                this.prove();
                polled
            }
        };
        this.proof.count(buffer.filled().len() - before);
        this.proof.note(polled)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = match &mut this.wire {
            Wire::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Wire::Tls(tls) => Pin::new(&mut **tls).poll_write(cx, bytes),
        };
        this.proof.note(polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = match &mut this.wire {
            Wire::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, bytes),
            Wire::Tls(tls) => Pin::new(&mut **tls).poll_write_vectored(cx, bytes),
        };
        this.proof.note(polled)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = match &mut this.wire {
            Wire::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Wire::Tls(tls) => Pin::new(&mut **tls).poll_flush(cx),
        };
        this.proof.note(polled)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().wire {
            Wire::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Wire::Tls(tls) => Pin::new(&mut **tls).poll_shutdown(cx),
        }
    }
}
