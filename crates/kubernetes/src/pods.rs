//! The pods of a run: made once, looked after before each trial, replaced where one was lost.

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use k8s_openapi::api::core::v1::{Node as ApiNode, NodeStatus, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::Value;
use wirelab_model::event::Configured;

use crate::agent::{Facts, SUBCOMMAND};
use crate::call::output;
use crate::cluster::{Cluster, is_missing};
use crate::names::{self, CLIENT, NODE_LABEL, PROGRAM, RUN, ZONE_LABEL};
use crate::objects::{Common, serving};
use crate::place::{Node, candidates};
use crate::state::{self, Loss};
use wirelab_lab::LabError;

/// How long pods may take to be ready: an image may have to be pulled.
const STARTING: Duration = Duration::from_secs(180);

/// How long a pod may take to go, beyond its grace.
const GOING: Duration = Duration::from_secs(60);

/// How long the cluster may take to miss a node: it believes in one that says nothing for some 50 s.
const MISSING: Duration = Duration::from_secs(90);

/// How often the API server is asked meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// How long a command of the agent may take that only looks.
const LOOKING: Duration = Duration::from_secs(20);

/// A pod that is ready.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(crate) address: IpAddr,
    /// That of its node, within the cluster.
    pub(crate) node: Option<IpAddr>,
    /// Whether clients are to find it.
    is_serving: bool,
    /// What is to be known of it: its node, its zone, its MTU and so on.
    pub(crate) facts: Configured,
    /// What it was sent already: path, length and time of change.
    pub(crate) sent: HashSet<(PathBuf, u64, Option<std::time::SystemTime>)>,
}

/// The pods of a run.
pub(crate) struct Pods {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) api: Api<Pod>,
    pub(crate) hosts: IndexMap<String, Host>,
    /// The nodes that the client may be on.
    nodes: Vec<String>,
}

impl Pods {
    /// Makes all of them, and waits until they are ready.
    ///
    /// # Errors
    /// If the cluster has no place for them, or they do not become ready; absent: `stop` was raised.
    pub(crate) fn make(cluster: &Arc<Cluster>, common: &Common<'_>, stop: &AtomicBool) -> Result<Self, LabError> {
        let nodes = nodes(cluster)?;
        let places: BTreeSet<_> = common.layout.servers.values().cloned().collect();
        let nodes = candidates(&nodes, common.layout.client_nodes.as_ref(), &places).map_err(LabError)?;
        let api = Api::namespaced(cluster.client.clone(), common.namespace);
        let mut pods = Self { cluster: Arc::clone(cluster), api, hosts: IndexMap::new(), nodes };
        pods.start(&all(common), common, stop)?;
        Ok(pods)
    }

    /// Replaces those of these pods that were lost since.
    ///
    /// # Errors
    /// If they cannot be replaced.
    pub(crate) fn heal(&mut self, names: &[String], common: &Common<'_>) -> Result<(), LabError> {
        let mut lost = self.lost(names, common.namespace)?;
        let deadline = Instant::now() + MISSING;
        let is_doubtful = self.cluster.doubt.swap(false, Ordering::Relaxed);
        while let Some(why) = is_doubtful.then(|| self.silence(names, &lost)).flatten() {
            if Instant::now() > deadline {
                self.cluster.doubt.store(true, Ordering::Relaxed);
                return Err(LabError(format!("{why}, for {MISSING:?} now; is its node up?")));
            }
            std::thread::sleep(ASK_EVERY);
            lost = self.lost(names, common.namespace)?;
        }
        if lost.iter().any(|name| name == CLIENT) {
            // The new one may come to another node, from which all others are not where they have to be.
            lost = all(common);
        }
        for name in &lost {
            self.remove(name)?;
        }
        if lost.is_empty() { Ok(()) } else { self.start(&lost, common, &AtomicBool::new(false)) }
    }

    /// Lets clients find these servers and no others, as far as it is up to labels: from here on the cluster takes its time.
    ///
    /// # Errors
    /// If it refuses.
    pub(crate) fn serve(&mut self, names: &[String]) -> Result<(), LabError> {
        for (name, host) in &mut self.hosts {
            let is_serving = names.contains(name);
            if host.is_serving != is_serving {
                let attempt = format!("changing the label of the pod {name}");
                let change = Patch::Merge(serving(is_serving));
                self.cluster.ask(&attempt, self.api.patch(name, &PatchParams::default(), &change))?;
                host.is_serving = is_serving;
            }
        }
        Ok(())
    }

    /// Those of these pods that no longer work, as far as the cluster knows.
    fn lost(&self, names: &[String], run: &str) -> Result<Vec<String>, LabError> {
        let there = match self.list(run) {
            Ok(there) => there,
            Err(_) => {
                self.cluster.await_answer()?;
                self.list(run)?
            }
        };
        let works = |name: &String| {
            there.iter().any(|pod| pod.metadata.name.as_ref() == Some(name) && state::address(pod).is_some())
        };
        Ok(names.iter().filter(|name| !works(name)).cloned().collect())
    }

    /// Why one of these pods, besides those that are lost, does not answer. Absent: all do.
    fn silence(&self, names: &[String], lost: &[String]) -> Option<String> {
        let command = [PROGRAM, SUBCOMMAND, "look"];
        let ask = |name: &String| {
            output(&self.cluster, &self.api, name, &command, Vec::new(), Instant::now() + LOOKING).err()
        };
        let LabError(why) = names.iter().filter(|name| !lost.contains(name)).find_map(ask)?;
        Some(format!("a pod that works as far as the cluster knows does not answer: {why}"))
    }

    fn list(&self, run: &str) -> Result<Vec<Pod>, LabError> {
        let all = ListParams::default().labels(&format!("{RUN}={run}"));
        Ok(self.cluster.ask("listing the pods of the run", self.api.list(&all))?.items)
    }

    fn remove(&mut self, name: &str) -> Result<(), LabError> {
        self.hosts.shift_remove(name);
        // What is lost has nothing left to do.
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        let deadline = Instant::now() + GOING;
        let attempt = format!("removing the lost pod {name}");
        loop {
            let removed = async {
                match self.api.delete(name, &at_once).await {
                    Err(error) if is_missing(&error) => Ok(()),
                    other => other.map(drop),
                }
            };
            self.cluster.ask(&attempt, removed)?;
            if self.cluster.ask(&attempt, self.api.get_opt(name))?.is_none() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(LabError(format!("{attempt}: it is still there after {GOING:?}; is its node up?")));
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    /// Of several clients on the same node one, seen from which things are as from the others.
    pub(crate) fn lookouts(&self, clients: &[String]) -> Vec<String> {
        let mut nodes = HashSet::new();
        let node = |name: &String| self.hosts.get(name).and_then(|host| host.facts.get("node")).map(Value::to_string);
        clients.iter().filter(|name| nodes.insert(node(name))).cloned().collect()
    }

    /// First those by which the others are placed: further clients keep away from servers, which the scheduler has to know of by then.
    fn start(&mut self, names: &[String], common: &Common<'_>, stop: &AtomicBool) -> Result<(), LabError> {
        let is_placing = |name: &&String| *name == CLIENT || common.layout.servers.contains_key(*name);
        let (placing, placed): (Vec<_>, Vec<_>) = names.iter().partition(is_placing);
        [placing, placed]
            .into_iter()
            .filter(|names| !names.is_empty())
            .try_for_each(|names| self.start_all(&names, common, stop))
    }

    fn start_all(&mut self, names: &[&String], common: &Common<'_>, stop: &AtomicBool) -> Result<(), LabError> {
        for name in names {
            let pod = match common.layout.servers.get(*name) {
                Some(place) => common.server(name, place),
                None if *name == CLIENT => common.client(&self.nodes),
                None => common.further_client(name),
            };
            let attempt = format!("making the pod {name}");
            self.cluster.ask(&attempt, self.api.create(&PostParams::default(), &pod))?;
        }
        let deadline = Instant::now() + STARTING;
        loop {
            let pods = self.list(common.namespace)?;
            let ours = |name: &&String| pods.iter().find(|pod| pod.metadata.name.as_ref() == Some(*name));
            let mut ready = Vec::new();
            for name in names {
                let Some(pod) = ours(name) else {
                    return Err(LabError(format!(
                        "the pod {name} was deleted while it started; who deletes pods here?"
                    )));
                };
                if let Some(why) = state::hopeless(pod) {
                    return Err(LabError(format!(
                        "the pod {name} cannot start: {why}{}",
                        image_remedy(&why, common.image)
                    )));
                }
                ready.extend(state::address(pod).map(|address| ((*name).clone(), address, pod.clone())));
            }
            if ready.len() == names.len() {
                return ready.into_iter().try_for_each(|(name, address, pod)| self.welcome(&name, &address, &pod));
            }
            if stop.load(Ordering::Relaxed) {
                return Err(LabError("interrupted while pods were started".to_owned()));
            }
            if Instant::now() > deadline {
                let late = names.iter().filter(|name| !ready.iter().any(|(is, ..)| is == **name));
                let late: Vec<_> = late
                    .map(|name| format!("{name} ({})", ours(name).map(state::waits_for).unwrap_or_default()))
                    .collect();
                return Err(LabError(format!("pods are not ready after {STARTING:?}: {}", late.join(", "))));
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    /// Learns what is to be known of a new pod.
    fn welcome(&mut self, name: &str, address: &str, pod: &Pod) -> Result<(), LabError> {
        let address =
            address.parse().map_err(|_| LabError(format!("the pod {name} has `{address}`, which is no address")))?;
        let command = [PROGRAM, SUBCOMMAND, "look"];
        let said = output(&self.cluster, &self.api, name, &command, Vec::new(), Instant::now() + LOOKING)?;
        let facts: Facts = serde_json::from_slice(&said).map_err(|error| {
            LabError(format!(
                "the agent in the pod {name} is not understood: {error}; is the image of another version?"
            ))
        })?;
        let own = env!("CARGO_PKG_VERSION");
        if facts.wirelab != own {
            return Err(LabError(format!(
                "the image has wirelab {}, this is {own}; name an image of the same version in {}",
                facts.wirelab,
                crate::IMAGE
            )));
        }
        let mut known = Configured::new();
        let mut know = |fact: &str, value: Option<String>| {
            if let Some(value) = value {
                known.insert(fact.to_owned(), value.into());
            }
        };
        let node_name = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        let nodes: Api<ApiNode> = Api::all(self.cluster.client.clone());
        let node = self.cluster.ask(&format!("asking about the node {node_name}"), nodes.get(&node_name))?;
        let internal = |status: &NodeStatus| {
            let mut addresses = status.addresses.iter().flatten();
            addresses.find(|address| address.type_ == "InternalIP")?.address.parse().ok()
        };
        let of_node = node.status.as_ref().and_then(internal);
        let info = node.status.and_then(|status| status.node_info);
        know("node", Some(node_name));
        know("zone", node.metadata.labels.and_then(|labels| labels.get(ZONE_LABEL).cloned()));
        know("kubelet", info.as_ref().map(|info| info.kubelet_version.clone()));
        know("kernel", info.as_ref().map(|info| info.kernel_version.clone()));
        know("container_runtime", info.map(|info| info.container_runtime_version));
        know("image", state::image(pod));
        know("kubernetes", Some(self.cluster.version.clone()));
        if let Some(mtu) = facts.mtu {
            known.insert("mtu".to_owned(), mtu.into());
        }
        let host = Host { address, node: of_node, is_serving: false, facts: known, sent: HashSet::new() };
        self.hosts.insert(name.to_owned(), host);
        Ok(())
    }
}

/// The pods of a run by name, the client's first, because the others are placed by where it is, and those of further clients last.
fn all(common: &Common<'_>) -> Vec<String> {
    let further = (1..common.layout.clients).map(names::client);
    [CLIENT.to_owned()].into_iter().chain(common.layout.servers.keys().cloned()).chain(further).collect()
}

/// What became of a pod, asked until the cluster knows, or long enough.
pub(crate) fn post_mortem(cluster: &Cluster, api: &Api<Pod>, name: &str, patience: Duration) -> Option<Loss> {
    let deadline = Instant::now() + patience;
    loop {
        let gone = |what: String| Some(Loss { what, is_memory: false });
        match cluster.ask("asking about the pod", api.get_opt(name)) {
            Ok(None) => return gone("it was deleted".to_owned()),
            Ok(Some(pod)) => {
                if let Some(loss) = state::loss(&pod) {
                    return Some(loss);
                }
            }
            Err(LabError(why)) => return gone(format!("its state is unknown: {why}")),
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(ASK_EVERY);
    }
}

fn image_remedy(why: &str, image: &str) -> String {
    if why.contains("mage") {
        format!(
            "; the image is `{image}`: have it on the nodes or in a registry, or name another one in {}",
            crate::IMAGE
        )
    } else {
        String::new()
    }
}

/// The nodes that take pods.
fn nodes(cluster: &Cluster) -> Result<Vec<Node>, LabError> {
    let api: Api<ApiNode> = Api::all(cluster.client.clone());
    let nodes = cluster.ask("listing the nodes", api.list(&ListParams::default()))?;
    Ok(nodes.items.iter().filter_map(node).collect())
}

fn node(node: &ApiNode) -> Option<Node> {
    let spec = node.spec.as_ref()?;
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let is_ready = conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let repels = spec.taints.iter().flatten().any(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"));
    let label = |key: &str| node.metadata.labels.as_ref()?.get(key).cloned();
    let takes_pods = is_ready && !repels && spec.unschedulable != Some(true);
    let labels = node.metadata.labels.clone().unwrap_or_default();
    Some(Node { name: label(NODE_LABEL)?, zone: label(ZONE_LABEL), labels }).filter(|_| takes_pods)
}
