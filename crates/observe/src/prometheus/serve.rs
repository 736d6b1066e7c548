//! Serves `/metrics` over HTTP/1.1, on a thread of its own.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::board::Board;
use super::scrapes::Scrapes;
use super::{gather, text};

/// Time-out for a request's header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `ends` is resolved.
pub(super) fn start(
    listener: TcpListener,
    board: Arc<Board>,
    scrapes: Arc<Scrapes>,
    ends: oneshot::Receiver<()>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let accepting = async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => drop(tokio::spawn(handle(stream, Arc::clone(&board), Arc::clone(&scrapes)))),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    };
    let serve = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = ends => {}
                () = accepting => {}
            }
        });
    };
    std::thread::Builder::new().name("exporter".to_owned()).spawn(serve).map(drop)
}

/// Answers one request and closes the connection; the close shows that the whole answer was sent.
async fn handle(stream: TcpStream, board: Arc<Board>, scrapes: Arc<Scrapes>) {
    let number = AtomicU64::new(0);
    let service = service_fn(|request: Request<Incoming>| {
        let response = answer(&request, &board, || number.store(scrapes.begin(), Ordering::Relaxed));
        async { Ok::<_, Infallible>(response) }
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    if http.serve_connection(TokioIo::new(stream), service).await.is_ok() {
        scrapes.answered(number.load(Ordering::Relaxed));
    }
}

fn answer(request: &Request<Incoming>, board: &Board, begin: impl FnOnce()) -> Response<Full<Bytes>> {
    let (status, kind, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => {
            begin();
            let shown = board.read();
            // Blocks this thread, and thereby other scrapes, until all endpoints have answered or timed out.
            let exposed = shown.folder.as_deref().map(gather::gather).unwrap_or_default();
            (StatusCode::OK, text::MEDIA_TYPE, text::text(shown, exposed))
        }
        _ => (StatusCode::NOT_FOUND, "text/plain", "only GET /metrics is served here\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind.parse().expect("it is a header's value"));
    response
}
