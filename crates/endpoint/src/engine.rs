//! The endpoint `engine`: the load engine of the crate `wirelab-engine` as a client of its own.

use std::io::{self, BufRead, BufReader, Write};

use wirelab_contract::endpoint::{Description, Role};
use wirelab_contract::protocol::Protocol;
use wirelab_engine::http1::Http1;
use wirelab_engine::http2::Http2;
use wirelab_engine::stream::StreamDialer;

use crate::client::Driver;
use crate::client::engine_quic::QuicDialer;
use crate::contract;
use crate::describe::{role, without_roles};
use crate::refusal::Refusal;

/// The name of the endpoint.
pub const NAME: &str = "engine";

/// The protocols of its client.
const PROTOCOLS: [Protocol; 5] = [Protocol::H1c, Protocol::H1, Protocol::H2c, Protocol::H2, Protocol::H3];

/// What `wirelab endpoint --engine describe` prints.
#[must_use]
pub fn describe() -> Description {
    let client = Some(Role { own_requests: true, ..role(&PROTOCOLS) });
    Description { client, ..without_roles(NAME, &["wirelab-engine", "httparse", "rustls", "quinn-proto"]) }
}

/// Runs the client. Returns the exit status after the results are written.
#[must_use]
pub fn request(spec_text: &str) -> i32 {
    request_on(spec_text, BufReader::new(io::stdin()), io::stdout())
}

/// Like [`request`], on any streams.
pub fn request_on(spec_text: &str, input: impl BufRead + Send + 'static, output: impl Write) -> i32 {
    contract::request(spec_text, driver, input, output)
}

/// Whether the engine has this protocol.
#[must_use]
pub fn supports(protocol: Protocol) -> bool {
    PROTOCOLS.contains(&protocol)
}

/// The driver of a protocol.
pub(crate) fn driver(protocol: Protocol) -> Result<Driver, Refusal> {
    match protocol {
        Protocol::H1c | Protocol::H1 => Ok(Driver::engine::<StreamDialer<Http1>>()),
        Protocol::H2c | Protocol::H2 => Ok(Driver::engine::<StreamDialer<Http2>>()),
        Protocol::H3 => Ok(Driver::engine::<QuicDialer>()),
        _ => Err(Refusal::unsupported(format!("`{protocol}`: the load engine does not support it yet"))),
    }
}
