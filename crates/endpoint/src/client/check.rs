//! The check request: one request on a connection of its own before the measurement, with a full check of the response,
//! so that no measurement includes hashing.

use ring::digest::{Context, SHA256};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::{ClientSpec, Request};
use wirelab_engine::requests::Pick;

use crate::client::thread_state::ThreadState;
use crate::client::transport::{Connection, Failure, Sink, Transport};

/// Sends each request whose response is known, and compares status, size, content and negotiated protocol with what the
/// spec expects.
pub(crate) async fn check<T: Transport>(state: &ThreadState<T>, spec: &ClientSpec) -> Result<(), Failure> {
    for (pick, name) in state.requests.to_check() {
        let attempt = |failure: Failure| {
            let Request { method, path, .. } = &spec.request;
            let what = name.map_or_else(|| format!("{method} {path}"), |name| format!("`{name}`"));
            let server = format!("{} over {}", spec.place(), spec.protocol);
            let Failure { kind, message } = failure;
            Failure::new(kind, format!("the check request ({what} from {server}) failed: {message}"))
        };
        one(state, spec, pick).await.map_err(attempt)?;
    }
    Ok(())
}

async fn one<T: Transport>(state: &ThreadState<T>, spec: &ClientSpec, pick: Pick) -> Result<(), Failure> {
    let mut digest = Context::new(&SHA256);
    once(state, pick, &mut |bytes| digest.update(bytes)).await?;
    if let Some(expect) = &spec.request.expect {
        let sha256: String = digest.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if !sha256.eq_ignore_ascii_case(&expect.sha256) {
            let message = format!("the SHA-256 of the response is {sha256} instead of {}", expect.sha256);
            return Err(Failure::new(ErrorKind::Digest, message));
        }
    }
    let configured = state.transport.configured();
    let negotiated = configured.get("alpn").and_then(|alpn| alpn.as_str());
    match spec.protocol.alpn() {
        Some(wanted) if negotiated != Some(wanted) => {
            let negotiated = negotiated.unwrap_or("nothing");
            let message = format!("the server negotiated {negotiated} (ALPN) instead of {wanted}");
            Err(Failure::new(ErrorKind::Protocol, message))
        }
        _ => Ok(()),
    }
}

/// Sends a request once, on a connection opened for it and closed after it.
pub(crate) async fn once<T: Transport>(state: &ThreadState<T>, pick: Pick, sink: Sink<'_>) -> Result<(), Failure> {
    let mut connection = state.connect().await?;
    let mut body = Vec::new();
    let keeps = state.requests.reads_body(pick);
    let mut both = |bytes: &[u8]| {
        sink(bytes);
        if keeps {
            body.extend_from_slice(bytes);
        }
    };
    match tokio::time::timeout(state.timeouts.request, connection.request(pick.number, Some(&mut both))).await {
        Ok(answer) => {
            let answer = answer?;
            state.requests.judge(pick, answer.status, answer.bytes_in, &body)?;
        }
        Err(_) => return Err(state.request_timeout()),
    }
    connection.close().await;
    Ok(())
}
