//! The first process of a pod: reaps what nobody else reaps, says who it is to whoever connects, and ends when the pod is to end.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use rustix::process::{WaitOptions, wait as reap};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::names::NAMING_PORT;

/// Waits for SIGTERM or SIGINT.
pub(crate) fn wait(name: &str) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut child = signal(SignalKind::child())?;
        let listener = listener().await.map_err(|error| {
            io::Error::other(format!("listening at port {NAMING_PORT}, where pods say who they are: {error}"))
        })?;
        loop {
            tokio::select! {
                _ = terminate.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
                // One signal may stand for many children.
                _ = child.recv() => while matches!(reap(WaitOptions::NOHANG), Ok(Some(_))) {},
                accepted = listener.accept() => if let Ok((mut stream, _)) = accepted {
                    // So short that it never waits for room. Who has gone does not want to know.
                    let _ = stream.write_all(name.as_bytes()).await;
                },
            }
        }
    })
}

/// For both families, where the pod has both.
async fn listener() -> io::Result<TcpListener> {
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, NAMING_PORT)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, NAMING_PORT)).await,
    }
}
