//! HTTP/3 and raw QUIC for the load engine: quinn's protocol machine without its runtime, on the reactor of the engine.
//!
//! Every connection has its own UDP socket, so that one event of the reactor belongs to one connection.

mod application;
mod exchange;
mod link;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::{ClientConfig, Endpoint, EndpointConfig};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::spec::{ClientSpec, Resumption};
use wirelab_engine::link::Dialer;
use wirelab_engine::poller::Poller;

use crate::client::dial::{client_config, sessions};
use crate::client::servers::Servers;
use crate::client::transport::Failure;
use crate::quic_batches::{Scratch, Socket};
use crate::quic_config::QuicSettings;
use crate::quic_contract::client_idle;
use crate::refusal::Refusal;
use crate::tls;
use crate::transport_accounts::Accounts;

use application::Application;
pub(crate) use application::{Http3, Raw};
pub(crate) use link::QuicLink;

/// Opens connections to the server of a spec.
pub(crate) struct QuicDialer<A: Application> {
    servers: Servers,
    name: String,
    config: ClientConfig,
    idle: std::time::Duration,
    common: Rc<Common<A>>,
    tickets: Arc<tls::TicketStore>,
    accounts: Accounts,
}

/// State that all connections of a thread share.
struct Common<A: Application> {
    settings: QuicSettings,
    endpoint: Arc<EndpointConfig>,
    alpn: Vec<u8>,
    name: String,
    resumption: Resumption,
    plan: A::Plan,
    scratch: RefCell<Scratch>,
    configured: RefCell<Configured>,
}

impl<A: Application> Dialer for QuicDialer<A> {
    type Link = QuicLink<A>;

    fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let side = tls::client(spec)?;
        let settings = QuicSettings::new(&spec.transport, spec.qlog_dir.as_deref(), "client")?;
        let config = client_config(spec, sessions(&side)?.without_padding(), &settings)?;
        let servers = Servers::new(spec);
        // Opened once now, so that an unsupported setting is known before the measurement.
        let socket = Socket::connected(&settings, servers.first())?;
        let common = Common {
            endpoint: Arc::new(settings.endpoint_config()?),
            configured: RefCell::new(socket.report(&settings)),
            settings,
            alpn: spec.protocol.alpn().unwrap_or_default().as_bytes().to_vec(),
            name: spec.server_name.clone(),
            resumption: spec.resumption,
            plan: A::plan(spec)?,
            scratch: RefCell::default(),
        };
        Ok(Self {
            servers,
            name: spec.server_name.clone(),
            config,
            idle: client_idle(spec),
            common: Rc::new(common),
            tickets: side.tickets,
            accounts: Accounts::default(),
        })
    }

    fn dial(&mut self, poller: &Poller, token: u64) -> Result<QuicLink<A>, Failure> {
        let common = &self.common;
        let server = self.servers.next();
        let socket = Socket::connected(&common.settings, server).map_err(Refusal::into_failure)?;
        let failed = |error: String| {
            let attempt = format!("connecting to {} at {server} by QUIC", self.name);
            Failure::new(ErrorKind::Other, format!("{attempt}: {error}"))
        };
        socket.watch(poller, token).map_err(|error| failed(error.to_string()))?;
        let mut config = self.config.clone();
        if let Some(logged) = common.settings.logged(self.idle).map_err(Refusal::into_failure)? {
            config.transport_config(logged);
        }
        let mut endpoint = Endpoint::new(Arc::clone(&common.endpoint), None, !socket.may_fragment(), None);
        let (handle, connection) =
            endpoint.connect(Instant::now(), config, server, &self.name).map_err(|error| failed(error.to_string()))?;
        Ok(QuicLink::new(Rc::clone(common), (socket, server), endpoint, (handle, connection), &self.accounts))
    }

    fn configured(&self) -> Configured {
        self.common.configured.borrow().clone()
    }

    fn tickets(&self) -> usize {
        self.tickets.len()
    }

    fn accounts(&self) -> Option<&Accounts> {
        Some(&self.accounts)
    }
}
