//! The servers: a task per connection, a task per request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use h3::error::Code;
use tokio::sync::mpsc;
use tokio::time::timeout;
use wirelab_endpoint::program::{Accounts, Bound, Refusal, SERVER_IDLE, ServerSpec, Site, Stop, answer, h3_connection};

use crate::connection::{Line, Wishes};
use crate::h3_adapter::Adapter;
use crate::key_log::KeyLog;
use crate::listener::{Listener, Reception};
use crate::raw::{DONE, Raw};
use crate::settings::Settings;
use crate::sockets;
use crate::statistics::Gauge;

/// The time that a stopping server waits for its clients' goodbyes. A client that is gone sends none.
const GOODBYE: Duration = Duration::from_millis(200);

/// Binds an HTTP/3 server.
pub async fn bind_h3(spec: ServerSpec, site: Arc<Site>, stop: Stop) -> Result<Bound, Refusal> {
    let code = Code::H3_NO_ERROR.value();
    bind(&spec, stop, code, move |line| h3_connection::serve(Adapter::new(line), Arc::clone(&site)))
}

/// Binds a server for raw requests.
pub async fn bind_quic(spec: ServerSpec, site: Arc<Site>, stop: Stop) -> Result<Bound, Refusal> {
    bind(&spec, stop, DONE, move |line| answer_streams(line, Arc::clone(&site)))
}

async fn answer_streams(mut line: Line, site: Arc<Site>) {
    // Ends with the connection, closed by either side.
    while let Some(stream) = line.both.recv().await {
        let site = Arc::clone(&site);
        tokio::spawn(async move { answer(Raw::new(stream), &site).await });
    }
}

/// Binds a server that runs `serve` for each connection, and closes them with `code` when it stops.
fn bind<F>(
    spec: &ServerSpec,
    stop: Stop,
    code: u64,
    serve: impl Fn(Line) -> F + Send + Sync + 'static,
) -> Result<Bound, Refusal>
where
    F: Future<Output = ()> + Send + 'static,
{
    let settings = Settings::server(spec, SERVER_IDLE)?;
    let mut configured = settings.report()?;
    let tls = spec.tls.as_ref();
    let early = tls.is_some_and(|tls| tls.early_data);
    let wishes = Wishes {
        keys: tls.and_then(|tls| tls.key_log.as_deref()).map(KeyLog::open).transpose()?,
        subject: None,
        gives_ticket: early || tls.is_some_and(|tls| tls.resumption),
        abandon: code,
    };
    let (acceptor, lines) = mpsc::unbounded_channel();
    let reception = Reception { settings, wishes, early, acceptor };
    let address = SocketAddr::new(spec.address, spec.port);
    let listener = Listener::open(address, spec.protocol.alpn().unwrap_or_default(), reception)?;
    let port = listener.port();
    sockets::report(port, &mut configured);
    // MsQuic's workers, which do most of the work; the runtime that answers has as many threads.
    let workers = available_parallelism()
        .map_err(|error| Refusal::failed(format!("asking for the number of processors: {error}")))?;
    configured.insert("threads".to_owned(), workers.get().into());
    let accounts = Accounts::default();
    let run = run(listener, lines, stop, code, accounts.clone(), serve);
    Ok(Bound { port, configured, accounts: Some(accounts), run: Box::pin(run) })
}

async fn run<F>(
    listener: Listener,
    mut lines: mpsc::UnboundedReceiver<Line>,
    mut stop: Stop,
    code: u64,
    accounts: Accounts,
    serve: impl Fn(Line) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    // Every connection's task holds the sender; when the last one is gone the receiver ends.
    let (alive, mut all_gone) = mpsc::channel::<()>(1);
    let told = stop.clone();
    let accept = async {
        while let Some(line) = lines.recv().await {
            let (alive, mut told) = (alive.clone(), told.clone());
            let connection = Arc::clone(&line.connection);
            let account = accounts.of(Arc::new(Gauge(Arc::clone(&connection))));
            let serving = serve(line);
            tokio::spawn(async move {
                tokio::select! {
                    () = serving => {}
                    () = told.asked() => {}
                }
                connection.shut_down(code);
                connection.over().await;
                drop((account, alive));
            });
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop.asked() => {}
    }
    drop(listener);
    drop(alive);
    let _ = timeout(GOODBYE, all_gone.recv()).await;
}
