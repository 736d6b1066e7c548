//! Raw QUIC: each request on a stream of its own, with the header of the raw transports.

use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::ClientSpec;
use wirelab_engine::machine::{Inbox, Slot};
use wirelab_engine::payload::{Headed, Payload};
use wirelab_engine::refusal::Unreadable;

use super::{Application, Codes};
use crate::client::transport::Failure;
use crate::quic_contract::{done_code, given_up_code};
use crate::raw::Header;
use crate::raw_stream::ATTEMPT as SENDING;
use crate::refusal::Refusal;

/// Raw requests on a connection.
#[derive(Default)]
pub(crate) struct Raw;

/// The request that every stream carries.
pub(crate) struct Plan {
    request: Headed,
    /// Size of the response in bytes.
    wanted: u64,
}

/// A response as its stream arrives.
pub(crate) struct Response {
    slot: Slot,
    wanted: u64,
    received: u64,
}

impl Application for Raw {
    const PROTOCOL: Protocol = Protocol::Quic;
    const ATTEMPT: &str = SENDING;
    const CODES: Codes =
        Codes { broken: done_code(Protocol::Quic), malformed: given_up_code(Protocol::Quic), rejected: None };
    type Plan = Plan;
    type Response = Response;

    fn plan(spec: &ClientSpec) -> Result<Plan, Refusal> {
        if !spec.mix.is_empty() {
            return Err(Refusal::unsupported("`mix`: a client of a raw transport repeats one request"));
        }
        let header = Header::of(spec);
        Ok(Plan { request: Headed::new(header.encode().to_vec(), Payload::of(&spec.request)?), wanted: header.wanted })
    }

    fn size(plan: &Plan, _: usize) -> u64 {
        plan.request.size()
    }

    fn bytes(plan: &Plan, _: usize, offset: u64) -> &[u8] {
        plan.request.from(offset)
    }

    fn response(plan: &Plan, slot: Slot, _: usize) -> Response {
        Response { slot, wanted: plan.wanted, received: 0 }
    }

    fn receive(_: &Plan, response: &mut Response, bytes: &[u8], inbox: &mut Inbox) -> Result<(), Unreadable> {
        if response.received == 0 {
            inbox.first_byte(response.slot);
        }
        response.received += bytes.len() as u64;
        if response.received > response.wanted {
            let message = format!("{SENDING}: the response is longer than the requested {} bytes", response.wanted);
            return Err(Unreadable::Response(Failure::new(ErrorKind::Digest, message)));
        }
        inbox.body(response.slot, bytes);
        Ok(())
    }

    fn end(response: Response, inbox: &mut Inbox) {
        let Response { slot, wanted, received } = response;
        if received == 0 {
            inbox.first_byte(slot);
        }
        if received < wanted {
            let message = format!("{SENDING}: the response ended after {received} of {wanted} bytes");
            return inbox.failed(slot, Failure::new(ErrorKind::Truncated, message));
        }
        inbox.done(slot, None, received);
    }
}
