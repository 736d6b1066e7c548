//! Opens connections for both protocols, and knows how each began. Every connection has a socket of its own, as
//! tokio-quiche wants it.

use std::cell::RefCell;
use std::fmt::Display;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::UdpSocket;
use tokio_quiche::http3::driver::ClientH3Controller;
use tokio_quiche::http3::settings::Http3Settings;
use tokio_quiche::quic::connect_with_config;
use tokio_quiche::socket::Socket;
use tokio_quiche::{ApplicationOverQuic, ClientH3Driver};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::{ClientSpec, Resumption};
use wirelab_endpoint::program::{
    ATTEMPT, Account, Accounts, Configured, Dial, Failure, RawQuic, Refusal, Servers, Tickets, done_code,
    ticket_timeout, udp_socket,
};

use crate::hooks::Trust;
use crate::line::{Expects, Line};
use crate::raw::{Broken, Stream};
use crate::settings::Settings;
use crate::streams::{Opener, Streams};
use crate::watched::Watched;

/// The longest wait for the end of a connection, which comes as soon as its driver runs.
const GOODBYE: Duration = Duration::from_millis(500);

type Connected = Socket<Arc<UdpSocket>, Arc<UdpSocket>>;

/// The driver of a connection, and its channels.
pub trait Application: 'static {
    /// The application that tokio-quiche runs.
    type Driver: ApplicationOverQuic;

    /// The half for the user of the connection.
    type Wire: 'static;

    /// The half for the connection.
    type Stay: 'static;

    /// All three of a new connection.
    fn new() -> (Self::Driver, Self::Wire, Self::Stay);
}

/// HTTP/3 by tokio-quiche's own driver.
pub struct Http;

impl Application for Http {
    type Driver = ClientH3Driver;
    type Wire = ClientH3Controller;
    type Stay = ();

    fn new() -> (ClientH3Driver, ClientH3Controller, ()) {
        let (driver, controller) = ClientH3Driver::new(Http3Settings::default());
        (driver, controller, ())
    }
}

/// Bare streams.
pub struct OfStreams;

impl Application for OfStreams {
    type Driver = Streams;
    type Wire = ();
    type Stay = Opener;

    fn new() -> (Streams, (), Opener) {
        let (streams, opener) = Streams::of_client();
        (streams, (), opener)
    }
}

/// Opens connections to the server of a spec.
pub struct Dialer<A> {
    servers: Servers,
    name: String,
    alpn: &'static str,
    done: u64,
    resumes: bool,
    settings: Settings,
    trust: Trust,
    tickets: Tickets,
    accounts: Accounts,
    configured: RefCell<Configured>,
    application: PhantomData<A>,
}

impl<A: Application> Dial for Dialer<A> {
    type Wire = A::Wire;
    type Link = Link<A>;

    fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let (settings, trust) = Settings::client(spec)?;
        let servers = Servers::new(spec);
        // Opened once now, to refuse a setting that cannot be honoured before the measurement.
        let socket = udp_socket::open(udp_socket::any_port(servers.first().ip()), settings.transport())?;
        let (_, switched) = settings.prepare(&socket)?;
        let configured = settings.report(&socket, switched);
        Ok(Self {
            servers,
            name: spec.server_name.clone(),
            alpn: spec.protocol.alpn().unwrap_or_default(),
            done: done_code(spec.protocol).into(),
            resumes: spec.resumption != Resumption::None,
            settings,
            trust,
            tickets: Tickets::default(),
            accounts: Accounts::default(),
            configured: RefCell::new(configured),
            application: PhantomData,
        })
    }

    async fn dial(&self) -> Result<(A::Wire, Link<A>, Instant), Failure> {
        let server = self.servers.next();
        let attempt = format!("connecting to {} at {server} by QUIC", self.name);
        let failed = |kind, why: &dyn Display| Failure::new(kind, format!("{attempt}: {why}"));
        let other = |error: io::Error| failed(ErrorKind::Other, &error);
        let socket = udp_socket::open(udp_socket::any_port(server.ip()), self.settings.transport());
        let socket = socket.map_err(Refusal::into_failure)?;
        udp_socket::connect(&socket, server)?;
        let (capabilities, _) = self.settings.prepare(&socket).map_err(Refusal::into_failure)?;
        let mut socket = UdpSocket::from_std(socket).and_then(Connected::try_from).map_err(other)?;
        socket.capabilities = capabilities;
        let expects = Expects { server: self.name.clone(), alpn: self.alpn, ticket: self.resumes };
        let line = Arc::new(Line::new(self.done, Some(expects)));
        let (driver, wire, stay) = A::new();
        let hook = self.trust.hook();
        let parameters = self.settings.of_client(Arc::clone(&hook), self.tickets.take());
        // From here on, dropping the future closes the connection.
        let account = self.accounts.of(line.clone());
        let link = Link { line: Arc::clone(&line), stay, _account: account };
        let connecting = connect_with_config(socket, Some(&self.name), &parameters, Watched::new(driver, line));
        tokio::select! {
            biased;
            reason = hook.rejected() => {
                let why = format!("the server's certificate was not accepted: {reason}");
                return Err(failed(ErrorKind::Certificate, &why));
            }
            connected = connecting => {
                connected.map_err(|error| {
                    let why = format!("the handshake failed, and tokio-quiche does not say why ({error})");
                    failed(ErrorKind::Other, &why)
                })?;
            }
        }
        let begun = link.line.begun().await?;
        let ready = Instant::now();
        self.configured.borrow_mut().extend(begun.configured);
        Ok((wire, link, ready))
    }

    fn is_open(link: &Link<A>) -> bool {
        link.line.is_open()
    }

    fn handshake(link: &Link<A>) -> Option<Handshake> {
        link.line.handshake()
    }

    async fn close(&self, link: &Link<A>) {
        if self.resumes {
            let limit = ticket_timeout(link.line.round_trip());
            let ticket = tokio::time::timeout(limit, link.line.ticket()).await;
            self.tickets.keep(ticket.ok().flatten());
        }
        link.line.close();
        let _ = tokio::time::timeout(GOODBYE, link.line.over()).await;
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

impl RawQuic for Dialer<OfStreams> {
    type Stream = Stream;

    async fn open(link: &Link<OfStreams>) -> Result<Stream, Failure> {
        let lost = || Failure::new(ErrorKind::Reset, format!("{ATTEMPT}: the connection is closed"));
        link.stay.open().ok_or_else(|| link.line.failure_or(lost()))
    }

    fn failure(link: &Link<OfStreams>, broken: Broken) -> Failure {
        link.line.failure_or(Failure::new(ErrorKind::Reset, format!("{ATTEMPT}: {broken}")))
    }
}

/// An open connection.
pub struct Link<A: Application> {
    /// Facts about it.
    pub line: Arc<Line>,
    stay: A::Stay,
    _account: Account,
}

impl<A: Application> Drop for Link<A> {
    fn drop(&mut self) {
        self.line.close();
    }
}
