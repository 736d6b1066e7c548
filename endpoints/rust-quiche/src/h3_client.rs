//! The HTTP/3 client.

use std::rc::Rc;

use quiche::h3::Header;
use wirelab_endpoint::program::{
    Accounts, Answer, ClientSpec, Configured, Connection, Failure, Opened, Recipe, Refusal, Sink, Transport,
};
use wirelab_model::sample::Handshake;

use crate::client::Dialer;
use crate::http::{Http, HttpRequest};
use crate::link::Handle;

/// Opens HTTP/3 connections.
pub struct H3Transport {
    dialer: Rc<Dialer>,
    request: Rc<HttpRequest>,
}

impl Transport for H3Transport {
    type Connection = H3Connection;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        let recipe = Recipe::new(spec)?;
        let request = HttpRequest { fields: fields(&recipe), body: recipe.body_size() };
        Ok(Self { dialer: Rc::new(Dialer::new(spec)?), request: Rc::new(request) })
    }

    async fn connect(&self) -> Result<Opened<H3Connection>, Failure> {
        let (link, ready) = self.dialer.dial().await?;
        let link = Rc::new(link);
        let connection = H3Connection { link, dialer: Rc::clone(&self.dialer), request: Rc::clone(&self.request) };
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

/// The header fields of a request, pseudo-header fields first (RFC 9114, section 4.3.1).
fn fields(recipe: &Recipe) -> Vec<Header> {
    let head = recipe.head_with_length();
    let uri = head.uri();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let pseudo = [
        (":method", head.method().as_str()),
        (":scheme", uri.scheme_str().unwrap_or("https")),
        (":authority", uri.authority().map_or("", |authority| authority.as_str())),
        (":path", path),
    ];
    let pseudo = pseudo.iter().map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes()));
    pseudo.chain(head.headers().iter().map(|(name, value)| Header::new(name.as_ref(), value.as_bytes()))).collect()
}

/// A handle to a connection.
pub struct H3Connection {
    link: Rc<Handle<Http>>,
    dialer: Rc<Dialer>,
    request: Rc<HttpRequest>,
}

impl Connection for H3Connection {
    async fn request(&mut self, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let answer = self.link.exchange(&self.request, body).await?;
        self.link.decided().await;
        Ok(answer)
    }

    fn is_open(&self) -> bool {
        self.link.is_open()
    }

    fn another(&self) -> Option<Self> {
        let (link, dialer) = (Rc::clone(&self.link), Rc::clone(&self.dialer));
        Some(Self { link, dialer, request: Rc::clone(&self.request) })
    }

    fn handshake(&self) -> Option<Handshake> {
        self.link.handshake()
    }

    async fn close(self) {
        self.dialer.close(&self.link).await;
    }
}
