//! What a connection of QUIC carries: HTTP/3, or raw requests.

mod http3;
mod raw;

use quinn_proto::{Connection, StreamId};
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::ClientSpec;
use wirelab_engine::machine::{Inbox, Slot};
use wirelab_engine::refusal::Unreadable;

use crate::client::transport::Failure;
use crate::refusal::Refusal;

pub(crate) use http3::Http3;
pub(crate) use raw::Raw;

/// The state of an application on one connection.
pub(crate) trait Application: Default + 'static {
    /// Its name in specs, which selects its error codes.
    const PROTOCOL: Protocol;
    /// The attempted operation in failure messages.
    const ATTEMPT: &str;
    /// Its error codes.
    const CODES: Codes;
    /// What all connections of a thread share.
    type Plan: 'static;
    /// A response as its stream arrives.
    type Response;

    /// Encodes the requests of the spec, once.
    fn plan(spec: &ClientSpec) -> Result<Self::Plan, Refusal>;

    /// The size of a request in bytes.
    fn size(plan: &Self::Plan, number: usize) -> u64;

    /// Bytes of a request from this offset on, not necessarily all.
    fn bytes(plan: &Self::Plan, number: usize, offset: u64) -> &[u8];

    /// The response to a request, before its first byte.
    fn response(plan: &Self::Plan, slot: Slot, number: usize) -> Self::Response;

    /// Takes bytes of a response.
    fn receive(
        plan: &Self::Plan,
        response: &mut Self::Response,
        bytes: &[u8],
        inbox: &mut Inbox,
    ) -> Result<(), Unreadable>;

    /// Takes the end of a response's stream.
    fn end(response: Self::Response, inbox: &mut Inbox);

    /// Says what comes before the first request.
    fn begin(&mut self, _: &mut Connection) {}

    /// Takes note of a new unidirectional stream of the server.
    fn opened(&mut self, _: StreamId) {}

    /// Reads a unidirectional stream of the server. Returns the first stream that the server refuses, if it ends the
    /// connection in an orderly way.
    fn read(&mut self, _: &mut Connection, _: StreamId) -> Result<Option<u64>, Failure> {
        Ok(None)
    }
}

/// The error codes of an application.
pub(crate) struct Codes {
    /// The server broke the protocol.
    pub broken: u32,
    /// A response is malformed.
    pub malformed: u32,
    /// The server did not process the request, if the protocol can say so.
    pub rejected: Option<u64>,
}
