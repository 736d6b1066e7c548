//! The lab on a Kubernetes cluster: client and servers in pods of a namespace that exists for the run only.
//!
//! Pods live as long as the run. Endpoints are started in them for each trial through the API server, which also
//! carries all events, commands and files (docs/decisions/0009).

mod affinity;
pub mod agent;
mod call;
mod candidates;
mod change;
pub mod clean;
mod cluster;
mod distance;
mod exec;
mod files;
mod layout;
mod mesh;
mod names;
mod nodes;
mod objects;
mod observe;
mod owner;
mod place;
mod plumbing;
mod pod;
mod pods;
mod process;
mod rights;
mod service;
mod state;
mod watch;
mod yaml;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use wirelab_model::network::{Address, CLUSTER_LAB};
use wirelab_model::plan::{Job, Trial};
use wirelab_model::warning::Warning;
use wirelab_observe::places;

use crate::agent::Kind;
use crate::change::{Change, Way};
use crate::cluster::Cluster;
use crate::layout::Layout;
use crate::names::{CLIENT, NAMING_PORT};
use crate::nodes::NodeAgents;
use crate::objects::Common;
use crate::observe::{Observing, Scene, Started};
use crate::owner::Owner;
use crate::place::{clients, servers};
use crate::pods::Pods;
use crate::process::PodProcess;
use wirelab_lab::guard::Guard;
use wirelab_lab::internet::own_servers;
use wirelab_lab::{
    Addresses, Beside, Lab, LabError, LabInfo, Launch, Preparation, Process, RemoteObserver, Role, many,
};

pub use rights::{lacking, rbac};

/// The lab's entry in `wirelab labs`.
pub const INFO: LabInfo = LabInfo {
    name: CLUSTER_LAB,
    summary: "Client and servers in pods of the Kubernetes cluster that the kubeconfig reaches, on one node, in one zone or in two.",
    needs: Some(
        "a kubeconfig, the rights that `wirelab labs rbac` prints, and an image of wirelab that the nodes can get",
    ),
    can_be: |job| servers(job).map(drop).map_err(LabError),
};

/// The environment variable with the image of the pods.
pub const IMAGE: &str = "WIRELAB_KUBERNETES_IMAGE";

/// The image without that variable: the result of `make image`.
pub const DEFAULT_IMAGE: &str = "localhost/wirelab:dev";

/// The lab.
pub struct Kubernetes {
    // Dropped first: removing the run's objects needs the connection, and endpoints must end before the guard.
    run: Option<Run>,
    cluster: Arc<Cluster>,
    image: String,
    /// Whether privileged pods on nodes are allowed.
    has_node_agents: bool,
    _guard: Arc<Guard>,
}

/// The objects of a run in the cluster. Dropping them removes them.
struct Run {
    pods: Pods,
    /// The service's address, if the run has one.
    service: Option<IpAddr>,
    /// The endpoints of the trial.
    started: Vec<Started>,
    /// How the trial's clients find its servers, and a change of servers that they do not see yet.
    way: Way,
    change: Option<Change>,
    /// Whether the trial is in the cluster's mesh.
    is_in_linkerd: bool,
    node_agents: NodeAgents,
    layout: Layout,
    folder: PathBuf,
    /// The folder of the endpoints' sockets, and the port for Prometheus.
    metrics: Option<(PathBuf, u16)>,
    namespace: Owned,
}

/// A namespace that is removed on drop, with everything in it.
struct Owned {
    name: String,
    cluster: Arc<Cluster>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // A drop cannot report errors; `wirelab labs clean` finds what is left.
        let _ = clean::delete(&self.cluster, &self.name);
    }
}

impl Kubernetes {
    /// Opens the lab. `program` is wirelab's executable; `program guard` must run [`wirelab_lab::guard::main`].
    ///
    /// # Errors
    /// If no cluster can be reached, or the guard cannot be started.
    pub fn start(program: &Path) -> Result<Self, LabError> {
        let has_node_agents = nodes::are_allowed()?;
        let cluster = Arc::new(Cluster::connect()?);
        // Guards the endpoint processes that describe themselves on this machine.
        let guard = Arc::new(Guard::start(program)?);
        guard.share();
        let image = std::env::var(IMAGE).unwrap_or_else(|_| DEFAULT_IMAGE.to_owned());
        Ok(Self { run: None, cluster, image, has_node_agents, _guard: guard })
    }

    fn run(&self) -> Result<&Run, LabError> {
        self.run.as_ref().ok_or_else(not_prepared)
    }
}

/// The pods of a job's servers with these numbers.
fn pods_of(job: &Job, numbers: impl IntoIterator<Item = u32>) -> Result<Vec<String>, LabError> {
    let all = servers(job).map_err(LabError)?;
    let name = |number: u32| all.get(number as usize).map(|(name, _)| name.clone()).ok_or_else(not_prepared);
    numbers.into_iter().map(name).collect()
}

/// The pod where an endpoint is started.
fn pod_of(launch: &Launch<'_>) -> Result<String, LabError> {
    match launch.role {
        Role::Client | Role::Sidecar(Beside::Clients) | Role::ControlPlane => {
            Ok(place::client(launch.job, launch.number))
        }
        Role::Server | Role::Sidecar(Beside::Server) => Ok(pods_of(launch.job, [launch.number])?.swap_remove(0)),
    }
}

/// The values that all objects of a run share.
fn common<'a>(
    namespace: &'a Owned,
    image: &'a str,
    folder: &'a Path,
    layout: &'a Layout,
    metrics: Option<&'a (PathBuf, u16)>,
) -> Common<'a> {
    let metrics = metrics.map(|(sockets, port)| (&**sockets, *port));
    Common { namespace: &namespace.name, image, folder, layout, metrics }
}

fn not_prepared() -> LabError {
    LabError("nothing is prepared in the cluster, so there are no pods".to_owned())
}

impl Run {
    /// The addresses of a job's servers, in order.
    fn addresses(&self, job: &Job) -> Result<Vec<IpAddr>, LabError> {
        let names = servers(job).map_err(LabError)?;
        let address =
            |(name, _): &(String, _)| self.pods.hosts.get(name).map(|host| host.address).ok_or_else(not_prepared);
        names.iter().map(address).collect()
    }

    /// The address that clients connect to.
    fn connect(&self, job: &Job) -> Result<IpAddr, LabError> {
        let (first, _) = servers(job).map_err(LabError)?.swap_remove(0);
        let host = self.pods.hosts.get(&first).ok_or_else(not_prepared)?;
        match own_servers(INFO.name, job)?.reach.address() {
            Address::Server | Address::Headless => Ok(host.address),
            Address::Service => self.service.ok_or_else(not_prepared),
            Address::NodePort => host.node.ok_or_else(|| LabError("the servers' node has no address".to_owned())),
        }
    }
}

impl Lab for Kubernetes {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn warnings(&self) -> Vec<Warning> {
        if self.has_node_agents { vec![Warning::NodeAgents] } else { Vec::new() }
    }

    fn check(&self, job: &Job) -> Result<(), LabError> {
        servers(job).map_err(LabError)?;
        if job.is_in_linkerd() { mesh::installed(&self.cluster) } else { Ok(()) }
    }

    fn prepare(&mut self, preparation: &Preparation<'_>) -> Result<(), LabError> {
        let Preparation { jobs, folder, stop, metrics } = *preparation;
        let layout = Layout::of(jobs).map_err(LabError)?;
        if !layout.meshed.is_empty() {
            // A run may be resumed after Linkerd was removed.
            mesh::installed(&self.cluster)?;
        }
        if folder.to_string_lossy().contains(':') {
            let why = "no folder with a colon in its path can be mounted in a pod; use another one with --out";
            return Err(LabError(format!("{}: {why}", folder.display())));
        }
        // A resumed run makes all objects again.
        self.run = None;
        let name = names::namespace();
        let api: Api<Namespace> = Api::all(self.cluster.client.clone());
        let namespace = objects::namespace(&name, folder, &Owner::this(), self.has_node_agents);
        let attempt = format!("making the namespace {name}");
        self.cluster.ask(&attempt, api.create(&PostParams::default(), &namespace))?;
        let namespace = Owned { name, cluster: Arc::clone(&self.cluster) };
        let common = Common { namespace: &namespace.name, image: &self.image, folder, layout: &layout, metrics };
        let pods = Pods::make(&self.cluster, &common, stop)?;
        let service = service::make(&pods, &common)?;
        let folder = folder.to_owned();
        let metrics = metrics.map(|(sockets, port)| (sockets.to_owned(), port));
        self.run = Some(Run {
            pods,
            service,
            started: Vec::new(),
            way: Way::Name,
            change: None,
            is_in_linkerd: false,
            node_agents: NodeAgents::default(),
            layout,
            folder,
            metrics,
            namespace,
        });
        Ok(())
    }

    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        let run = self.run()?;
        if job.sidecar().is_some() {
            // Connections to a server must pass its sidecar.
            let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
            return Ok(Addresses { servers: vec![localhost; run.addresses(job)?.len()], connect: localhost });
        }
        Ok(Addresses { servers: run.addresses(job)?, connect: run.connect(job)? })
    }

    fn sidecars(&self, job: &Job) -> Result<Vec<IpAddr>, LabError> {
        self.run()?.addresses(job)
    }

    fn control_plane(&self, job: &Job) -> Result<IpAddr, LabError> {
        // The control plane runs in the first client's pod; other clients connect to it there.
        let host = self.run()?.pods.hosts.get(&place::client(job, 0));
        host.map(|host| host.address).ok_or_else(not_prepared)
    }

    fn begin_trial(&mut self, _: &Trial, job: &Job) -> Result<(), LabError> {
        let image = self.image.clone();
        let run = self.run.as_mut().ok_or_else(not_prepared)?;
        run.started.clear();
        let (clients, servers) = (clients(job), servers(job).map_err(LabError)?);
        let names: Vec<_> = clients.iter().chain(servers.iter().map(|(name, _)| name)).cloned().collect();
        // All other pods are placed relative to the first client outside the mesh.
        let mut with_the_first = names.clone();
        if job.is_in_linkerd() {
            with_the_first.insert(0, CLIENT.to_owned());
        }
        let common = common(&run.namespace, &image, &run.folder, &run.layout, run.metrics.as_ref());
        run.pods.heal(&with_the_first, &common)?;
        run.pods.prove_places(&clients, &servers)?;
        run.pods.prove_mesh(&names, job.is_in_linkerd(), common.namespace)?;
        run.is_in_linkerd = job.is_in_linkerd();
        // A failed trial may have left an unfinished change.
        run.change.take().map_or(Ok(()), |change| change.abandon(&run.pods))
    }

    fn publish(&mut self, job: &Job, ports: &[u16]) -> Result<u16, LabError> {
        let run = self.run.as_mut().ok_or_else(not_prepared)?;
        let names = pods_of(job, 0..ports.len() as u32)?;
        let clients = clients(job);
        let own = own_servers(INFO.name, job)?;
        match own.reach.address() {
            Address::Server => Ok(ports[0]),
            Address::Headless => {
                run.way = Way::Name;
                Change::order(&mut run.pods, &run.namespace.name, run.way, &names, &clients)?.wait(&run.pods)?;
                Ok(ports[0])
            }
            Address::Service | Address::NodePort => {
                if ports.iter().any(|port| *port != ports[0]) {
                    return Err(LabError(format!("the servers of one service listen at different ports: {ports:?}")));
                }
                // Probes with the servers' protocol, which may differ from the client's.
                let kind = Kind::of(own.protocol.unwrap_or(job.protocol));
                let of_nodes = service::lead(&run.pods, &run.namespace.name, ports[0], kind)?;
                let (port, naming) = match own.reach.address() {
                    Address::NodePort => {
                        of_nodes.map(|ports| (ports.servers, ports.naming)).ok_or_else(not_prepared)?
                    }
                    _ => (ports[0], NAMING_PORT),
                };
                let address = run.connect(job)?;
                run.way = Way::Address(SocketAddr::new(address, naming));
                Change::order(&mut run.pods, &run.namespace.name, run.way, &names, &clients)?.wait(&run.pods)?;
                for client in run.pods.lookouts(&clients) {
                    service::prove(&run.pods, &client, SocketAddr::new(address, port), names.len(), kind)?;
                }
                Ok(port)
            }
        }
    }

    fn reach(&mut self, job: &Job, servers: &[(u32, u16)]) -> Result<(), LabError> {
        let run = self.run.as_mut().ok_or_else(not_prepared)?;
        let names = pods_of(job, servers.iter().map(|(number, _)| *number))?;
        run.change = Some(Change::order(&mut run.pods, &run.namespace.name, run.way, &names, &clients(job))?);
        Ok(())
    }

    fn is_reached(&mut self) -> Result<bool, LabError> {
        let run = self.run.as_mut().ok_or_else(not_prepared)?;
        let Some(change) = &mut run.change else { return Ok(true) };
        let is_seen = change.is_seen(&run.pods)?;
        if is_seen {
            run.change = None;
        }
        Ok(is_seen)
    }

    fn observe(&mut self, observers: &[&str]) -> Result<Option<Box<dyn RemoteObserver>>, LabError> {
        let image = self.image.clone();
        let run = self.run.as_mut().ok_or_else(not_prepared)?;
        let is_allowed = self.has_node_agents && places::NODE_OBSERVERS.iter().any(|name| observers.contains(name));
        let there = if is_allowed {
            let common = common(&run.namespace, &image, &run.folder, &run.layout, run.metrics.as_ref());
            let nodes = run.started.iter().filter_map(|one| run.pods.node_of(&one.pod)).collect();
            run.node_agents.ensure(&run.pods, nodes, &common).map_err(|LabError(why)| why)
        } else {
            Err(nodes::without())
        };
        let on_nodes = there.map(|()| &run.node_agents);
        let is_in_linkerd = run.is_in_linkerd;
        let scene = Scene { pods: &run.pods, started: &run.started, on_nodes, is_in_linkerd };
        let observing = Observing::start(&scene, observers)?;
        Ok(observing.map(|observing| Box::new(observing) as Box<dyn RemoteObserver>))
    }

    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError> {
        let mut started = self.start_all(&[*launch])?;
        started.pop().ok_or_else(not_prepared)
    }

    fn start_all(&mut self, launches: &[Launch<'_>]) -> Result<Vec<Box<dyn Process>>, LabError> {
        // Endpoints of one pod are started one after the other, because the record of sent files has one user at a
        // time.
        let mut of_pods: IndexMap<String, Vec<(usize, &Launch<'_>)>> = IndexMap::new();
        for (number, launch) in launches.iter().enumerate() {
            of_pods.entry(pod_of(launch)?).or_default().push((number, launch));
        }
        let run = self.run.as_mut().ok_or_else(not_prepared)?;
        let (cluster, api) = (&self.cluster, &run.pods.api);
        let hosts = run.pods.hosts.iter_mut();
        let work: Vec<_> = hosts.filter_map(|(pod, host)| Some((pod, host, of_pods.swap_remove(pod)?))).collect();
        if !of_pods.is_empty() {
            return Err(not_prepared());
        }
        let started = many::each(work, |(pod, host, launches)| {
            let start = |(number, launch): (usize, &Launch<'_>)| {
                Ok((number, PodProcess::start(cluster, api, pod, host, launch)?))
            };
            launches.into_iter().map(start).collect::<Result<Vec<_>, LabError>>()
        })?;
        let mut started: Vec<_> = started.into_iter().flatten().collect();
        started.sort_by_key(|(number, _)| *number);
        for launch in launches {
            let spec = launch.spec.to_string_lossy().into_owned();
            run.started.push(Started { pod: pod_of(launch)?, role: launch.role, spec });
        }
        Ok(started.into_iter().map(|(_, process)| Box::new(process) as Box<dyn Process>).collect())
    }
}
