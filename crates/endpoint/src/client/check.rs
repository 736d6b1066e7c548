//! The check request: one request on a connection of its own before the measurement, with a full check of the response,
//! so that no measurement includes hashing.

use ring::digest::{Context, SHA256};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::ClientSpec;

use crate::client::thread_state::ThreadState;
use crate::client::transport::{Connection, Failure, Sink, Transport};

/// Sends the spec's request and compares status, size, digest and negotiated protocol with what the spec expects.
pub(crate) async fn check<T: Transport>(state: &ThreadState<T>, spec: &ClientSpec) -> Result<(), Failure> {
    let attempt = |failure: Failure| {
        let request = &spec.request;
        let what = format!("{} {} from {}:{}", request.method, request.path, spec.address, spec.port);
        let Failure { kind, message } = failure;
        Failure::new(kind, format!("the check request ({what} over {}) failed: {message}", spec.protocol))
    };
    let mut digest = Context::new(&SHA256);
    once(state, Some(&mut |bytes| digest.update(bytes))).await.map_err(attempt)?;
    if let Some(expect) = &spec.request.expect {
        let sha256: String = digest.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if !sha256.eq_ignore_ascii_case(&expect.sha256) {
            let message = format!("the SHA-256 of the response is {sha256} instead of {}", expect.sha256);
            return Err(attempt(Failure::new(ErrorKind::Digest, message)));
        }
    }
    let configured = state.transport.configured();
    let negotiated = configured.get("alpn").and_then(|alpn| alpn.as_str());
    match spec.protocol.alpn() {
        Some(wanted) if negotiated != Some(wanted) => {
            let negotiated = negotiated.unwrap_or("nothing");
            let message = format!("the server negotiated {negotiated} (ALPN) instead of {wanted}");
            Err(attempt(Failure::new(ErrorKind::Protocol, message)))
        }
        _ => Ok(()),
    }
}

/// Sends the request once, on a connection opened for it and closed after it.
pub(crate) async fn once<T: Transport>(state: &ThreadState<T>, sink: Option<Sink<'_>>) -> Result<(), Failure> {
    let mut connection = state.connect().await?;
    match tokio::time::timeout(state.timeouts.request, connection.request(sink)).await {
        Ok(answer) => state.judge(&answer?)?,
        Err(_) => return Err(state.request_timeout()),
    }
    connection.close().await;
    Ok(())
}
