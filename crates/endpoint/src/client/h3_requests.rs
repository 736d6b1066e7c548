//! A client's HTTP/3 by the crate `h3`, on the connections of any QUIC library with an adapter for it.

use bytes::Bytes;
use h3::quic;
use wirelab_contract::spec::ClientSpec;

use crate::client::h3_channel::{self, ATTEMPT, Channel, Order};
use crate::client::multiplexed::{Dial, RequestProtocol};
use crate::client::transport::{Answer, Failure, Sink};
use crate::refusal::Refusal;

/// A library with an adapter for the crate `h3`.
pub trait Http3: Dial {
    /// The adapter of a connection.
    type Adapter: quic::Connection<Bytes, OpenStreams = Self::Opener, SendStream: Send, RecvStream: Send>
        + Send
        + 'static;

    /// The opener of its streams.
    type Opener: quic::OpenStreams<Bytes, BidiStream: quic::BidiStream<Bytes>> + Clone + 'static;

    /// Creates the adapter of a connection.
    fn adapt(wire: Self::Wire) -> Self::Adapter;

    /// The failure of the connection if it failed, otherwise `otherwise`, which comes from `h3`.
    fn failure_or(link: &Self::Link, attempt: &str, otherwise: Failure) -> Failure;
}

/// HTTP/3 on a connection of the library `D`.
pub struct ByH3<D: Http3>(Channel<D::Opener>);

impl<D: Http3> RequestProtocol<D> for ByH3<D> {
    type Order = Order;

    fn order(spec: &ClientSpec) -> Result<Order, Refusal> {
        Order::new(spec)
    }

    async fn begin(wire: D::Wire, link: &D::Link) -> Result<Self, Failure> {
        Channel::open(D::adapt(wire), |failure| D::failure_or(link, ATTEMPT, failure)).await.map(Self)
    }

    async fn request(&self, _: &D, link: &D::Link, order: &Order, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let failure = |failure| D::failure_or(link, ATTEMPT, failure);
        h3_channel::exchange(self.0.sender(), order, body, failure).await
    }
}
