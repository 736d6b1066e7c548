//! The first process of a pod: reaps what nobody else reaps, and ends when the pod is to end.

use std::io;

use rustix::process::{WaitOptions, wait as reap};
use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGTERM or SIGINT.
pub(crate) fn wait() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut child = signal(SignalKind::child())?;
        loop {
            tokio::select! {
                _ = terminate.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
                // One signal may stand for many children.
                _ = child.recv() => while matches!(reap(WaitOptions::NOHANG), Ok(Some(_))) {},
            }
        }
    })
}
