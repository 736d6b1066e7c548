//! The HTTP/3 server on quinn.

use std::sync::Arc;

use h3::error::Code;
use wirelab_contract::page::Priorities;
use wirelab_contract::spec::ServerSpec;

use crate::refusal::Refusal;
use crate::server::h3_ranked::Ranked;
use crate::server::priority::StreamPriorities;
use crate::server::{Bound, Site, Stop, h3_connection, quic};

/// Binds an HTTP/3 server.
pub(crate) async fn bind(spec: &ServerSpec, site: Arc<Site>, stop: Stop) -> Result<Bound, Refusal> {
    // H3_NO_ERROR; `value` returns a u64, and HTTP/3 codes are small.
    let code = Code::H3_NO_ERROR.value() as u32;
    match spec.page.as_ref().and_then(|page| page.priorities) {
        None => quic::bind_with(spec, stop, code, move |connection| {
            h3_connection::serve(h3_quinn::Connection::new(connection), Arc::clone(&site))
        }),
        Some(priorities) => quic::bind_with(spec, stop, code, move |connection| {
            let stream_priorities = Arc::new(StreamPriorities::default());
            // Both levels use the same code; only with `obeyed` are priorities recorded.
            let recorded = (priorities == Priorities::Obeyed).then(|| Arc::clone(&stream_priorities));
            h3_connection::serve_by(Ranked::new(connection, stream_priorities), Arc::clone(&site), recorded)
        }),
    }
}
