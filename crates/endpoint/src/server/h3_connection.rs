//! The server side of HTTP/3 by the crate `h3`, on a connection of any QUIC library.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use h3::error::StreamError;
use h3::quic::{self, BidiStream};
use h3::server::RequestStream;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Method, Response, StatusCode};

use crate::server::Site;
use crate::server::prelude::Prelude;
use crate::server::priority::{Priority, StreamPriorities};
use crate::server::site::Reply;
use crate::{payload, wait};

/// Answers the requests of a connection until one side closes it.
pub async fn serve<C>(connection: C, site: Arc<Site>)
where
    C: quic::Connection<Bytes> + Send + 'static,
    C::BidiStream: BidiStream<Bytes> + Send + 'static,
    <C::BidiStream as BidiStream<Bytes>>::SendStream: Send,
    <C::BidiStream as BidiStream<Bytes>>::RecvStream: Send,
{
    serve_by(connection, site, None).await;
}

/// Like [`serve`]; records the priority of each request in `stream_priorities` before its response begins.
pub async fn serve_by<C>(connection: C, site: Arc<Site>, stream_priorities: Option<Arc<StreamPriorities>>)
where
    C: quic::Connection<Bytes> + Send + 'static,
    C::BidiStream: BidiStream<Bytes> + Send + 'static,
    <C::BidiStream as BidiStream<Bytes>>::SendStream: Send,
    <C::BidiStream as BidiStream<Bytes>>::RecvStream: Send,
{
    // The client reports failed connections and streams; their requests are not counted.
    let Ok(mut connection) = h3::server::Connection::<_, Bytes>::new(connection).await else { return };
    while let Ok(Some(resolver)) = connection.accept().await {
        let (site, stream_priorities) = (Arc::clone(&site), stream_priorities.clone());
        tokio::spawn(async move {
            let Ok((request, stream)) = resolver.resolve_request().await else { return };
            if let Some(stream_priorities) = stream_priorities {
                stream_priorities.set(stream.send_id(), Priority::of(request.headers()));
            }
            if answer(&request, stream, &site).await.is_ok() {
                site.count();
            }
        });
    }
}

async fn answer<S: BidiStream<Bytes>>(
    request: &http::Request<()>,
    mut stream: RequestStream<S, Bytes>,
    site: &Site,
) -> Result<(), StreamError> {
    let arrival = Instant::now();
    if let Some(prelude) = site.prelude(request.uri().path()) {
        if let Some(interim) = prelude.interim() {
            stream.send_response(interim).await?;
        }
        wait::until(arrival + prelude.think).await;
    }
    site.work();
    let has_body = request.method() != Method::HEAD;
    if let Some(response) = site.recorded(request.method(), request.uri()) {
        let (head, body) = response.into_parts();
        stream.send_response(Response::from_parts(head, ())).await?;
        if has_body && !body.is_empty() {
            stream.send_data(body).await?;
        }
        return end(stream).await;
    }
    match site.reply(request.method().as_str(), request.uri().path()) {
        Reply::Document(body) => {
            stream.send_response(head(StatusCode::OK, Some(body.len() as u64))).await?;
            if has_body && !body.is_empty() {
                stream.send_data(body).await?;
            }
        }
        Reply::Typed(body, kind) => {
            let mut response = head(StatusCode::OK, Some(body.len() as u64));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            response
                .headers_mut()
                .extend(site.attends_to_a_page().then_some((CACHE_CONTROL, HeaderValue::from_static(Prelude::KEPT))));
            stream.send_response(response).await?;
            if has_body && !body.is_empty() {
                stream.send_data(body).await?;
            }
        }
        Reply::Pattern(size) => {
            stream.send_response(head(StatusCode::OK, Some(size))).await?;
            let mut sent = 0;
            while has_body && sent < size {
                let piece = payload::piece(sent, size - sent);
                sent += piece.len() as u64;
                stream.send_data(piece).await?;
            }
        }
        Reply::Echo => {
            let length = request.headers().get(CONTENT_LENGTH).cloned();
            let mut response = head(StatusCode::OK, None);
            response.headers_mut().extend(length.map(|length| (CONTENT_LENGTH, length)));
            stream.send_response(response).await?;
            while let Some(mut piece) = stream.recv_data().await? {
                let piece = piece.copy_to_bytes(piece.remaining());
                stream.send_data(piece).await?;
            }
        }
        Reply::Delay(microseconds) => {
            wait::until(arrival + Duration::from_micros(microseconds)).await;
            stream.send_response(head(StatusCode::OK, Some(0))).await?;
        }
        Reply::Redirect(place) => {
            let mut response = head(StatusCode::FOUND, Some(0));
            response.headers_mut().insert(LOCATION, HeaderValue::from_static(place));
            stream.send_response(response).await?;
        }
        Reply::Status(status) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            stream.send_response(head(status, Some(0))).await?;
        }
    }
    end(stream).await
}

async fn end<S: BidiStream<Bytes>>(mut stream: RequestStream<S, Bytes>) -> Result<(), StreamError> {
    stream.finish().await?;
    // Reads to the end of the stream; otherwise quinn asks the client to stop sending data that has already been sent.
    while stream.recv_data().await?.is_some() {}
    Ok(())
}

fn head(status: StatusCode, length: Option<u64>) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    if let Some(length) = length {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}
