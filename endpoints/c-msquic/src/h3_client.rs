//! The HTTP/3 client.

use std::rc::Rc;

use h3::error::Code;
use wirelab_endpoint::program::h3_channel::{ATTEMPT, Channel, Order, exchange};
use wirelab_endpoint::program::{
    Accounts, Answer, ClientSpec, Configured, Connection, Failure, Opened, Refusal, Sink, Transport,
};
use wirelab_model::sample::Handshake;

use crate::client::{Dialer, Link};
use crate::h3_adapter::{Adapter, Opener};

/// Opens HTTP/3 connections.
pub struct H3Transport {
    dialer: Rc<Dialer>,
    order: Rc<Order>,
}

impl Transport for H3Transport {
    type Connection = H3Connection;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        let dialer = Dialer::new(spec, Code::H3_NO_ERROR.value(), Code::H3_REQUEST_CANCELLED.value())?;
        Ok(Self { dialer: Rc::new(dialer), order: Rc::new(Order::new(spec)?) })
    }

    async fn connect(&self) -> Result<Opened<H3Connection>, Failure> {
        let (line, link, ready) = self.dialer.dial().await?;
        let channel = Channel::open(Adapter::new(line), |failure| link.failure_or(ATTEMPT, failure)).await?;
        let shared = Rc::new(Shared { channel, link });
        let connection = H3Connection { shared, dialer: Rc::clone(&self.dialer), order: Rc::clone(&self.order) };
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
    channel: Channel<Opener>,
    link: Link,
}

impl Connection for H3Connection {
    async fn request(&mut self, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let failure = |failure| self.shared.link.failure_or(ATTEMPT, failure);
        exchange(self.shared.channel.sender(), &self.order, body, failure).await
    }

    fn is_open(&self) -> bool {
        self.shared.link.is_open()
    }

    fn another(&self) -> Option<Self> {
        Some(Self { shared: Rc::clone(&self.shared), dialer: Rc::clone(&self.dialer), order: Rc::clone(&self.order) })
    }

    fn handshake(&self) -> Option<Handshake> {
        Some(self.shared.link.handshake())
    }

    async fn close(self) {
        self.dialer.close(&self.shared.link).await;
    }
}
