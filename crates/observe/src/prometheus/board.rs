//! What the run knows and no endpoint does: how many of a role are there, and when actions began.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::Labels;

/// What is to be shown besides what endpoints tell.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<Shown>);

/// What the board shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    /// Where the sockets of the endpoints are.
    pub folder: Option<PathBuf>,
    /// By labels, the role among them.
    pub pods: BTreeMap<Labels, usize>,
    /// By labels, the action's name among them: when it began, in seconds of Unix time.
    pub actions: BTreeMap<Labels, f64>,
}

impl Board {
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

    /// A copy, so that nobody waits for whoever reads it.
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
