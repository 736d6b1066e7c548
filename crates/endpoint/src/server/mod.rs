//! The server: binds, says that it is ready, answers until it is told to stop.

use std::pin::Pin;

use tokio::sync::watch;
use wirelab_model::event::Configured;

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

/// A server that is bound: the kernel queues its clients already, `run` answers them.
pub struct Bound {
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
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// The sender that asks, and the receiver that is asked.
    pub(crate) fn channel() -> (watch::Sender<bool>, Self) {
        let (ask, asked) = watch::channel(false);
        (ask, Self(asked))
    }

    /// Returns when the server is to stop.
    pub async fn asked(&mut self) {
        // An error means that the sender is gone, which is a wish to stop as well.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
