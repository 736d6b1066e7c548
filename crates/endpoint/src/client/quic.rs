//! Raw QUIC: one bidirectional stream of quinn per request, with the header of the raw transports.

use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::ClientSpec;

use crate::client::dial::{Dialer, Link};
use crate::client::early::{self, Early};
use crate::client::multiplexed::{Multiplexed, RequestProtocol};
use crate::client::transport::{Answer, Failure, Sink};
use crate::quic_stream::QuicStream;
use crate::raw::Header;
use crate::raw_stream::{self, ATTEMPT};
use crate::refusal::Refusal;

/// Opens connections for raw requests.
pub type QuicTransport = Multiplexed<Dialer, RawRequests>;

/// Raw requests on a connection.
pub struct RawRequests;

impl RequestProtocol<Dialer> for RawRequests {
    type Order = Header;

    fn order(spec: &ClientSpec) -> Result<Header, Refusal> {
        Ok(Header::of(spec))
    }

    async fn begin((): (), _: &Link) -> Result<Self, Failure> {
        Ok(Self)
    }

    async fn request(
        &self,
        dialer: &Dialer,
        link: &Link,
        order: &Header,
        body: Option<Sink<'_>>,
    ) -> Result<Answer, Failure> {
        early::request(self, dialer, link, order, body).await
    }
}

impl Early for RawRequests {
    type Order = Header;

    async fn exchange(&self, link: &Link, order: &Header, body: Option<Sink<'_>>) -> Result<Answer, Failure> {
        let (send, receive) = match link.connection.open_bi().await {
            Ok(stream) => stream,
            Err(error) => return Err(crate::quic_config::failure(ATTEMPT, &error)),
        };
        raw_stream::exchange(&mut QuicStream(send, receive), *order, body, |error| {
            link.failure_or(ATTEMPT, || {
                let kind = if error.is_reset() { ErrorKind::Reset } else { ErrorKind::Other };
                Failure { kind, message: format!("{ATTEMPT}: {error}") }
            })
        })
        .await
    }
}
