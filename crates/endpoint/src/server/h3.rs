//! The HTTP/3 server on quinn.

use std::sync::Arc;

use h3::error::Code;
use wirelab_model::spec::ServerSpec;

use crate::refusal::Refusal;
use crate::server::{Bound, Site, Stop, h3_connection, quic};

/// Binds an HTTP/3 server.
pub(crate) async fn bind(spec: &ServerSpec, site: Arc<Site>, stop: Stop) -> Result<Bound, Refusal> {
    // H3_NO_ERROR; `value` gives a u64, and codes of HTTP/3 are small.
    let code = Code::H3_NO_ERROR.value() as u32;
    quic::bind_with(spec, stop, code, move |connection| {
        h3_connection::serve(h3_quinn::Connection::new(connection), Arc::clone(&site))
    })
}
