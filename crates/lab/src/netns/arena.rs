//! A trial in the lab `netns`.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use wirelab_model::link::Link;
use wirelab_model::network::{Address, Network as Joined, Place, Vantage};
use wirelab_model::plan::{Job, OwnServers, Trial, Work};
use wirelab_model::timeline::Lifetimes;
use wirelab_model::warning::Warning;

use super::{INFO, Netns, address, addresses, link};
use crate::internet::own_servers;
use crate::names::Names;
use crate::netns::fabric::{Hosts, Tallied};
use crate::netns::pair::Way;
use crate::netns::{metrics, overlay};
use crate::process::LocalProcess;
use crate::{Addresses, Aftermath, Arena, Beside, Confinement, LabError, LabInfo, Launch, Process, Role};

/// Share of one processor above which the emulator may limit a trial.
const BUSY: f64 = 0.8;

/// The network of a trial, in namespaces.
pub(super) struct NetnsArena<'a> {
    lab: &'a mut Netns,
    job: &'a Job,
    own: &'a OwnServers,
    link: &'a Link,
    addresses: Addresses,
    confinement: Confinement,
    at: Instant,
    cpu_ns: u64,
    hosts: Hosts,
    /// Addresses of the server name.
    named: Vec<IpAddr>,
    /// Hosts file of the clients, once written.
    hosts_file: Option<PathBuf>,
    /// Port of the service, once published.
    service: Option<u16>,
}

impl<'a> NetnsArena<'a> {
    /// Creates the network.
    pub(super) fn open(lab: &'a mut Netns, trial: &Trial, job: &'a Job) -> Result<Self, LabError> {
        let (link, own) = (link(job)?, own_servers(INFO.name, job)?);
        let (addresses, confinement) = (addresses(job)?, Confinement::choose(&job.topology.cpus)?);
        let hosts = lab.network.prepare(job, trial.seed)?;
        let Tallied { cpu_ns, .. } = lab.network.tally()?;
        let named = addresses.servers.iter().take(own.places.count() as usize).copied().collect();
        let at = Instant::now();
        let (hosts_file, service) = (None, None);
        Ok(Self { lab, job, own, link, addresses, confinement, at, cpu_ns, hosts, named, hosts_file, service })
    }

    /// Makes the service stand for exactly these servers.
    fn serve(&mut self, port: u16, servers: &[(u32, u16)]) -> Result<(), LabError> {
        let place = |(number, port): &(u32, u16)| (*number, SocketAddrV4::new(address(self.own, *number), *port));
        let servers = servers.iter().map(place).collect();
        self.lab.network.publish(port, servers)
    }
}

impl Drop for NetnsArena<'_> {
    fn drop(&mut self) {
        if self.service.is_some() {
            // A service that remains is withdrawn when the next network is created.
            let _ = self.lab.network.withdraw();
        }
    }
}

impl Arena for NetnsArena<'_> {
    fn info(&self) -> &'static LabInfo {
        &INFO
    }

    fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    fn sidecars(&self) -> Result<Vec<IpAddr>, LabError> {
        Ok((0..Lifetimes::of(self.job).servers).map(|number| address(self.own, number).into()).collect())
    }

    fn control_plane(&self) -> Result<IpAddr, LabError> {
        // It runs in the clients' pod, so its traffic does not pass the link.
        Ok(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError> {
        let Launch { role, number, endpoint, spec, log } = *launch;
        let host = match role {
            Role::Client | Role::Sidecar(Beside::Clients) | Role::ControlPlane => Some(&self.hosts.client),
            Role::Server | Role::Sidecar(Beside::Server) => self.hosts.servers.get(number as usize),
        };
        let host =
            host.ok_or_else(|| LabError::network(format!("no host exists for the server with number {number}")))?;
        let mut home = self.lab.network.home(host)?;
        home.processors = self.confinement.kernel_set(role);
        if role == Role::Client && self.own.reach.address() == Address::Headless {
            // One file for all clients of the trial, so that later changes reach all of them.
            let path = spec.with_file_name("hosts");
            home.names = Some(Names::write(&path, &self.named)?);
            self.hosts_file = Some(path);
        } else if let (Role::Client, Work::Page(page)) = (role, &self.job.work) {
            // Browsers address servers only by name.
            let path = spec.with_file_name("hosts");
            let Addresses { servers, connect } = &self.addresses;
            home.names = Some(match page.hosts.is_empty() {
                true => Names::write(&path, &[*connect])?,
                false => Names::of(&path, servers.iter().copied().zip(page.hosts.iter().map(String::as_str)))?,
            });
        }
        let guard = Arc::clone(&self.lab.guard);
        Ok(Box::new(LocalProcess::start_in(endpoint, role, spec, log, Some(guard), Some(Arc::new(home)))?))
    }

    fn publish(&mut self, ports: &[u16]) -> Result<u16, LabError> {
        if self.own.reach.address() == Address::Service {
            let servers: Vec<_> = (0..).zip(ports.iter().copied()).collect();
            self.serve(ports[0], &servers)?;
            self.service = Some(ports[0]);
        }
        Ok(ports[0])
    }

    fn reach(&mut self, servers: &[(u32, u16)]) -> Result<(), LabError> {
        match (self.own.reach.address(), self.service) {
            (Address::Service, Some(port)) => self.serve(port, servers),
            (Address::Service, None) => Err(LabError::network("the service of the trial was not published")),
            (Address::Headless, _) => {
                self.named = servers.iter().map(|(number, _)| address(self.own, *number).into()).collect();
                self.hosts_file.as_ref().map_or(Ok(()), |path| Names::write(path, &self.named).map(drop))
            }
            (Address::Server | Address::NodePort, _) => {
                Err(LabError::network("`address = \"server\"` cannot stand for several servers"))
            }
        }
    }

    fn confinement(&self) -> Option<&Confinement> {
        Some(&self.confinement)
    }

    fn vantages(&self) -> Vec<Vantage> {
        let owner = self.lab.network.owner.clone();
        let way = Way::of(self.link).interface;
        let is_overlay = self.job.topology.network == Joined::Overlay;
        let mtu = self.link.mtu;
        let client = Vantage {
            place: Place::Client,
            namespace: self.hosts.client.clone(),
            owner: owner.clone(),
            interface: if is_overlay { overlay::POD_INTERFACE } else { way }.to_owned(),
            mtu: if is_overlay { mtu - overlay::ENCAPSULATION } else { mtu },
            is_encapsulated: false,
            between: None,
        };
        let server_node = Vantage {
            place: Place::ServerNode,
            namespace: self.hosts.far_node.clone(),
            owner,
            interface: way.to_owned(),
            mtu,
            is_encapsulated: is_overlay,
            between: None,
        };
        // Traffic within the client's node passes no interface of the other node.
        if self.own.places.far > 0 { vec![client, server_node] } else { vec![client] }
    }

    fn end_window(&mut self, cell: &str) -> Result<Aftermath, LabError> {
        let Tallied { lines, cpu_ns, chosen } = self.lab.network.tally()?;
        if lines.missed > 0 {
            return Err(LabError::network(format!(
                "the link emulator could not keep up and lost {} frames besides those of the loss model",
                lines.missed
            ))
            .remedy("lower the rate of the link or the load, or use a machine with more processors"));
        }
        let is_emulated = !self.link.is_wire();
        let cpu_share = (cpu_ns - self.cpu_ns) as f64 / self.at.elapsed().as_nanos() as f64;
        let emulated = is_emulated.then_some((&lines, cpu_share));
        let is_busy = is_emulated && cpu_share > BUSY;
        let busy = is_busy.then(|| Warning::EmulatorBusy { cell: cell.to_owned(), share: cpu_share });
        Ok(Aftermath { values: metrics::values(emulated, &chosen), warnings: busy.into_iter().collect() })
    }
}
