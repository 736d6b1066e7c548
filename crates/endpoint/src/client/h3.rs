//! The HTTP/3 client: the crate `h3` on quinn.

use std::cell::RefCell;

use ::http::Response;
use h3_quinn::OpenStreams;
use wirelab_contract::spec::ClientSpec;

use crate::client::dial::{Dialer, Link};
use crate::client::early::{self, Early};
use crate::client::h3_channel::{self, ATTEMPT, Channel, Order};
use crate::client::multiplexed::{Handle, Multiplexed, RequestProtocol};
use crate::client::transport::{Answer, Failure, Sink};
use crate::refusal::Refusal;

/// Opens HTTP/3 connections.
pub type H3Transport = Multiplexed<Dialer, Http3>;

/// HTTP/3 on a connection.
pub struct Http3 {
    channel: RefCell<Channel<OpenStreams>>,
    /// Whether the channel was reopened after early data was rejected; locked during the reopening.
    renewed: tokio::sync::Mutex<bool>,
}

impl RequestProtocol<Dialer> for Http3 {
    type Order = Order;

    const OWN_REQUESTS: bool = true;

    fn order(spec: &ClientSpec) -> Result<Order, Refusal> {
        Order::new(spec)
    }

    async fn begin((): (), link: &Link) -> Result<Self, Failure> {
        Ok(Self { channel: RefCell::new(open_channel(link).await?), renewed: tokio::sync::Mutex::new(false) })
    }

    async fn request(
        &self,
        dialer: &Dialer,
        link: &Link,
        order: &Order,
        body: Option<Sink<'_>>,
    ) -> Result<Answer, Failure> {
        early::request(self, dialer, link, order, body).await
    }
}

impl Early for Http3 {
    type Order = Order;

    async fn exchange(&self, link: &Link, order: &Order, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let sender = self.channel.borrow().sender();
        h3_channel::exchange(sender, order, body, |failure| link.failure_or(ATTEMPT, || failure)).await
    }

    /// Reopens the HTTP/3 channel once: with early data, its control streams were rejected too.
    async fn renew(&self, link: &Link) -> Result<(), Failure> {
        let mut renewed = self.renewed.lock().await;
        if !*renewed {
            let channel = open_channel(link).await?;
            self.channel.replace(channel);
            *renewed = true;
        }
        Ok(())
    }
}

async fn open_channel(link: &Link) -> Result<Channel<OpenStreams>, Failure> {
    let connection = h3_quinn::Connection::new(link.connection.clone());
    Channel::open(connection, |failure| link.failure_or(ATTEMPT, || failure)).await
}

impl Handle<Dialer, Http3> {
    /// Sends a request and returns the head of the response, without waiting for the body.
    pub(crate) async fn head(&self, number: usize) -> Result<Response<()>, Failure> {
        let (protocol, link, order) = self.parts(number);
        let sender = protocol.channel.borrow().sender();
        h3_channel::head(sender, order, |failure| link.failure_or(ATTEMPT, || failure)).await
    }
}
