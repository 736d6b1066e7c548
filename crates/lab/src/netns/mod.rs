//! The lab on an emulated network: client and server in network namespaces of their own, joined by a link that delays,
//! limits, loses. No packet leaves the machine, and nothing of the machine's own network is touched.

pub mod emulator;
pub mod fabric;
mod interface;
mod line;
mod measure;
mod namespace;
mod network;
mod port;
mod privilege;
mod settings;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use wirelab_model::journal::LinkRecord;
use wirelab_model::link::{Link, Reading};
use wirelab_model::network::{Place, Vantage};
use wirelab_model::plan::{Job, Trial};
use wirelab_model::warning::Warning;

use crate::guard::Guard;
use crate::netns::emulator::Tallies;
use crate::netns::fabric::{EMULATED_NAME, WIRED_NAME};
use crate::netns::network::Network;
use crate::process::LocalProcess;
use crate::{Addresses, Lab, LabError, LabInfo, Launch, Process, Role};

/// What `wirelab labs` says of it.
pub const INFO: LabInfo = LabInfo {
    name: "netns",
    summary: "Client and server in network namespaces of this machine, joined by an emulated link.",
    needs: Some("Linux with network namespaces, and root or user namespaces"),
};

/// Above this share of one processor the emulator may be what limits a trial.
const BUSY: f64 = 0.8;

/// How often a link is measured before it counts as misbehaving: the machine may have been busy at that moment.
const TRIES: u64 = 3;

/// The lab.
#[derive(Debug)]
pub struct Netns {
    // Dropped before the guard, which would take it for something left behind.
    network: Network,
    guard: Arc<Guard>,
    trial: Option<Begun>,
}

/// A trial that began.
#[derive(Debug)]
struct Begun {
    at: Instant,
    cpu_ns: u64,
}

/// What the emulated link did in a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Carried {
    /// Frames by fate.
    pub lines: Tallies,
    /// Processor time of the emulator as a share of the trial's length.
    pub cpu_share: f64,
}

impl Netns {
    /// Opens the lab. `program` is wirelab's own file: `program guard` must run [`crate::guard::main`], and `program fabric`
    /// [`fabric::main`].
    ///
    /// # Errors
    /// If this user cannot make network namespaces here; the message says what would help.
    pub fn start(program: &Path) -> Result<Self, LabError> {
        let guard = Arc::new(Guard::start(program)?);
        guard.share();
        let network = Network::start(program, Arc::clone(&guard))
            .map_err(|LabError(why)| LabError(format!("the lab `{}` cannot be made here: {why}", INFO.name)))?;
        Ok(Self { network, guard, trial: None })
    }

    /// Measures what a link really does, from its two ends, while nothing else uses it.
    ///
    /// # Errors
    /// If the measurement itself fails. What it finds is no error; see [`Link::misses`].
    pub fn measure(&mut self, link: &Link, seed: u64) -> Result<Reading, LabError> {
        self.network.measure(link, seed)
    }

    /// What the link did since the trial began.
    ///
    /// # Errors
    /// If the process that holds the network is gone.
    pub fn carried(&mut self) -> Result<Option<Carried>, LabError> {
        let Some(Begun { at, cpu_ns }) = self.trial else { return Ok(None) };
        let (lines, now_ns) = self.network.tally()?;
        let cpu_share = (now_ns - cpu_ns) as f64 / at.elapsed().as_nanos() as f64;
        Ok(Some(Carried { lines, cpu_share }))
    }
}

impl Lab for Netns {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }

    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        let Some(link) = &job.link else {
            return Err(LabError(format!(
                "the placement `{}` has no link; in the lab `{}` a placement is one of {}",
                job.placement,
                INFO.name,
                wirelab_model::link::PRESETS.map(|preset| preset.name).join(", ")
            )));
        };
        let server = IpAddr::V4(if link.is_wire() { fabric::WIRED } else { fabric::EMULATED }[1]);
        Ok(Addresses { bind: server, connect: server })
    }

    fn begin_trial(&mut self, trial: &Trial, job: &Job) -> Result<(), LabError> {
        let link = job.link.as_ref().filter(|link| !link.is_wire());
        self.trial = match link {
            None => None,
            Some(link) => {
                self.network.shape(link, trial.seed)?;
                let (_, cpu_ns) = self.network.tally()?;
                Some(Begun { at: Instant::now(), cpu_ns })
            }
        };
        Ok(())
    }

    fn end_trial(&mut self, cell: &str) -> Result<Vec<Warning>, LabError> {
        let Some(Carried { lines, cpu_share }) = self.carried()? else { return Ok(Vec::new()) };
        if lines.missed > 0 {
            return Err(LabError(format!(
                "the link emulator could not keep up and lost {} frames that no model of loss took; lower the rate of the \
                 link or the load, or use a machine with more processors",
                lines.missed
            )));
        }
        let busy = Warning::EmulatorBusy { cell: cell.to_owned(), share: cpu_share };
        Ok((cpu_share > BUSY).then_some(busy).into_iter().collect())
    }

    fn measure_links(&mut self, jobs: &[&Job], seed: u64) -> Result<Vec<LinkRecord>, LabError> {
        let mut records: Vec<LinkRecord> = Vec::new();
        for job in jobs {
            let Some(link) = job.link.filter(|link| !link.is_wire()) else { continue };
            if records.iter().any(|record| record.link == link) {
                continue;
            }
            let mut tries = 0;
            records.push(loop {
                let reading = self.network.measure(&link, seed + tries)?;
                let miss = link.misses(&reading);
                tries += 1;
                if miss.is_none() || tries == TRIES {
                    break LinkRecord { placement: job.placement.clone(), link, reading, miss };
                }
            });
        }
        Ok(records)
    }

    fn vantages(&self, job: &Job) -> Vec<Vantage> {
        let Some(link) = &job.link else { return Vec::new() };
        let interface = if link.is_wire() { WIRED_NAME } else { EMULATED_NAME };
        let (namespaces, owner) = &self.network.namespaces;
        [Place::Client, Place::ServerNode]
            .into_iter()
            .zip(namespaces)
            .map(|(place, namespace)| Vantage {
                place,
                namespace: namespace.clone(),
                owner: owner.clone(),
                interface: interface.to_owned(),
                mtu: link.mtu,
                is_encapsulated: false,
            })
            .collect()
    }

    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError> {
        let Launch { role, endpoint, spec, log, .. } = *launch;
        let side = match role {
            Role::Client => 0,
            Role::Server => 1,
        };
        let (guard, home) = (Arc::clone(&self.guard), self.network.home(side));
        Ok(Box::new(LocalProcess::start_in(endpoint, role, spec, log, Some(guard), Some(home))?))
    }
}
