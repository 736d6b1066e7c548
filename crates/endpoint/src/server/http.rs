//! HTTP/1.1, HTTP/2 and gRPC on the connections that `tcp.rs` accepts.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use wirelab_contract::spec::ServerSpec;

use crate::http2::Windows;
use crate::server::grpc;
use crate::server::outbox::{Outbox, WithOutbox};
use crate::server::prelude::Prelude;
use crate::server::site::{Reply, Site};
use crate::{payload, wait};

/// Maximum number of a client's concurrent streams; above that of any load, so that no request waits for it.
pub const STREAMS: u32 = 100_000;

/// Serves one version of HTTP, or gRPC.
#[derive(Clone)]
pub struct HttpServer {
    site: Arc<Site>,
    version: Version,
    /// Age of a connection at which the client is asked to open another one.
    age: Option<Duration>,
}

#[derive(Clone)]
enum Version {
    One(http1::Builder),
    Two(http2::Builder<TokioExecutor>),
    Grpc(http2::Builder<TokioExecutor>),
}

impl HttpServer {
    /// Creates a server for HTTP/1.1. It sends no `date` field, because other servers send none and compared cells must
    /// send the same fields.
    pub fn http1(site: Arc<Site>) -> Self {
        let mut builder = http1::Builder::new();
        builder.auto_date_header(false).half_close(true);
        Self { site, version: Version::One(builder), age: None }
    }

    /// Creates a server for HTTP/2.
    pub fn http2(site: Arc<Site>, windows: Windows) -> Self {
        Self { site, version: Version::Two(over_http2(windows)), age: None }
    }

    /// Creates a server for gRPC, on the same HTTP/2.
    pub fn grpc(site: Arc<Site>, windows: Windows) -> Self {
        Self { site, version: Version::Grpc(over_http2(windows)), age: None }
    }

    /// Limits the age of connections as the spec says.
    pub fn aging(self, spec: &ServerSpec) -> Self {
        Self { age: spec.max_connection_age_ns.map(Duration::from_nanos), ..self }
    }

    /// Serves one connection to its end.
    pub async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S) {
        if let Version::One(builder) = &self.version
            && self.site.attends_to_a_page()
        {
            let (stream, outbox) = WithOutbox::new(stream);
            let site = self.site;
            let service = service_fn(move |request| answer_page(Arc::clone(&site), outbox.clone(), request));
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            return serve_until_age(connection, self.age, |c| c.graceful_shutdown()).await;
        }
        let (io, site) = (TokioIo::new(stream), Arc::clone(&self.site));
        let service = service_fn(move |request| answer(Arc::clone(&site), request));
        let site = self.site;
        let calls = service_fn(move |request| grpc::answer(Arc::clone(&site), request));
        let age = self.age;
        match self.version {
            Version::One(builder) => {
                serve_until_age(builder.serve_connection(io, service), age, |c| c.graceful_shutdown()).await
            }
            Version::Two(builder) => {
                serve_until_age(builder.serve_connection(io, service), age, |c| c.graceful_shutdown()).await
            }
            Version::Grpc(builder) => {
                serve_until_age(builder.serve_connection(io, calls), age, |c| c.graceful_shutdown()).await
            }
        }
    }
}

/// Serves a connection to its end; at a certain age, asks its client to close it. Ignores errors, which the client
/// detects and counts.
async fn serve_until_age<C: Future>(connection: C, age: Option<Duration>, ask: impl FnOnce(Pin<&mut C>)) {
    let mut connection = pin!(connection);
    if let Some(age) = age {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = tokio::time::sleep(age) => ask(connection.as_mut()),
        }
    }
    let _ = connection.await;
}

fn over_http2(windows: Windows) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .auto_date_header(false)
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(windows.stream)
        .initial_connection_window_size(windows.connection);
    builder
}

/// Answers a request of a page over HTTP/1.1.
async fn answer_page(
    site: Arc<Site>,
    outbox: Outbox,
    request: Request<Incoming>,
) -> Result<Response<ReplyBody>, Infallible> {
    let arrival = Instant::now();
    if let Some(prelude) = site.prelude(request.uri().path()) {
        if let Some(interim) = prelude.interim_text() {
            outbox.send(interim).await;
        }
        wait::until(arrival + prelude.think).await;
    }
    let mut response = answer(site, request).await?;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(Prelude::KEPT));
    Ok(response)
}

/// Whether a request of HTTP/1.1 has one `host` field: any other number is an error (RFC 9112, section 3.2).
fn names_one_host<B>(request: &Request<B>) -> bool {
    request.version() != http::Version::HTTP_11 || request.headers().get_all(HOST).iter().count() == 1
}

async fn answer(site: Arc<Site>, request: Request<Incoming>) -> Result<Response<ReplyBody>, Infallible> {
    let is_head = request.method() == Method::HEAD;
    let response = answer_whole(site, request).await?;
    Ok(if is_head { without_body(response) } else { response })
}

/// The answer to HEAD: the header of the answer to GET (RFC 9110, section 9.3.2).
fn without_body(response: Response<ReplyBody>) -> Response<ReplyBody> {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(head, ReplyBody::EMPTY)
}

async fn answer_whole(site: Arc<Site>, request: Request<Incoming>) -> Result<Response<ReplyBody>, Infallible> {
    let arrival = Instant::now();
    site.work();
    let is_valid = names_one_host(&request);
    if is_valid && let Some(response) = site.recorded(request.method(), request.uri()) {
        site.count();
        return Ok(response.map(ReplyBody::Document));
    }
    let reply = match is_valid {
        true => site.reply(request.method().as_str(), request.uri().path()),
        false => Reply::Status(StatusCode::BAD_REQUEST.as_u16()),
    };
    let mut field = None;
    let (status, body) = match reply {
        Reply::Document(content) => (StatusCode::OK, ReplyBody::Document(content)),
        Reply::Typed(content, kind) => {
            field = Some((CONTENT_TYPE, HeaderValue::from_static(kind)));
            (StatusCode::OK, ReplyBody::Document(content))
        }
        Reply::Pattern(size) => (StatusCode::OK, ReplyBody::Pattern { offset: 0, left: size }),
        Reply::Echo => (StatusCode::OK, ReplyBody::Echo(request.into_body())),
        Reply::Delay(us) => {
            wait::until(arrival + Duration::from_micros(us)).await;
            (StatusCode::OK, ReplyBody::EMPTY)
        }
        Reply::Redirect(place) => {
            field = Some((LOCATION, HeaderValue::from_static(place)));
            (StatusCode::FOUND, ReplyBody::EMPTY)
        }
        Reply::Status(status) => {
            (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), ReplyBody::EMPTY)
        }
    };
    site.count();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().extend(field);
    Ok(response)
}

/// A response body of known size, so that `content-length` is sent; for an echo, if the request's size is known.
enum ReplyBody {
    Document(Bytes),
    Pattern { offset: u64, left: u64 },
    Echo(Incoming),
}

impl ReplyBody {
    const EMPTY: Self = Self::Pattern { offset: 0, left: 0 };
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let piece = match self.get_mut() {
            Self::Echo(incoming) => return Pin::new(incoming).poll_frame(cx),
            Self::Document(content) => std::mem::take(content),
            Self::Pattern { offset, left } => {
                let piece = payload::piece(*offset, *left);
                *offset += piece.len() as u64;
                *left -= piece.len() as u64;
                piece
            }
        };
        Poll::Ready(if piece.is_empty() { None } else { Some(Ok(Frame::data(piece))) })
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Document(content) => content.is_empty(),
            Self::Pattern { left, .. } => *left == 0,
            Self::Echo(incoming) => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Document(content) => SizeHint::with_exact(content.len() as u64),
            Self::Pattern { left, .. } => SizeHint::with_exact(*left),
            Self::Echo(incoming) => incoming.size_hint(),
        }
    }
}
