//! Opens connections for both protocols, and knows how each began. Every connection has a socket of its own.

use std::cell::RefCell;
use std::fmt::Display;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use boring::rand::rand_bytes;
use quiche::ConnectionId;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::{ClientSpec, Resumption};
use wirelab_endpoint::program::{
    Accounts, Answer, Configured, Dial, Failure, Refusal, RequestProtocol, Servers, Sink, Tickets, client_idle,
    udp_socket,
};
use wirelab_quiche::record;

use crate::link::{Handle, Link};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::socket::Socket;
use crate::speaker::Speaker;

/// Opens connections to the server of a spec, on which `S` is spoken.
pub struct Dialer<S> {
    servers: Servers,
    name: String,
    alpn: &'static str,
    spec: ClientSpec,
    settings: RefCell<Settings>,
    tickets: Tickets,
    accounts: Accounts,
    configured: RefCell<Configured>,
    speaker: PhantomData<S>,
}

impl<S: Speaker> Dial for Dialer<S> {
    type Wire = ();
    type Link = Handle<S>;

    fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let settings = Settings::client(spec, client_idle(spec))?;
        let dialer = Self {
            servers: Servers::new(spec),
            name: spec.server_name.clone(),
            alpn: spec.protocol.alpn().unwrap_or_default(),
            spec: spec.clone(),
            settings: RefCell::new(settings),
            tickets: Tickets::default(),
            accounts: Accounts::default(),
            configured: RefCell::default(),
            speaker: PhantomData,
        };
        // Opened once now, to refuse a setting that cannot be honoured before the measurement.
        let socket = dialer.socket(dialer.servers.first())?;
        dialer.configured.replace(dialer.settings.borrow().report(&socket));
        Ok(dialer)
    }

    async fn dial(&self) -> Result<((), Handle<S>, Instant), Failure> {
        let server = self.servers.next();
        let attempt = format!("connecting to {} at {server} by QUIC", self.name);
        let socket = self.socket(server).map_err(Refusal::into_failure)?;
        let connection = Shared::new(self.begin(socket.local(), server, &attempt)?);
        let account = self.accounts.of(Arc::new(connection.clone()));
        let link = Link::start(connection, socket, account);
        link.ready(&attempt).await?;
        let ready = Instant::now();
        if link.handshake().is_some() {
            self.record(&link)?;
        }
        Ok(((), link, ready))
    }

    fn is_open(link: &Handle<S>) -> bool {
        link.is_open()
    }

    fn handshake(link: &Handle<S>) -> Option<Handshake> {
        link.handshake()
    }

    async fn close(&self, link: &Handle<S>) {
        if link.handshake().is_some() {
            let _ = self.record(link);
        }
        self.tickets.keep(link.close(self.spec.resumption != Resumption::None).await);
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

impl<S: Speaker> Dialer<S> {
    fn begin(&self, local: SocketAddr, server: SocketAddr, attempt: &str) -> Result<quiche::Connection, Failure> {
        let other = |error: &dyn Display| Failure::new(ErrorKind::Other, format!("{attempt}: {error}"));
        let mut id = vec![0; quiche::MAX_CONN_ID_LEN];
        rand_bytes(&mut id).map_err(|error| other(&error))?;
        let settings = &mut *self.settings.borrow_mut();
        let id = ConnectionId::from_vec(id);
        let mut connection = quiche::connect(Some(&self.name), &id, local, server, &mut settings.config)
            .map_err(|error| other(&error))?;
        if let Some(ticket) = self.tickets.take() {
            connection.set_session(&ticket).map_err(|error| other(&error))?;
        }
        settings.attach_logs(&mut connection)?;
        Ok(connection)
    }

    fn socket(&self, server: SocketAddr) -> Result<Socket, Refusal> {
        Socket::open(udp_socket::any_port(server.ip()), Some(server), false, &self.spec.transport)
    }

    /// Notes the negotiated values, and checks the application protocol.
    fn record(&self, link: &Link<S>) -> Result<(), Failure> {
        let mut connection = link.connection().lock();
        record(&mut connection, &self.name, self.alpn, &mut self.configured.borrow_mut())
    }
}

/// Requests on a connection, which itself knows how they are sent.
pub struct Requests;

impl<S: Speaker> RequestProtocol<Dialer<S>> for Requests {
    type Order = S::Request;

    fn order(spec: &ClientSpec) -> Result<S::Request, Refusal> {
        S::order(spec)
    }

    async fn begin((): (), _: &Handle<S>) -> Result<Self, Failure> {
        Ok(Self)
    }

    async fn request(
        &self,
        _: &Dialer<S>,
        link: &Handle<S>,
        order: &S::Request,
        body: Option<Sink<'_>>,
    ) -> Result<Answer, Failure> {
        let answer = link.exchange(order, body).await?;
        link.decided().await;
        S::judge(order, answer)
    }
}
