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
use wirelab_model::spec::ClientSpec;
use wirelab_model::timeline::Lifetimes;
use wirelab_model::warning::Warning;

use crate::loopback::only_local;
use crate::{Addresses, Lab, LabError, LabInfo, Launch, Process, Role};

/// Static facts for `wirelab labs`.
pub const INFO: LabInfo = LabInfo {
    name: "fake",
    summary: "No processes and no network: invented samples with realistic noise, to try a study before it costs time.",
    needs: None,
    can_be: |job| addresses(job).map(drop),
};

/// A lab that simulates its trials.
#[derive(Debug)]
pub struct Fake {
    script: Script,
    trial: Option<Trial>,
    /// Number of clients started so far, for the drift if trials are not announced.
    clients: u32,
}

impl Fake {
    /// A lab that follows the script.
    #[must_use]
    pub const fn new(script: Script) -> Self {
        Self { script, trial: None, clients: 0 }
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
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }

    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        addresses(job)
    }

    fn sidecars(&self, job: &Job) -> Result<Vec<IpAddr>, LabError> {
        self.addresses(job).map(|addresses| addresses.servers)
    }

    fn control_plane(&self, _: &Job) -> Result<IpAddr, LabError> {
        Ok(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    fn begin_trial(&mut self, trial: &Trial, _job: &Job) -> Result<(), LabError> {
        self.trial = Some(*trial);
        Ok(())
    }

    fn reach(&mut self, _: &Job, _: &[(u32, u16)]) -> Result<(), LabError> {
        Ok(())
    }

    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError> {
        let spec = match launch.role {
            Role::Server | Role::Sidecar(_) | Role::ControlPlane => None,
            Role::Client => Some(read_spec(launch)?),
        };
        let seed = self.trial.map(|trial| trial.seed).or(spec.as_ref().map(|spec| spec.seed)).unwrap_or_default();
        let number = self.trial.map_or(self.clients, |trial| trial.number);
        let case = Case {
            job: launch.job,
            role: launch.role,
            seed,
            number,
            block: self.trial.map(|trial| trial.block),
            cell: self.trial.map(|trial| trial.cell),
        };
        let misbehaviour = self.script.misbehaviour(&case);
        let run = spec.map(|spec| {
            self.clients += 1;
            let run = simulation::simulate(&self.script, &case, &spec);
            (spec, run)
        });
        Ok(Box::new(FakeProcess::new(launch.role, launch.number, run, misbehaviour)))
    }
}

fn read_spec(launch: &Launch<'_>) -> Result<ClientSpec, LabError> {
    let path = launch.spec.display();
    let text = std::fs::read_to_string(launch.spec)
        .map_err(|error| LabError(format!("the fake client cannot read its spec {path}: {error}")))?;
    serde_json::from_str(&text)
        .map_err(|error| LabError(format!("the fake client does not understand its spec {path}: {error}")))
}

#[cfg(test)]
mod tests;
