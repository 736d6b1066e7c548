//! The endpoint `engine`: the load engine of the crate `wirelab-engine` as a client, and its null server.

use std::io::{self, BufRead, BufReader, Write};

use wirelab_contract::endpoint::{Description, Role};
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{Feature, ServerSpec};
use wirelab_engine::http1::Http1;
use wirelab_engine::http2::Http2;
use wirelab_engine::raw::RawStream;
use wirelab_engine::stream::StreamDialer;

use crate::client::Driver;
use crate::client::engine_quic::{Http3, QuicDialer, Raw};
use crate::client::engine_udp::UdpDialer;
use crate::contract::{self, Binding};
use crate::describe::{role, without_roles};
use crate::server::null;

/// The name of the endpoint.
pub const NAME: &str = "engine";

/// The description that `wirelab endpoint --engine describe` prints.
#[must_use]
pub fn describe() -> Description {
    let client = Some(Role { own_requests: true, until_steady: true, ..role(&Protocol::ALL) });
    let features = vec![Feature::Files, Feature::Echo, Feature::Bytes, Feature::Redirect, Feature::Heron];
    let server = Some(Role { features, ..role(&Protocol::ALL) });
    Description { server, client, ..without_roles(NAME, &["wirelab-engine", "httparse", "rustls", "quinn-proto"]) }
}

/// Runs the null server. Returns the exit status after its stop.
#[must_use]
pub fn serve(spec_text: &str) -> i32 {
    serve_on(spec_text, BufReader::new(io::stdin()), io::stdout())
}

/// Like [`serve`], on any streams.
pub fn serve_on(spec_text: &str, input: impl BufRead + Send + 'static, output: impl Write) -> i32 {
    let bind = |spec: ServerSpec, site, stop| Box::pin(null::bind(spec, site, stop)) as Binding;
    contract::serve(spec_text, bind, input, output)
}

/// Runs the client. Returns the exit status after the results are written.
#[must_use]
pub fn request(spec_text: &str) -> i32 {
    request_on(spec_text, BufReader::new(io::stdin()), io::stdout())
}

/// Like [`request`], on any streams.
pub fn request_on(spec_text: &str, input: impl BufRead + Send + 'static, output: impl Write) -> i32 {
    contract::request(spec_text, |protocol| Ok(driver(protocol)), input, output)
}

/// The driver of a protocol.
pub(crate) fn driver(protocol: Protocol) -> Driver {
    match protocol {
        Protocol::Udp => Driver::engine::<UdpDialer>(),
        Protocol::Tcp | Protocol::Tls => Driver::engine::<StreamDialer<RawStream>>(),
        Protocol::Quic => Driver::engine::<QuicDialer<Raw>>(),
        Protocol::H1c | Protocol::H1 => Driver::engine::<StreamDialer<Http1>>(),
        Protocol::H2c | Protocol::H2 | Protocol::Grpcc | Protocol::Grpc => Driver::engine::<StreamDialer<Http2>>(),
        Protocol::H3 => Driver::engine::<QuicDialer<Http3>>(),
    }
}
