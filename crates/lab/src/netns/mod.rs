//! The lab `netns`: client and servers run in separate network namespaces, joined directly by an emulated link, or as
//! pods of a small cluster. No packet leaves the machine, and the machine's own network stays unchanged.

mod emulator;
pub mod fabric;
mod interface;
mod line;
mod measure;
pub mod metrics;
mod namespace;
mod network;
mod option;
mod overlay;
mod pair;
mod port;
mod privilege;
pub mod service;
mod settings;

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use wirelab_model::journal::LinkRecord;
use wirelab_model::link::{Link, Reading};
use wirelab_model::network::{Address, LINKERD, Network as Joined, Place, Vantage};
use wirelab_model::plan::{Job, OwnServers, Reach, Trial, Work};
use wirelab_model::timeline::Lifetimes;
use wirelab_model::warning::Warning;

use crate::guard::Guard;
use crate::internet::{no_labels, own_servers};
use crate::names::Names;
use crate::netns::fabric::{Hosts, Tallied};
use crate::netns::network::Network;
use crate::netns::pair::Way;
use crate::process::LocalProcess;
use crate::{Addresses, Aftermath, Beside, Lab, LabError, LabInfo, Launch, Process, Role};

/// Static facts for `wirelab labs`.
pub const INFO: LabInfo = LabInfo {
    name: "netns",
    summary: "Client and servers in network namespaces of this machine, joined by an emulated link or as pods of a cluster.",
    needs: Some("Linux with network namespaces, and root or user namespaces"),
    can_be: |job| addresses(job).map(drop),
};

/// Share of one processor above which the emulator may limit a trial.
const BUSY: f64 = 0.8;

/// Attempts to measure a link before it counts as misbehaving, because the machine may be busy during one attempt.
const TRIES: u64 = 3;

/// An emulated network in network namespaces.
#[derive(Debug)]
pub struct Netns {
    // Dropped before the guard, which would otherwise treat it as a leftover.
    network: Network,
    guard: Arc<Guard>,
    trial: Option<Begun>,
}

/// State of the current trial.
#[derive(Debug)]
struct Begun {
    at: Instant,
    cpu_ns: u64,
    is_emulated: bool,
    hosts: Hosts,
    /// Addresses of the server name.
    named: Vec<IpAddr>,
    /// Hosts file of the clients, once written.
    hosts_file: Option<PathBuf>,
    /// Port of the service.
    port: u16,
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
        let network = Network::start(program, Arc::clone(&guard))
            .map_err(|LabError(why)| LabError(format!("the lab `{}` cannot be made here: {why}", INFO.name)))?;
        Ok(Self { network, guard, trial: None })
    }

    /// Measures a link from its two ends, while nothing else uses it.
    ///
    /// # Errors
    /// If the measurement fails. A deviating link is not an error; see [`Link::misses`].
    pub fn measure(&mut self, link: &Link, seed: u64) -> Result<Reading, LabError> {
        self.network.measure(link, seed)
    }

    fn begun(&self) -> Result<&Begun, LabError> {
        self.trial.as_ref().ok_or_else(no_trial)
    }
}

fn no_trial() -> LabError {
    LabError("no trial has begun, so no network exists".to_owned())
}

/// Address of a server's pod.
fn address(servers: &OwnServers, number: u32) -> Ipv4Addr {
    let (node, pod) = overlay::server(servers.places, number);
    overlay::address(node, pod)
}

/// Servers by number, with their addresses and ports.
fn behind(own: &OwnServers, ports: &[(u32, u16)]) -> Vec<(u32, SocketAddrV4)> {
    ports.iter().map(|(number, port)| (*number, SocketAddrV4::new(address(own, *number), *port))).collect()
}

/// The link of a job.
fn link(job: &Job) -> Result<&Link, LabError> {
    job.topology.link.as_ref().ok_or_else(|| {
        LabError(format!(
            "the placement `{}` has no link; in the lab `{}` a placement is one of {}",
            job.topology.placement,
            INFO.name,
            wirelab_model::link::PRESETS.map(|preset| preset.name).join(", ")
        ))
    })
}

fn addresses(job: &Job) -> Result<Addresses, LabError> {
    let own = own_servers(INFO.name, job)?;
    no_labels(INFO.name, job)?;
    let link = link(job)?;
    if own.reach.is_in_linkerd() {
        let remedy =
            "use the lab `kubernetes`, or name an endpoint that plays sidecars (`wirelab endpoints` lists them)";
        return Err(LabError(format!("`mesh` is `{LINKERD}`, but the lab `{}` has no Linkerd; {remedy}", INFO.name)));
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
            return Err(LabError(format!("the lab `{}` {why}", INFO.name)));
        }
    };
    Ok(Addresses { servers, connect })
}

impl Lab for Netns {
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
        let own = own_servers(INFO.name, job)?;
        Ok((0..Lifetimes::of(job).servers).map(|number| address(own, number).into()).collect())
    }

    fn control_plane(&self, _: &Job) -> Result<IpAddr, LabError> {
        // It runs in the clients' pod, so its traffic does not pass the link.
        Ok(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    fn begin_trial(&mut self, trial: &Trial, job: &Job) -> Result<(), LabError> {
        let link = link(job)?;
        let hosts = self.network.prepare(job, trial.seed)?;
        let Tallied { cpu_ns, .. } = self.network.tally()?;
        let named = self.addresses(job)?.servers.into_iter().take(job.server_count() as usize).collect();
        self.trial = Some(Begun {
            at: Instant::now(),
            cpu_ns,
            is_emulated: !link.is_wire(),
            hosts,
            named,
            hosts_file: None,
            port: 0,
        });
        Ok(())
    }

    fn publish(&mut self, job: &Job, ports: &[u16]) -> Result<u16, LabError> {
        let own = own_servers(INFO.name, job)?;
        if own.reach.address() == Address::Service {
            let servers: Vec<_> = (0..).zip(ports.iter().copied()).collect();
            self.network.publish(ports[0], behind(own, &servers))?;
        }
        self.trial.as_mut().ok_or_else(no_trial)?.port = ports[0];
        Ok(ports[0])
    }

    fn reach(&mut self, job: &Job, servers: &[(u32, u16)]) -> Result<(), LabError> {
        let begun = self.trial.as_mut().ok_or_else(no_trial)?;
        let own = own_servers(INFO.name, job)?;
        match own.reach.address() {
            Address::Service => self.network.publish(begun.port, behind(own, servers)),
            Address::Headless => {
                begun.named = servers.iter().map(|(number, _)| address(own, *number).into()).collect();
                begun.hosts_file.as_ref().map_or(Ok(()), |path| Names::write(path, &begun.named).map(drop))
            }
            Address::Server | Address::NodePort => {
                Err(LabError("`address = \"server\"` cannot stand for several servers".to_owned()))
            }
        }
    }

    fn end_trial(&mut self, cell: &str) -> Result<Aftermath, LabError> {
        let Tallied { lines, cpu_ns, chosen } = self.network.tally()?;
        let begun = self.begun()?;
        if lines.missed > 0 {
            return Err(LabError(format!(
                "the link emulator could not keep up and lost {} frames besides those of the loss model; lower the \
                 rate of the link or the load, or use a machine with more processors",
                lines.missed
            )));
        }
        let cpu_share = (cpu_ns - begun.cpu_ns) as f64 / begun.at.elapsed().as_nanos() as f64;
        let emulated = begun.is_emulated.then_some((&lines, cpu_share));
        let is_busy = begun.is_emulated && cpu_share > BUSY;
        let busy = is_busy.then(|| Warning::EmulatorBusy { cell: cell.to_owned(), share: cpu_share });
        Ok(Aftermath { values: metrics::values(emulated, &chosen), warnings: busy.into_iter().collect() })
    }

    fn measure_links(&mut self, jobs: &[&Job], seed: u64) -> Result<Vec<LinkRecord>, LabError> {
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

    fn vantages(&self, job: &Job) -> Vec<Vantage> {
        let (Ok(link), Ok(Begun { hosts, .. })) = (link(job), self.begun()) else { return Vec::new() };
        let owner = self.network.owner.clone();
        let way = Way::of(link).interface;
        let is_overlay = job.topology.network == Joined::Overlay;
        let client = Vantage {
            place: Place::Client,
            namespace: hosts.client.clone(),
            owner: owner.clone(),
            interface: if is_overlay { overlay::POD_INTERFACE } else { way }.to_owned(),
            mtu: if is_overlay { link.mtu - overlay::ENCAPSULATION } else { link.mtu },
            is_encapsulated: false,
            between: None,
        };
        let server_node = Vantage {
            place: Place::ServerNode,
            namespace: hosts.far_node.clone(),
            owner,
            interface: way.to_owned(),
            mtu: link.mtu,
            is_encapsulated: is_overlay,
            between: None,
        };
        // Traffic within the client's node passes no interface of the other node.
        let is_outside = job.servers().is_some_and(|own| own.places.far > 0);
        if is_outside { vec![client, server_node] } else { vec![client] }
    }

    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError> {
        let Launch { role, number, endpoint, job, spec, log } = *launch;
        let Begun { hosts, named, .. } = self.begun()?;
        let host = match role {
            Role::Client | Role::Sidecar(Beside::Clients) | Role::ControlPlane => Some(&hosts.client),
            Role::Server | Role::Sidecar(Beside::Server) => hosts.servers.get(number as usize),
        };
        let host = host.ok_or_else(|| LabError(format!("no host exists for the server with number {number}")))?;
        let mut home = self.network.home(host)?;
        let is_headless = own_servers(INFO.name, job)?.reach.address() == Address::Headless;
        if role == Role::Client && is_headless {
            // One file for all clients of the trial, so that later changes reach all of them.
            let path = spec.with_file_name("hosts");
            home.names = Some(Names::write(&path, named)?);
            self.trial.as_mut().ok_or_else(no_trial)?.hosts_file = Some(path);
        } else if let (Role::Client, Work::Page(page)) = (role, &job.work) {
            // Browsers address servers only by name.
            let path = spec.with_file_name("hosts");
            let Addresses { servers, connect } = self.addresses(job)?;
            home.names = Some(match page.hosts.is_empty() {
                true => Names::write(&path, &[connect])?,
                false => Names::of(&path, servers.into_iter().zip(page.hosts.iter().map(String::as_str)))?,
            });
        }
        let guard = Arc::clone(&self.guard);
        Ok(Box::new(LocalProcess::start_in(endpoint, role, spec, log, Some(guard), Some(Arc::new(home)))?))
    }
}
