//! Servers and clients of the built-in endpoint by protocol.

use std::io::{self, BufRead, BufReader, Write};
use std::sync::Arc;

use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::ServerSpec;

use crate::client::Driver;
use crate::client::grpc::GrpcTransport;
use crate::client::h3::H3Transport;
use crate::client::http1::Http1Transport;
use crate::client::http2::Http2Transport;
use crate::client::quic::QuicTransport;
use crate::client::tcp::TcpTransport;
use crate::client::udp::UdpTransport;
use crate::contract;
use crate::refusal::Refusal;
use crate::server::{self, Bound, Site, Stop};

/// Runs the server of `wirelab endpoint server`. Returns the exit status after its stop.
#[must_use]
pub fn serve(spec_text: &str) -> i32 {
    serve_on(spec_text, BufReader::new(io::stdin()), io::stdout())
}

/// Runs the client of `wirelab endpoint client`. Returns the exit status after the results are written.
#[must_use]
pub fn request(spec_text: &str) -> i32 {
    request_on(spec_text, BufReader::new(io::stdin()), io::stdout())
}

/// Like [`serve`], on any streams.
pub fn serve_on(spec_text: &str, input: impl BufRead + Send + 'static, output: impl Write) -> i32 {
    contract::serve(spec_text, |spec, site, stop| Box::pin(bind(spec, site, stop)), input, output)
}

/// Like [`request`], on any streams.
pub fn request_on(spec_text: &str, input: impl BufRead + Send + 'static, output: impl Write) -> i32 {
    contract::request(spec_text, |protocol| Ok(driver(protocol)), input, output)
}

/// Returns the client driver of a protocol.
pub(crate) fn driver(protocol: Protocol) -> Driver {
    match protocol {
        Protocol::Tcp | Protocol::Tls => Driver::of::<TcpTransport>(),
        Protocol::H1c | Protocol::H1 => Driver::of::<Http1Transport>(),
        Protocol::H2c | Protocol::H2 => Driver::of::<Http2Transport>(),
        Protocol::Quic => Driver::of::<QuicTransport>(),
        Protocol::H3 => Driver::of::<H3Transport>(),
        Protocol::Udp => Driver::of::<UdpTransport>(),
        Protocol::Grpcc | Protocol::Grpc => Driver::of::<GrpcTransport>(),
    }
}

/// Binds the server of the spec. Called inside the server's runtime.
pub(crate) async fn bind(spec: ServerSpec, site: Arc<Site>, stop: Stop) -> Result<Bound, Refusal> {
    match spec.protocol {
        Protocol::Udp => server::udp::bind(&spec, site, stop).await,
        Protocol::Quic => server::quic::bind(&spec, site, stop).await,
        Protocol::H3 => server::h3::bind(&spec, site, stop).await,
        Protocol::Tcp
        | Protocol::Tls
        | Protocol::H1c
        | Protocol::H1
        | Protocol::H2c
        | Protocol::H2
        | Protocol::Grpcc
        | Protocol::Grpc => server::tcp::bind(&spec, site, stop).await,
    }
}
