//! Requests on connections of quinn, which may travel as early data.

use crate::client::dial::{Dialer, Link};
use crate::client::transport::{Answer, Failure, Sink};

/// A protocol that can send its request again.
pub(crate) trait Early {
    /// What is sent.
    type Order;

    /// Sends the request once and receives the response.
    async fn exchange(&self, link: &Link, order: &Self::Order, body: Option<Sink<'_>>) -> Result<Answer, Failure>;

    /// Opens anew what was rejected with early data, beside the request itself.
    async fn renew(&self, _: &Link) -> Result<(), Failure> {
        Ok(())
    }
}

/// Sends a request, and once more where it was early data that the server rejected: streams that were opened before that are
/// dead, and what they carried is sent again (RFC 9001, section 4.6.2).
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

/// The sink again, for another attempt.
fn reborrow<'a>(body: &'a mut Option<Sink<'_>>) -> Option<Sink<'a>> {
    body.as_mut().map(|sink| &mut **sink as Sink<'a>)
}
