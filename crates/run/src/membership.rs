//! Who serves, for an endpoint that has to know: the file in which it is told, and the word by which it hears that it has changed.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use wirelab_model::event::{Command, Event};

use crate::endpoint_handle::{EndpointHandle, TrialAbort};
use crate::error::RunError;
use crate::limits::Limits;

/// What is told to the clients' sidecar, or to the control plane.
#[derive(Debug)]
pub(crate) struct Membership {
    file: PathBuf,
    /// Where each server is reached, in the order of the servers: all that there ever are.
    places: Vec<SocketAddr>,
}

impl Membership {
    /// Those with which the trial begins are named.
    pub(crate) fn begin(file: PathBuf, places: Vec<SocketAddr>, first: u32) -> Result<Self, RunError> {
        name(&file, &places[..first as usize])?;
        Ok(Self { file, places })
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// From now on requests go to these servers.
    pub(crate) fn reach(
        &self,
        teller: &mut EndpointHandle,
        serving: &[u32],
        limits: Limits,
        stop: &AtomicBool,
    ) -> Result<(), TrialAbort> {
        let places: Vec<_> = serving.iter().map(|number| self.places[*number as usize]).collect();
        name(&self.file, &places)?;
        let attempt = "learning of other servers";
        teller.send(Command::Reach)?;
        match teller.wait(attempt, limits.slack, &mut [], stop)? {
            Event::Reached => Ok(()),
            other => Err(teller.unexpected(&other, attempt)),
        }
    }
}

/// Writes addresses for an endpoint to read.
pub(crate) fn name(path: &Path, places: &[SocketAddr]) -> Result<(), RunError> {
    let text = serde_json::to_vec(places)
        .map_err(|error| RunError::Refused { why: format!("addresses cannot be written as JSON: {error}") })?;
    fs::write(path, text).map_err(RunError::io("cannot write who serves to", path))
}
