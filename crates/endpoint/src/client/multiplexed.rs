//! The client of a protocol that multiplexes: many handles to one connection. This module has the common parts. A
//! library opens and closes connections ([`Dial`]); a protocol encodes requests on them ([`RequestProtocol`]).

use std::rc::Rc;
use std::time::Instant;

use wirelab_contract::event::Configured;
use wirelab_contract::sample::Handshake;
use wirelab_contract::spec::ClientSpec;
use wirelab_engine::requests::prepare;

use crate::client::transport::{Answer, Connection, Failure, Opened, Sink, Transport};
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

/// A library that opens connections to the server of a spec. Each of the client's threads has its own.
pub trait Dial: Sized + 'static {
    /// The part of a connection that a protocol takes over; empty if the link is enough.
    type Wire;

    /// The state of a connection during its use.
    type Link: 'static;

    /// Creates a dialer from the spec, once inside the thread's runtime. Refuses settings that it cannot honour.
    ///
    /// # Errors
    ///
    /// [`Refusal`] with the field and the reason.
    fn new(spec: &ClientSpec) -> Result<Self, Refusal>;

    /// Opens a connection, and returns the time from which it could send. With 0-RTT it returns as soon as early data
    /// can be sent.
    fn dial(&self) -> impl Future<Output = Result<(Self::Wire, Self::Link, Instant), Failure>>;

    /// Whether the connection accepts further requests, as far as known without a test.
    fn is_open(link: &Self::Link) -> bool;

    /// The proven kind of handshake; `None` until it is decided.
    fn handshake(link: &Self::Link) -> Option<Handshake>;

    /// Closes the connection cleanly. Waits briefly for a wanted ticket first.
    fn close(&self, link: &Self::Link) -> impl Future<Output = ()>;

    /// The known effective settings on the connections.
    fn configured(&self) -> Configured;

    /// Number of stored session tickets.
    fn tickets(&self) -> usize {
        0
    }

    /// Transport statistics of the connections.
    fn accounts(&self) -> &Accounts;
}

/// A protocol on a connection of a library.
pub trait RequestProtocol<D: Dial>: Sized + 'static {
    /// The request of the spec, prepared for repeated sending.
    type Order: 'static;

    /// Whether [`Self::order`] prepares the body of a user's request.
    const OWN_REQUESTS: bool = false;

    /// Prepares the request.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the protocol has no such request.
    fn order(spec: &ClientSpec) -> Result<Self::Order, Refusal>;

    /// Starts the protocol on a connection that can send.
    fn begin(wire: D::Wire, link: &D::Link) -> impl Future<Output = Result<Self, Failure>>;

    /// Sends the request and receives the whole response; see [`Connection::request`].
    fn request(
        &self,
        dialer: &D,
        link: &D::Link,
        order: &Self::Order,
        body: Option<Sink<'_>>,
    ) -> impl Future<Output = Result<Answer, Failure>>;
}

/// Opens connections of the library `D` for the protocol `S`.
pub struct Multiplexed<D: Dial, S: RequestProtocol<D>> {
    dialer: Rc<D>,
    orders: Rc<Vec<S::Order>>,
}

impl<D: Dial, S: RequestProtocol<D>> Transport for Multiplexed<D, S> {
    type Connection = Handle<D, S>;

    const OWN_REQUESTS: bool = S::OWN_REQUESTS;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        Ok(Self { dialer: Rc::new(D::new(spec)?), orders: Rc::new(prepare(spec, S::order)?) })
    }

    async fn connect(&self) -> Result<Opened<Handle<D, S>>, Failure> {
        let (wire, link, ready) = self.dialer.dial().await?;
        let protocol = S::begin(wire, &link).await?;
        let (dialer, orders) = (Rc::clone(&self.dialer), Rc::clone(&self.orders));
        let connection = Handle { open: Rc::new(Open { protocol, link }), dialer, orders };
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
pub struct Handle<D: Dial, S: RequestProtocol<D>> {
    open: Rc<Open<D, S>>,
    dialer: Rc<D>,
    orders: Rc<Vec<S::Order>>,
}

/// The state that all handles share. The protocol drops before the connection below it.
struct Open<D: Dial, S> {
    protocol: S,
    link: D::Link,
}

impl<D: Dial, S: RequestProtocol<D>> Connection for Handle<D, S> {
    async fn request(&mut self, number: usize, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let Open { protocol, link } = &*self.open;
        protocol.request(&self.dialer, link, &self.orders[number], body).await
    }

    fn is_open(&self) -> bool {
        D::is_open(&self.open.link)
    }

    fn another(&self) -> Option<Self> {
        let (open, dialer) = (Rc::clone(&self.open), Rc::clone(&self.dialer));
        Some(Self { open, dialer, orders: Rc::clone(&self.orders) })
    }

    fn handshake(&self) -> Option<Handshake> {
        D::handshake(&self.open.link)
    }

    async fn close(self) {
        self.dialer.close(&self.open.link).await;
    }
}

#[cfg(feature = "builtin")]
impl<D: Dial, S: RequestProtocol<D>> Handle<D, S> {
    /// The protocol, the connection and a request, for callers that need more than a response.
    pub(crate) fn parts(&self, number: usize) -> (&S, &D::Link, &S::Order) {
        (&self.open.protocol, &self.open.link, &self.orders[number])
    }
}
