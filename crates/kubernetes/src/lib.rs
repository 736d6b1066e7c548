//! The lab on a Kubernetes cluster: client and servers in pods of a namespace that is made for the run and removed with it.
//!
//! Pods live as long as the run; endpoints are started in them anew for each trial, through the API server, which is also the way
//! of everything that is said and of all files (docs/decisions/0009).

pub mod agent;
pub mod clean;
mod cluster;
mod exec;
mod files;
mod names;
mod objects;
mod owner;
mod place;
mod pods;
mod process;
mod rights;
mod service;
mod state;
mod unsupported;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use wirelab_model::network::{Address, CLUSTER_LAB};
use wirelab_model::plan::{Job, Trial};
use wirelab_model::warning::Warning;

use crate::agent::Kind;
use crate::cluster::Cluster;
use crate::names::CLIENT;
use crate::objects::Common;
use crate::owner::Owner;
use crate::place::{Layout, servers};
use crate::pods::Pods;
use crate::process::PodProcess;
use crate::unsupported::Unsupported;
use wirelab_lab::endpoints::BUILTIN;
use wirelab_lab::guard::Guard;
use wirelab_lab::loopback::no_timeline;
use wirelab_lab::{Addresses, Lab, LabError, LabInfo, Launch, Preparation, Process, Role};

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
    services: BTreeMap<(usize, bool), Option<IpAddr>>,
    layout: Layout,
    folder: PathBuf,
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
}

impl Lab for Kubernetes {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }

    fn check(&self, job: &Job) -> Result<(), LabError> {
        no_timeline(INFO.name, job)?;
        servers(job).map(drop).map_err(LabError)
    }

    fn prepare(&mut self, preparation: &Preparation<'_>) -> Result<(), LabError> {
        let Preparation { jobs, folder, stop } = *preparation;
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
        let common = Common { namespace: &namespace.name, image: &self.image, folder, layout: &layout };
        let pods = Pods::make(&self.cluster, &common, stop)?;
        let mut services = BTreeMap::new();
        for (set, headless) in &layout.services {
            services.insert((*set, *headless), service::make(&pods, &common, *set, *headless)?);
        }
        for (set, _) in layout.services.iter().filter(|(_, headless)| *headless) {
            let servers = layout.sets[*set].iter().filter_map(|name| Some(pods.hosts.get(name)?.address)).collect();
            service::await_name(&pods, &namespace.name, *set, &servers)?;
        }
        self.run = Some(Run { pods, services, layout, folder: folder.to_owned(), namespace });
        Ok(())
    }

    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        let run = self.run()?;
        let servers = run.addresses(job)?;
        let connect = match job.address {
            Address::Server | Address::Headless => servers[0],
            Address::Service => {
                let set = run.layout.set(job).ok_or_else(not_prepared)?;
                run.services.get(&(set, false)).copied().flatten().ok_or_else(not_prepared)?
            }
        };
        Ok(Addresses { servers, connect })
    }

    fn begin_trial(&mut self, _: &Trial, job: &Job) -> Result<(), LabError> {
        let image = self.image.clone();
        let run = self.run.as_mut().ok_or_else(not_prepared)?;
        let mut names: Vec<_> = servers(job).map_err(LabError)?.into_iter().map(|(name, _)| name).collect();
        // First, because the others are placed by where it is.
        names.insert(0, CLIENT.to_owned());
        let common = Common { namespace: &run.namespace.name, image: &image, folder: &run.folder, layout: &run.layout };
        run.pods.heal(&names, &common)
    }

    fn publish(&mut self, job: &Job, ports: &[u16]) -> Result<u16, LabError> {
        let run = self.run()?;
        let servers: BTreeSet<_> = run.addresses(job)?.into_iter().collect();
        let set = run.layout.set(job).ok_or_else(not_prepared)?;
        match job.address {
            Address::Server => {}
            Address::Headless => service::await_name(&run.pods, &run.namespace.name, set, &servers)?,
            Address::Service => {
                if ports.iter().any(|port| *port != ports[0]) {
                    return Err(LabError(format!("the servers of one service listen at different ports: {ports:?}")));
                }
                let address = self.addresses(job)?.connect;
                // What the servers speak, where the client asks with what they lack.
                let kind = Kind::of(job.server_protocol.unwrap_or(job.protocol));
                service::lead(&run.pods, &run.namespace.name, set, address, ports[0], &servers, kind)?;
            }
        }
        Ok(ports[0])
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
        let pod = match launch.role {
            Role::Client => CLIENT,
            Role::Server => {
                servers.get(launch.number as usize).map(|(name, _)| name.as_str()).ok_or_else(not_prepared)?
            }
        };
        let host = run.pods.hosts.get_mut(pod).ok_or_else(not_prepared)?;
        Ok(Box::new(PodProcess::start(&self.cluster, &run.pods.api, pod, host, launch)?))
    }
}
