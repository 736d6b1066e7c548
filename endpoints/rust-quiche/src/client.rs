//! Opens connections for both protocols, and knows how each began. Every connection has a socket of its own.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use boring::rand::rand_bytes;
use boring::ssl::SslRef;
use quiche::ConnectionId;
use serde_json::json;
use wirelab_endpoint::program::{Accounts, Configured, Failure, Refusal, Servers};
use wirelab_model::outcome::ErrorKind;
use wirelab_model::spec::{ClientSpec, Resumption};

use crate::link::{Handle, Link};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::socket::Socket;
use crate::speaker::Speaker;

/// How long a connection may hear nothing from its server: the default that RFC 9308, section 3.2, recommends.
const SHORTEST_IDLE: Duration = Duration::from_secs(30);

/// Session tickets kept at most.
const TICKETS_KEPT: usize = 1 << 16;

/// Opens connections to the server of a spec.
pub struct Dialer {
    servers: Servers,
    name: String,
    alpn: &'static str,
    spec: ClientSpec,
    settings: RefCell<Settings>,
    /// Each is used once, the newest first.
    tickets: RefCell<Vec<Vec<u8>>>,
    accounts: Accounts,
    configured: RefCell<Configured>,
}

impl Dialer {
    /// A dialer by the spec; what cannot be honoured shows here.
    pub fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let idle = SHORTEST_IDLE.max(2 * Duration::from_nanos(spec.timeouts.request_ns));
        let settings = Settings::client(spec, idle)?;
        let dialer = Self {
            servers: Servers::new(spec),
            name: spec.server_name.clone(),
            alpn: spec.protocol.alpn().unwrap_or_default(),
            spec: spec.clone(),
            settings: RefCell::new(settings),
            tickets: RefCell::default(),
            accounts: Accounts::default(),
            configured: RefCell::default(),
        };
        // Opened once now, so that a setting that cannot be honoured is known before anything is measured.
        let socket = dialer.socket(dialer.servers.first())?;
        dialer.configured.replace(dialer.settings.borrow().report(&socket));
        Ok(dialer)
    }

    /// Opens a connection. Where 0-RTT is asked for and a ticket is there it returns at once, ready for early data.
    pub async fn dial<S: Speaker>(&self) -> Result<(Handle<S>, Instant), Failure> {
        let server = self.servers.next();
        let attempt = format!("connecting to {} at {server} by QUIC", self.name);
        let late = |refusal| match refusal {
            Refusal::Failed(failure) => failure,
            Refusal::Unsupported(message) => Failure::new(ErrorKind::Other, message),
        };
        let socket = self.socket(server).map_err(late)?;
        let connection = Shared::new(self.begin(socket.local(), server, &attempt)?);
        let account = self.accounts.of(Arc::new(connection.clone()));
        let link = Link::start(connection, socket, account);
        link.ready(&attempt).await?;
        let ready = Instant::now();
        if link.handshake().is_some() {
            self.record(&link)?;
        }
        Ok((link, ready))
    }

    fn begin(&self, local: SocketAddr, server: SocketAddr, attempt: &str) -> Result<quiche::Connection, Failure> {
        let other = |error: &dyn std::fmt::Display| Failure::new(ErrorKind::Other, format!("{attempt}: {error}"));
        let mut id = vec![0; quiche::MAX_CONN_ID_LEN];
        rand_bytes(&mut id).map_err(|error| other(&error))?;
        let settings = &mut *self.settings.borrow_mut();
        let id = ConnectionId::from_vec(id);
        let mut connection = quiche::connect(Some(&self.name), &id, local, server, &mut settings.config)
            .map_err(|error| other(&error))?;
        if let Some(ticket) = self.tickets.borrow_mut().pop() {
            connection.set_session(&ticket).map_err(|error| other(&error))?;
        }
        settings.attach_logs(&mut connection)?;
        Ok(connection)
    }

    fn socket(&self, server: SocketAddr) -> Result<Socket, Refusal> {
        let any = match server.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Socket::open(SocketAddr::new(any, 0), Some(server), false, &self.spec.transport)
    }

    /// Notes what was negotiated, and checks the application protocol.
    pub fn record<S: Speaker>(&self, link: &Link<S>) -> Result<(), Failure> {
        let mut connection = link.connection().lock();
        let alpn = connection.application_proto();
        if alpn != self.alpn.as_bytes() {
            let got = String::from_utf8_lossy(alpn);
            let message = format!("{} negotiated the protocol `{got}`, not {}", self.name, self.alpn);
            return Err(Failure::new(ErrorKind::Protocol, message));
        }
        let mut configured = self.configured.borrow_mut();
        let mut say = |name: &str, value: serde_json::Value| configured.insert(name.to_owned(), value);
        say("alpn", json!(self.alpn));
        if let Some(chain) = connection.peer_cert_chain() {
            say("certificate_chain_bytes", json!(chain.iter().map(|der| der.len()).sum::<usize>()));
        }
        if let Some(path) = connection.path_stats().next() {
            say("udp_payload", json!(path.pmtu));
        }
        let tls: &mut SslRef = connection.as_mut();
        if let Some(cipher) = tls.current_cipher().and_then(|cipher| cipher.standard_name()) {
            say("cipher", json!(cipher));
        }
        if let Some(group) = tls.curve_name() {
            say("group", json!(group));
        }
        Ok(())
    }

    /// Closes a connection and keeps its ticket.
    pub async fn close<S: Speaker>(&self, link: &Link<S>) {
        if link.handshake().is_some() {
            let _ = self.record(link);
        }
        let ticket = link.close(self.spec.resumption != Resumption::None).await;
        let mut tickets = self.tickets.borrow_mut();
        if let Some(ticket) = ticket.filter(|_| tickets.len() < TICKETS_KEPT) {
            tickets.push(ticket);
        }
    }

    /// What is in force.
    pub fn configured(&self) -> Configured {
        self.configured.borrow().clone()
    }

    /// Session tickets in store.
    pub fn tickets(&self) -> usize {
        self.tickets.borrow().len()
    }

    /// What the connections say of their transport.
    pub const fn accounts(&self) -> &Accounts {
        &self.accounts
    }
}
