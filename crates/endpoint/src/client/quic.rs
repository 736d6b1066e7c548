//! Raw QUIC: one bidirectional stream per request, with the header of the raw transports.

use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use quinn::{ReadError, VarInt, WriteError};
use wirelab_model::event::Configured;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::sample::Handshake;
use wirelab_model::spec::ClientSpec;

use crate::client::dial::{Dialer, Link};
use crate::client::transport::{Answer, Connection, Failure, Opened, Sink, Transport};
use crate::payload;
use crate::raw::Header;
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

const ATTEMPT: &str = "sending a request by QUIC";

/// Opens connections for raw requests.
pub struct QuicTransport {
    dialer: Rc<Dialer>,
    header: Header,
}

impl Transport for QuicTransport {
    type Connection = QuicConnection;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        Ok(Self { dialer: Rc::new(Dialer::new(spec)?), header: Header::of(spec) })
    }

    async fn connect(&self) -> Result<Opened<QuicConnection>, Failure> {
        let (link, ready) = self.dialer.dial().await?;
        let connection = QuicConnection { link, dialer: Rc::clone(&self.dialer), header: self.header };
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
pub struct QuicConnection {
    link: Rc<Link>,
    dialer: Rc<Dialer>,
    header: Header,
}

impl Connection for QuicConnection {
    async fn request(&mut self, mut body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let was_undecided = self.link.is_undecided();
        let mut result = self.link.guard(self.exchange(reborrow(&mut body))).await;
        if was_undecided {
            // Streams opened before the rejection are dead; what they carried is sent again (RFC 9001, section 4.6.2).
            if self.link.early_was_rejected().await {
                result = self.exchange(body).await;
            }
            if result.is_ok() {
                self.dialer.record(&self.link)?;
            }
        }
        result
    }

    fn is_open(&self) -> bool {
        self.link.connection.close_reason().is_none()
    }

    fn another(&self) -> Option<Self> {
        Some(Self { link: Rc::clone(&self.link), dialer: Rc::clone(&self.dialer), header: self.header })
    }

    fn handshake(&self) -> Option<Handshake> {
        self.link.handshake()
    }

    async fn close(self) {
        let _ = self.dialer.record(&self.link);
        self.link.close(0).await;
    }
}

impl QuicConnection {
    async fn exchange(&self, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let (mut send, mut receive) = match self.link.connection.open_bi().await {
            Ok(stream) => stream,
            Err(error) => return Err(crate::quic_config::failure(ATTEMPT, &error)),
        };
        let wrote = |result: Result<(), WriteError>| result.map_err(|error| self.write_failure(&error));
        wrote(send.write_chunk(Bytes::copy_from_slice(&self.header.encode())).await)?;
        let mut sent = 0;
        while sent < self.header.body {
            let piece = payload::piece(sent, self.header.body - sent);
            sent += piece.len() as u64;
            wrote(send.write_chunk(piece).await)?;
        }
        wrote(send.finish().map_err(Into::into))?;
        let result = self.receive(&mut receive, body).await;
        if result.is_err() {
            // Tells the server that the rest is not wanted, so that it does not go on sending beside the next request.
            let _ = receive.stop(VarInt::from_u32(0));
        }
        result
    }

    async fn receive(&self, stream: &mut quinn::RecvStream, mut body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let wanted = self.header.wanted;
        let mut first_byte = None;
        let mut bytes_in = 0;
        loop {
            let chunk = stream.read_chunk(usize::MAX, true).await.map_err(|error| self.read_failure(&error))?;
            let now = Instant::now();
            let first_byte = *first_byte.get_or_insert(now);
            let Some(chunk) = chunk else {
                if bytes_in < wanted {
                    let message = format!("{ATTEMPT}: the response ended after {bytes_in} of {wanted} bytes");
                    return Err(Failure { kind: ErrorKind::Truncated, message });
                }
                return Ok(Answer { first_byte, last_byte: now, bytes_in, status: None });
            };
            bytes_in += chunk.bytes.len() as u64;
            if bytes_in > wanted {
                let message = format!("{ATTEMPT}: the response is longer than the {wanted} bytes that were asked for");
                return Err(Failure { kind: ErrorKind::Digest, message });
            }
            if let Some(body) = &mut body {
                body(&chunk.bytes);
            }
        }
    }

    fn write_failure(&self, error: &WriteError) -> Failure {
        self.link.failure_or(ATTEMPT, || {
            let kind = if matches!(error, WriteError::Stopped(_)) { ErrorKind::Reset } else { ErrorKind::Other };
            Failure { kind, message: format!("{ATTEMPT}: {error}") }
        })
    }

    fn read_failure(&self, error: &ReadError) -> Failure {
        self.link.failure_or(ATTEMPT, || {
            let kind = if matches!(error, ReadError::Reset(_)) { ErrorKind::Reset } else { ErrorKind::Other };
            Failure { kind, message: format!("{ATTEMPT}: {error}") }
        })
    }
}

/// The sink again, for another attempt.
pub fn reborrow<'a>(body: &'a mut Option<Sink<'_>>) -> Option<Sink<'a>> {
    body.as_mut().map(|sink| &mut **sink as Sink<'a>)
}
