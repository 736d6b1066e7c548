//! The server: binds, announces `ready`, and answers until `stop`.

use std::pin::Pin;

use tokio::sync::watch;
use wirelab_contract::event::Configured;

use crate::transport_accounts::Accounts;

mod answers;
mod documents;
#[cfg(feature = "builtin")]
mod early;
#[cfg(feature = "builtin")]
mod grpc;
#[cfg(feature = "builtin")]
pub(crate) mod h3;
#[cfg(feature = "h3")]
pub mod h3_connection;
#[cfg(feature = "builtin")]
mod h3_ranked;
#[cfg(feature = "builtin")]
mod http;
#[cfg(feature = "builtin")]
mod http2_pages;
#[cfg(feature = "builtin")]
pub(crate) mod null;
#[cfg(feature = "builtin")]
mod null_quic;
#[cfg(feature = "builtin")]
mod null_threads;
#[cfg(feature = "builtin")]
mod null_udp;
#[cfg(feature = "builtin")]
mod outbox;
mod prelude;
#[cfg(feature = "h3")]
pub mod priority;
#[cfg(feature = "builtin")]
pub(crate) mod quic;
pub(crate) mod site;
#[cfg(feature = "builtin")]
pub(crate) mod tcp;
#[cfg(feature = "builtin")]
pub(crate) mod udp;

pub use site::{Reply, Site};

/// A bound server: the kernel already queues its clients, and `run` answers them.
pub struct Bound {
    /// The bound port.
    pub port: u16,
    /// The effective settings on its sockets.
    pub configured: Configured,
    /// Transport statistics of its connections; absent if unavailable.
    pub accounts: Option<Accounts>,
    /// Accepts and answers until `Stop`; then closes its connections and ends. The runtime drops tasks that are still
    /// running shortly after.
    pub run: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// The signal that stops a server.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Creates the sender and the receiver of the signal.
    pub(crate) fn channel() -> (watch::Sender<bool>, Self) {
        let (ask, asked) = watch::channel(false);
        (ask, Self(asked))
    }

    /// Returns when the server should stop.
    pub async fn asked(&mut self) {
        // An error means that the sender is gone, which also stops the server.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
