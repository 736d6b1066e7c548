//! The client of a protocol that multiplexes: many handles to one connection. What all libraries and protocols have in common
//! is here; a library says how connections are opened and closed ([`Dial`]), a protocol what is said on them ([`Speech`]).

use std::rc::Rc;
use std::time::Instant;

use wirelab_model::event::Configured;
use wirelab_model::sample::Handshake;
use wirelab_model::spec::ClientSpec;

use crate::client::transport::{Answer, Connection, Failure, Opened, Sink, Transport};
use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

/// A library that opens connections to the server of a spec. Each of the client's threads has its own.
pub trait Dial: Sized + 'static {
    /// What a protocol takes over to speak on a connection; nothing where the link is enough.
    type Wire;

    /// What is kept of a connection as long as anybody uses it.
    type Link: 'static;

    /// A dialer by the spec, called once inside the thread's runtime. It refuses what it cannot honour.
    ///
    /// # Errors
    ///
    /// [`Refusal`], which says which field and why.
    fn new(spec: &ClientSpec) -> Result<Self, Refusal>;

    /// Opens a connection, and says when it could send. Where 0-RTT is asked for and possible it returns as soon as early
    /// data can be sent.
    fn dial(&self) -> impl Future<Output = Result<(Self::Wire, Self::Link, Instant), Failure>>;

    /// Whether the connection can carry a further request, as far as is known without trying.
    fn is_open(link: &Self::Link) -> bool;

    /// How the connection began, proven; absent while that is not decided.
    fn handshake(link: &Self::Link) -> Option<Handshake>;

    /// Closes the connection properly. A ticket that is wanted and still to come is waited for first, briefly.
    fn close(&self, link: &Self::Link) -> impl Future<Output = ()>;

    /// What is in force on the connections, as far as it is known.
    fn configured(&self) -> Configured;

    /// Session tickets in store.
    fn tickets(&self) -> usize {
        0
    }

    /// What the connections say of their transport.
    fn accounts(&self) -> &Accounts;
}

/// A protocol on a connection of a library.
pub trait Speech<D: Dial>: Sized + 'static {
    /// The request of the spec, made ready to be sent again and again.
    type Order: 'static;

    /// Makes the request ready.
    ///
    /// # Errors
    ///
    /// [`Refusal`] where the protocol has no such request.
    fn order(spec: &ClientSpec) -> Result<Self::Order, Refusal>;

    /// Begins to speak on a connection that can send.
    fn begin(wire: D::Wire, link: &D::Link) -> impl Future<Output = Result<Self, Failure>>;

    /// Sends the request and receives the whole response, as [`Connection::request`] has it.
    fn request(
        &self,
        dialer: &D,
        link: &D::Link,
        order: &Self::Order,
        body: Option<Sink<'_>>,
    ) -> impl Future<Output = Result<Answer, Failure>>;
}

/// Opens connections of the library `D` for the protocol `S`.
pub struct Multiplexed<D: Dial, S: Speech<D>> {
    dialer: Rc<D>,
    order: Rc<S::Order>,
}

impl<D: Dial, S: Speech<D>> Transport for Multiplexed<D, S> {
    type Connection = Handle<D, S>;

    fn build(spec: &ClientSpec) -> Result<Self, Refusal> {
        Ok(Self { dialer: Rc::new(D::new(spec)?), order: Rc::new(S::order(spec)?) })
    }

    async fn connect(&self) -> Result<Opened<Handle<D, S>>, Failure> {
        let (wire, link, ready) = self.dialer.dial().await?;
        let speech = S::begin(wire, &link).await?;
        let (dialer, order) = (Rc::clone(&self.dialer), Rc::clone(&self.order));
        let connection = Handle { open: Rc::new(Open { speech, link }), dialer, order };
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
pub struct Handle<D: Dial, S: Speech<D>> {
    open: Rc<Open<D, S>>,
    dialer: Rc<D>,
    order: Rc<S::Order>,
}

/// What its handles share. The protocol goes before the connection below it.
struct Open<D: Dial, S> {
    speech: S,
    link: D::Link,
}

impl<D: Dial, S: Speech<D>> Connection for Handle<D, S> {
    async fn request(&mut self, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let Open { speech, link } = &*self.open;
        speech.request(&self.dialer, link, &self.order, body).await
    }

    fn is_open(&self) -> bool {
        D::is_open(&self.open.link)
    }

    fn another(&self) -> Option<Self> {
        let (open, dialer) = (Rc::clone(&self.open), Rc::clone(&self.dialer));
        Some(Self { open, dialer, order: Rc::clone(&self.order) })
    }

    fn handshake(&self) -> Option<Handshake> {
        D::handshake(&self.open.link)
    }

    async fn close(self) {
        self.dialer.close(&self.open.link).await;
    }
}

#[cfg(feature = "builtin")]
impl<D: Dial, S: Speech<D>> Handle<D, S> {
    /// What speaks on the connection, the connection, and the request, for who wants something else of them than a response.
    pub(crate) fn parts(&self) -> (&S, &D::Link, &S::Order) {
        (&self.open.speech, &self.open.link, &self.order)
    }
}
