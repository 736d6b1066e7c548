//! Opens QUIC connections for the protocols `quic` and `h3`, and records their handshakes.
//!
//! With one connection per request, each connection has its own UDP socket and quinn endpoint, created while the
//! request's clock runs, as in a newly started process. Persistent connections of a thread share one.

use std::cell::{OnceCell, RefCell};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::{ClientConfig, Endpoint, NoneTokenStore, TokenMemoryCache, VarInt, ZeroRttAccepted};
use rustls::HandshakeKind;
use serde_json::json;
use tokio::time::timeout;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::{ClientSpec, ConnectionPolicy, Resumption};

use crate::allocator::keep_large_blocks_fresh;
use crate::client::multiplexed::Dial;
use crate::client::servers::Servers;
use crate::client::tickets;
use crate::client::transport::Failure;
use crate::quic_config::{QuicSettings, failure};
use crate::quic_contract::{client_idle, done_code};
use crate::quic_meter::QuinnMeter;
use crate::quic_session::{SessionFactory, SessionFacts};
use crate::quic_socket::QuicSocket;
use crate::refusal::Refusal;
use crate::transport_accounts::{Account, Accounts};
use crate::{tls, udp_socket};

/// Maximum number of address validation tokens (RFC 9000, section 8.1.3) that a client stores if resumption is on.
const TOKENS_KEPT: usize = 1 << 12;

/// Opens connections to the server of a spec.
pub struct Dialer {
    servers: Servers,
    name: String,
    alpn: Vec<u8>,
    settings: QuicSettings,
    config: ClientConfig,
    /// Idle time-out.
    idle: Duration,
    /// Whether every connection has a socket of its own.
    fresh: bool,
    shared: OnceCell<(Endpoint, Arc<QuicSocket>)>,
    resumption: Resumption,
    /// The code that closes a connection without an error.
    done: VarInt,
    tickets: Arc<tls::TicketStore>,
    accounts: Accounts,
    configured: RefCell<Configured>,
}

impl Dial for Dialer {
    type Wire = ();
    type Link = Link;

    /// Refuses settings that this machine cannot honour.
    fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let side = tls::client(spec)?;
        let settings = QuicSettings::new(&spec.transport, spec.qlog_dir.as_deref(), "client")?;
        let config = client_config(spec, sessions(&side)?, &settings)?;
        let idle = client_idle(spec);
        let dialer = Self {
            servers: Servers::new(spec),
            name: spec.server_name.clone(),
            alpn: spec.protocol.alpn().unwrap_or_default().as_bytes().to_vec(),
            settings,
            config,
            idle,
            // A socket is connected to one server.
            fresh: spec.connections == ConnectionPolicy::PerRequest || spec.addresses.len() > 1,
            shared: OnceCell::new(),
            resumption: spec.resumption,
            done: VarInt::from_u32(done_code(spec.protocol)),
            tickets: side.tickets,
            accounts: Accounts::default(),
            configured: RefCell::default(),
        };
        if dialer.fresh {
            keep_large_blocks_fresh();
        }
        // Opened once now, so that an unsupported setting is known before the measurement.
        let socket = dialer.settings.socket(dialer.local(), Some(dialer.servers.first()))?;
        dialer.configured.replace(dialer.settings.report(&socket));
        Ok(dialer)
    }

    /// With 0-RTT and a ticket it returns at once, ready for early data.
    async fn dial(&self) -> Result<((), Link, Instant), Failure> {
        let server = self.servers.next();
        let (endpoint, socket) = self.endpoint(server).map_err(Refusal::into_failure)?;
        let mut config = self.config.clone();
        if let Some(logged) = self.settings.logged(self.idle).map_err(Refusal::into_failure)? {
            config.transport_config(logged);
        }
        let refused = socket.refused();
        let attempt = || format!("connecting to {} at {server} by QUIC", self.name);
        let mut connecting = endpoint
            .connect_with(config, server, &self.name)
            .map_err(|error| Failure { kind: ErrorKind::Other, message: format!("{}: {error}", attempt()) })?;
        if self.resumption == Resumption::ZeroRtt {
            match connecting.into_0rtt() {
                Ok((connection, accepted)) => {
                    let early = Some(Early { accepted: accepted.into(), decision: tokio::sync::OnceCell::new() });
                    return Ok(((), self.link(connection, Arc::clone(&socket), early), Instant::now()));
                }
                Err(unresumed) => connecting = unresumed,
            }
        }
        let connection = tokio::select! {
            biased;
            result = connecting => result.map_err(|error| failure(&attempt(), &error))?,
            () = refused => return Err(nothing_listens(&attempt())),
        };
        let ready = Instant::now();
        let link = self.link(connection, Arc::clone(&socket), None);
        self.record(&link)?;
        Ok(((), link, ready))
    }

    fn is_open(link: &Link) -> bool {
        link.connection.close_reason().is_none()
    }

    fn handshake(link: &Link) -> Option<Handshake> {
        link.handshake()
    }

    async fn close(&self, link: &Link) {
        let _ = self.record(link);
        link.close(self.done).await;
    }

    fn configured(&self) -> Configured {
        self.configured.borrow().clone()
    }

    fn tickets(&self) -> usize {
        self.tickets.len()
    }

    fn accounts(&self) -> &Accounts {
        &self.accounts
    }
}

/// What creates a client's TLS sessions.
pub(crate) fn sessions(side: &tls::ClientSide) -> Result<SessionFactory, Refusal> {
    SessionFactory::new(Arc::clone(&side.config)).map_err(|error| Refusal::failed(error.to_string()))
}

/// The configuration of a client's connections.
pub(crate) fn client_config(
    spec: &ClientSpec,
    sessions: SessionFactory,
    settings: &QuicSettings,
) -> Result<ClientConfig, Refusal> {
    let mut config = ClientConfig::new(Arc::new(sessions));
    config.transport_config(Arc::new(settings.transport(client_idle(spec))?));
    config.token_store(match spec.resumption {
        Resumption::None => Arc::new(NoneTokenStore),
        Resumption::Resume | Resumption::ZeroRtt => Arc::new(TokenMemoryCache::new(1, TOKENS_KEPT)),
    });
    Ok(config)
}

/// Checks the application protocol of a complete handshake, and records the negotiated parameters of the first one.
pub(crate) fn negotiated(
    facts: &SessionFacts,
    alpn: &[u8],
    name: &str,
    configured: &mut Configured,
) -> Result<(), Failure> {
    if facts.alpn.as_deref() != Some(alpn) {
        let wanted = String::from_utf8_lossy(alpn);
        let got = facts.alpn.as_deref().map_or("none".into(), String::from_utf8_lossy);
        let message = format!("the server {name} negotiated the protocol {got}, not {wanted}");
        return Err(Failure { kind: ErrorKind::Protocol, message });
    }
    if !configured.contains_key("cipher") {
        let mut say = |name: &str, value: serde_json::Value| configured.insert(name.to_owned(), value);
        say("alpn", json!(String::from_utf8_lossy(alpn)));
        if let Some(cipher) = facts.cipher {
            say("cipher", json!(tls::cipher_name(cipher)));
        }
        if let Some(group) = facts.group {
            say("group", json!(tls::group_name(group)));
        }
        if let Some(bytes) = facts.certificate_chain_bytes {
            say("certificate_chain_bytes", json!(bytes));
        }
    }
    Ok(())
}

impl Dialer {
    /// Records the negotiated parameters of `link` after its handshake, and checks the application protocol.
    pub fn record(&self, link: &Link) -> Result<(), Failure> {
        let Some(facts) = link.facts() else { return Ok(()) };
        let mut configured = self.configured.borrow_mut();
        negotiated(&facts, &self.alpn, &self.name, &mut configured)?;
        // quinn disables segmentation offload at the kernel's first error.
        if !link.socket.segments() {
            configured.insert("gso".to_owned(), json!(false));
        }
        let stats = link.connection.stats();
        configured.insert("udp_payload".to_owned(), json!(stats.path.current_mtu));
        // Requests waited because the server allows fewer concurrent streams than the spec wants.
        if stats.frame_tx.streams_blocked_bidi > 0 {
            configured.insert("stream_limit_reached".to_owned(), json!(true));
        }
        Ok(())
    }

    fn endpoint(&self, server: SocketAddr) -> Result<(Endpoint, Arc<QuicSocket>), Refusal> {
        let open = || -> Result<_, Refusal> {
            let socket = self.settings.socket(self.local(), Some(server))?;
            Ok((self.settings.endpoint(&socket, None)?, socket))
        };
        if self.fresh {
            return open();
        }
        if self.shared.get().is_none() {
            // A thread runs one task at a time, and nothing above awaits: no other dial has set it meanwhile.
            let _ = self.shared.set(open()?);
        }
        self.shared.get().cloned().ok_or_else(|| Refusal::failed("no QUIC endpoint"))
    }

    /// Any port of any local address of the server's family.
    fn local(&self) -> SocketAddr {
        udp_socket::any_port(self.servers.first().ip())
    }

    fn link(&self, connection: quinn::Connection, socket: Arc<QuicSocket>, early: Option<Early>) -> Link {
        let account = self.accounts.of(Arc::new(QuinnMeter(connection.clone())));
        let wants_ticket = self.resumption != Resumption::None;
        Link { _account: account, connection, socket, early, wants_ticket }
    }
}

/// An open QUIC connection.
pub struct Link {
    _account: Account,
    /// quinn's handle.
    pub connection: quinn::Connection,
    socket: Arc<QuicSocket>,
    early: Option<Early>,
    wants_ticket: bool,
}

/// The state of early data that was or can be sent.
struct Early {
    /// Several requests may wait for the decision; one of them asks quinn.
    accepted: tokio::sync::Mutex<ZeroRttAccepted>,
    decision: tokio::sync::OnceCell<Decision>,
}

/// The fate of early data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Accepted,
    Rejected,
    /// The connection was lost before the server's decision.
    Lost,
}

impl Link {
    /// Whether the server rejected early data that was sent before the end of the handshake. Waits for the decision.
    pub async fn early_was_rejected(&self) -> bool {
        let Some(early) = &self.early else { return false };
        let decide = async || match (&mut *early.accepted.lock().await).await {
            true => Decision::Accepted,
            // quinn returns `false` for a lost connection too.
            false if self.connection.close_reason().is_some() => Decision::Lost,
            false => Decision::Rejected,
        };
        *early.decision.get_or_init(decide).await == Decision::Rejected
    }

    /// Whether the handshake is still in progress while early data is sent.
    pub fn is_undecided(&self) -> bool {
        self.early.as_ref().is_some_and(|early| early.decision.get().is_none())
    }

    /// Runs a request. If it may be early data, it fails at once when the kernel reports that nothing listens at the
    /// server's port.
    pub async fn guard<T>(&self, request: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        if !self.is_undecided() {
            return request.await;
        }
        let refused = pin!(self.socket.refused());
        tokio::select! {
            biased;
            result = request => result,
            () = refused => {
                // Otherwise quinn would keep trying.
                self.connection.close(VarInt::from_u32(0), b"");
                Err(nothing_listens("sending a request as early data"))
            }
        }
    }

    /// The kind of handshake, from rustls, and of early data, from quinn.
    pub fn handshake(&self) -> Option<Handshake> {
        match self.early.as_ref().map(|early| early.decision.get()) {
            Some(Some(Decision::Accepted)) => Some(Handshake::EarlyAccepted),
            Some(Some(Decision::Rejected)) => Some(Handshake::EarlyRejected),
            Some(Some(Decision::Lost) | None) => None,
            None => self.facts()?.kind.map(|kind| match kind {
                HandshakeKind::Resumed => Handshake::Resumed,
                _ => Handshake::Full,
            }),
        }
    }

    /// The failure of the connection if it failed, otherwise `otherwise`.
    pub fn failure_or(&self, attempt: &str, otherwise: impl FnOnce() -> Failure) -> Failure {
        match self.connection.close_reason() {
            // Closed by the library above, which knows the reason.
            None | Some(quinn::ConnectionError::LocallyClosed) => otherwise(),
            Some(reason) => failure(attempt, &reason),
        }
    }

    /// Closes the connection with the error code `done`. Waits first for a wanted session ticket, for the time that it
    /// may take to arrive.
    ///
    /// The endpoint's tasks send CONNECTION_CLOSE before this returns, and continue in the background for the draining
    /// period (RFC 9000, section 10.2).
    async fn close(&self, done: VarInt) {
        if self.wants_ticket
            && self.connection.close_reason().is_none()
            && let Some(facts) = self.facts()
        {
            let limit = tickets::ticket_timeout(self.connection.rtt());
            let _ = timeout(limit, facts.tickets.first()).await;
        }
        self.connection.close(done, b"");
        // The connection's task is awake and runs before this task resumes for the second time.
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
    }

    fn facts(&self) -> Option<SessionFacts> {
        self.connection.handshake_data()?.downcast().ok().map(|facts| *facts)
    }
}

pub(crate) fn nothing_listens(attempt: &str) -> Failure {
    Failure { kind: ErrorKind::Refused, message: format!("{attempt}: nothing listens there (ICMP port unreachable)") }
}
