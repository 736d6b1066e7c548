//! The server: binds, says that it is ready, answers until it is told to stop.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::watch;
use wirelab_model::event::Configured;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::ServerSpec;

use crate::refusal::Refusal;
use crate::transport_accounts::Accounts;

mod documents;
mod early;
pub(crate) mod h3;
mod http;
pub(crate) mod quic;
pub(crate) mod site;
mod tcp;
pub(crate) mod udp;

pub(crate) use site::Site;

/// A server that is bound: the kernel queues its clients already, `run` answers them.
pub(crate) struct Bound {
    /// The port that it is bound to.
    pub port: u16,
    /// What is in force on its sockets.
    pub configured: Configured,
    /// What its connections say of their transport; absent where they cannot.
    pub accounts: Option<Accounts>,
    /// Accepts and answers until `Stop`; then closes its connections and ends. Whatever it spawned and left running is
    /// dropped with the runtime shortly after.
    pub run: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Tells a server that it is to stop.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// The sender that asks, and the receiver that is asked.
    pub fn channel() -> (watch::Sender<bool>, Self) {
        let (ask, asked) = watch::channel(false);
        (ask, Self(asked))
    }

    /// Returns when the server is to stop.
    pub async fn asked(&mut self) {
        // An error means that the sender is gone, which is a wish to stop as well.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// Binds the server of the spec. Called inside the server's runtime.
pub(crate) async fn bind(spec: &ServerSpec, site: Arc<Site>, stop: Stop) -> Result<Bound, Refusal> {
    match spec.protocol {
        Protocol::Udp => udp::bind(spec, site, stop).await,
        Protocol::Quic => quic::bind(spec, site, stop).await,
        Protocol::H3 => h3::bind(spec, site, stop).await,
        Protocol::Tcp | Protocol::Tls | Protocol::H1c | Protocol::H1 | Protocol::H2c | Protocol::H2 => {
            tcp::bind(spec, site, stop).await
        }
    }
}
