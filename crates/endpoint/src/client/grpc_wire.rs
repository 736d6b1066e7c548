//! The connection of tonic's calls: a connection of hyper, with access to the server's status.
//!
//! tonic turns every error into a `Status`. The source of the status is the original error: [`ServerError`] is the
//! server's answer, a `hyper::Error` is the end of the connection; without a source, tonic itself found that the server
//! broke the protocol.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use tonic::Status;
use tonic::body::Body;
use tonic::client::GrpcService;
use wirelab_contract::error_kind::ErrorKind;

use crate::client::transport::Failure;

type Fault = Box<dyn Error + Send + Sync>;

/// The error status of the server.
#[derive(Debug)]
pub(crate) struct ServerError(pub Failure);

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl Error for ServerError {}

/// A connection with tonic's interface.
#[derive(Clone)]
pub(crate) struct Wire(pub SendRequest<Body>);

impl GrpcService<Body> for Wire {
    type ResponseBody = Watched;
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Watched>, Fault>>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.0.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let sent = self.0.send_request(request);
        Box::pin(async move {
            let (head, body) = sent.await?.into_parts();
            if head.status != StatusCode::OK {
                let message = format!("the server answered with the HTTP status {}", head.status.as_u16());
                return Err(ServerError(Failure::new(ErrorKind::Status, message)).into());
            }
            let ended = ended(&head.headers)?;
            Ok(Response::from_parts(head, Watched { body, ended }))
        })
    }
}

/// The body of a response, which is complete only after the server has reported success.
pub(crate) struct Watched {
    body: Incoming,
    ended: bool,
}

impl hyper::body::Body for Watched {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(frame) => frame?,
            None if self.ended => return Poll::Ready(None),
            None => {
                let failure = Failure::new(ErrorKind::Protocol, "the response ended without `grpc-status`");
                return Poll::Ready(Some(Err(ServerError(failure).into())));
            }
        };
        if let Some(trailers) = frame.trailers_ref() {
            self.ended = ended(trailers)?;
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

/// Whether these fields report the success of the call; an error if they report its failure.
fn ended(fields: &HeaderMap) -> Result<bool, ServerError> {
    match fields.get("grpc-status") {
        None => Ok(false),
        Some(code) if code.as_bytes() == b"0" => Ok(true),
        Some(code) => {
            let words =
                Status::from_header_map(fields).map(|status| format!(" ({}: {})", status.code(), status.message()));
            let message = format!(
                "the server answered with `grpc-status` {} instead of 0{}",
                String::from_utf8_lossy(code.as_bytes()),
                words.unwrap_or_default()
            );
            Err(ServerError(Failure::new(ErrorKind::Status, message)))
        }
    }
}
