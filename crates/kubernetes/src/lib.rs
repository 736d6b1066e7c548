//! The lab on a Kubernetes cluster: client and servers in pods of a namespace that is made for the run and removed with it.
//!
//! Pods live as long as the run; endpoints are started in them anew for each trial, through the API server, which is also the way
//! of everything that is said and of all files (docs/decisions/0009).

pub mod agent;
mod call;
mod change;
pub mod clean;
mod cluster;
mod exec;
mod files;
mod names;
mod objects;
mod observe;
mod owner;
mod place;
mod pods;
mod process;
mod rights;
mod service;
mod state;
mod unsupported;
mod yaml;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use wirelab_model::network::{Address, CLUSTER_LAB};
use wirelab_model::plan::{Job, Trial};
use wirelab_model::warning::Warning;

use crate::agent::Kind;
use crate::change::{Change, Way};
use crate::cluster::Cluster;
use crate::names::NAMING_PORT;
use crate::objects::Common;
use crate::observe::{Observing, Started};
use crate::owner::Owner;
use crate::place::{Layout, clients, servers};
use crate::pods::Pods;
use crate::process::PodProcess;
use crate::unsupported::Unsupported;
use wirelab_lab::endpoints::BUILTIN;
use wirelab_lab::guard::Guard;
use wirelab_lab::{Addresses, Afar, Lab, LabError, LabInfo, Launch, Preparation, Process, Role};

pub use rights::{lacking, rbac};

/// What `wirelab labs` says of it.
pub const INFO: LabInfo = LabInfo {
    name: CLUSTER_LAB,
    summary: "Client and servers in pods of the Kubernetes cluster that the kubeconfig reaches, on one node, in one zone or in two.",
    needs: Some(
        "a kubeconfig, the rights that `wirelab labs rbac` prints, and an image of wirelab that the nodes can get",
    ),
};

/// The environment variable that names the image of the pods.
pub const IMAGE: &str = "WIRELAB_KUBERNETES_IMAGE";

/// The image where it names none: what `make image` makes.
pub const DEFAULT_IMAGE: &str = "localhost/wirelab:dev";

/// The lab.
pub struct Kubernetes {
    // Dropped first: removing what is in the cluster needs the connection, and endpoints are ended before the guard.
    run: Option<Run>,
    cluster: Arc<Cluster>,
    image: String,
    _guard: Arc<Guard>,
}

/// What is in the cluster for a run. Dropping it removes it.
struct Run {
    pods: Pods,
    /// The address of the service, where there is one.
    service: Option<IpAddr>,
    /// The endpoints of the trial.
    started: Vec<Started>,
    /// How the clients of the trial find its servers, and a change of these that they do not see yet.
    way: Way,
    change: Option<Change>,
    layout: Layout,
    folder: PathBuf,
    /// The folder of the endpoints' sockets, and the port at which the pods show them.
    metrics: Option<(PathBuf, u16)>,
    namespace: Owned,
}

/// A namespace that is removed when it is dropped, with everything in it.
struct Owned {
    name: String,
    cluster: Arc<Cluster>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Nobody can be told any more; `wirelab labs clean` finds what stays.
        let _ = clean::delete(&self.cluster, &self.name);
    }
}

impl Kubernetes {
    /// Opens the lab. `program` is wirelab's own file; `program guard` must run [`wirelab_lab::guard::main`].
    ///
    /// # Errors
    /// If no cluster can be reached, or the guard cannot be started.
    pub fn start(program: &Path) -> Result<Self, LabError> {
        let cluster = Arc::new(Cluster::connect()?);
        // Of endpoints that are asked on this machine what they are.
        let guard = Arc::new(Guard::start(program)?);
        guard.share();
        let image = std::env::var(IMAGE).unwrap_or_else(|_| DEFAULT_IMAGE.to_owned());
        Ok(Self { run: None, cluster, image, _guard: guard })
    }

    fn run(&self) -> Result<&Run, LabError> {
        self.run.as_ref().ok_or_else(not_prepared)
    }
}

/// The pods of the servers of a job that have these numbers.
fn pods_of(job: &Job, numbers: impl IntoIterator<Item = u32>) -> Result<Vec<String>, LabError> {
    let all = servers(job).map_err(LabError)?;
    let name = |number: u32| all.get(number as usize).map(|(name, _)| name.clone()).ok_or_else(not_prepared);
    numbers.into_iter().map(name).collect()
}

fn not_prepared() -> LabError {
    LabError("nothing is prepared in the cluster, so there are no pods".to_owned())
}

impl Run {
    /// The addresses of a job's servers, in their order.
    fn addresses(&self, job: &Job) -> Result<Vec<IpAddr>, LabError> {
        let names = servers(job).map_err(LabError)?;
        let address =
            |(name, _): &(String, _)| self.pods.hosts.get(name).map(|host| host.address).ok_or_else(not_prepared);
        names.iter().map(address).collect()
    }

    /// What clients connect to.
    fn connect(&self, job: &Job) -> Result<IpAddr, LabError> {
        let (first, _) = servers(job).map_err(LabError)?.swap_remove(0);
        let host = self.pods.hosts.get(&first).ok_or_else(not_prepared)?;
        match job.address {
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
        Vec::new()
    }

    fn check(&self, job: &Job) -> Result<(), LabError> {
        servers(job).map(drop).map_err(LabError)
    }

    fn prepare(&mut self, preparation: &Preparation<'_>) -> Result<(), LabError> {
        let Preparation { jobs, folder, stop, metrics } = *preparation;
        let layout = Layout::of(jobs).map_err(LabError)?;
        if folder.to_string_lossy().contains(':') {
            let why = "no folder with a colon in its path can be mounted in a pod; use another one with --out";
            return Err(LabError(format!("{}: {why}", folder.display())));
        }
        // A second session makes everything anew.
        self.run = None;
        let name = names::namespace();
        let api: Api<Namespace> = Api::all(self.cluster.client.clone());
        let namespace = objects::namespace(&name, folder, &Owner::this());
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
            layout,
            folder,
            metrics,
            namespace,
        });
        Ok(())
    }

    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        let run = self.run()?;
        Ok(Addresses { servers: run.addresses(job)?, connect: run.connect(job)? })
    }

    fn begin_trial(&mut self, _: &Trial, job: &Job) -> Result<(), LabError> {
        let image = self.image.clone();
        let run = self.run.as_mut().ok_or_else(not_prepared)?;
        run.started.clear();
        // The first one first, because the others are placed by where it is.
        let mut names = clients(job);
        names.extend(servers(job).map_err(LabError)?.into_iter().map(|(name, _)| name));
        let metrics = run.metrics.as_ref().map(|(sockets, port)| (&**sockets, *port));
        let (namespace, folder, layout) = (&*run.namespace.name, &*run.folder, &run.layout);
        let common = Common { namespace, image: &image, folder, layout, metrics };
        run.pods.heal(&names, &common)?;
        // A trial that failed may have left it.
        if run.change.take().is_some() { change::abandon(&run.pods) } else { Ok(()) }
    }

    fn publish(&mut self, job: &Job, ports: &[u16]) -> Result<u16, LabError> {
        let run = self.run.as_mut().ok_or_else(not_prepared)?;
        let names = pods_of(job, 0..ports.len() as u32)?;
        let clients = clients(job);
        match job.address {
            Address::Server => Ok(ports[0]),
            Address::Headless => {
                run.way = Way::Name;
                Change::order(&mut run.pods, run.way, &names, &clients)?.wait(&run.pods, &run.namespace.name)?;
                Ok(ports[0])
            }
            Address::Service | Address::NodePort => {
                if ports.iter().any(|port| *port != ports[0]) {
                    return Err(LabError(format!("the servers of one service listen at different ports: {ports:?}")));
                }
                // What the servers speak, where the client asks with what they lack.
                let kind = Kind::of(job.server_protocol.unwrap_or(job.protocol));
                let of_nodes = service::lead(&run.pods, &run.namespace.name, ports[0], kind)?;
                let (port, naming) = match job.address {
                    Address::NodePort => {
                        of_nodes.map(|ports| (ports.servers, ports.naming)).ok_or_else(not_prepared)?
                    }
                    _ => (ports[0], NAMING_PORT),
                };
                let address = run.connect(job)?;
                run.way = Way::Address(SocketAddr::new(address, naming));
                Change::order(&mut run.pods, run.way, &names, &clients)?.wait(&run.pods, &run.namespace.name)?;
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
        run.change = Some(Change::order(&mut run.pods, run.way, &names, &clients(job))?);
        Ok(())
    }

    fn is_reached(&mut self) -> Result<bool, LabError> {
        let run = self.run.as_mut().ok_or_else(not_prepared)?;
        let Some(change) = &mut run.change else { return Ok(true) };
        let is_seen = change.is_seen(&run.pods, &run.namespace.name)?;
        if is_seen {
            run.change = None;
        }
        Ok(is_seen)
    }

    fn observe(&mut self, observers: &[&str]) -> Result<Option<Box<dyn Afar>>, LabError> {
        let run = self.run.as_ref().ok_or_else(not_prepared)?;
        let observing = Observing::start(&self.cluster, &run.pods.api, &run.started, observers)?;
        Ok(observing.map(|observing| Box::new(observing) as Box<dyn Afar>))
    }

    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError> {
        if launch.endpoint.name != BUILTIN {
            let why = format!(
                "the image of the pods has no endpoint but `{BUILTIN}`, so the lab `{}` cannot run `{}` yet",
                INFO.name, launch.endpoint.name
            );
            return Ok(Box::new(Unsupported { why }));
        }
        let servers = servers(launch.job).map_err(LabError)?;
        let run = self.run.as_mut().ok_or_else(not_prepared)?;
        let of_client = place::client(launch.job, launch.number);
        let pod = match launch.role {
            Role::Client => of_client.as_str(),
            Role::Sidecar(_) => return Err(LabError(format!("the lab `{}` has no sidecars", INFO.name))),
            Role::ControlPlane => return Err(LabError(format!("the lab `{}` has no control planes", INFO.name))),
            Role::Server => {
                servers.get(launch.number as usize).map(|(name, _)| name.as_str()).ok_or_else(not_prepared)?
            }
        };
        let host = run.pods.hosts.get_mut(pod).ok_or_else(not_prepared)?;
        let process = PodProcess::start(&self.cluster, &run.pods.api, pod, host, launch)?;
        run.started.push(Started { pod: pod.to_owned(), role: launch.role, spec: launch.spec.to_owned() });
        Ok(Box::new(process))
    }
}
