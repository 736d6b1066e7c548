//! A single call of gRPC, which `wirelab load` makes before it measures.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use hyper::body::Body;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::ClientSpec;
use wirelab_engine::{grpc, http2};

use crate::client::http2_channel::Channels;
use crate::client::transport::Failure;
use crate::client::{OutgoingBody, Recipe};
use crate::look::{CONNECTING, once, within};
use crate::refusal::Refusal;

const ATTEMPT: &str = "calling by gRPC";

/// The status of a method that the server does not have (gRPC, `statuscodes.md`).
pub const UNIMPLEMENTED: u32 = 12;

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// `grpc-status`; 0 is success.
    pub status: u32,
    /// `grpc-message` as it was sent.
    pub reason: Vec<u8>,
    /// The messages that came before the status.
    pub messages: Vec<Vec<u8>>,
}

impl Answer {
    /// The messages of a call that succeeded.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the server's reason if it did not.
    pub fn succeeded(self) -> Result<Vec<Vec<u8>>, Failure> {
        match self.status {
            0 => Ok(self.messages),
            status => Err(Failure::new(ErrorKind::Status, http2::refusal(status, &self.reason))),
        }
    }
}

/// Makes the call that is the request of the spec, on a connection of its own: sends all its messages, and reads the
/// answer to its end. Checks `stop` about ten times a second; if set, the wait ends.
///
/// # Errors
///
/// [`Refusal`] if the spec is unsupported, or if no complete answer came before the spec's deadlines.
pub fn call(spec: &ClientSpec, stop: &AtomicBool) -> Result<Answer, Refusal> {
    once(spec, "the answer did not end", stop, answer(spec))
}

async fn answer(spec: &ClientSpec) -> Result<Answer, Refusal> {
    let recipe = Recipe::new(&*http2::as_http(spec)?)?;
    let channels = Channels::new(spec)?;
    let limit = Duration::from_nanos(spec.timeouts.connect_ns);
    let open = async { Ok(channels.open::<OutgoingBody>().await?.connection) };
    let mut channel = within(limit, CONNECTING, open).await?;
    let sent = channel.sender.send_request(recipe.request()).await;
    let (head, mut body) = sent.map_err(|error| channel.failure(ATTEMPT, &error))?.into_parts();
    let (mut framed, mut last) = (Vec::new(), head.headers);
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|error| channel.failure(ATTEMPT, &error))?;
        if let Some(bytes) = frame.data_ref() {
            framed.extend_from_slice(bytes);
        }
        if let Ok(trailers) = frame.into_trailers() {
            last = trailers;
        }
    }
    let broken = |what: &str| Failure::new(ErrorKind::Protocol, format!("{ATTEMPT}: {what}"));
    let Some(status) = status(head.status, &last)? else {
        return Err(broken("the response ended without `grpc-status`").into());
    };
    let reason = last.get("grpc-message").map(|reason| reason.as_bytes().to_vec()).unwrap_or_default();
    let messages = grpc::split(&framed).ok_or_else(|| broken("the answer ended within a message"))?;
    let messages = messages.into_iter().map(<[u8]>::to_vec).collect();
    Ok(Answer { status, reason, messages })
}

/// The status of a call by the HTTP status and the last block of fields; `None` if the server sent none. A proxy may
/// know nothing of gRPC (gRPC, `http-grpc-status-mapping.md`).
fn status(http: StatusCode, last: &HeaderMap) -> Result<Option<u32>, Failure> {
    match last.get("grpc-status").map(|status| status.to_str().ok().and_then(|status| status.parse().ok())) {
        Some(Some(status)) => Ok(Some(status)),
        Some(None) => Err(Failure::new(ErrorKind::Protocol, format!("{ATTEMPT}: `grpc-status` is no number"))),
        None if http == StatusCode::NOT_FOUND => Ok(Some(UNIMPLEMENTED)),
        None if http != StatusCode::OK => {
            let message = format!("the server answered with the HTTP status {}", http.as_u16());
            Err(Failure::new(ErrorKind::Status, message))
        }
        None => Ok(None),
    }
}
