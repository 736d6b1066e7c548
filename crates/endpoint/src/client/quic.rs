//! Raw QUIC: one bidirectional stream per request, with the header of the raw transports.

use std::rc::Rc;

use wirelab_model::event::Configured;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::sample::Handshake;
use wirelab_model::spec::ClientSpec;

use crate::client::dial::{Dialer, Link};
use crate::client::transport::{Answer, Connection, Failure, Opened, Sink, Transport};
use crate::quic_stream::QuicStream;
use crate::raw::Header;
use crate::raw_stream::{self, ATTEMPT};
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

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
        let (send, receive) = match self.link.connection.open_bi().await {
            Ok(stream) => stream,
            Err(error) => return Err(crate::quic_config::failure(ATTEMPT, &error)),
        };
        raw_stream::exchange(&mut QuicStream(send, receive), self.header, body, |error| {
            self.link.failure_or(ATTEMPT, || {
                let kind = if error.is_reset() { ErrorKind::Reset } else { ErrorKind::Other };
                Failure { kind, message: format!("{ATTEMPT}: {error}") }
            })
        })
        .await
    }
}

/// The sink again, for another attempt.
pub fn reborrow<'a>(body: &'a mut Option<Sink<'_>>) -> Option<Sink<'a>> {
    body.as_mut().map(|sink| &mut **sink as Sink<'a>)
}
