//! The client of raw QUIC.

use std::rc::Rc;

use wirelab_endpoint::program::{
    Accounts, Answer, ClientSpec, Configured, Connection, Failure, Header, Opened, Refusal, Sink, Transport,
};
use wirelab_model::outcome::ErrorKind;
use wirelab_model::sample::Handshake;

use crate::client::Dialer;
use crate::link::Handle;
use crate::raw::{Raw, RawRequest};

/// Opens connections for raw requests.
pub struct QuicTransport {
    dialer: Rc<Dialer>,
    request: Rc<RawRequest>,
    wanted: u64,
}

impl Transport for QuicTransport {
    type Connection = QuicConnection;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        let header = Header::of(spec);
        let request = RawRequest { header: header.encode(), body: header.body };
        Ok(Self { dialer: Rc::new(Dialer::new(spec)?), request: Rc::new(request), wanted: header.wanted })
    }

    async fn connect(&self) -> Result<Opened<QuicConnection>, Failure> {
        let (link, ready) = self.dialer.dial().await?;
        let (link, dialer, request) = (Rc::new(link), Rc::clone(&self.dialer), Rc::clone(&self.request));
        let connection = QuicConnection { link, dialer, request, wanted: self.wanted };
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
    link: Rc<Handle<Raw>>,
    dialer: Rc<Dialer>,
    request: Rc<RawRequest>,
    wanted: u64,
}

impl Connection for QuicConnection {
    async fn request(&mut self, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let answer = self.link.exchange(&self.request, body).await?;
        self.link.decided().await;
        let (is, wanted) = (answer.bytes_in, self.wanted);
        let fail =
            |kind, what: &str| Err(Failure::new(kind, format!("the answer has {is} bytes, {what} than {wanted}")));
        match is.cmp(&wanted) {
            std::cmp::Ordering::Less => fail(ErrorKind::Truncated, "less"),
            std::cmp::Ordering::Equal => Ok(answer),
            std::cmp::Ordering::Greater => fail(ErrorKind::Digest, "more"),
        }
    }

    fn is_open(&self) -> bool {
        self.link.is_open()
    }

    fn another(&self) -> Option<Self> {
        let (link, dialer) = (Rc::clone(&self.link), Rc::clone(&self.dialer));
        Some(Self { link, dialer, request: Rc::clone(&self.request), wanted: self.wanted })
    }

    fn handshake(&self) -> Option<Handshake> {
        self.link.handshake()
    }

    async fn close(self) {
        self.dialer.close(&self.link).await;
    }
}
