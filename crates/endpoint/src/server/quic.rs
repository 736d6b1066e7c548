//! The QUIC server: the endpoint that `quic` and `h3` share, and the answers to raw requests.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, Endpoint, Incoming, ServerConfig, ValidationTokenConfig, VarInt, ZeroRttAccepted};
use tokio::time::timeout;
use wirelab_contract::spec::ServerSpec;

use crate::quic_config::QuicSettings;
use crate::quic_contract::SERVER_IDLE;
use crate::quic_meter::QuinnMeter;
use crate::quic_stream::QuicStream;
use crate::quic_tokens::OneUse;
use crate::raw_stream;
use crate::refusal::Refusal;
use crate::server::{Bound, Site, Stop};
use crate::stderr::write_line;
use crate::tls;
use crate::transport_accounts::Accounts;

/// Time limit for a stopping server to close its connections.
const CLOSE_LIMIT: Duration = Duration::from_millis(500);

/// Number of address validation tokens for each client if resumption is on: the same as rustls's number of tickets.
const TOKENS: u32 = 2;

/// Binds a server for raw requests.
pub(crate) async fn bind(spec: &ServerSpec, site: Arc<Site>, stop: Stop) -> Result<Bound, Refusal> {
    bind_with(spec, stop, 0, move |connection| answer_streams(connection, Arc::clone(&site)))
}

/// Binds a QUIC server that runs `serve` for each connection, and closes them with `code` when it stops.
pub(crate) fn bind_with<F>(
    spec: &ServerSpec,
    mut stop: Stop,
    code: u32,
    serve: impl Fn(Connection) -> F + Clone + Send + 'static,
) -> Result<Bound, Refusal>
where
    F: Future<Output = ()> + Send + 'static,
{
    let settings = QuicSettings::new(&spec.transport, spec.qlog_dir.as_deref(), "server")?;
    let early = spec.tls.as_ref().is_some_and(|tls| tls.early_data);
    let config = server_config(spec, &settings)?;
    let address = SocketAddr::new(spec.address, spec.port);
    let socket = settings.socket(address, None)?;
    let endpoint = settings.endpoint(&socket, Some(config.clone()))?;
    let port = endpoint.local_addr().map_err(|error| Refusal::failed(format!("binding {address}: {error}")))?.port();
    let configured = settings.report(&socket);
    let accounts = Accounts::default();
    let reception = Reception { settings, config, early, accounts: accounts.clone() };
    let run = async move {
        let accept = accept(&endpoint, reception, serve);
        tokio::select! {
            () = accept => {}
            () = stop.asked() => {}
        }
        endpoint.close(VarInt::from_u32(code), b"stop");
        // A vanished client never confirms; without the limit the wait would last for the draining period.
        let _ = timeout(CLOSE_LIMIT, endpoint.wait_idle()).await;
    };
    Ok(Bound { port, configured, accounts: Some(accounts), run: Box::pin(run) })
}

/// The configuration of all connections.
pub(super) fn server_config(spec: &ServerSpec, settings: &QuicSettings) -> Result<ServerConfig, Refusal> {
    let crypto = QuicServerConfig::try_from(tls::server(spec)?)
        .map_err(|error| Refusal::failed(format!("setting up TLS for QUIC: {error}")))?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(settings.transport(SERVER_IDLE)?));
    let resumes = spec.tls.as_ref().is_some_and(|tls| tls.early_data || tls.resumption);
    let mut tokens = ValidationTokenConfig::default();
    tokens.sent(if resumes { TOKENS } else { 0 });
    if resumes {
        tokens.log(Arc::new(OneUse::default()));
    }
    config.validation_token_config(tokens);
    Ok(config)
}

/// Options for incoming connections.
struct Reception {
    settings: QuicSettings,
    config: ServerConfig,
    /// Whether to answer early data before the handshake ends.
    early: bool,
    accounts: Accounts,
}

impl Reception {
    /// Accepts a connection, with a future for the end of a handshake that is still in progress; `None` if it failed,
    /// which the client reports.
    async fn receive(&self, incoming: Incoming) -> Option<(Connection, Option<ZeroRttAccepted>)> {
        let connecting = match self.settings.logged(SERVER_IDLE) {
            Ok(None) => incoming.accept(),
            Ok(Some(transport)) => {
                let mut config = self.config.clone();
                config.transport_config(transport);
                incoming.accept_with(Arc::new(config))
            }
            Err(refusal) => {
                // Without the requested log the connection would differ from the specified one.
                write_line(format_args!("refusing a connection: {refusal}"));
                incoming.refuse();
                return None;
            }
        };
        if self.early {
            let (connection, handshake) = connecting.ok()?.into_0rtt().ok()?;
            return Some((connection, Some(handshake)));
        }
        Some((connecting.ok()?.await.ok()?, None))
    }
}

async fn accept<F>(endpoint: &Endpoint, reception: Reception, serve: impl Fn(Connection) -> F + Clone + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    let reception = Arc::new(reception);
    while let Some(incoming) = endpoint.accept().await {
        let (reception, serve) = (Arc::clone(&reception), serve.clone());
        tokio::spawn(async move {
            if let Some((connection, handshake)) = reception.receive(incoming).await {
                let _account = reception.accounts.of(Arc::new(QuinnMeter(connection.clone())));
                let mut serving = pin!(serve(connection));
                if let Some(handshake) = handshake {
                    // Before a client that must send another key share has announced its stream limit, no stream can be
                    // opened, and quinn does not wake the waiting task when the limit arrives. Polling again at the end
                    // of the handshake avoids this.
                    tokio::select! {
                        biased;
                        () = &mut serving => return,
                        _ = handshake => {}
                    }
                }
                serving.await;
            }
        });
    }
}

async fn answer_streams(connection: Connection, site: Arc<Site>) {
    // Ends with the connection, whichever side closes it.
    while let Ok((send, receive)) = connection.accept_bi().await {
        let site = Arc::clone(&site);
        tokio::spawn(async move { raw_stream::answer(QuicStream(send, receive), &site).await });
    }
}
