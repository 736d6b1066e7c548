//! A pod as a host of the agent, reached by exec through the API server.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use crate::cluster::Cluster;
use crate::exec::Exec;
use crate::names::PROGRAM;
use crate::pods::post_mortem;
use wirelab_agent::{Remote, SUBCOMMAND, State, Stream};
use wirelab_lab::LabError;

/// A pod of a run.
pub(crate) struct PodRemote {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) api: Api<Pod>,
    pub(crate) pod: String,
    /// Its name for messages.
    pub(crate) name: String,
    /// Its node; `None` while it is not known.
    pub(crate) node: Option<String>,
}

impl Remote for PodRemote {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, words: &[&str]) -> Result<Box<dyn Stream>, LabError> {
        let command = [&[PROGRAM, SUBCOMMAND][..], words].concat();
        Ok(Box::new(Exec::start(&self.cluster, &self.api, &self.pod, &command)?))
    }

    fn state(&self, timeout: Duration) -> State {
        match post_mortem(&self.cluster, &self.api, &self.pod, timeout) {
            Some(loss) => State::Lost(loss),
            None => {
                let node = self.node.as_deref().unwrap_or("a node without a name");
                State::Works(format!("for the cluster {} on {node} still runs", self.name))
            }
        }
    }

    fn doubt(&self) {
        self.cluster.doubt.store(true, Ordering::Relaxed);
    }

    fn remedy(&self, endpoint: &str) -> String {
        format!("`make image ENDPOINTS={endpoint}` makes an image of the pods that has it (docs/cluster.md)")
    }
}
