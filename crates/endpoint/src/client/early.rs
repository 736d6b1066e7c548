//! Requests on quinn's connections, which may be early data.

use crate::client::dial::{Dialer, Link};
use crate::client::transport::{Answer, Failure, Sink};

/// A protocol that can send its request again.
pub(crate) trait Early {
    /// The prepared request.
    type Order;

    /// Sends the request once and receives the response.
    async fn exchange(&self, link: &Link, order: &Self::Order, body: Option<Sink<'_>>) -> Result<Answer, Failure>;

    /// Reopens everything except the request that was rejected with early data.
    async fn renew(&self, _: &Link) -> Result<(), Failure> {
        Ok(())
    }
}

/// Sends a request, and repeats it if the server rejected it as early data: streams that were opened earlier are then
/// closed, and their content must be sent again (RFC 9001, section 4.6.2).
pub(crate) async fn request<E: Early>(
    protocol: &E,
    dialer: &Dialer,
    link: &Link,
    order: &E::Order,
    mut body: Option<Sink<'_>>,
) -> Result<Answer, Failure> {
    let was_undecided = link.is_undecided();
    let mut result = link.guard(protocol.exchange(link, order, reborrow(&mut body))).await;
    if was_undecided {
        if link.early_was_rejected().await {
            protocol.renew(link).await?;
            result = protocol.exchange(link, order, body).await;
        }
        if result.is_ok() {
            dialer.record(link)?;
        }
    }
    result
}

/// Reborrows the sink for another attempt.
fn reborrow<'a>(body: &'a mut Option<Sink<'_>>) -> Option<Sink<'a>> {
    body.as_mut().map(|sink| &mut **sink as Sink<'a>)
}
