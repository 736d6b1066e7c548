//! HTTP/3 by the crate `h3` on a connection of any QUIC library: the channel, and one exchange on it.

use std::time::Instant;

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::{Code, ConnectionError, LocalError, StreamError};
use h3::quic::{self, BidiStream, OpenStreams, RecvStream, SendStream};
use http::header::CONTENT_LENGTH;
use http::{Request, Response};
use tokio::task::JoinHandle;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::spec::ClientSpec;

use crate::client::http::Recipe;
use crate::client::transport::{Answer, Failure, Sink};
use crate::payload;
use crate::refusal::Refusal;

/// What fails, in the words of a failure.
pub const ATTEMPT: &str = "sending a request by HTTP/3";

/// The request to send.
#[derive(Debug)]
pub struct Order {
    head: Request<()>,
    body: u64,
}

impl Order {
    /// The request of the spec.
    ///
    /// # Errors
    ///
    /// [`Refusal`] where it is no HTTP request.
    pub fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let recipe = Recipe::new(spec)?;
        Ok(Self { head: recipe.head_with_length(), body: recipe.body_size() })
    }
}

/// HTTP/3 on a QUIC connection: its control streams, and the task that attends to them.
pub struct Channel<O: OpenStreams<Bytes>> {
    sender: SendRequest<O, Bytes>,
    attendant: JoinHandle<()>,
}

impl<O: OpenStreams<Bytes>> Drop for Channel<O> {
    fn drop(&mut self) {
        // Before the last sender goes, which would make the attendant close the QUIC connection: that is not its to do.
        self.attendant.abort();
    }
}

/// What an exchange needs of a channel. It is a copy, so that a channel can be replaced while an exchange goes on.
pub type Sender<O> = SendRequest<O, Bytes>;

impl<O: OpenStreams<Bytes>> Channel<O> {
    /// Opens the channel. `failure` may know more of an error than h3 says.
    ///
    /// # Errors
    ///
    /// The [`Failure`] that `failure` makes of what h3 says.
    pub async fn open<C>(connection: C, failure: impl FnOnce(Failure) -> Failure) -> Result<Self, Failure>
    where
        C: quic::Connection<Bytes, OpenStreams = O> + Send + 'static,
        C::SendStream: Send,
        C::RecvStream: Send,
    {
        let (mut connection, sender) =
            h3::client::new(connection).await.map_err(|error| failure(connection_failure(&error)))?;
        let attendant = tokio::spawn(async move {
            // The error that ends it is given to the requests as well.
            let _ = std::future::poll_fn(|cx| connection.poll_close(cx)).await;
        });
        Ok(Self { sender, attendant })
    }

    /// What sends requests on it.
    #[must_use]
    pub fn sender(&self) -> Sender<O>
    where
        O: Clone,
    {
        self.sender.clone()
    }
}

/// Sends a request and receives the whole response. `failure` may know more of an error than h3 says.
///
/// # Errors
///
/// The [`Failure`] that `failure` makes of what h3 says, or that a response was cut short.
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
    if order.body == 0 {
        stream.finish().await.map_err(failed)?;
        return receive(&mut stream, body, &failed).await;
    }
    // At the same time, or an echo larger than the flow-control windows would never end.
    let (mut outward, mut inward) = stream.split();
    let ((), answer) = tokio::try_join!(send(&mut outward, order.body, &failed), receive(&mut inward, body, &failed))?;
    Ok(answer)
}

/// Sends a request and returns the head of the response; its body is not waited for.
///
/// # Errors
///
/// As of [`exchange`].
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
        response = inward.recv_response() => response.map_err(failed),
        Err(failure) = send(&mut outward, order.body, &failed) => Err(failure),
    }
}

async fn send<S: SendStream<Bytes>>(
    stream: &mut RequestStream<S, Bytes>,
    body: u64,
    failed: &impl Fn(StreamError) -> Failure,
) -> Result<(), Failure> {
    let mut sent = 0;
    let send = async {
        while sent < body {
            let piece = payload::piece(sent, body - sent);
            sent += piece.len() as u64;
            stream.send_data(piece).await?;
        }
        stream.finish().await
    };
    match send.await {
        // The server has answered without reading all of the request (RFC 9114, section 4.1).
        Ok(()) | Err(StreamError::RemoteTerminate { code: Code::H3_NO_ERROR, .. }) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

async fn receive<S: RecvStream>(
    stream: &mut RequestStream<S, Bytes>,
    mut body: Option<Sink<'_>>,
    failed: &impl Fn(StreamError) -> Failure,
) -> Result<Answer, Failure> {
    let response = stream.recv_response().await.map_err(failed)?;
    let first_byte = Instant::now();
    let mut bytes_in = 0;
    while let Some(mut data) = stream.recv_data().await.map_err(failed)? {
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
    let announced = response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if let Some(announced) = announced.filter(|announced| bytes_in < *announced) {
        let message = format!("{ATTEMPT}: the response ended after {bytes_in} of {announced} bytes");
        return Err(Failure { kind: ErrorKind::Truncated, message });
    }
    Ok(Answer { first_byte, last_byte, bytes_in, status: Some(response.status().as_u16()) })
}

/// The class of an error of h3, as far as h3 knows.
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
        // What h3 calls a frame error or an unexpected frame is most often a stream that ended too early, which it says in
        // words only.
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
