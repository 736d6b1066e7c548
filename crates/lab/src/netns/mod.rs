//! The lab `netns`: client and servers run in separate network namespaces, joined directly by an emulated link, or as
//! pods of a small cluster. No packet leaves the machine, and the machine's own network stays unchanged.

mod arena;
mod emulator;
pub mod fabric;
mod interface;
mod line;
mod measure;
pub mod metrics;
mod namespace;
mod network;
pub(crate) mod option;
mod overlay;
mod pair;
mod port;
mod privilege;
pub mod service;
mod settings;

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use wirelab_model::journal::LinkRecord;
use wirelab_model::link::{Link, Reading};
use wirelab_model::network::{Address, LINKERD, Network as Joined};
use wirelab_model::plan::{Job, OwnServers, Reach, Trial};
use wirelab_model::settings::Settings;
use wirelab_model::timeline::Lifetimes;

use crate::congestion;
use crate::guard::Guard;
use crate::internet::{no_labels, own_servers};
use crate::netns::arena::NetnsArena;
use crate::netns::network::Network;
use crate::netns::pair::Way;
use crate::{Addresses, Arena, Confinement, Lab, LabError, LabInfo, Preparation, PreparedLab};

/// Static facts for `wirelab labs`.
pub static INFO: LabInfo = LabInfo {
    name: "netns",
    summary: "Client and servers in network namespaces of this machine, joined by an emulated link or as pods of a cluster.",
    needs: Some("Linux with network namespaces, and root or user namespaces"),
    starts_endpoints: true,
    defaults: Settings::default,
    permits: congestion::is_permitted,
    supports: |job| addresses(job).map(drop),
    open: |opening| Ok(Box::new(Netns::start(opening.program)?)),
};

/// Attempts to measure a link before it counts as misbehaving, because the machine may be busy during one attempt.
const TRIES: u64 = 3;

/// An emulated network in network namespaces.
#[derive(Debug)]
pub struct Netns {
    // Dropped before the guard, which would otherwise treat it as a leftover.
    network: Network,
    guard: Arc<Guard>,
}

impl Netns {
    /// Opens the lab. `program` is wirelab's executable: `program guard` must run [`crate::guard::main`], and
    /// `program fabric` [`fabric::main`].
    ///
    /// # Errors
    /// If this user cannot create network namespaces here; the message names the remedy.
    pub fn start(program: &Path) -> Result<Self, LabError> {
        let guard = Arc::new(Guard::start(program)?);
        guard.share();
        let network = Network::start(program, Arc::clone(&guard)).map_err(|error| {
            LabError::refused(format!("the lab `{}` cannot be made here", INFO.name)).because(error)
        })?;
        Ok(Self { network, guard })
    }

    /// Measures a link from its two ends, while nothing else uses it.
    ///
    /// # Errors
    /// If the measurement fails. A deviating link is not an error; see [`Link::misses`].
    pub fn measure(&mut self, link: &Link, seed: u64) -> Result<Reading, LabError> {
        self.network.measure(link, seed)
    }

    /// Measures the links of these jobs, each distinct link once.
    ///
    /// # Errors
    /// If a measurement fails.
    pub fn measure_links(&mut self, jobs: &[&Job], seed: u64) -> Result<Vec<LinkRecord>, LabError> {
        let mut records: Vec<LinkRecord> = Vec::new();
        for job in jobs {
            let Some(link) = job.topology.link else { continue };
            // Placements that differ only in name share one link.
            if let Some(record) = records.iter_mut().find(|record| record.link == link) {
                if !record.placement.split(", ").any(|name| name == job.topology.placement) {
                    record.placement = format!("{}, {}", record.placement, job.topology.placement);
                }
                continue;
            }
            let mut tries = 0;
            records.push(loop {
                let reading = self.network.measure(&link, seed + tries)?;
                let miss = link.misses(&reading);
                tries += 1;
                if miss.is_none() || tries == TRIES {
                    break LinkRecord { placement: job.topology.placement.clone(), link, reading, miss };
                }
            });
        }
        Ok(records)
    }
}

/// Address of a server's pod.
fn address(servers: &OwnServers, number: u32) -> Ipv4Addr {
    let (node, pod) = overlay::server(servers.places, number);
    overlay::address(node, pod)
}

/// The link of a job.
fn link(job: &Job) -> Result<&Link, LabError> {
    job.topology.link.as_ref().ok_or_else(|| {
        LabError::unsupported(format!("the placement `{}` has no link", job.topology.placement)).remedy(format!(
            "in the lab `{}` a placement is one of {}",
            INFO.name,
            wirelab_model::link::PRESETS.map(|preset| preset.name).join(", ")
        ))
    })
}

fn addresses(job: &Job) -> Result<Addresses, LabError> {
    let own = own_servers(INFO.name, job)?;
    no_labels(INFO.name, job)?;
    let link = link(job)?;
    if own.listens_at_socket() {
        return Err(LabError::unsupported("a Unix socket (`{socket}` in `server_command`) bypasses the emulated link")
            .remedy("use `--lab loopback`, or `{port}`"));
    }
    if own.reach.is_in_linkerd() {
        let remedy =
            "use the lab `kubernetes`, or name an endpoint that plays sidecars (`wirelab endpoints` lists them)";
        return Err(LabError::unsupported(format!(
            "`mesh` is `{LINKERD}`, but the lab `{}` has no Linkerd",
            INFO.name
        ))
        .remedy(remedy));
    }
    if let Reach::Mesh(_) = own.reach {
        // Servers are reachable through their sidecar only.
        let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
        return Ok(Addresses { servers: vec![localhost; Lifetimes::of(job).servers as usize], connect: localhost });
    }
    let servers: Vec<IpAddr> = match job.topology.network {
        Joined::Direct => (0..own.places.count()).map(|number| Way::of(link).server(number).into()).collect(),
        Joined::Overlay => (0..Lifetimes::of(job).servers).map(|number| address(own, number).into()).collect(),
    };
    let connect = match own.reach.address() {
        Address::Server | Address::Headless => servers[0],
        Address::Service => service::ADDRESS.into(),
        Address::NodePort => {
            let why = "has no node ports; set `address = \"service\"`, or use the lab `kubernetes`";
            return Err(LabError::unsupported(format!("the lab `{}` {why}", INFO.name)));
        }
    };
    Ok(Addresses { servers, connect })
}

impl Lab for Netns {
    fn info(&self) -> &'static LabInfo {
        &INFO
    }

    fn check(&self, job: &Job) -> Result<(), LabError> {
        addresses(job)?;
        Confinement::choose(&job.topology.cpus).map(drop)
    }

    fn prepare<'a>(&'a mut self, preparation: &Preparation<'_>) -> Result<Box<dyn PreparedLab + 'a>, LabError> {
        self.network.log_at(preparation.log_of(fabric::SUBCOMMAND))?;
        Ok(Box::new(Prepared(self)))
    }
}

/// The lab during a session: its network exists from the start.
struct Prepared<'a>(&'a mut Netns);

impl PreparedLab for Prepared<'_> {
    fn check_helpers(&self) -> Result<(), LabError> {
        self.0.guard.check()
    }

    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        addresses(job)
    }

    fn measure_links(&mut self, jobs: &[&Job], seed: u64) -> Result<Vec<LinkRecord>, LabError> {
        self.0.measure_links(jobs, seed)
    }

    fn open<'a>(&'a mut self, trial: &Trial, job: &'a Job) -> Result<Box<dyn Arena + 'a>, LabError> {
        Ok(Box::new(NetnsArena::open(self.0, trial, job)?))
    }
}
