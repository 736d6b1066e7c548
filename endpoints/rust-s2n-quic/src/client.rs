//! Opens connections for both protocols, and knows how each began.
//!
//! All connections of a thread share one endpoint with one socket, as s2n-quic is meant to be used: its endpoint keeps
//! 8 MiB of receive buffers and three tasks.

use std::cell::RefCell;
use std::fmt::Display;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Instant;

use s2n_quic::client::Connect;
use s2n_quic::connection::Handle;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::tls::rustls::Client as Tls;
use s2n_quic::stream::Error as StreamError;
use s2n_quic::{Client, Connection, application};
use serde_json::json;
use tachyon_quic::{Connection as Adapter, OpenStreams};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::{ClientSpec, Congestion, Resumption};
use wirelab_endpoint::program::tls::client_with;
use wirelab_endpoint::program::{
    ATTEMPT, Account, Accounts, Configured, Dial, Failure, Http3, RawQuic, Refusal, Servers, client_idle, done_code,
    udp_socket,
};

use crate::events::{Gauge, Listener, Platform, Shared};
use crate::settings::Settings;
use crate::stream::{Stream, of_connection, of_stream};
use crate::tls::provider;

/// Opens connections to the server of a spec.
pub struct Dialer {
    servers: Servers,
    name: String,
    alpn: &'static str,
    /// The code that closes a connection without an error.
    done: application::Error,
    endpoint: Client,
    /// Kept open to read its active settings.
    _socket: UdpSocket,
    accounts: Accounts,
    configured: RefCell<Configured>,
}

impl Dial for Dialer {
    type Wire = Connection;
    type Link = Link;

    fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        if spec.resumption != Resumption::None {
            return Err(Refusal::unsupported(
                "`resumption`: s2n-quic takes session tickets only by an unstable feature, and has no 0-RTT",
            ));
        }
        let settings = Settings::new(&spec.transport, spec.qlog_dir.as_deref(), client_idle(spec))?;
        let (socket, io) = settings.io(udp_socket::any_port(spec.address))?;
        let platform = Arc::new(Platform::default());
        let tls = Tls::from(client_with(spec, provider())?.config);
        let failed = |error: &dyn Display| Refusal::failed(format!("starting s2n-quic: {error}"));
        let builder = Client::builder()
            .with_tls(tls)
            .map_err(|error| failed(&error))?
            .with_io(io)
            .map_err(|error| failed(&error))?
            .with_limits(settings.limits())
            .map_err(|error| failed(&error))?
            .with_event(Listener(Arc::clone(&platform)))
            .map_err(|error| failed(&error))?;
        let endpoint = match settings.congestion() {
            Congestion::Bbr => builder.with_congestion_controller(Bbr::default()).map(|builder| builder.start()),
            _ => builder.with_congestion_controller(Cubic::default()).map(|builder| builder.start()),
        };
        let endpoint = endpoint.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        let configured = RefCell::new(settings.report(&socket, &platform)?);
        Ok(Self {
            servers: Servers::new(spec),
            name: spec.server_name.clone(),
            alpn: spec.protocol.alpn().unwrap_or_default(),
            done: done_code(spec.protocol).into(),
            endpoint,
            _socket: socket,
            accounts: Accounts::default(),
            configured,
        })
    }

    async fn dial(&self) -> Result<(Connection, Link, Instant), Failure> {
        let server = self.servers.next();
        let attempt = format!("connecting to {} at {server} by QUIC", self.name);
        let connect = Connect::new(server).with_server_name(self.name.as_str());
        let connection = self.endpoint.connect(connect).await.map_err(|error| of_connection(&attempt, &error))?;
        let ready = Instant::now();
        let alpn = connection.application_protocol().map_err(|error| of_connection(&attempt, &error))?;
        if alpn != self.alpn.as_bytes() {
            let got = String::from_utf8_lossy(&alpn);
            let message = format!("the server at {server} negotiated the protocol `{got}`, not {}", self.alpn);
            return Err(Failure::new(ErrorKind::Protocol, message));
        }
        let handle = connection.handle();
        let shared = Shared::of(&handle);
        let account = self.accounts.of(Arc::new(Gauge::new(&handle, &shared)));
        let link = Link { handle, shared, _account: account };
        self.record(&link);
        Ok((connection, link, ready))
    }

    fn is_open(link: &Link) -> bool {
        link.shared.facts().closed.is_none()
    }

    /// Nothing is ever resumed: the TLS configuration keeps no tickets.
    fn handshake(_: &Link) -> Option<Handshake> {
        Some(Handshake::Full)
    }

    async fn close(&self, link: &Link) {
        self.record(link);
        link.handle.close(self.done);
        // The endpoint's task makes the packet, and the task of its socket sends it, each when it gets its turn.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
    }

    fn configured(&self) -> Configured {
        self.configured.borrow().clone()
    }

    fn accounts(&self) -> &Accounts {
        &self.accounts
    }
}

impl Http3 for Dialer {
    type Adapter = Adapter;
    type Opener = OpenStreams;

    fn adapt(connection: Connection) -> Adapter {
        Adapter::new(connection)
    }

    fn failure_or(link: &Link, attempt: &str, otherwise: Failure) -> Failure {
        match &link.shared.facts().closed {
            Some(error) => of_connection(attempt, error),
            None => otherwise,
        }
    }
}

impl RawQuic for Dialer {
    type Stream = Stream;

    async fn open(link: &Link) -> Result<Stream, Failure> {
        let mut handle = link.handle.clone();
        let stream = handle.open_bidirectional_stream().await.map_err(|error| of_connection(ATTEMPT, &error))?;
        Ok(Stream(stream))
    }

    fn failure(_: &Link, error: StreamError) -> Failure {
        of_stream(ATTEMPT, &error)
    }
}

impl Dialer {
    /// Notes the current facts about a connection.
    fn record(&self, link: &Link) {
        let facts = link.shared.facts();
        let mut configured = self.configured.borrow_mut();
        let mut say = |name: &str, value: serde_json::Value| configured.insert(name.to_owned(), value);
        say("alpn", json!(self.alpn));
        if let Some(cipher) = &facts.cipher {
            say("cipher", json!(cipher));
        }
        if let Some(group) = &facts.group {
            say("group", json!(group));
        }
        if let Some(bytes) = facts.certificate_chain_bytes {
            say("certificate_chain_bytes", json!(bytes));
        }
        if let Some(payload) = facts.udp_payload {
            say("udp_payload", json!(payload));
        }
    }
}

/// An open connection.
pub struct Link {
    handle: Handle,
    shared: Shared,
    _account: Account,
}
