//! The lab on a Kubernetes cluster: client and servers in pods of a namespace that exists for the run only.
//!
//! Pods live as long as the run. Endpoints are started in them for each trial through the API server, which also
//! carries all events, commands and files (docs/decisions/0009).

mod affinity;
mod arena;
mod candidates;
mod change;
pub mod clean;
mod cluster;
mod distance;
mod exec;
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
mod remote;
mod rights;
mod run;
mod service;
mod state;
mod watch;
mod yaml;

use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use wirelab_model::network::Network;
use wirelab_model::placement::Distance;
use wirelab_model::plan::Job;
use wirelab_model::settings::Settings;
use wirelab_model::warning::Warning;

use crate::cluster::Cluster;
use crate::layout::Layout;
use crate::nodes::NodeAgents;
use crate::objects::Common;
use crate::owner::Owner;
use crate::place::servers;
use crate::pods::Pods;
use crate::run::{Owned, Run};
use wirelab_lab::guard::Guard;
use wirelab_lab::{Lab, LabError, LabInfo, Preparation, PreparedLab};

pub use rights::{lacking, rbac};

/// The lab's entry in `wirelab labs`.
pub static INFO: LabInfo = LabInfo {
    name: "kubernetes",
    summary: "Client and servers in pods of the Kubernetes cluster that the kubeconfig reaches, on one node, in one zone or in two.",
    needs: Some(
        "a kubeconfig, the rights that `wirelab labs rbac` prints, and an image of wirelab that the nodes can get",
    ),
    starts_endpoints: true,
    defaults: || Settings {
        network: Some(Network::Overlay),
        placement: Some(Distance::SameNode.placement().to_owned()),
        ..Settings::default()
    },
    permits: |_| true,
    supports: |job| servers(job).map(drop),
    open: |opening| Ok(Box::new(Kubernetes::start(opening.program)?)),
};

/// The environment variable with the image of the pods.
pub const IMAGE: &str = "WIRELAB_KUBERNETES_IMAGE";

/// The image without that variable: the result of `make image`.
pub const DEFAULT_IMAGE: &str = "localhost/wirelab:dev";

/// The lab.
pub struct Kubernetes {
    cluster: Arc<Cluster>,
    image: String,
    /// Whether privileged pods on nodes are allowed.
    has_node_agents: bool,
    // Dropped last: endpoints must end before the guard.
    _guard: Arc<Guard>,
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
        Ok(Self { cluster, image, has_node_agents, _guard: guard })
    }
}

impl Lab for Kubernetes {
    fn info(&self) -> &'static LabInfo {
        &INFO
    }

    fn warnings(&self) -> Vec<Warning> {
        if self.has_node_agents { vec![Warning::NodeAgents] } else { Vec::new() }
    }

    fn check(&self, job: &Job) -> Result<(), LabError> {
        servers(job)?;
        if job.is_in_linkerd() { mesh::installed(&self.cluster) } else { Ok(()) }
    }

    fn prepare<'a>(&'a mut self, preparation: &Preparation<'_>) -> Result<Box<dyn PreparedLab + 'a>, LabError> {
        let Preparation { jobs, folder, stop, metrics } = *preparation;
        let layout = Layout::of(jobs)?;
        if !layout.meshed.is_empty() {
            // A run may be resumed after Linkerd was removed.
            mesh::installed(&self.cluster)?;
        }
        if folder.to_string_lossy().contains(':') {
            let why = "no folder with a colon in its path can be mounted in a pod; use another one with --out";
            return Err(LabError::cluster(folder.display().to_string()).because(why));
        }
        let name = names::namespace();
        let api: Api<Namespace> = Api::all(self.cluster.client.clone());
        let namespace = objects::namespace(&name, folder, &Owner::this(), self.has_node_agents);
        let attempt = format!("making the namespace {name}");
        self.cluster.ask(&attempt, api.create(&PostParams::default(), &namespace))?;
        let namespace = Owned { name, cluster: Arc::clone(&self.cluster) };
        let common = Common { namespace: &namespace.name, image: &self.image, folder, layout: &layout, metrics };
        let pods = Pods::make(&self.cluster, &common, stop)?;
        let service = service::make(&pods, &common)?;
        tracing::info!(namespace = namespace.name, image = self.image, "pods and services created");
        let folder = folder.to_owned();
        let metrics = metrics.map(|(sockets, port)| (sockets.to_owned(), port));
        Ok(Box::new(Run {
            lab: self,
            pods,
            service,
            node_agents: NodeAgents::default(),
            layout,
            folder,
            metrics,
            unfinished: None,
            namespace,
        }))
    }
}
