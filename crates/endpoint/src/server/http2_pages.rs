//! Pages over HTTP/2 by the crate `h2`, because hyper, which uses `h2`, cannot send interim responses on servers.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use h2::server::SendResponse;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode, Uri};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::http2::Windows;
use crate::server::Site;
use crate::server::http::STREAMS;
use crate::server::prelude::Prelude;
use crate::server::site::Reply;
use crate::wait;

/// Serves one connection to its end. The client reports failed connections and streams; their requests are not counted.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, site: Arc<Site>, windows: Windows) {
    let mut builder = h2::server::Builder::new();
    builder
        .max_concurrent_streams(STREAMS)
        .initial_window_size(windows.stream)
        .initial_connection_window_size(windows.connection);
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let site = Arc::clone(&site);
        let (method, uri) = (request.method().clone(), request.uri().clone());
        tokio::spawn(async move {
            if answer(&method, &uri, respond, &site).await.is_ok() {
                site.count();
            }
        });
    }
}

async fn answer(method: &Method, uri: &Uri, mut respond: SendResponse<Bytes>, site: &Site) -> Result<(), h2::Error> {
    let arrival = Instant::now();
    if let Some(prelude) = site.prelude(uri.path()) {
        if let Some(interim) = prelude.interim() {
            respond.send_informational(interim)?;
        }
        wait::until(arrival + prelude.think).await;
    }
    if let Some(response) = site.recorded(method, uri) {
        return send(respond, method, response);
    }
    let (status, body, kind) = match site.reply(method.as_str(), uri.path()) {
        Reply::Typed(body, kind) => (StatusCode::OK, body, Some(kind)),
        Reply::Document(body) => (StatusCode::OK, body, None),
        Reply::Status(status) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, Bytes::new(), None)
        }
        // A page has only files.
        Reply::Pattern(_) | Reply::Echo | Reply::Delay(_) | Reply::Redirect(_) => {
            (StatusCode::NOT_FOUND, Bytes::new(), None)
        }
    };
    let length = HeaderValue::from(body.len());
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.extend(kind.map(|kind| (CONTENT_TYPE, HeaderValue::from_static(kind))));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static(Prelude::KEPT));
    fields.insert(CONTENT_LENGTH, length);
    send(respond, method, response)
}

fn send(mut respond: SendResponse<Bytes>, method: &Method, response: Response<Bytes>) -> Result<(), h2::Error> {
    let (head, mut body) = response.into_parts();
    if method == Method::HEAD {
        body.clear();
    }
    let mut stream = respond.send_response(Response::from_parts(head, ()), body.is_empty())?;
    if !body.is_empty() {
        // Data beyond the flow-control windows waits in the library.
        stream.send_data(body, true)?;
    }
    Ok(())
}
