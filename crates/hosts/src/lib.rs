//! The lab on machines that `ssh` reaches. Nothing is installed there: wirelab copies itself into a folder of the run,
//! works through its agent, and removes everything at the end.

mod clean;
mod connected;
mod connection;
mod inventory;
mod observing;
mod paths;
mod place;
mod seat;
mod ssh;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wirelab_lab::guard::Guard;
use wirelab_lab::{Lab, LabError, LabInfo, Opening, Preparation, PreparedLab};
use wirelab_model::placement::Distance;
use wirelab_model::plan::Job;
use wirelab_model::settings::Settings;

use crate::connected::ConnectedHosts;

pub use clean::{Left, clean};
pub use inventory::{Host, HostRole, Inventory, InventoryError};

/// The lab's entry in `wirelab labs`.
pub static INFO: LabInfo = LabInfo {
    name: "hosts",
    summary: "Client and server on machines of their own, which `ssh` reaches; nothing is installed there.",
    needs: Some("`ssh` without questions to each host, Linux there, and `--hosts`"),
    starts_endpoints: true,
    defaults: || Settings { placement: Some(Distance::OtherNode.placement().to_owned()), ..Settings::default() },
    permits: |_| true,
    supports: place::supports,
    open: |opening| Ok(Box::new(Hosts::open(opening)?)),
};

/// The file in a run folder with the hosts, so that a resumed run uses the same ones.
pub const FILE: &str = "hosts.toml";

/// The lab.
pub struct Hosts {
    inventory: Inventory,
    program: PathBuf,
    guard: Arc<Guard>,
}

impl Hosts {
    /// Opens the lab. `program guard` must run [`wirelab_lab::guard::main`].
    ///
    /// # Errors
    /// If the hosts are not named or named wrongly, or the guard cannot be started.
    fn open(opening: &Opening<'_>) -> Result<Self, LabError> {
        let inventory = match (opening.hosts, opening.resumed.map(|folder| folder.join(FILE))) {
            (Some(text), _) => Inventory::read(text),
            (None, Some(file)) => Inventory::file(&file),
            (None, None) => Err(InventoryError::Missing),
        };
        let inventory = inventory.map_err(|error| LabError::unsupported("the hosts are not known").because(error))?;
        // Guards the endpoint processes that describe themselves on this machine, and the folder of sockets.
        let guard = Arc::new(Guard::start(opening.program)?);
        guard.share();
        Ok(Self { inventory, program: opening.program.to_owned(), guard })
    }
}

impl Lab for Hosts {
    fn info(&self) -> &'static LabInfo {
        &INFO
    }

    fn check(&self, job: &Job) -> Result<(), LabError> {
        place::place(&self.inventory, job).map(drop)
    }

    fn prepare<'a>(&'a mut self, preparation: &Preparation<'_>) -> Result<Box<dyn PreparedLab + 'a>, LabError> {
        if preparation.metrics.is_some() {
            return Err(LabError::unsupported("endpoints on hosts export no metrics to Prometheus yet")
                .remedy("leave --metrics out"));
        }
        let (file, text) = (preparation.folder.join(FILE), self.inventory.to_toml());
        write(&file, &text)?;
        Ok(Box::new(ConnectedHosts::open(self, preparation.jobs, preparation.stop)?))
    }
}

fn write(path: &Path, text: &str) -> Result<(), LabError> {
    fs::write(path, text).map_err(|error| LabError::file(format!("cannot write {}", path.display())).because(error))
}
