//! What Prometheus sees of a run while it goes on: what endpoints tell of themselves, who is there, and which actions were begun.
//!
//! The endpoints do the counting and tell it at Unix sockets, which have paths and no addresses, so that they are reached in whatever
//! network namespace they are. The exporter asks them when it is asked itself, and keeps nothing.

mod board;
mod gather;
mod scrapes;
mod serve;
mod text;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::oneshot;
use wirelab_model::metric::Values;

use crate::{About, Observer, Targets, Window};
use board::Board;
use scrapes::Scrapes;

/// The declaration.
pub const ABOUT: About = About {
    name: "prometheus",
    summary: "Shows a run to Prometheus while it goes on (`--metrics`); it adds no metric to the results.",
    cost: "Clients count the time of each request once more; each scrape wakes a thread of each endpoint.",
    needs: None,
    by_default: false,
    metrics: &[],
};

/// The port to name where there is no reason for another one: that of OpenTelemetry's exporters for Prometheus.
pub const DEFAULT_PORT: u16 = 9464;

/// The observer. The endpoints do its work, because their specs say so.
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

/// Names and values of labels.
pub type Labels = Vec<(String, String)>;

/// Answers Prometheus, on a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct Exporter {
    address: SocketAddr,
    board: Arc<Board>,
    scrapes: Arc<Scrapes>,
    _ends: oneshot::Sender<()>,
}

impl Exporter {
    /// Listens at this address; port 0: the kernel chooses one.
    ///
    /// # Errors
    /// If it cannot, with the remedy.
    pub fn start(address: SocketAddr) -> Result<Self, String> {
        let failed = |error| format!("cannot listen at {address} for Prometheus: {error}; name another address");
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (board, scrapes) = (Arc::<Board>::default(), Arc::<Scrapes>::default());
        let (sender, ends) = oneshot::channel();
        serve::start(listener, Arc::clone(&board), Arc::clone(&scrapes), ends).map_err(failed)?;
        Ok(Self { address, board, scrapes, _ends: sender })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks the endpoints whose sockets are in this folder, from now on.
    pub fn watch(&self, folder: PathBuf) {
        self.board.watch(folder);
    }

    /// So many of a role are there from now on.
    pub fn pods(&self, labels: &Labels, role: &str, count: usize) {
        self.board.pods(labels, role, count);
    }

    /// An action begins now.
    pub fn action(&self, labels: &Labels, name: &str) {
        self.board.action(labels, name);
    }

    /// Waits, at most this long or until `stop`, for one more scrape, so that the last numbers are seen. Where nobody ever asked, it
    /// does not wait.
    pub fn linger(&self, patience: Duration, stop: &AtomicBool) {
        self.scrapes.await_next(patience, stop);
    }
}
