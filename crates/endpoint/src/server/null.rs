//! The null server of the load engine with the content of a spec.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use serde_json::json;
use wirelab_contract::heron;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::ServerSpec;
use wirelab_engine::grpc::split;
use wirelab_engine::null::{Answer, Body, Content, Name, NullServer, Speaks, Status};

use crate::http2::Windows;
use crate::payload::Payload;
use crate::refusal::Refusal;
use crate::server::{Bound, Reply, Site, Stop, null_quic, null_udp};
use crate::socket::TcpOptions;
use crate::tls;
use crate::transport_accounts::Accounts;

/// The windows of the built-in server, so that both grant clients the same.
const DEFAULT_WINDOWS: Windows = Windows { stream: 1 << 20, connection: 1 << 20 };

impl Content for Site {
    fn answer(&self, method: &str, path: &str) -> Answer {
        if method == "HEAD" {
            return Answer::empty(405);
        }
        let of = |body| Answer { status: 200, field: None, body };
        match self.reply(method, path) {
            Reply::Document(content) => of(Body::Known(Payload::Own(content))),
            Reply::Typed(content, kind) => {
                Answer { field: Some((Name::ContentType, kind)), ..of(Body::Known(Payload::Own(content))) }
            }
            Reply::Pattern(size) => of(Body::Known(Payload::Pattern(size))),
            Reply::Echo => of(Body::Echo),
            // `bind` refuses the feature, so that the content has no delay.
            Reply::Delay(_) => Answer::empty(404),
            Reply::Redirect(place) => Answer { field: Some((Name::Location, place)), ..Answer::empty(302) },
            Reply::Status(status) => Answer::empty(status),
        }
    }

    fn count(&self) {
        self.count();
    }
}

/// The calls of gRPC that a site offers.
struct Calls(Arc<Site>);

impl Content for Calls {
    fn answer(&self, _: &str, _: &str) -> Answer {
        Answer::empty(404)
    }

    fn count(&self) {
        self.0.count();
    }

    fn is_grpc(&self) -> bool {
        true
    }

    fn call(&self, path: &str, request: &[u8]) -> Result<Vec<u8>, Status> {
        if !self.0.offers_heron() || path != heron::METHOD {
            return Err(Status::UNIMPLEMENTED);
        }
        let message = split(request).filter(|messages| messages.len() == 1).ok_or(Status::INVALID_ARGUMENT)?[0];
        let number = <f64 as prost::Message>::decode(message).map_err(|_| Status::INVALID_ARGUMENT)?;
        let root = heron::root(number);
        if root.is_nan() { Err(Status::INVALID_ARGUMENT) } else { Ok(prost::Message::encode_to_vec(&root)) }
    }
}

/// Binds a null server. What costs time besides an answer is refused.
pub async fn bind(spec: ServerSpec, site: Arc<Site>, mut stop: Stop) -> Result<Bound, Refusal> {
    check(&spec)?;
    let threads = match spec.threads {
        Some(threads) => usize::from(threads),
        None => thread::available_parallelism().map_or(1, usize::from),
    };
    if spec.protocol == Protocol::Udp {
        return null_udp::bind(&spec, &site, stop, threads);
    }
    if spec.protocol.uses_quic() {
        return null_quic::bind(&spec, site, stop, threads);
    }
    let options = TcpOptions::server(spec.protocol, &spec.transport, spec.qlog_dir.is_some())?;
    let mut configured = options.configured();
    let tls = spec.tls.as_ref().map(|_| tls::server(&spec)).transpose()?;
    let speaks = match spec.protocol {
        Protocol::Tcp | Protocol::Tls => Speaks::Raw,
        protocol if protocol.is_http2() => {
            let windows = Windows::of(&spec.transport, DEFAULT_WINDOWS)?;
            configured.insert("stream_window".to_owned(), json!(windows.stream));
            configured.insert("connection_window".to_owned(), json!(windows.connection));
            Speaks::Http2(windows)
        }
        _ => Speaks::Http1,
    };
    let content: Arc<dyn Content> = if spec.protocol.is_grpc() { Arc::new(Calls(site)) } else { site };
    configured.insert("threads".to_owned(), json!(threads));
    let address = SocketAddr::new(spec.address, spec.port);
    let listener = options.listening(address)?;
    let port = listener
        .local_addr()
        .map_err(|error| Refusal::failed(format!("reading the bound port of {address}: {error}")))?
        .port();
    let accounts = Accounts::default();
    let server = NullServer::start(listener, tls, (speaks, content), accounts.clone(), threads)
        .map_err(|error| Refusal::failed(format!("starting the null server: {error}")))?;
    let run = Box::pin(async move {
        stop.asked().await;
        drop(server);
    });
    Ok(Bound { port, configured, accounts: Some(accounts), run })
}

fn check(spec: &ServerSpec) -> Result<(), Refusal> {
    let has = |feature| spec.features.contains(&feature);
    let set = [
        ("the feature `delay`", has(wirelab_contract::spec::Feature::Delay)),
        ("`added_work_ns`", spec.added_work_ns.is_some()),
        ("`max_connection_age_ns`", spec.max_connection_age_ns.is_some()),
        ("`page`", spec.page.is_some()),
        ("`answers`", spec.answers.is_some()),
    ];
    match set.into_iter().find(|(_, is_set)| *is_set) {
        Some((what, _)) => Err(Refusal::unsupported(format!("{what} is set; the null server answers at once"))),
        None => Ok(()),
    }
}
