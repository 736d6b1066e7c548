//! Facts that only the run knows: the number of processes per role, and when actions began.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::Labels;

/// The facts for the next scrape, updated by the run.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<Shown>);

/// A snapshot of the board.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    /// The folder of the endpoints' sockets.
    pub folder: Option<PathBuf>,
    /// Number of processes by labels, the role among them.
    pub pods: BTreeMap<Labels, usize>,
    /// When each action began, in seconds of Unix time; by labels, the action's name among them.
    pub actions: BTreeMap<Labels, f64>,
}

impl Board {
    pub(super) fn of(folder: Option<PathBuf>) -> Self {
        Self(Mutex::new(Shown { folder, ..Shown::default() }))
    }

    pub(super) fn watch(&self, folder: PathBuf) {
        self.shown().folder = Some(folder);
    }

    pub(super) fn pods(&self, labels: &Labels, role: &str, count: usize) {
        self.shown().pods.insert(with(labels, "role", role), count);
    }

    pub(super) fn action(&self, labels: &Labels, name: &str) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.shown().actions.insert(with(labels, "action", name), now.as_secs_f64());
    }

    /// A copy, so a scrape holds the lock only briefly.
    pub(super) fn read(&self) -> Shown {
        self.shown().clone()
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with(labels: &Labels, name: &str, value: &str) -> Labels {
    let mut labels = labels.clone();
    labels.push((name.to_owned(), value.to_owned()));
    labels
}
