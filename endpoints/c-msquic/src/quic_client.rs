//! The client of raw QUIC.

use std::rc::Rc;

use wirelab_endpoint::program::{
    ATTEMPT, Accounts, Answer, ClientSpec, Configured, Connection, Failure, Header, Opened, Refusal, Sink, Transport,
    exchange,
};
use wirelab_model::sample::Handshake;

use crate::client::{Dialer, Link};
use crate::raw::{DONE, Raw};

/// Opens connections for raw requests.
pub struct QuicTransport {
    dialer: Rc<Dialer>,
    header: Header,
}

impl Transport for QuicTransport {
    type Connection = QuicConnection;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        Ok(Self { dialer: Rc::new(Dialer::new(spec, DONE, DONE)?), header: Header::of(spec) })
    }

    async fn connect(&self) -> Result<Opened<QuicConnection>, Failure> {
        let (_, link, ready) = self.dialer.dial().await?;
        let connection = QuicConnection { link: Rc::new(link), dialer: Rc::clone(&self.dialer), header: self.header };
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
    async fn request(&mut self, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let stream = self.link.connection.open_both().map_err(|broken| broken.failure(ATTEMPT))?;
        exchange(&mut Raw::new(stream), self.header, body, |broken| broken.failure(ATTEMPT)).await
    }

    fn is_open(&self) -> bool {
        self.link.is_open()
    }

    fn another(&self) -> Option<Self> {
        Some(Self { link: Rc::clone(&self.link), dialer: Rc::clone(&self.dialer), header: self.header })
    }

    fn handshake(&self) -> Option<Handshake> {
        Some(self.link.handshake())
    }

    async fn close(self) {
        self.dialer.close(&self.link).await;
    }
}
