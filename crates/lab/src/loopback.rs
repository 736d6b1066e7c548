//! The lab `loopback` on 127.0.0.1: needs no privileges; client and server run on this machine.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use wirelab_model::network::Network;
use wirelab_model::plan::{Course, Job, Trial};
use wirelab_model::settings::Settings;
use wirelab_model::warning::Warning;

use crate::congestion;
use crate::guard::Guard;
use crate::internet::{no_labels, own_servers};
use crate::local::LocalArena;
use crate::{Addresses, Arena, Confinement, Lab, LabError, LabInfo, Preparation, PreparedLab};

/// Static facts for `wirelab labs`.
pub static INFO: LabInfo = LabInfo {
    name: "loopback",
    summary: "Client and server on this machine, joined by its loopback interface (127.0.0.1).",
    needs: None,
    starts_endpoints: true,
    defaults: Settings::default,
    permits: congestion::is_permitted,
    supports: |job| addresses(job).map(drop),
    open: |opening| Ok(Box::new(Loopback::start(opening.program)?)),
};

/// The only placement.
const PLACEMENT: &str = "local";

/// Client and server on this machine's loopback interface.
#[derive(Debug)]
pub struct Loopback {
    guard: Arc<Guard>,
}

impl Loopback {
    /// Opens the lab. `program` is wirelab's executable; `program guard` must run [`crate::guard::main`].
    ///
    /// # Errors
    /// If the guard cannot be started.
    pub fn start(program: &Path) -> Result<Self, LabError> {
        let guard = Arc::new(Guard::start(program)?);
        guard.share();
        Ok(Self { guard })
    }
}

impl Lab for Loopback {
    fn info(&self) -> &'static LabInfo {
        &INFO
    }

    fn warnings(&self) -> Vec<Warning> {
        mtu("lo").map(|mtu| Warning::LoopbackMtu { mtu }).into_iter().collect()
    }

    fn check(&self, job: &Job) -> Result<(), LabError> {
        addresses(job)?;
        Confinement::choose(&job.topology.cpus).map(drop)
    }

    fn prepare<'a>(&'a mut self, _: &Preparation<'_>) -> Result<Box<dyn PreparedLab + 'a>, LabError> {
        Ok(Box::new(Prepared(self)))
    }
}

/// The lab during a session, which needs no preparation.
struct Prepared<'a>(&'a Loopback);

impl PreparedLab for Prepared<'_> {
    fn check_helpers(&self) -> Result<(), LabError> {
        self.0.guard.check()
    }

    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        addresses(job)
    }

    fn open<'a>(&'a mut self, _: &Trial, job: &'a Job) -> Result<Box<dyn Arena + 'a>, LabError> {
        let confinement = Confinement::choose(&job.topology.cpus)?;
        Ok(Box::new(LocalArena { info: &INFO, addresses: addresses(job)?, guard: &self.0.guard, confinement }))
    }
}

fn addresses(job: &Job) -> Result<Addresses, LabError> {
    no_timeline(INFO.name, job)?;
    only_local(INFO.name, job)
}

/// Rejects a timeline in a lab where servers and clients cannot come and go.
///
/// # Errors
/// If the job has a timeline.
pub fn no_timeline(lab: &str, job: &Job) -> Result<(), LabError> {
    match job.course {
        Course::Steady => Ok(()),
        Course::Timeline(_) => Err(LabError::unsupported(format!("the lab `{lab}` has no timelines"))
            .remedy("use the lab `netns` or `kubernetes`, or leave `[timeline]` out")),
    }
}

/// Addresses in a lab whose only placement is `local`.
pub(crate) fn only_local(lab: &str, job: &Job) -> Result<Addresses, LabError> {
    own_servers(lab, job)?;
    no_labels(lab, job)?;
    if job.topology.network != Network::Direct {
        let why = "has no nodes and pods; set `network = \"direct\"`, or use the lab `netns`";
        Err(LabError::unsupported(format!("the lab `{lab}` {why}")))
    } else if job.page().is_some_and(|page| !page.hosts.is_empty()) {
        let why = "has no addresses for the hosts of a page; use the lab `netns`";
        Err(LabError::unsupported(format!("the lab `{lab}` {why}")))
    } else if job.topology.placement == PLACEMENT {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Ok(Addresses { servers: vec![loopback], connect: loopback })
    } else {
        Err(LabError::unsupported(format!(
            "the lab `{lab}` has no placement `{}`: its only one is `{PLACEMENT}`",
            job.topology.placement
        ))
        .remedy("change `placement`, or use another lab"))
    }
}

/// Current MTU of a network interface, in bytes.
fn mtu(interface: &str) -> Option<u32> {
    std::fs::read_to_string(format!("/sys/class/net/{interface}/mtu")).ok()?.trim().parse().ok()
}
