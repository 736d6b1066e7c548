//! The servers: tokio-quiche's tasks for a socket and for each connection, and a task for each request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_quiche::http3::driver::ServerH3Event;
use tokio_quiche::http3::settings::Http3Settings;
use tokio_quiche::metrics::DefaultMetrics;
use tokio_quiche::quic::SimpleConnectionIdGenerator;
use tokio_quiche::socket::QuicListener;
use tokio_quiche::{InitialQuicConnection, QuicConnectionStream, ServerH3Driver, listen_with_capabilities};
use wirelab_endpoint::program::{
    Accounts, Bound, Refusal, ServerSpec, Site, Stop, answer as answer_raw, done_code, udp_socket,
};

use crate::answer::answer;
use crate::line::Line;
use crate::settings::Settings;
use crate::streams::Streams;
use crate::watched::Watched;

/// The longest wait of a stopping server until its connections are closed.
const GOODBYE: Duration = Duration::from_millis(200);

/// A connection whose handshake is still to come.
type Incoming = InitialQuicConnection<UdpSocket, DefaultMetrics>;

/// Binds an HTTP/3 server.
pub async fn bind_h3(spec: ServerSpec, site: Arc<Site>, stop: Stop) -> Result<Bound, Refusal> {
    bind(&spec, stop, move |incoming, line| {
        let (driver, mut controller) = ServerH3Driver::new(Http3Settings::default());
        incoming.start(Watched::new(driver, line));
        let site = Arc::clone(&site);
        async move {
            while let Some(event) = controller.event_receiver_mut().recv().await {
                if let ServerH3Event::Headers { incoming_headers, .. } = event {
                    tokio::spawn(answer(incoming_headers, Arc::clone(&site)));
                }
            }
        }
    })
}

/// Binds a server for raw requests.
pub async fn bind_quic(spec: ServerSpec, site: Arc<Site>, stop: Stop) -> Result<Bound, Refusal> {
    bind(&spec, stop, move |incoming, line| {
        let (streams, mut accepted) = Streams::of_server();
        incoming.start(Watched::new(streams, line));
        let site = Arc::clone(&site);
        async move {
            while let Some(stream) = accepted.recv().await {
                let site = Arc::clone(&site);
                tokio::spawn(async move { answer_raw(stream, &site).await });
            }
        }
    })
}

/// Binds a server that starts each connection by `serve`, whose future then serves it.
fn bind<F>(
    spec: &ServerSpec,
    stop: Stop,
    serve: impl Fn(Incoming, Arc<Line>) -> F + Send + Sync + 'static,
) -> Result<Bound, Refusal>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (settings, hook) = Settings::server(spec)?;
    let address = SocketAddr::new(spec.address, spec.port);
    let failed = |error: std::io::Error| Refusal::failed(format!("listening at {address}: {error}"));
    let socket = udp_socket::open(address, settings.transport())?;
    let port = socket.local_addr().map_err(failed)?.port();
    let (capabilities, switched) = settings.prepare(&socket)?;
    let configured = settings.report(&socket, switched);
    let socket = UdpSocket::from_std(socket).map_err(failed)?;
    let listener = QuicListener { socket, cid_generator: Arc::new(SimpleConnectionIdGenerator), capabilities };
    let connections = listen_with_capabilities([listener], settings.of_server(hook), DefaultMetrics);
    let connections = connections.map_err(failed)?.pop().ok_or_else(|| Refusal::failed("no listener"))?;
    let accounts = Accounts::default();
    let run = run(connections, stop, done_code(spec.protocol).into(), accounts.clone(), serve);
    Ok(Bound { port, configured, accounts: Some(accounts), run: Box::pin(run) })
}

async fn run<F>(
    connections: QuicConnectionStream<DefaultMetrics>,
    mut stop: Stop,
    done: u64,
    accounts: Accounts,
    serve: impl Fn(Incoming, Arc<Line>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    // Every connection's task holds the sender; when the last one is gone the receiver ends.
    let (alive, mut all_gone) = mpsc::channel::<()>(1);
    let told = stop.clone();
    let mut connections = connections.into_inner();
    let accept = async {
        while let Some(incoming) = connections.recv().await {
            // An error is that of a packet, which is the client's to report.
            let Ok(incoming) = incoming else { continue };
            let (alive, mut told) = (alive.clone(), told.clone());
            let line = Arc::new(Line::new(done, None));
            let account = accounts.of(line.clone());
            let serving = serve(incoming, Arc::clone(&line));
            tokio::spawn(async move {
                tokio::select! {
                    () = serving => {}
                    _ = line.over() => {}
                    () = told.asked() => {
                        line.close();
                        line.over().await;
                    }
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
    // Connections whose handshake is incomplete get no goodbye.
    let _ = timeout(GOODBYE, all_gone.recv()).await;
}
