//! The first process of a pod: reaps orphans, answers each connection with the pod's name, and ends when the pod ends.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use rustix::process::{WaitOptions, wait as reap};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Port at which each waiting agent answers connections with its name.
pub const NAMING_PORT: u16 = 19_999;

/// Runs until SIGTERM or SIGINT.
pub(crate) fn wait(name: &str) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut child = signal(SignalKind::child())?;
        let listener = listener().await.map_err(|error| {
            io::Error::other(format!("listening at port {NAMING_PORT}, to answer with the pod's name: {error}"))
        })?;
        loop {
            tokio::select! {
                _ = terminate.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
                // One signal may stand for several children.
                _ = child.recv() => while matches!(reap(WaitOptions::NOHANG), Ok(Some(_))) {},
                accepted = listener.accept() => if let Ok((mut stream, _)) = accepted {
                    // The name is short enough to be sent without waiting. Errors do not matter: the client has gone.
                    let _ = stream.write_all(name.as_bytes()).await;
                },
            }
        }
    })
}

/// Listens on IPv6 and IPv4, or on IPv4 only if the pod has no IPv6.
async fn listener() -> io::Result<TcpListener> {
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, NAMING_PORT)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, NAMING_PORT)).await,
    }
}
