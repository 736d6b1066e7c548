//! The null server over QUIC: the QUIC of the load engine, with the answers of its null server to HTTP/3 and to raw
//! requests.
//!
//! Each thread has a socket at the same port, and the connections whose datagrams the kernel gives it.

mod connection;
mod worker;

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use quinn_proto::ServerConfig;
use serde_json::json;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::ServerSpec;
use wirelab_engine::null::Content;

use crate::quic_batches::Socket;
use crate::quic_config::QuicSettings;
use crate::refusal::Refusal;
use crate::server::null_threads::{Threads, failed};
use crate::server::{Bound, Site, Stop, quic};
use crate::transport_accounts::Accounts;

use worker::Worker;

/// State that all threads share.
struct Common {
    protocol: Protocol,
    settings: QuicSettings,
    config: Arc<ServerConfig>,
    content: Arc<dyn Content>,
    accounts: Accounts,
    /// Ends at the stop.
    stopped: Arc<UnixStream>,
}

/// Binds a null server with this number of threads.
pub(super) fn bind(spec: &ServerSpec, site: Arc<Site>, stop: Stop, threads: usize) -> Result<Bound, Refusal> {
    let settings = QuicSettings::new(&spec.transport, spec.qlog_dir.as_deref(), "server")?;
    let config = Arc::new(quic::server_config(spec, &settings)?);
    let mut running = Threads::new()?;
    let accounts = Accounts::default();
    let common = Arc::new(Common {
        protocol: spec.protocol,
        settings,
        config,
        content: site,
        accounts: accounts.clone(),
        stopped: running.stopped(),
    });
    let first = Socket::shared(&common.settings, SocketAddr::new(spec.address, spec.port))?;
    let port = first.port().map_err(failed)?;
    let mut configured = first.report(&common.settings);
    configured.insert("threads".to_owned(), json!(threads));
    let mut sockets = vec![first];
    for _ in 1..threads {
        sockets.push(Socket::shared(&common.settings, SocketAddr::new(spec.address, port))?);
    }
    for socket in sockets {
        let worker = Worker::new(Arc::clone(&common), socket)?;
        running.start(move || worker.run())?;
    }
    Ok(Bound { port, configured, accounts: Some(accounts), run: Box::pin(running.run(stop)) })
}
