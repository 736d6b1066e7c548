//! One request whose head is looked at: what `wirelab probe` asks before it measures anything.

use std::time::Duration;

use hyper::Response;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::spec::ClientSpec;

use crate::client::transport::Failure;
use crate::client::{Dialed, Dialer, LocalExecutor, Recipe, http_failure};
use crate::refusal::Refusal;

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The HTTP status.
    pub status: u16,
    /// The header fields in the order of arrival, names in lower case; a value that is no text is left out.
    pub fields: Vec<(String, String)>,
}

/// Sends the spec's request once by HTTP/1.1 or HTTP/2 and reads the head of the response; its body is not waited for.
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
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        tokio::time::timeout(limit, head(spec)).await.unwrap_or_else(|_| {
            let message = format!("no response within {limit:?}");
            Err(Refusal::Failed(Failure { kind: ErrorKind::Timeout, message }))
        })
    })
}

async fn head(spec: &ClientSpec) -> Result<Head, Refusal> {
    let Dialed { stream, .. } = Dialer::new(spec)?.dial().await?;
    let io = TokioIo::new(stream);
    let request = Recipe::new(spec)?.request();
    let broken = |error: hyper::Error| Refusal::Failed(http_failure("asking for the head of the response", &error));
    let response = if spec.protocol.multiplexes() {
        let (mut sender, connection) = http2::handshake(LocalExecutor, io).await.map_err(broken)?;
        first(connection, sender.send_request(request)).await
    } else {
        let (mut sender, connection) = http1::handshake(io).await.map_err(broken)?;
        first(connection, sender.send_request(request)).await
    };
    let response = response?.map_err(broken)?;
    let fields = response.headers().iter();
    let text = fields.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    Ok(Head { status: response.status().as_u16(), fields: text.collect() })
}

/// The response, while the connection's driver moves its bytes.
async fn first<B>(
    driver: impl Future<Output = hyper::Result<()>>,
    request: impl Future<Output = hyper::Result<Response<B>>>,
) -> Result<hyper::Result<Response<B>>, Refusal> {
    tokio::select! {
        biased;
        response = request => Ok(response),
        ended = driver => match ended {
            Err(error) => Ok(Err(error)),
            Ok(()) => Err(Refusal::Failed(Failure {
                kind: ErrorKind::Truncated,
                message: "the server closed the connection without a response".to_owned(),
            })),
        },
    }
}
