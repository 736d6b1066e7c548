//! One request whose head is looked at: what `wirelab probe` asks before it measures anything.

use std::time::Duration;

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::spec::ClientSpec;

use crate::client::transport::Failure;
use crate::client::{Dialed, Dialer, Recipe, http_failure};
use crate::refusal::Refusal;

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The HTTP status.
    pub status: u16,
    /// The header fields in the order of arrival, names in lower case; a value that is no text is left out.
    pub fields: Vec<(String, String)>,
}

/// Sends the spec's request once by HTTP/1.1 and reads the head of the response; its body is not waited for.
///
/// # Errors
///
/// [`Refusal`] if the spec cannot be done, or no response came before the spec's deadlines.
pub fn look(spec: &ClientSpec) -> Result<Head, Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Refusal::failed(format!("cannot start a runtime: {error}")))?;
    let limit = Duration::from_nanos(spec.timeouts.request_ns);
    runtime.block_on(async {
        tokio::time::timeout(limit, head(spec)).await.unwrap_or_else(|_| {
            let message = format!("no response within {limit:?}");
            Err(Refusal::Failed(Failure { kind: ErrorKind::Timeout, message }))
        })
    })
}

async fn head(spec: &ClientSpec) -> Result<Head, Refusal> {
    let Dialed { stream, .. } = Dialer::new(spec)?.dial().await?;
    let broken = |attempt, error: &hyper::Error| Refusal::Failed(http_failure(attempt, error));
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken("beginning HTTP/1.1", &error))?;
    let request = sender.send_request(Recipe::new(spec)?.request());
    let response = tokio::select! {
        response = request => response,
        ended = connection => match ended {
            Err(error) => Err(error),
            Ok(()) => return Err(Refusal::Failed(Failure {
                kind: ErrorKind::Truncated,
                message: "the server closed the connection without a response".to_owned(),
            })),
        },
    };
    let response = response.map_err(|error| broken("waiting for the response", &error))?;
    let fields = response.headers().iter();
    let text = fields.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    Ok(Head { status: response.status().as_u16(), fields: text.collect() })
}
