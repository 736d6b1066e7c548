//! A trial in the pods of a run.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use indexmap::IndexMap;
use wirelab_model::event::Configured;
use wirelab_model::network::Address;
use wirelab_model::plan::{Course, Job, OwnServers};
use wirelab_observe::places;

use crate::change::{Change, Way};
use crate::names::CLIENT;
use crate::nodes;
use crate::observe::{Observing, Scene, Started};
use crate::place;
use crate::pods::Host;
use crate::run::Run;
use crate::{INFO, service};
use wirelab_agent::{Kind, NAMING_PORT, Remote, RemoteProcess};
use wirelab_lab::internet::own_servers;
use wirelab_lab::{
    Addresses, Arena, Beside, LabError, LabInfo, Launch, PreparedLab, Process, RemoteObserver, Role, many,
};

/// The pods of a trial.
pub(crate) struct PodArena<'a, 'r> {
    run: &'a mut Run<'r>,
    job: &'a Job,
    own: &'a OwnServers,
    addresses: Addresses,
    /// The pods of the clients, and of the servers by number.
    clients: Vec<String>,
    servers: Vec<String>,
    /// The endpoints that were started.
    started: Vec<Started>,
    /// How clients find the servers, and a change of servers that they do not see yet.
    way: Way,
    change: Option<Change>,
}

impl<'a, 'r> PodArena<'a, 'r> {
    /// Replaces lost pods, and proves that the pods are where the job wants them.
    pub(crate) fn open(run: &'a mut Run<'r>, job: &'a Job) -> Result<Self, LabError> {
        if let Some(error) = run.unfinished.take() {
            return Err(error);
        }
        let own = own_servers(INFO.name, job)?;
        let (clients, servers) = (place::clients(job), place::servers(job)?);
        let names: Vec<_> = clients.iter().chain(servers.iter().map(|(name, _)| name)).cloned().collect();
        // All other pods are placed relative to the first client outside the mesh.
        let mut with_the_first = names.clone();
        if job.is_in_linkerd() {
            with_the_first.insert(0, CLIENT.to_owned());
        }
        let (common, pods, _) = run.parts();
        pods.heal(&with_the_first, &common)?;
        pods.prove_places(&clients, &servers)?;
        pods.prove_mesh(&names, job.is_in_linkerd(), common.namespace)?;
        let addresses = run.addresses(job)?;
        let servers = servers.into_iter().map(|(name, _)| name).collect();
        Ok(Self { run, job, own, addresses, clients, servers, started: Vec::new(), way: Way::Name, change: None })
    }

    /// The pod of the server with this number.
    fn server(&self, number: u32) -> Result<&String, LabError> {
        self.servers.get(number as usize).ok_or_else(|| LabError::cluster(format!("the trial has no server {number}")))
    }

    /// The pod where an endpoint is started.
    fn pod_of(&self, launch: &Launch<'_>) -> Result<String, LabError> {
        match launch.role {
            Role::Client | Role::Sidecar(Beside::Clients) | Role::ControlPlane => {
                Ok(place::client(self.job, launch.number))
            }
            Role::Server | Role::Sidecar(Beside::Server) => self.server(launch.number).cloned(),
        }
    }

    /// Routes the clients to the servers in these pods.
    fn order(&mut self, names: &[String]) -> Result<Change, LabError> {
        Change::order(&mut self.run.pods, &self.run.namespace.name, self.way, names, &self.clients)
    }
}

impl Drop for PodArena<'_, '_> {
    fn drop(&mut self) {
        // A failed trial may leave an unfinished change.
        self.run.unfinished = self.change.take().and_then(|change| change.abandon(&self.run.pods).err());
    }
}

impl Arena for PodArena<'_, '_> {
    fn info(&self) -> &'static LabInfo {
        &INFO
    }

    fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    fn sidecars(&self) -> Result<Vec<IpAddr>, LabError> {
        self.run.servers(self.job)
    }

    fn control_plane(&self) -> Result<IpAddr, LabError> {
        // The control plane runs in the first client's pod; other clients connect to it there.
        Ok(self.run.host(&place::client(self.job, 0))?.address)
    }

    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError> {
        Ok(self.start_all(&[*launch])?.swap_remove(0))
    }

    fn start_all(&mut self, launches: &[Launch<'_>]) -> Result<Vec<Box<dyn Process>>, LabError> {
        // Endpoints of one pod are started one after the other, because the record of sent files has one user at a
        // time.
        let mut of_pods: IndexMap<String, Vec<(usize, &Launch<'_>)>> = IndexMap::new();
        for (number, launch) in launches.iter().enumerate() {
            let pod = self.pod_of(launch)?;
            self.run.host(&pod)?;
            of_pods.entry(pod).or_default().push((number, launch));
        }
        let remote = |pod: &String| (pod.clone(), Arc::new(self.run.pods.remote(pod)) as Arc<dyn Remote>);
        let remotes: IndexMap<_, _> = of_pods.keys().map(remote).collect();
        let job = self.job;
        let hosts = self.run.pods.hosts.iter_mut();
        let work: Vec<_> = hosts.filter_map(|(pod, host)| Some((remotes.get(pod)?, host, of_pods.get(pod)?))).collect();
        let started = many::each(work, |(remote, host, launches)| {
            let start = |(number, launch): &(usize, &Launch<'_>)| {
                let facts = facts(job, launch, host);
                Ok((*number, RemoteProcess::start(Arc::clone(remote), &mut host.sent, facts, launch)?))
            };
            launches.iter().map(start).collect::<Result<Vec<_>, LabError>>()
        })?;
        let mut started: Vec<_> = started.into_iter().flatten().collect();
        started.sort_by_key(|(number, _)| *number);
        for launch in launches {
            let spec = launch.spec.to_string_lossy().into_owned();
            self.started.push(Started { pod: self.pod_of(launch)?, role: launch.role, spec });
        }
        Ok(started.into_iter().map(|(_, process)| Box::new(process) as Box<dyn Process>).collect())
    }

    fn publish(&mut self, ports: &[u16]) -> Result<u16, LabError> {
        let names = self.servers[..ports.len()].to_vec();
        match self.own.reach.address() {
            Address::Server => Ok(ports[0]),
            Address::Headless => {
                self.way = Way::Name;
                self.order(&names)?.wait(&self.run.pods)?;
                Ok(ports[0])
            }
            Address::Service | Address::NodePort => {
                if ports.iter().any(|port| *port != ports[0]) {
                    return Err(LabError::cluster(format!(
                        "the servers of one service listen at different ports: {ports:?}"
                    )));
                }
                // Probes with the servers' protocol, which may differ from the client's.
                let kind = Kind::of(self.own.protocol.unwrap_or(self.job.protocol));
                let of_nodes = service::lead(&self.run.pods, &self.run.namespace.name, ports[0], kind)?;
                let (port, naming) = match self.own.reach.address() {
                    Address::NodePort => {
                        let ports = of_nodes.ok_or_else(|| LabError::cluster("the service has no node ports"))?;
                        (ports.servers, ports.naming)
                    }
                    _ => (ports[0], NAMING_PORT),
                };
                let address = self.run.connect(self.job)?;
                self.way = Way::Address(SocketAddr::new(address, naming));
                self.order(&names)?.wait(&self.run.pods)?;
                for client in self.run.pods.lookouts(&self.clients) {
                    service::prove(&self.run.pods, &client, SocketAddr::new(address, port), names.len(), kind)?;
                }
                Ok(port)
            }
        }
    }

    fn reach(&mut self, servers: &[(u32, u16)]) -> Result<(), LabError> {
        let names = servers.iter().map(|(number, _)| self.server(*number).cloned()).collect::<Result<Vec<_>, _>>()?;
        self.change = Some(self.order(&names)?);
        Ok(())
    }

    fn is_reached(&mut self) -> Result<bool, LabError> {
        let Some(change) = &mut self.change else { return Ok(true) };
        let is_seen = change.is_seen(&self.run.pods)?;
        if is_seen {
            self.change = None;
        }
        Ok(is_seen)
    }

    fn remote_observer(&mut self, observers: &[&str]) -> Result<Option<Box<dyn RemoteObserver>>, LabError> {
        let is_wanted = places::NODE_OBSERVERS.iter().any(|name| observers.contains(name));
        let there = if self.run.lab.has_node_agents && is_wanted {
            let (common, pods, node_agents) = self.run.parts();
            let nodes = self.started.iter().filter_map(|one| pods.node_of(&one.pod)).collect();
            node_agents.ensure(pods, nodes, &common)
        } else {
            Err(nodes::without())
        };
        let on_nodes = there.map(|()| &self.run.node_agents);
        let is_in_linkerd = self.job.is_in_linkerd();
        let scene = Scene { pods: &self.run.pods, started: &self.started, on_nodes, is_in_linkerd };
        let observing = Observing::start(&scene, observers)?;
        Ok(observing.map(|observing| Box::new(observing) as Box<dyn RemoteObserver>))
    }
}

/// The facts about a pod that an endpoint in it reports.
fn facts(job: &Job, launch: &Launch<'_>, host: &Host) -> Configured {
    // Further clients, possibly hundreds, report only their position; clients of a timeline share the first client's
    // pod.
    let is_told = |fact: &str| match launch.role {
        Role::Client if launch.number > 0 => job.course == Course::Steady && matches!(fact, "node" | "zone"),
        Role::Client | Role::Server => true,
        // Sidecars and control planes run in the pods of other endpoints.
        Role::Sidecar(_) | Role::ControlPlane => false,
    };
    // The first server's facts have the same names as an only server's.
    let name = |fact: &str| if launch.number == 0 { fact.to_owned() } else { format!("{fact}_{}", launch.number) };
    let told = host.facts.iter().filter(|(fact, _)| is_told(fact));
    told.map(|(fact, value)| (name(fact), value.clone())).collect()
}
