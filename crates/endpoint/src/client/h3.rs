//! The HTTP/3 client.

use std::cell::RefCell;
use std::rc::Rc;

use ::http::Response;
use h3::error::Code;
use h3_quinn::OpenStreams;
use wirelab_model::event::Configured;
use wirelab_model::sample::Handshake;
use wirelab_model::spec::ClientSpec;

use crate::client::dial::{Dialer, Link};
use crate::client::h3_channel::{self, ATTEMPT, Channel, Order};
use crate::client::quic::reborrow;
use crate::client::transport::{Answer, Connection, Failure, Opened, Sink, Transport};
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

/// Opens HTTP/3 connections.
pub struct H3Transport {
    dialer: Rc<Dialer>,
    order: Rc<Order>,
}

impl Transport for H3Transport {
    type Connection = H3Connection;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        Ok(Self { dialer: Rc::new(Dialer::new(spec)?), order: Rc::new(Order::new(spec)?) })
    }

    async fn connect(&self) -> Result<Opened<H3Connection>, Failure> {
        let (link, ready) = self.dialer.dial().await?;
        let channel = open_channel(&link).await?;
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
    channel: RefCell<Channel<OpenStreams>>,
    /// Whether the channel was opened anew after early data was rejected; locked while that goes on.
    renewed: tokio::sync::Mutex<bool>,
}

async fn open_channel(link: &Link) -> Result<Channel<OpenStreams>, Failure> {
    let connection = h3_quinn::Connection::new(link.connection.clone());
    Channel::open(connection, |failure| link.failure_or(ATTEMPT, || failure)).await
}

impl Shared {
    /// Opens the HTTP/3 channel anew where nobody did so yet: with early data its control streams were rejected too.
    async fn renew(&self) -> Result<(), Failure> {
        let mut renewed = self.renewed.lock().await;
        if !*renewed {
            let channel = open_channel(&self.link).await?;
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
        let sender = self.shared.channel.borrow().sender();
        h3_channel::exchange(sender, &self.order, body, |failure| self.failure(failure)).await
    }

    /// Sends the request and returns the head of the response; its body is not waited for.
    pub(crate) async fn head(&self) -> Result<Response<()>, Failure> {
        let sender = self.shared.channel.borrow().sender();
        h3_channel::head(sender, &self.order, |failure| self.failure(failure)).await
    }

    fn failure(&self, otherwise: Failure) -> Failure {
        self.shared.link.failure_or(ATTEMPT, || otherwise)
    }
}
