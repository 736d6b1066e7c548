//! HTTP/3: requests on streams of their own, beside the control streams of both sides.

use std::cell::RefCell;

use quinn_proto::{Connection, Dir, ReadError, StreamId};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::ClientSpec;
use wirelab_engine::http3::{CONTROL, Decoder, Encoded, Inward, Response, code};
use wirelab_engine::machine::{Inbox, Slot};
use wirelab_engine::refusal::Unreadable;

use super::{Application, Codes};
use crate::client::transport::Failure;
use crate::refusal::Refusal;

/// HTTP/3 on a connection.
#[derive(Default)]
pub(crate) struct Http3 {
    /// Unidirectional streams of the server.
    inward: Vec<(StreamId, Inward)>,
}

/// What all connections of a thread share.
pub(crate) struct Plan {
    requests: Vec<Encoded>,
    decoder: RefCell<Decoder>,
}

impl Application for Http3 {
    const PROTOCOL: Protocol = Protocol::H3;
    const ATTEMPT: &str = "sending a request by HTTP/3";
    const CODES: Codes = Codes {
        broken: code::GENERAL_PROTOCOL_ERROR,
        malformed: code::MESSAGE_ERROR,
        rejected: Some(code::REQUEST_REJECTED),
    };
    type Plan = Plan;
    type Response = Response;

    fn plan(spec: &ClientSpec) -> Result<Plan, Refusal> {
        Ok(Plan { requests: Encoded::all(spec)?, decoder: RefCell::default() })
    }

    fn size(plan: &Plan, number: usize) -> u64 {
        plan.requests[number].size()
    }

    fn bytes(plan: &Plan, number: usize, offset: u64) -> &[u8] {
        plan.requests[number].from(offset)
    }

    fn response(plan: &Plan, slot: Slot, number: usize) -> Response {
        Response::new(slot, plan.requests[number].is_head())
    }

    fn receive(plan: &Plan, response: &mut Response, bytes: &[u8], inbox: &mut Inbox) -> Result<(), Unreadable> {
        response.receive(bytes, &mut plan.decoder.borrow_mut(), inbox)
    }

    fn end(response: Response, inbox: &mut Inbox) {
        response.end(inbox);
    }

    fn begin(&mut self, connection: &mut Connection) {
        self.inward.clear();
        if let Some(id) = connection.streams().open(Dir::Uni) {
            // Three bytes fit any credit that a server may grant (RFC 9114, section 6.2).
            let _ = connection.send_stream(id).write(&CONTROL);
        }
    }

    fn opened(&mut self, id: StreamId) {
        self.inward.push((id, Inward::default()));
    }

    fn read(&mut self, connection: &mut Connection, id: StreamId) -> Result<Option<u64>, Failure> {
        let Some((_, inward)) = self.inward.iter_mut().find(|(known, _)| *known == id) else { return Ok(None) };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return Ok(None) };
        let mut goaway = None;
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => match inward.receive(&chunk.bytes) {
                    Ok(refused) => goaway = refused.or(goaway),
                    Err(failure) => break Err(failure),
                },
                Err(ReadError::Blocked) => break Ok(()),
                Ok(None) | Err(ReadError::Reset(_)) => break inward.end(),
            }
        };
        let _ = chunks.finalize();
        end?;
        let kind = inward.kind().filter(|kind| Inward::is_single(*kind));
        if kind.is_some_and(|kind| self.inward.iter().filter(|(_, inward)| inward.kind() == Some(kind)).count() > 1) {
            let message = "the server opened a second control stream, or a second stream of QPACK";
            return Err(Failure::new(ErrorKind::Protocol, message));
        }
        Ok(goaway)
    }
}
