//! The HTTP/3 client.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use ::http::header::CONTENT_LENGTH;
use ::http::{Method, Request, Response};
use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::{Code, ConnectionError, LocalError, StreamError};
use h3::quic::{RecvStream, SendStream};
use h3_quinn::OpenStreams;
use tokio::task::JoinHandle;
use wirelab_model::event::Configured;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::sample::Handshake;
use wirelab_model::spec::ClientSpec;

use crate::client::dial::{Dialer, Link};
use crate::client::quic::reborrow;
use crate::client::transport::{Answer, Connection, Failure, Opened, Sink, Transport};
use crate::payload;
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

const ATTEMPT: &str = "sending a request by HTTP/3";

/// Opens HTTP/3 connections.
pub struct H3Transport {
    dialer: Rc<Dialer>,
    order: Rc<Order>,
}

/// The request to send.
struct Order {
    head: Request<()>,
    body: u64,
}

impl Transport for H3Transport {
    type Connection = H3Connection;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        let body = spec.request.body_size;
        let mut head = crate::client::http::head(spec)?;
        // As hyper does: h3 adds no fields of its own, and compared cells are to send the same.
        if body > 0 || matches!(*head.method(), Method::POST | Method::PUT | Method::PATCH) {
            head.headers_mut().entry(CONTENT_LENGTH).or_insert(body.into());
        }
        Ok(Self { dialer: Rc::new(Dialer::new(spec)?), order: Rc::new(Order { head, body }) })
    }

    async fn connect(&self) -> Result<Opened<H3Connection>, Failure> {
        let (link, ready) = self.dialer.dial().await?;
        let channel = Channel::open(&link).await?;
        let shared = Shared { link, channel: RefCell::new(channel), renewed: tokio::sync::Mutex::new(false) };
        let connection =
            H3Connection { shared: Rc::new(shared), dialer: Rc::clone(&self.dialer), order: Rc::clone(&self.order) };
        Ok(Opened { connection, connected: None, ready: Some(ready) })
    }

    fn configured(&self) -> Configured {
        self.dialer.configured()
    }

    fn tickets(&self) -> usize {
        self.dialer.tickets()
    }

    fn accounts(&self) -> Option<&Accounts> {
        Some(self.dialer.accounts())
    }
}

/// A handle to a connection.
pub struct H3Connection {
    shared: Rc<Shared>,
    dialer: Rc<Dialer>,
    order: Rc<Order>,
}

struct Shared {
    link: Rc<Link>,
    channel: RefCell<Channel>,
    /// Whether the channel was opened anew after early data was rejected; locked while that goes on.
    renewed: tokio::sync::Mutex<bool>,
}

/// HTTP/3 on a QUIC connection: its control streams, and the task that attends to them.
struct Channel {
    sender: SendRequest<OpenStreams, Bytes>,
    attendant: JoinHandle<()>,
}

impl Channel {
    async fn open(link: &Link) -> Result<Self, Failure> {
        let (mut connection, sender) = h3::client::new(h3_quinn::Connection::new(link.connection.clone()))
            .await
            .map_err(|error| link.failure_or(ATTEMPT, || connection_failure(&error)))?;
        let attendant = tokio::spawn(async move {
            // The error that ends it is given to the requests as well.
            let _ = std::future::poll_fn(|cx| connection.poll_close(cx)).await;
        });
        Ok(Self { sender, attendant })
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // Before the last sender goes, which would make the attendant close the QUIC connection: that is `close`'s to do.
        self.attendant.abort();
    }
}

impl Shared {
    /// Opens the HTTP/3 channel anew where nobody did so yet: with early data its control streams were rejected too.
    async fn renew(&self) -> Result<(), Failure> {
        let mut renewed = self.renewed.lock().await;
        if !*renewed {
            let channel = Channel::open(&self.link).await?;
            self.channel.replace(channel);
            *renewed = true;
        }
        Ok(())
    }
}

impl Connection for H3Connection {
    async fn request(&mut self, mut body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let link = &self.shared.link;
        let was_undecided = link.is_undecided();
        let mut result = link.guard(self.exchange(reborrow(&mut body))).await;
        if was_undecided {
            if link.early_was_rejected().await {
                self.shared.renew().await?;
                result = self.exchange(body).await;
            }
            if result.is_ok() {
                self.dialer.record(link)?;
            }
        }
        result
    }

    fn is_open(&self) -> bool {
        self.shared.link.connection.close_reason().is_none()
    }

    fn another(&self) -> Option<Self> {
        Some(Self { shared: Rc::clone(&self.shared), dialer: Rc::clone(&self.dialer), order: Rc::clone(&self.order) })
    }

    fn handshake(&self) -> Option<Handshake> {
        self.shared.link.handshake()
    }

    async fn close(self) {
        let _ = self.dialer.record(&self.shared.link);
        self.shared.link.close(Code::H3_NO_ERROR.value() as u32).await;
    }
}

impl H3Connection {
    async fn exchange(&self, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let mut sender = self.shared.channel.borrow().sender.clone();
        let mut stream = sender.send_request(self.order.head.clone()).await.map_err(|error| self.failure(&error))?;
        if self.order.body == 0 {
            stream.finish().await.map_err(|error| self.failure(&error))?;
            return self.receive(&mut stream, body).await;
        }
        // At the same time, or an echo larger than the flow-control windows would never end.
        let (mut outward, mut inward) = stream.split();
        let ((), answer) = tokio::try_join!(self.send(&mut outward), self.receive(&mut inward, body))?;
        Ok(answer)
    }

    /// Sends the request and returns the head of the response; its body is not waited for.
    pub(crate) async fn head(&self) -> Result<Response<()>, Failure> {
        let mut sender = self.shared.channel.borrow().sender.clone();
        let stream = sender.send_request(self.order.head.clone()).await.map_err(|error| self.failure(&error))?;
        let (mut outward, mut inward) = stream.split();
        tokio::select! {
            biased;
            response = inward.recv_response() => response.map_err(|error| self.failure(&error)),
            Err(failure) = self.send(&mut outward) => Err(failure),
        }
    }

    async fn send<S: SendStream<Bytes>>(&self, stream: &mut RequestStream<S, Bytes>) -> Result<(), Failure> {
        let mut sent = 0;
        let send = async {
            while sent < self.order.body {
                let piece = payload::piece(sent, self.order.body - sent);
                sent += piece.len() as u64;
                stream.send_data(piece).await?;
            }
            stream.finish().await
        };
        match send.await {
            // The server has answered without reading all of the request (RFC 9114, section 4.1).
            Ok(()) | Err(StreamError::RemoteTerminate { code: Code::H3_NO_ERROR, .. }) => Ok(()),
            Err(error) => Err(self.failure(&error)),
        }
    }

    async fn receive<S: RecvStream>(
        &self,
        stream: &mut RequestStream<S, Bytes>,
        mut body: Option<Sink<'_>>,
    ) -> Result<Answer, Failure> {
        let response = stream.recv_response().await.map_err(|error| self.failure(&error))?;
        let first_byte = Instant::now();
        let mut bytes_in = 0;
        while let Some(mut data) = stream.recv_data().await.map_err(|error| self.failure(&error))? {
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
        let announced =
            response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if let Some(announced) = announced.filter(|announced| bytes_in < *announced) {
            let message = format!("{ATTEMPT}: the response ended after {bytes_in} of {announced} bytes");
            return Err(Failure { kind: ErrorKind::Truncated, message });
        }
        Ok(Answer { first_byte, last_byte, bytes_in, status: Some(response.status().as_u16()) })
    }

    fn failure(&self, error: &StreamError) -> Failure {
        self.shared.link.failure_or(ATTEMPT, || stream_failure(error))
    }
}

/// The class of an error of h3 where the QUIC connection itself did not fail.
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
