//! Opens connections for both protocols, and knows how each began.

use std::cell::RefCell;
use std::ffi::CString;
use std::sync::Arc;
use std::time::Instant;

use rustls_pki_types::ServerName;
use serde_json::json;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::{ClientSpec, Resumption};
use wirelab_endpoint::program::{
    ATTEMPT, Account, Accounts, Configured, Dial, Failure, Http3, RawQuic, Refusal, Servers, Tickets, client_idle,
    done_code, given_up_code, ticket_timeout,
};

use crate::connection::{Connection, Line, Target, Wishes};
use crate::failure::Broken;
use crate::h3_adapter::{Adapter, Opener};
use crate::key_log::KeyLog;
use crate::raw::Raw;
use crate::settings::Settings;
use crate::sockets;
use crate::statistics::Gauge;

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
    tickets: Tickets,
    accounts: Accounts,
    configured: RefCell<Configured>,
}

impl Dial for Dialer {
    type Wire = Line;
    type Link = Link;

    fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        if spec.resumption == Resumption::ZeroRtt {
            return Err(Refusal::unsupported(
                "`resumption`: MsQuic does not tell a client whether its server took early data",
            ));
        }
        let settings = Settings::client(spec, client_idle(spec))?;
        let invalid = || Refusal::failed(format!("`{}` is not a name that TLS can send and check", spec.server_name));
        let name = ServerName::try_from(spec.server_name.clone()).map_err(|_| invalid())?;
        let tls = spec.tls.as_ref();
        let wishes = Wishes {
            keys: tls.and_then(|tls| tls.key_log.as_deref()).map(KeyLog::open).transpose()?,
            subject: tls.is_some_and(|tls| tls.verify).then_some(name),
            gives_ticket: false,
            abandon: given_up_code(spec.protocol).into(),
        };
        let configured = RefCell::new(settings.report()?);
        Ok(Self {
            servers: Servers::new(spec),
            name: spec.server_name.clone(),
            sent_name: CString::new(spec.server_name.as_str()).map_err(|_| invalid())?,
            alpn: spec.protocol.alpn().unwrap_or_default(),
            settings,
            wishes,
            done: done_code(spec.protocol).into(),
            resumes: spec.resumption != Resumption::None,
            tickets: Tickets::default(),
            accounts: Accounts::default(),
            configured,
        })
    }

    async fn dial(&self) -> Result<(Line, Link, Instant), Failure> {
        let server = self.servers.next();
        let attempt = format!("connecting to {} at {server} by QUIC", self.name);
        let ticket = self.tickets.take();
        let target = Target { server, name: &self.sent_name, ticket: ticket.as_deref() };
        let line = Connection::open(self.settings.configuration(), &target, self.wishes.clone())
            .map_err(|status| Failure::new(ErrorKind::Other, format!("{attempt}: {status}")))?;
        let connection = Arc::clone(&line.connection);
        // From here on, dropping the future closes the connection.
        let mut link = Link { connection, done: self.done, account: None };
        link.connection.connected().await.map_err(|closed| closed.failure(&attempt))?;
        let ready = Instant::now();
        link.account = Some(self.accounts.of(Arc::new(Gauge(Arc::clone(&link.connection)))));
        self.record(&link);
        Ok((line, link, ready))
    }

    fn is_open(link: &Link) -> bool {
        link.connection.closed().is_none()
    }

    fn handshake(link: &Link) -> Option<Handshake> {
        Some(if link.connection.is_resumed() { Handshake::Resumed } else { Handshake::Full })
    }

    async fn close(&self, link: &Link) {
        if self.resumes {
            let limit = ticket_timeout(link.connection.smoothed_round_trip());
            let ticket = tokio::time::timeout(limit, link.connection.ticket()).await;
            self.tickets.keep(ticket.ok().flatten());
        }
        link.connection.shut_down(self.done);
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

impl Http3 for Dialer {
    type Adapter = Adapter;
    type Opener = Opener;

    fn adapt(line: Line) -> Adapter {
        Adapter::new(line)
    }

    fn failure_or(link: &Link, attempt: &str, otherwise: Failure) -> Failure {
        link.connection.closed().map_or(otherwise, |closed| closed.failure(attempt))
    }
}

impl RawQuic for Dialer {
    type Stream = Raw;

    async fn open(link: &Link) -> Result<Raw, Failure> {
        link.connection.open_both().map(Raw::new).map_err(|broken| broken.failure(ATTEMPT))
    }

    fn failure(_: &Link, broken: Broken) -> Failure {
        broken.failure(ATTEMPT)
    }
}

impl Dialer {
    /// Notes the negotiated values, once: all connections have the same settings.
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
}

/// An open connection.
pub struct Link {
    connection: Arc<Connection>,
    done: u64,
    account: Option<Account>,
}

impl Drop for Link {
    fn drop(&mut self) {
        // Its counters are read before it is closed.
        drop(self.account.take());
        self.connection.shut_down(self.done);
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
