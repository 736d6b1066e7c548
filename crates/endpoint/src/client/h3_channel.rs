//! HTTP/3 by the crate `h3`, on a connection of any QUIC library: the channel, and one exchange.

use std::time::Instant;

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::{Code, ConnectionError, LocalError, StreamError};
use h3::quic::{self, BidiStream, OpenStreams, RecvStream, SendStream};
use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response, StatusCode};
use tokio::task::JoinHandle;
use tokio::task::coop::consume_budget;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::ClientSpec;

use crate::client::failure::final_status;
use crate::client::http::Recipe;
use crate::client::transport::{Answer, Failure, Sink};
use crate::payload::Payload;
use crate::refusal::Refusal;

/// The attempted operation in failure messages.
pub const ATTEMPT: &str = "sending a request by HTTP/3";

/// The request to send.
#[derive(Debug)]
pub struct Order {
    head: Request<()>,
    body: Payload,
}

impl Order {
    /// Creates the request of the spec.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if it is no valid HTTP request.
    pub fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let recipe = Recipe::new(spec)?;
        Ok(Self { head: recipe.head_with_length(), body: recipe.payload().clone() })
    }
}

/// HTTP/3 on a QUIC connection: its control streams and the task that drives them.
pub struct Channel<O: OpenStreams<Bytes>> {
    sender: SendRequest<O, Bytes>,
    attendant: JoinHandle<()>,
}

impl<O: OpenStreams<Bytes>> Drop for Channel<O> {
    fn drop(&mut self) {
        // Aborts the task before the last sender drops; otherwise the task would close the QUIC connection.
        self.attendant.abort();
    }
}

/// Largest number of interim responses before a response.
const INTERIM: u32 = 10_000;

/// The sender of an exchange. It is a copy, so that a channel can be replaced during an exchange.
pub type Sender<O> = SendRequest<O, Bytes>;

impl<O: OpenStreams<Bytes>> Channel<O> {
    /// Opens the channel. `failure` may add details that h3 lacks to an error.
    ///
    /// # Errors
    ///
    /// The [`Failure`] from `failure`, applied to h3's error.
    pub async fn open<C>(connection: C, failure: impl FnOnce(Failure) -> Failure) -> Result<Self, Failure>
    where
        C: quic::Connection<Bytes, OpenStreams = O> + Send + 'static,
        C::SendStream: Send,
        C::RecvStream: Send,
    {
        let (mut connection, sender) =
            h3::client::new(connection).await.map_err(|error| failure(connection_failure(&error)))?;
        let attendant = tokio::spawn(async move {
            // The requests get the same error.
            let _ = std::future::poll_fn(|cx| connection.poll_close(cx)).await;
        });
        Ok(Self { sender, attendant })
    }

    /// The sender of requests.
    #[must_use]
    pub fn sender(&self) -> Sender<O>
    where
        O: Clone,
    {
        self.sender.clone()
    }
}

/// Sends a request and receives the whole response. `failure` may add details that h3 lacks to an error.
///
/// # Errors
///
/// The [`Failure`] from `failure`, applied to h3's error.
pub async fn exchange<O>(
    mut sender: Sender<O>,
    order: &Order,
    body: Option<Sink<'_>>,
    failure: impl Fn(Failure) -> Failure,
) -> Result<Answer, Failure>
where
    O: OpenStreams<Bytes>,
    O::BidiStream: BidiStream<Bytes>,
{
    let failed = |error: StreamError| failure(stream_failure(&error));
    let mut stream = sender.send_request(order.head.clone()).await.map_err(failed)?;
    if order.body.size() == 0 {
        stream.finish().await.map_err(failed)?;
        return receive(&mut stream, order, body, &failed).await;
    }
    // Both directions run concurrently; otherwise an echo larger than the flow-control windows would never end.
    let (mut outward, mut inward) = stream.split();
    let ((), answer) =
        tokio::try_join!(send(&mut outward, &order.body, &failed), receive(&mut inward, order, body, &failed))?;
    Ok(answer)
}

/// Sends a request and returns the head of the response, without waiting for the body.
///
/// # Errors
///
/// See [`exchange`].
pub async fn head<O>(
    mut sender: Sender<O>,
    order: &Order,
    failure: impl Fn(Failure) -> Failure,
) -> Result<Response<()>, Failure>
where
    O: OpenStreams<Bytes>,
    O::BidiStream: BidiStream<Bytes>,
{
    let failed = |error: StreamError| failure(stream_failure(&error));
    let stream = sender.send_request(order.head.clone()).await.map_err(failed)?;
    let (mut outward, mut inward) = stream.split();
    tokio::select! {
        biased;
        response = final_response(&mut inward, &failed) => response,
        Err(failure) = send(&mut outward, &order.body, &failed) => Err(failure),
    }
}

async fn send<S: SendStream<Bytes>>(
    stream: &mut RequestStream<S, Bytes>,
    body: &Payload,
    failed: &impl Fn(StreamError) -> Failure,
) -> Result<(), Failure> {
    let mut sent = 0;
    let send = async {
        while sent < body.size() {
            let piece = body.piece(sent);
            sent += piece.len() as u64;
            stream.send_data(piece).await?;
        }
        stream.finish().await
    };
    match send.await {
        // The server answered without reading the whole request (RFC 9114, section 4.1).
        Ok(()) | Err(StreamError::RemoteTerminate { code: Code::H3_NO_ERROR, .. }) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

async fn receive<S: RecvStream>(
    stream: &mut RequestStream<S, Bytes>,
    order: &Order,
    mut body: Option<Sink<'_>>,
    failed: &impl Fn(StreamError) -> Failure,
) -> Result<Answer, Failure> {
    let response = final_response(stream, failed).await?;
    let status = final_status(response.status())?;
    let first_byte = Instant::now();
    let mut bytes_in = 0;
    while let Some(mut data) = stream.recv_data().await.map_err(failed)? {
        // As in HTTP/1.1: the deadline must be looked at between pieces.
        consume_budget().await;
        while data.has_remaining() {
            let chunk = data.chunk();
            if let Some(body) = &mut body {
                body(chunk);
            }
            let length = chunk.len();
            bytes_in += length as u64;
            data.advance(length);
        }
    }
    let last_byte = Instant::now();
    // Such a response has no body, whatever its head announces (RFC 9110, section 8.6).
    let has_body = order.head.method() != Method::HEAD && !matches!(status, 204 | 304);
    let announced = response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if let Some(announced) = announced.filter(|announced| has_body && bytes_in != *announced) {
        let message =
            format!("{ATTEMPT}: the response ended after {bytes_in} bytes, and its head announced {announced}");
        let kind = if bytes_in < announced { ErrorKind::Truncated } else { ErrorKind::Protocol };
        return Err(Failure { kind, message });
    }
    Ok(Answer { first_byte, last_byte, bytes_in, status: Some(status) })
}

/// The head of the response after interim ones (RFC 9114, section 4.1).
async fn final_response<S: RecvStream>(
    stream: &mut RequestStream<S, Bytes>,
    failed: &impl Fn(StreamError) -> Failure,
) -> Result<Response<()>, Failure> {
    let mut interim = 0;
    loop {
        let response = stream.recv_response().await.map_err(failed)?;
        if !response.status().is_informational() || response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response);
        }
        interim += 1;
        if interim > INTERIM {
            return Err(Failure::new(ErrorKind::Protocol, "flooded with interim responses"));
        }
    }
}

/// The kind of an h3 error, as far as h3 knows.
fn stream_failure(error: &StreamError) -> Failure {
    let kind = match error {
        StreamError::ConnectionError { 0: error, .. } => return connection_failure(error),
        StreamError::RemoteTerminate { .. } | StreamError::RemoteClosing { .. } => ErrorKind::Reset,
        StreamError::StreamError { .. } | StreamError::HeaderTooBig { .. } => ErrorKind::Protocol,
        _ => ErrorKind::Other,
    };
    Failure { kind, message: format!("{ATTEMPT}: {error}") }
}

fn connection_failure(error: &ConnectionError) -> Failure {
    let kind = match error {
        ConnectionError::Timeout { .. } => ErrorKind::Timeout,
        // A frame error or an unexpected frame is most often a stream that ended too early; only h3's message says so.
        ConnectionError::Local { error: LocalError::Application { reason, .. }, .. }
            if reason.contains("incomplete frame") || reason.contains("without receiving response") =>
        {
            ErrorKind::Truncated
        }
        ConnectionError::Local { .. } => ErrorKind::Protocol,
        _ => ErrorKind::Reset,
    };
    Failure { kind, message: format!("{ATTEMPT}: {error}") }
}
