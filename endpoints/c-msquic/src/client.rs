//! Opens connections for both protocols, and knows how each began.

use std::cell::RefCell;
use std::ffi::CString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls_pki_types::ServerName;
use serde_json::json;
use wirelab_endpoint::program::{Account, Accounts, Configured, Failure, Refusal, Servers};
use wirelab_model::outcome::ErrorKind;
use wirelab_model::sample::Handshake;
use wirelab_model::spec::{ClientSpec, Resumption};

use crate::connection::{Connection, Line, Target, Wishes};
use crate::key_log::KeyLog;
use crate::settings::Settings;
use crate::sockets;
use crate::statistics::Gauge;

/// How long a connection may hear nothing from its server: the default that RFC 9308, section 3.2, recommends.
const SHORTEST_IDLE: Duration = Duration::from_secs(30);

/// Session tickets kept at most.
const TICKETS_KEPT: usize = 1 << 16;

/// Opens connections to the server of a spec.
pub struct Dialer {
    servers: Servers,
    name: String,
    sent_name: CString,
    alpn: &'static str,
    settings: Settings,
    wishes: Wishes,
    /// The code that closes a connection without an error.
    done: u64,
    resumes: bool,
    /// Each is used once, the newest first.
    tickets: RefCell<Vec<Vec<u8>>>,
    accounts: Accounts,
    configured: RefCell<Configured>,
}

impl Dialer {
    /// A dialer by the spec; what cannot be honoured shows here. `done` closes a connection without an error, `abandon`
    /// gives up a stream.
    pub fn new(spec: &ClientSpec, done: u64, abandon: u64) -> Result<Self, Refusal> {
        if spec.resumption == Resumption::ZeroRtt {
            return Err(Refusal::unsupported(
                "`resumption`: MsQuic does not tell a client whether its server took early data",
            ));
        }
        let idle = SHORTEST_IDLE.max(2 * Duration::from_nanos(spec.timeouts.request_ns));
        let settings = Settings::client(spec, idle)?;
        let invalid = || Refusal::failed(format!("`{}` is not a name that TLS can send and check", spec.server_name));
        let name = ServerName::try_from(spec.server_name.clone()).map_err(|_| invalid())?;
        let tls = spec.tls.as_ref();
        let wishes = Wishes {
            keys: tls.and_then(|tls| tls.key_log.as_deref()).map(KeyLog::open).transpose()?,
            subject: tls.is_some_and(|tls| tls.verify).then_some(name),
            gives_ticket: false,
            abandon,
        };
        let configured = RefCell::new(settings.report()?);
        Ok(Self {
            servers: Servers::new(spec),
            name: spec.server_name.clone(),
            sent_name: CString::new(spec.server_name.as_str()).map_err(|_| invalid())?,
            alpn: spec.protocol.alpn().unwrap_or_default(),
            settings,
            wishes,
            done,
            resumes: spec.resumption != Resumption::None,
            tickets: RefCell::default(),
            accounts: Accounts::default(),
            configured,
        })
    }

    /// Opens a connection; when its handshake was complete.
    pub async fn dial(&self) -> Result<(Line, Link, Instant), Failure> {
        let server = self.servers.next();
        let attempt = format!("connecting to {} at {server} by QUIC", self.name);
        let ticket = self.tickets.borrow_mut().pop();
        let target = Target { server, name: &self.sent_name, ticket: ticket.as_deref() };
        let line = Connection::open(self.settings.configuration(), &target, self.wishes.clone())
            .map_err(|status| Failure::new(ErrorKind::Other, format!("{attempt}: {status}")))?;
        let connection = Arc::clone(&line.connection);
        // From here on it is closed when nobody waits for it any more.
        let mut link = Link { connection, done: self.done, account: None };
        link.connection.connected().await.map_err(|closed| closed.failure(&attempt))?;
        let ready = Instant::now();
        link.account = Some(self.accounts.of(Arc::new(Gauge(Arc::clone(&link.connection)))));
        self.record(&link);
        Ok((line, link, ready))
    }

    /// Notes what was negotiated, once: all connections are of the same settings.
    fn record(&self, link: &Link) {
        let mut configured = self.configured.borrow_mut();
        if configured.contains_key("alpn") {
            return;
        }
        // MsQuic offers the one protocol, and ends a handshake without it.
        configured.insert("alpn".to_owned(), json!(self.alpn));
        if let Some(facts) = link.connection.facts() {
            if let Some(cipher) = cipher_name(facts.cipher) {
                configured.insert("cipher".to_owned(), json!(cipher));
            }
            if let Some(group) = group_name(facts.group) {
                configured.insert("group".to_owned(), json!(group));
            }
        }
        if let Some(port) = link.connection.local_port() {
            sockets::report(port, &mut configured);
        }
    }

    /// Closes a connection and keeps its ticket, which is waited for, briefly.
    pub async fn close(&self, link: &Link) {
        if self.resumes {
            let trip = link.connection.smoothed_round_trip();
            let patience = 3 * trip + Duration::from_millis(100);
            let ticket = tokio::time::timeout(patience, link.connection.ticket()).await.ok().flatten();
            let mut tickets = self.tickets.borrow_mut();
            if let Some(ticket) = ticket.filter(|_| tickets.len() < TICKETS_KEPT) {
                tickets.push(ticket);
            }
        }
        link.connection.shut_down(self.done);
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

/// An open connection.
pub struct Link {
    /// The connection itself.
    pub connection: Arc<Connection>,
    done: u64,
    account: Option<Account>,
}

impl Drop for Link {
    fn drop(&mut self) {
        // What it counted is read before it is closed.
        drop(self.account.take());
        self.connection.shut_down(self.done);
    }
}

impl Link {
    /// Whether it can carry a further request.
    pub fn is_open(&self) -> bool {
        self.connection.closed().is_none()
    }

    /// How it began.
    pub fn handshake(&self) -> Handshake {
        if self.connection.is_resumed() { Handshake::Resumed } else { Handshake::Full }
    }

    /// The failure of the connection if it failed, else `otherwise`.
    pub fn failure_or(&self, attempt: &str, otherwise: Failure) -> Failure {
        self.connection.closed().map_or(otherwise, |closed| closed.failure(attempt))
    }
}

/// The name of a cipher suite in the registry of IANA.
const fn cipher_name(number: u32) -> Option<&'static str> {
    match number {
        0x1301 => Some("TLS_AES_128_GCM_SHA256"),
        0x1302 => Some("TLS_AES_256_GCM_SHA384"),
        0x1303 => Some("TLS_CHACHA20_POLY1305_SHA256"),
        _ => None,
    }
}

/// The name of a group, as other endpoints give it.
const fn group_name(number: u32) -> Option<&'static str> {
    match number {
        0x17 => Some("secp256r1"),
        0x18 => Some("secp384r1"),
        0x1d => Some("X25519"),
        0x11ec => Some("X25519MLKEM768"),
        _ => None,
    }
}
