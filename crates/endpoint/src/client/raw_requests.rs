//! A client's raw requests, each on a stream of its own, on the connections of any QUIC library.

use wirelab_contract::spec::ClientSpec;

use crate::client::multiplexed::{Dial, RequestProtocol};
use crate::client::transport::{Answer, Failure, Sink};
use crate::raw::Header;
use crate::raw_stream::{self, RawStream};
use crate::refusal::Refusal;

/// A library whose streams carry raw requests.
pub trait RawQuic: Dial {
    type Stream: RawStream;

    /// Opens a stream; waits if the peer allows no further one at the time.
    fn open(link: &Self::Link) -> impl Future<Output = Result<Self::Stream, Failure>>;

    /// Converts an error of a stream.
    fn failure(link: &Self::Link, error: <Self::Stream as RawStream>::Error) -> Failure;
}

/// Raw requests.
pub struct Raw;

impl<D: RawQuic> RequestProtocol<D> for Raw {
    type Order = Header;

    fn order(spec: &ClientSpec) -> Result<Header, Refusal> {
        Ok(Header::of(spec))
    }

    async fn begin(_: D::Wire, _: &D::Link) -> Result<Self, Failure> {
        Ok(Self)
    }

    async fn request(&self, _: &D, link: &D::Link, order: &Header, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let mut stream = D::open(link).await?;
        raw_stream::exchange(&mut stream, *order, body, |error| D::failure(link, error)).await
    }
}
