//! A place for endpoints on a host, with files of its own: servers and clients on one host do not share them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wirelab_agent::{Loss, ROOT, Remote, SUBCOMMAND, State, Stream};
use wirelab_lab::LabError;

use crate::connection::Connection;

/// A seat, as a host of the agent.
pub(crate) struct Seat {
    connection: Arc<Connection>,
    /// The folder of its files on the host.
    root: String,
    doubt: Arc<AtomicBool>,
}

impl Seat {
    pub(crate) fn new(connection: &Arc<Connection>, name: &str, doubt: &Arc<AtomicBool>) -> Self {
        let root = format!("{}/{name}", connection.folder);
        Self { connection: Arc::clone(connection), root, doubt: Arc::clone(doubt) }
    }
}

impl Remote for Seat {
    fn name(&self) -> &str {
        &self.connection.name
    }

    fn run(&self, words: &[&str]) -> Result<Box<dyn Stream>, LabError> {
        let root = format!("{ROOT}={}", self.root);
        let program = format!("{}/wirelab", self.connection.folder);
        let command = [&["env", &root, &program, SUBCOMMAND][..], words].concat();
        Ok(Box::new(self.connection.ssh.start(&command)?))
    }

    fn state(&self, timeout: Duration) -> State {
        let lost = |what| State::Lost(Loss { what, is_memory: false });
        match self.connection.loss(timeout) {
            Some(what) => lost(what),
            // The news of the agent's end may still be under way.
            None if !self.connection.ssh.is_connected() => lost("the connection of ssh ended".to_owned()),
            None => State::Works(format!("the connection to {} still works", self.connection.name)),
        }
    }

    fn doubt(&self) {
        self.doubt.store(true, Ordering::Relaxed);
    }

    fn remedy(&self, endpoint: &str) -> String {
        format!("hosts have the endpoints that are part of wirelab; use `builtin` or `engine` in place of `{endpoint}`")
    }
}
