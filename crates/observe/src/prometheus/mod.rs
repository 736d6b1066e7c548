//! The Prometheus exporter of a run: numbers of the endpoints, the number of processes per role, and the actions of
//! timelines.
//!
//! Endpoints count and publish their numbers at Unix sockets, which work across network namespaces. The exporter asks
//! the endpoints on each scrape and keeps nothing.

mod board;
mod gather;
mod scrapes;
mod serve;
mod text;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::oneshot;
use wirelab_model::metric::Values;

use crate::{About, Observer, Targets, Window};
use board::Board;
use scrapes::Scrapes;

/// Name, cost and metrics.
pub const ABOUT: About = About {
    name: "prometheus",
    summary: "Exports a run's live numbers to Prometheus (`--metrics`); adds no metric to the results.",
    cost: "Clients count the time of each request once more; each scrape wakes a thread of each endpoint.",
    needs: None,
    by_default: false,
    metrics: &[],
};

/// The default port: the port of OpenTelemetry's Prometheus exporters.
pub const DEFAULT_PORT: u16 = 9464;

/// The observer. It does nothing itself: the endpoints count, as their specs request.
#[derive(Debug, Default)]
pub struct Prometheus;

impl Observer for Prometheus {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn begin(&mut self, _: &Targets) {}

    fn end(&mut self, _: &Targets) {}

    fn values(&mut self, _: &Window) -> Values {
        Values::default()
    }
}

/// Label names and values.
pub type Labels = Vec<(String, String)>;

/// The exporter cannot use its address.
#[derive(Debug, Error)]
#[error("cannot listen at {address} for Prometheus: {cause}; name another address")]
pub struct CannotListen {
    address: SocketAddr,
    #[source]
    cause: io::Error,
}

/// Serves `/metrics` on a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Exporter {
    address: SocketAddr,
    board: Arc<Board>,
    scrapes: Arc<Scrapes>,
    _ends: oneshot::Sender<()>,
}

impl Exporter {
    /// Listens at this address; with port 0 the kernel chooses a port. Shows the endpoints whose sockets are in
    /// `folder` from the first answer on, if it is known already ([`Exporter::watch`]).
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn start(address: SocketAddr, folder: Option<PathBuf>) -> Result<Self, CannotListen> {
        let failed = |cause| CannotListen { address, cause };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (board, scrapes) = (Arc::new(Board::of(folder)), Arc::<Scrapes>::default());
        let (sender, ends) = oneshot::channel();
        serve::start(listener, Arc::clone(&board), Arc::clone(&scrapes), ends).map_err(failed)?;
        Ok(Self { address, board, scrapes, _ends: sender })
    }

    /// The address, with the chosen port.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the folder of the endpoints' sockets.
    pub fn watch(&self, folder: PathBuf) {
        self.board.watch(folder);
    }

    /// Sets the number of processes of a role.
    pub fn pods(&self, labels: &Labels, role: &str, count: usize) {
        self.board.pods(labels, role, count);
    }

    /// Records that an action begins now.
    pub fn action(&self, labels: &Labels, name: &str) {
        self.board.action(labels, name);
    }

    /// Waits for one more scrape, so that Prometheus sees the last numbers; at most `timeout`, or until `stop`. Returns
    /// at once if Prometheus never asked.
    pub fn linger(&self, timeout: Duration, stop: &AtomicBool) {
        self.scrapes.await_next(timeout, stop);
    }
}
