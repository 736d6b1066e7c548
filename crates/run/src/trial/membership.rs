//! The server list for sidecars and control planes: a file, and a command that announces changes.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use wirelab_model::event::{Command, Event};
use wirelab_model::reason::Attempt;

use crate::error::RunError;
use crate::limits::Limits;
use crate::trial::endpoint_handle::{EndpointHandle, TrialAbort};

/// Server list of the clients' sidecar or of the control plane.
#[derive(Debug)]
pub(crate) struct Membership {
    file: PathBuf,
    /// Address of each server, in server order, including servers that start later.
    places: Vec<SocketAddr>,
}

impl Membership {
    /// Writes the list of the first `first` servers.
    pub(crate) fn create(file: PathBuf, places: Vec<SocketAddr>, first: u32) -> Result<Self, RunError> {
        write_addresses(&file, &places[..first as usize])?;
        Ok(Self { file, places })
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Changes the list to these servers, and waits until the endpoint uses it.
    pub(crate) fn update(
        &self,
        reader: &mut EndpointHandle,
        serving: &[u32],
        limits: Limits,
        stop: &AtomicBool,
    ) -> Result<(), TrialAbort> {
        let places: Vec<_> = serving.iter().map(|number| self.places[*number as usize]).collect();
        write_addresses(&self.file, &places)?;
        let attempt = Attempt::ReadingServers;
        reader.send(Command::Reach)?;
        match reader.wait(attempt, limits.slack, &mut [], stop)? {
            Event::Reached => Ok(()),
            other => Err(reader.unexpected(&other, attempt)),
        }
    }
}

/// Writes addresses to a file for an endpoint.
pub(crate) fn write_addresses(path: &Path, places: &[SocketAddr]) -> Result<(), RunError> {
    let text = serde_json::to_vec(places)
        .map_err(|error| RunError::Refused { why: format!("addresses cannot be written as JSON: {error}") })?;
    fs::write(path, text).map_err(RunError::io("cannot write the server list to", path))
}
