//! The connected hosts of a run, and the arena of a trial on them.

use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wirelab_agent::{Remote, RemoteProcess, Sent};
use wirelab_lab::{
    Addresses, Arena, Folder, LabError, LabInfo, Launch, PreparedLab, Process, RemoteObserver, Role, many,
};
use wirelab_model::event::Configured;
use wirelab_model::path::PathRecord;
use wirelab_model::plan::{Job, Trial};
use wirelab_model::units::BitRate;

use crate::connection::Connection;
use crate::inventory::{Host, Inventory};
use crate::observing::{Observing, Seated};
use crate::paths;
use crate::place::{Placed, place};
use crate::seat::Seat;
use crate::ssh::Ssh;
use crate::{Hosts, INFO};

/// How long the news of a doubtful host may take.
const DOUBT: Duration = Duration::from_secs(20);

/// The connected hosts of a run. Drop removes everything from them.
pub(crate) struct ConnectedHosts<'a> {
    lab: &'a Hosts,
    /// The hosts that are needed, by their number in the inventory.
    machines: HashMap<usize, Machine>,
    sockets: Folder,
    /// Program to copy.
    program: PathBuf,
}

/// A connected host.
pub(crate) struct Machine {
    connection: Arc<Connection>,
    pub(crate) address: IpAddr,
    /// Files that each seat has.
    sent: HashMap<String, Sent>,
    doubt: Arc<AtomicBool>,
}

impl<'a> ConnectedHosts<'a> {
    /// Connects the hosts of these jobs, all at a time.
    pub(crate) fn open(lab: &'a Hosts, jobs: &[&Job], stop: &AtomicBool) -> Result<Self, LabError> {
        let mut needed = Vec::new();
        for job in jobs {
            let placed = place(&lab.inventory, job)?;
            needed.extend(placed.clients.into_iter().chain([placed.server]));
        }
        needed.sort_unstable();
        needed.dedup();
        let sockets = Folder::create(&lab.guard)?;
        let program = lab.program.clone();
        let machines = many::each(needed, |number| {
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::interrupted("the hosts were not all connected"));
            }
            Ok((number, Machine::connect(&lab.inventory.host[number], number, sockets.path(), &program)?))
        })?;
        Ok(Self { lab, machines: machines.into_iter().collect(), sockets, program })
    }

    pub(crate) fn inventory(&self) -> &Inventory {
        &self.lab.inventory
    }

    pub(crate) fn machine(&self, number: usize) -> Result<&Machine, LabError> {
        let name = || self.lab.inventory.host[number].name().to_owned();
        self.machines.get(&number).ok_or_else(|| LabError::process(format!("the host {} is not connected", name())))
    }

    /// Connects the lost hosts of a trial again.
    pub(crate) fn heal(&mut self, placed: &Placed) -> Result<(), LabError> {
        for number in placed.clients.iter().copied().chain([placed.server]) {
            let machine = self.machine(number)?;
            let doubt = if machine.doubt.swap(false, Ordering::Relaxed) { DOUBT } else { Duration::ZERO };
            let Some(why) = machine.connection.loss(doubt) else { continue };
            tracing::warn!(host = machine.connection.name, why, "host was lost; connecting again");
            // The old connection must end first: both have the same socket.
            self.machines.remove(&number);
            let machine =
                Machine::connect(&self.lab.inventory.host[number], number, self.sockets.path(), &self.program)?;
            self.machines.insert(number, machine);
        }
        Ok(())
    }

    fn addresses_of(&self, placed: &Placed) -> Result<Addresses, LabError> {
        let address = self.machine(placed.server)?.address;
        Ok(Addresses { servers: vec![address], connect: address })
    }
}

impl Machine {
    fn connect(host: &Host, number: usize, sockets: &Path, program: &Path) -> Result<Self, LabError> {
        let ssh = Ssh::shared(&host.ssh, sockets.join(number.to_string()));
        let address = address(host, &ssh)?;
        let connection = Arc::new(Connection::open(host.name(), ssh, program)?);
        Ok(Self { connection, address, sent: HashMap::new(), doubt: Arc::default() })
    }

    pub(crate) fn seat(&self, name: &str) -> Arc<dyn Remote> {
        Arc::new(Seat::new(&self.connection, name, &self.doubt))
    }
}

/// The address to measure over.
fn address(host: &Host, ssh: &Ssh) -> Result<IpAddr, LabError> {
    if let Some(address) = host.address {
        return Ok(address);
    }
    let attempt = || LabError::network(format!("cannot find the address of the host {}", host.name()));
    let remedy = "set its `address` in the file of --hosts";
    let name = ssh.host_name().map_err(|error| attempt().because(error).remedy("check the configuration of ssh"))?;
    let found = (name.as_str(), 0).to_socket_addrs().map_err(|error| attempt().because(error).remedy(remedy))?;
    // IPv4 first, as in the lab `internet`.
    let mut addresses: Vec<_> = found.map(|socket| socket.ip()).collect();
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses.first().copied().ok_or_else(|| attempt().remedy(remedy))
}

impl PreparedLab for ConnectedHosts<'_> {
    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        self.addresses_of(&place(&self.lab.inventory, job)?)
    }

    fn has_paths(&self) -> bool {
        true
    }

    fn measure_paths(&mut self, jobs: &[&Job], load: Option<BitRate>) -> Vec<PathRecord> {
        paths::measure(self, jobs, load)
    }

    fn open<'a>(&'a mut self, _: &Trial, job: &'a Job) -> Result<Box<dyn Arena + 'a>, LabError> {
        let placed = place(&self.lab.inventory, job)?;
        self.heal(&placed)?;
        let addresses = self.addresses_of(&placed)?;
        Ok(Box::new(HostArena { hosts: self, placed, addresses, seated: Vec::new() }))
    }
}

/// A trial on hosts.
struct HostArena<'a, 's> {
    hosts: &'a mut ConnectedHosts<'s>,
    placed: Placed,
    addresses: Addresses,
    seated: Vec<Seated>,
}

impl Arena for HostArena<'_, '_> {
    fn info(&self) -> &'static LabInfo {
        &INFO
    }

    fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError> {
        let number = self.placed.host(launch.role, launch.number);
        let facts = facts(&self.hosts.lab.inventory.host[number], self.hosts.machine(number)?, launch);
        let seat = format!("{}-{}", launch.role.word(), launch.number);
        let machine = self.hosts.machines.get_mut(&number).expect("it was looked up above");
        let remote = machine.seat(&seat);
        let sent = machine.sent.entry(seat).or_default();
        let process = RemoteProcess::start(Arc::clone(&remote), sent, facts, launch)?;
        let spec = launch.spec.to_string_lossy().into_owned();
        self.seated.push(Seated { remote, side: launch.role.side(), endpoints: vec![(launch.role, spec)] });
        Ok(Box::new(process))
    }

    fn remote_observer(&mut self, observers: &[&str]) -> Result<Option<Box<dyn RemoteObserver>>, LabError> {
        let observing = Observing::start(std::mem::take(&mut self.seated), observers)?;
        Ok(observing.map(|observing| Box::new(observing) as Box<dyn RemoteObserver>))
    }
}

/// The facts about a host that the first client and the server report with `ready`.
fn facts(host: &Host, machine: &Machine, launch: &Launch<'_>) -> Configured {
    let is_told = launch.role == Role::Server || launch.number == 0;
    let held = &machine.connection.held;
    let mut facts: Vec<(&str, serde_json::Value)> = vec![
        ("host", host.name().into()),
        ("host_name", held.name.as_str().into()),
        ("host_kernel", held.kernel.as_str().into()),
        ("host_processors", held.processors.into()),
    ];
    facts.extend(host.zone.as_ref().map(|zone| ("zone", zone.as_str().into())));
    facts.extend(host.region.as_ref().map(|region| ("region", region.as_str().into())));
    facts.extend(held.facts.mtu.map(|mtu| ("host_mtu", mtu.into())));
    facts.into_iter().filter(|_| is_told).map(|(fact, value)| (fact.to_owned(), value)).collect()
}
