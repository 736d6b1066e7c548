//! The lab `fake`, which starts no processes: trials follow a script. Plan, run, statistics and report can be tested
//! with it without a clock, at hundreds of trials per second.
//!
//! A trial is a pure function of the script, the trial and the client's spec.

mod histograms;
mod process;
mod script;
mod simulation;

pub use process::FakeProcess;
pub use script::{Case, Misbehaviour, Moment, Noise, Script};

use std::net::{IpAddr, Ipv4Addr};

use wirelab_model::plan::{Course, Job, Trial};
use wirelab_model::settings::Settings;
use wirelab_model::spec::ClientSpec;
use wirelab_model::timeline::Lifetimes;

use crate::loopback::only_local;
use crate::{Addresses, Arena, Lab, LabError, LabInfo, Launch, Preparation, PreparedLab, Process, Role};

/// Static facts for `wirelab labs`.
pub static INFO: LabInfo = LabInfo {
    name: "fake",
    summary: "No processes and no network: invented samples with realistic noise, to try a study before it costs time.",
    needs: None,
    starts_endpoints: false,
    defaults: Settings::default,
    permits: |_| true,
    supports: |job| addresses(job).map(drop),
    open: |_| Ok(Box::new(Fake::new(Script::plausible()))),
};

/// A lab that simulates its trials.
#[derive(Debug)]
pub struct Fake {
    script: Script,
}

impl Fake {
    /// A lab that follows the script.
    #[must_use]
    pub const fn new(script: Script) -> Self {
        Self { script }
    }
}

fn addresses(job: &Job) -> Result<Addresses, LabError> {
    // In the fake lab, timelines need no nodes.
    if let Course::Timeline(_) = job.course {
        let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let servers = vec![localhost; Lifetimes::of(job).servers as usize];
        return Ok(Addresses { servers, connect: localhost });
    }
    only_local(INFO.name, job)
}

impl Lab for Fake {
    fn info(&self) -> &'static LabInfo {
        &INFO
    }

    fn prepare<'a>(&'a mut self, _: &Preparation<'_>) -> Result<Box<dyn PreparedLab + 'a>, LabError> {
        Ok(Box::new(Prepared(&mut self.script)))
    }
}

/// The lab during a session, which needs no preparation.
struct Prepared<'a>(&'a mut Script);

impl PreparedLab for Prepared<'_> {
    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        addresses(job)
    }

    fn open<'a>(&'a mut self, trial: &Trial, job: &'a Job) -> Result<Box<dyn Arena + 'a>, LabError> {
        Ok(Box::new(FakeArena { script: self.0, trial: *trial, job, addresses: addresses(job)? }))
    }
}

/// A simulated trial.
struct FakeArena<'a> {
    script: &'a mut Script,
    trial: Trial,
    job: &'a Job,
    addresses: Addresses,
}

impl Arena for FakeArena<'_> {
    fn info(&self) -> &'static LabInfo {
        &INFO
    }

    fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    fn sidecars(&self) -> Result<Vec<IpAddr>, LabError> {
        Ok(self.addresses.servers.clone())
    }

    fn control_plane(&self) -> Result<IpAddr, LabError> {
        Ok(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError> {
        let spec = match launch.role {
            Role::Server | Role::Sidecar(_) | Role::ControlPlane => None,
            Role::Client => Some(read_spec(launch)?),
        };
        let Trial { number, block, cell, seed, .. } = self.trial;
        let case = Case { job: self.job, role: launch.role, seed, number, block, cell };
        let misbehaviour = self.script.misbehaviour(&case);
        let run = spec.map(|spec| {
            let run = simulation::simulate(self.script, &case, &spec);
            (spec, run)
        });
        Ok(Box::new(FakeProcess::new(launch.role, launch.number, run, misbehaviour)))
    }

    fn reach(&mut self, _: &[(u32, u16)]) -> Result<(), LabError> {
        Ok(())
    }

    fn has_clock(&self) -> bool {
        false
    }
}

fn read_spec(launch: &Launch<'_>) -> Result<ClientSpec, LabError> {
    let path = launch.spec.display();
    let text = std::fs::read_to_string(launch.spec)
        .map_err(|error| LabError::file(format!("the fake client cannot read its spec {path}")).because(error))?;
    serde_json::from_str(&text)
        .map_err(|error| LabError::file(format!("the fake client does not understand its spec {path}")).because(error))
}

#[cfg(test)]
mod tests;
