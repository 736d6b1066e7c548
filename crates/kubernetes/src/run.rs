//! The objects of a run in the cluster.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use wirelab_model::network::Address;
use wirelab_model::plan::{Job, Trial};

use crate::arena::PodArena;
use crate::cluster::Cluster;
use crate::layout::Layout;
use crate::nodes::NodeAgents;
use crate::objects::Common;
use crate::place::servers;
use crate::pods::{Host, Pods};
use crate::{INFO, Kubernetes, clean};
use wirelab_lab::internet::own_servers;
use wirelab_lab::{Addresses, Arena, LabError, PreparedLab};

/// The objects of a run in the cluster. Drop removes them.
pub(crate) struct Run<'a> {
    pub(crate) lab: &'a Kubernetes,
    pub(crate) pods: Pods,
    /// The service's address, if the run has one.
    pub(crate) service: Option<IpAddr>,
    pub(crate) node_agents: NodeAgents,
    pub(crate) layout: Layout,
    pub(crate) folder: PathBuf,
    /// The folder of the endpoints' sockets, and the port for Prometheus.
    pub(crate) metrics: Option<(PathBuf, u16)>,
    /// Why the change of servers in a failed trial could not be ended.
    pub(crate) unfinished: Option<LabError>,
    pub(crate) namespace: Owned,
}

/// A namespace that is removed on drop, with everything in it.
pub(crate) struct Owned {
    pub(crate) name: String,
    pub(crate) cluster: Arc<Cluster>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // A drop cannot report errors; `wirelab labs clean` finds what is left.
        let _ = clean::delete(&self.cluster, &self.name);
    }
}

impl Run<'_> {
    /// The values that all objects of the run share, and the pods.
    pub(crate) fn parts(&mut self) -> (Common<'_>, &mut Pods, &mut NodeAgents) {
        let Self { lab, pods, node_agents, layout, folder, metrics, namespace, .. } = self;
        let metrics = metrics.as_ref().map(|(sockets, port)| (&**sockets, *port));
        (Common { namespace: &namespace.name, image: &lab.image, folder, layout, metrics }, pods, node_agents)
    }

    /// The host of the pod with this name.
    pub(crate) fn host(&self, pod: &str) -> Result<&Host, LabError> {
        self.pods.hosts.get(pod).ok_or_else(|| LabError::cluster(format!("the run has no pod {pod}")))
    }

    /// The addresses of a job's servers, in order.
    pub(crate) fn servers(&self, job: &Job) -> Result<Vec<IpAddr>, LabError> {
        let names = servers(job)?;
        names.iter().map(|(name, _)| Ok(self.host(name)?.address)).collect()
    }

    /// The address that clients connect to.
    pub(crate) fn connect(&self, job: &Job) -> Result<IpAddr, LabError> {
        let (first, _) = servers(job)?.swap_remove(0);
        let host = self.host(&first)?;
        match own_servers(INFO.name, job)?.reach.address() {
            Address::Server | Address::Headless => Ok(host.address),
            Address::Service => self.service.ok_or_else(|| LabError::cluster("the run has no service")),
            Address::NodePort => host.node.ok_or_else(|| LabError::cluster("the servers' node has no address")),
        }
    }
}

impl PreparedLab for Run<'_> {
    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        let servers = self.servers(job)?;
        if job.sidecar().is_some() {
            // Connections to a server must pass its sidecar.
            let localhost = IpAddr::from([127, 0, 0, 1]);
            return Ok(Addresses { servers: vec![localhost; servers.len()], connect: localhost });
        }
        Ok(Addresses { servers, connect: self.connect(job)? })
    }

    fn open<'a>(&'a mut self, _: &Trial, job: &'a Job) -> Result<Box<dyn Arena + 'a>, LabError> {
        Ok(Box::new(PodArena::open(self, job)?))
    }
}
