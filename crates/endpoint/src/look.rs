//! A single request for the head of its response, which `wirelab load` and `wirelab probe` send before they measure.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::Response;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::ClientSpec;
use wirelab_engine::requests::prepare;

use crate::client::h3::H3Transport;
use crate::client::transport::{Connection, Failure, Transport};
use crate::client::{Dialed, Dialer, LocalExecutor, Recipe, http_failure};
use crate::refusal::Refusal;

/// Interval of the checks of `stop`.
const WATCH_EVERY: Duration = Duration::from_millis(100);

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The HTTP status.
    pub status: u16,
    /// The header fields in order of arrival, with names in lower case; values that are no text are omitted.
    pub fields: Vec<(String, String)>,
}

impl Head {
    /// The values of a field in order of arrival. `name` must be in lower case.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn of<B>(response: &Response<B>) -> Self {
        let fields = response.headers().iter();
        let text = fields.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
        Self { status: response.status().as_u16(), fields: text.collect() }
    }
}

/// Sends a request of the spec once (`number` as in [`Connection::request`]), on a connection of its own, and reads
/// the head of the response without waiting for the body. Checks `stop` about ten times a second; if set, the wait
/// ends.
///
/// # Errors
///
/// [`Refusal`] if the spec is unsupported, or if no response came before the spec's deadlines.
pub fn look(spec: &ClientSpec, number: usize, stop: &AtomicBool) -> Result<Head, Refusal> {
    once(spec, "no response came", stop, head(spec, number))
}

/// Does the work of a single request within the spec's deadline, whose failure has this name, or until `stop` is set.
pub(crate) fn once<T>(
    spec: &ClientSpec,
    late: &str,
    stop: &AtomicBool,
    work: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Refusal::failed(format!("starting a runtime: {error}")))?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let whole = Duration::from_nanos(spec.timeouts.request_ns);
        tokio::select! {
            biased;
            done = within(whole, late, work) => done,
            () = until_set(stop) => Err(Refusal::failed("stopped before a response came")),
        }
    })
}

async fn head(spec: &ClientSpec, number: usize) -> Result<Head, Refusal> {
    let limit = Duration::from_nanos(spec.timeouts.connect_ns);
    if spec.protocol == Protocol::H3 {
        let transport = H3Transport::build(spec)?;
        let opened = within(limit, CONNECTING, async { Ok(transport.connect().await?) }).await?;
        let response = opened.connection.head(number).await?;
        opened.connection.close().await;
        return Ok(Head::of(&response));
    }
    let dialer = Dialer::new(spec)?;
    let attempt = spec.via.as_ref().map_or_else(|| CONNECTING.to_owned(), |via| format!("{CONNECTING} through {via}"));
    let Dialed { stream, .. } = within(limit, &attempt, async { Ok(dialer.dial().await?) }).await?;
    let proof = stream.proof();
    let io = TokioIo::new(stream);
    let request = prepare(spec, Recipe::new)?[number].request();
    let broken = |error: hyper::Error| Refusal::Failed(http_failure("asking for the head of the response", &error));
    let response = if spec.protocol.multiplexes() {
        let (mut sender, connection) = http2::handshake(LocalExecutor, io).await.map_err(broken)?;
        first(connection, sender.send_request(request)).await
    } else {
        proof.expect_head();
        let (mut sender, connection) = http1::handshake(io).await.map_err(broken)?;
        first(connection, sender.send_request(request)).await
    };
    Ok(Head::of(&response.map_err(broken)?))
}

pub(crate) const CONNECTING: &str = "no connection was ready";

pub(crate) async fn within<T>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Refusal> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        let message = format!("{what} within {limit:?}");
        Err(Refusal::Failed(Failure { kind: ErrorKind::Timeout, message }))
    })
}

/// Returns when the flag is set.
async fn until_set(flag: &AtomicBool) {
    while !flag.load(Ordering::Relaxed) {
        tokio::time::sleep(WATCH_EVERY).await;
    }
}

/// Drives the connection until the head of the response or an error arrives.
///
/// The driver may end in the same poll that delivers a correct response (`Connection: close`, HTTP/1.0, 204), so the
/// request, not the driver, determines the outcome.
async fn first<B>(
    driver: impl Future<Output = hyper::Result<()>>,
    request: impl Future<Output = hyper::Result<Response<B>>>,
) -> hyper::Result<Response<B>> {
    let mut request = pin!(request);
    let ended = tokio::select! {
        biased;
        response = &mut request => return response,
        ended = driver => ended,
    };
    match (request.await, ended) {
        // The request only knows that its connection is gone; the driver knows the reason.
        (Err(told), Err(cause)) if told.is_canceled() || told.is_closed() => Err(cause),
        (outcome, _) => outcome,
    }
}
