//! The calls of gRPC that `wirelab load` makes before it measures.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use wirelab_endpoint::call::call;
use wirelab_model::mix::MixedRequest;
use wirelab_model::spec::ClientSpec;

use super::MOST_LOOKS;
use crate::failure::{Failure, Result};
use crate::requests::Requests;

/// Makes each call once, so that one that the server refuses is not measured. With `counts`, and if the responses to a
/// call are streams, it makes the call twice, and expects the number of messages of both in each response, if it is the
/// same.
pub fn look(requests: &Requests, spec: &mut ClientSpec, counts: bool, stop: &AtomicBool) -> Result {
    for (number, request) in requests.mix().iter().enumerate().take(MOST_LOOKS) {
        let messages = count(requests, spec, request, stop)?;
        if counts && is_open(request) && count(requests, spec, request, stop)? == messages {
            spec.mix[number].expect.messages = Some(messages);
        }
    }
    Ok(())
}

/// The expected number of messages in each response that is a stream: of one request or of several, in their order.
pub fn configured(spec: &ClientSpec) -> Option<Value> {
    let is_stream = |request: &&MixedRequest| request.method.as_ref().is_some_and(|method| method.streams_response);
    let expected = |request: &MixedRequest| request.expect.messages.map_or_else(|| json!("any"), Value::from);
    let mut all: Vec<_> = spec.mix.iter().filter(is_stream).map(expected).collect();
    if all.len() > 1 { Some(all.into()) } else { all.pop() }
}

/// Whether the number of messages in a response is open and can be found out: rows of data may differ in it.
fn is_open(request: &MixedRequest) -> bool {
    let is_stream = request.method.as_ref().is_some_and(|method| method.streams_response);
    is_stream && request.expect.messages.is_none() && request.variants.len() == 1
}

/// The number of messages in the response to a call.
fn count(requests: &Requests, spec: &ClientSpec, request: &MixedRequest, stop: &AtomicBool) -> Result<u64> {
    let Some(first) = request.variants.first() else { return Ok(0) };
    let one = ClientSpec { request: first.clone(), mix: Vec::new(), ..spec.clone() };
    let answer = call(&one, stop).map_err(|refusal| match stop.load(Ordering::Relaxed) {
        true => Failure::interrupted("interrupted before anything was measured"),
        false => Failure::failed(requests.target.unanswered(spec.protocol, &refusal)),
    })?;
    let url = requests.target.url_of(&first.path);
    let messages = answer
        .succeeded()
        .map_err(|failure| Failure::failed(format!("{url}: {}; nothing was measured", failure.message)))?;
    let count = messages.len() as u64;
    if request.method.is_none() && count != 1 {
        return Err(Failure::failed(format!(
            "{url} answers with {count} messages, but a unary call has exactly one. If its method streams responses, its type \
             must be known: give the message as JSON, or --protoset FILE"
        )));
    }
    Ok(count)
}
