//! The servers: one endpoint, a task per connection, a task per request.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::tls::rustls::Server as Tls;
use s2n_quic::{Connection, Server, application};
use tachyon_quic::h3::error::Code;
use tokio::sync::mpsc;
use wirelab_contract::spec::Congestion;
use wirelab_endpoint::program::tls::server_with;
use wirelab_endpoint::program::{Accounts, Bound, Refusal, SERVER_IDLE, ServerSpec, Site, Stop, answer, h3_connection};

use crate::events::{Gauge, Listener, Platform, Shared};
use crate::settings::Settings;
use crate::stream::{DONE, Stream};
use crate::tls::provider;

/// The longest wait of a stopping server until the goodbyes to its clients are sent.
const GOODBYE: Duration = Duration::from_millis(50);

/// Binds an HTTP/3 server.
pub async fn bind_h3(spec: ServerSpec, site: Arc<Site>, stop: Stop) -> Result<Bound, Refusal> {
    let code = application::Error::new(Code::H3_NO_ERROR.value()).unwrap_or(DONE);
    bind(&spec, stop, code, move |connection| {
        h3_connection::serve(tachyon_quic::Connection::new(connection), Arc::clone(&site))
    })
}

/// Binds a server for raw requests.
pub async fn bind_quic(spec: ServerSpec, site: Arc<Site>, stop: Stop) -> Result<Bound, Refusal> {
    bind(&spec, stop, DONE, move |connection| answer_streams(connection, Arc::clone(&site)))
}

async fn answer_streams(mut connection: Connection, site: Arc<Site>) {
    // Ends with the connection, closed by either side.
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        let site = Arc::clone(&site);
        tokio::spawn(async move { answer(Stream(stream), &site).await });
    }
}

/// Binds a server that runs `serve` for each connection, and closes them with `code` when it stops.
fn bind<F>(
    spec: &ServerSpec,
    stop: Stop,
    code: application::Error,
    serve: impl Fn(Connection) -> F + Send + Sync + 'static,
) -> Result<Bound, Refusal>
where
    F: Future<Output = ()> + Send + 'static,
{
    if spec.tls.as_ref().is_some_and(|tls| tls.resumption || tls.early_data) {
        return Err(Refusal::unsupported(
            "`tls`: s2n-quic issues session tickets only by an unstable feature, and has no 0-RTT",
        ));
    }
    let settings = Settings::new(&spec.transport, spec.qlog_dir.as_deref(), SERVER_IDLE)?;
    let address = SocketAddr::new(spec.address, spec.port);
    let (socket, io) = settings.io(address)?;
    let platform = Arc::new(Platform::default());
    let tls = Tls::from(server_with(spec, provider())?);
    let failed = |error: &dyn Display| Refusal::failed(format!("starting s2n-quic at {address}: {error}"));
    let builder = Server::builder()
        .with_tls(tls)
        .map_err(|error| failed(&error))?
        .with_io(io)
        .map_err(|error| failed(&error))?
        .with_limits(settings.limits())
        .map_err(|error| failed(&error))?
        .with_event(Listener(Arc::clone(&platform)))
        .map_err(|error| failed(&error))?;
    let server = match settings.congestion() {
        Congestion::Bbr => builder.with_congestion_controller(Bbr::default()).map(|builder| builder.start()),
        _ => builder.with_congestion_controller(Cubic::default()).map(|builder| builder.start()),
    };
    let server = server.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
    let port = server.local_addr().map_err(|error| failed(&error))?.port();
    let configured = settings.report(&socket, &platform)?;
    let accounts = Accounts::default();
    let run = run(server, stop, code, accounts.clone(), serve);
    Ok(Bound { port, configured, accounts: Some(accounts), run: Box::pin(run) })
}

async fn run<F>(
    mut server: Server,
    mut stop: Stop,
    code: application::Error,
    accounts: Accounts,
    serve: impl Fn(Connection) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    // Every connection's task holds the sender; when the last one is gone the receiver ends.
    let (alive, mut all_gone) = mpsc::channel::<()>(1);
    let told = stop.clone();
    let accept = async {
        while let Some(connection) = server.accept().await {
            let (alive, mut told) = (alive.clone(), told.clone());
            let handle = connection.handle();
            let account = accounts.of(Arc::new(Gauge::new(&handle, &Shared::of(&handle))));
            let serving = serve(connection);
            tokio::spawn(async move {
                tokio::select! {
                    () = serving => {}
                    () = told.asked() => handle.close(code),
                }
                drop((account, alive));
            });
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop.asked() => {}
    }
    drop(alive);
    let _ = all_gone.recv().await;
    // Only the endpoint's own tasks know when the packets are sent.
    tokio::time::sleep(GOODBYE).await;
}
