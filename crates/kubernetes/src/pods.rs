//! The pods of a run: created once, checked before each trial, and replaced if lost.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use k8s_openapi::api::core::v1::{Node as ApiNode, NodeStatus, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use wirelab_model::event::Configured;
use wirelab_model::placement::Spot;

use crate::candidates::{Node, candidates};
use crate::cluster::{Cluster, is_missing};
use crate::distance::{Place, proven};
use crate::mesh;
use crate::names::{self, CLIENT, NODE_LABEL, RUN, ZONE_LABEL};
use crate::objects::Common;
use crate::plumbing;
use crate::pod::serving;
use crate::remote::PodRemote;
use crate::state::{self, Hopeless};
use crate::watch::{Only, Watch};
use wirelab_agent::{Facts, Loss, Sent, output};
use wirelab_lab::{LabError, many};

/// Time-out of pods' readiness, and its increment for each pod: an image may have to be pulled, and a node starts only
/// one or two pods per second.
const STARTING: Duration = Duration::from_secs(180);
const STARTING_EACH: Duration = Duration::from_millis(500);

/// Time-out of a pod's removal, beyond its grace period.
const GOING: Duration = Duration::from_secs(60);

/// How long the cluster may take to notice a lost node; usually about 50 s.
const MISSING: Duration = Duration::from_secs(90);

/// Interval of checks whether a pod answers again.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// How often a wait checks `stop`.
const SLICE: Duration = Duration::from_millis(100);

/// Time-out of the agent's command `look`.
const LOOKING: Duration = Duration::from_secs(20);

/// A pod that is ready.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(crate) address: IpAddr,
    /// The address of its node within the cluster.
    pub(crate) node: Option<IpAddr>,
    /// The pod's unique id; never reused.
    pub(crate) uid: String,
    /// Whether clients are routed to it.
    is_serving: bool,
    /// The pod's real position.
    pub(crate) spot: Spot,
    /// Facts for the trial's record: node, zone, MTU and others.
    pub(crate) facts: Configured,
    /// Files that the pod already has.
    pub(crate) sent: Sent,
}

/// The pods of a run.
pub(crate) struct Pods {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) api: Api<Pod>,
    pub(crate) hosts: IndexMap<String, Host>,
    /// The nodes where the first client may run.
    nodes: Vec<String>,
}

impl Pods {
    /// Creates all pods and waits until they are ready.
    ///
    /// # Errors
    /// If the cluster has no place for them, they do not become ready, or `stop` was set.
    pub(crate) fn make(cluster: &Arc<Cluster>, common: &Common<'_>, stop: &AtomicBool) -> Result<Self, LabError> {
        let nodes = nodes(cluster)?;
        let places: BTreeSet<_> = common.layout.servers.values().cloned().collect();
        let nodes = candidates(&nodes, common.layout.client_nodes.as_ref(), &places)?;
        let api = Api::namespaced(cluster.client.clone(), common.namespace);
        let mut pods = Self { cluster: Arc::clone(cluster), api, hosts: IndexMap::new(), nodes };
        pods.start(&all(common), common, stop)?;
        Ok(pods)
    }

    /// Replaces those of these pods that were lost.
    ///
    /// # Errors
    /// If they cannot be replaced.
    pub(crate) fn heal(&mut self, names: &[String], common: &Common<'_>) -> Result<(), LabError> {
        let mut watch = self.watch_patiently(common.namespace)?;
        let mut lost = lost_among(names, watch.objects());
        let deadline = Instant::now() + MISSING;
        let is_doubtful = self.cluster.doubt.swap(false, Ordering::Relaxed);
        while let Some(why) = is_doubtful.then(|| self.silence(names, &lost)).flatten() {
            if Instant::now() > deadline {
                self.cluster.doubt.store(true, Ordering::Relaxed);
                return Err(LabError::cluster(format!("{why}, for {MISSING:?} now")).remedy("is its node up?"));
            }
            // The watch reports that the cluster has lost the pod. That the pod answers again shows only by asking it.
            if watch.change(deadline.min(Instant::now() + ASK_EVERY)).is_err() {
                watch = self.watch_patiently(common.namespace)?;
            }
            lost = lost_among(names, watch.objects());
        }
        if lost.iter().any(|name| name == CLIENT) {
            // The new client's pod may be placed on another node, which invalidates the places of all other pods.
            lost = all(common);
        }
        if lost.is_empty() {
            return Ok(());
        }
        tracing::warn!(pods = lost.join(" "), "pods were lost; starting them again");
        self.remove(&lost, common.namespace)?;
        self.start(&lost, common, &AtomicBool::new(false))
    }

    /// Labels exactly these servers' pods as serving. The cluster then routes clients to them in its own time.
    ///
    /// # Errors
    /// If the cluster refuses.
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

    /// Verifies that servers are at their places, as seen from each client.
    ///
    /// # Errors
    /// If a server is not.
    pub(crate) fn prove_places(&self, clients: &[String], servers: &[(String, Place)]) -> Result<(), LabError> {
        proven(clients, servers, |name| self.hosts.get(name).map(|host| &host.spot))
    }

    /// Verifies that these pods are in the mesh, or in no mesh.
    ///
    /// # Errors
    /// If a pod is not as required.
    pub(crate) fn prove_mesh(&self, names: &[String], is_meshed: bool, run: &str) -> Result<(), LabError> {
        // A pod's containers never change, but only the cluster knows whether they are ready.
        let has_proxy = |name: &String| self.hosts.get(name).is_some_and(|host| host.facts.contains_key("proxy"));
        if !is_meshed && !names.iter().any(has_proxy) {
            return Ok(());
        }
        let watch = self.watch(run)?;
        names.iter().try_for_each(|name| {
            let pod = watch.objects().get(name);
            let pod = pod.ok_or_else(|| {
                LabError::cluster(format!("the pod {name} was deleted")).remedy("who deletes pods here?")
            })?;
            mesh::proven(pod, is_meshed)
                .map_err(|why| LabError::cluster(format!("the pod {name} is not what its cell says")).because(why))
        })
    }

    /// Those of these pods that no longer work, according to the cluster.
    ///
    /// # Errors
    /// If the cluster does not answer.
    pub(crate) fn lost(&self, names: &[String], run: &str) -> Result<Vec<String>, LabError> {
        Ok(lost_among(names, self.watch_patiently(run)?.objects()))
    }

    /// The reason why one of these pods, except lost ones, does not answer; `None` if all answer.
    fn silence(&self, names: &[String], lost: &[String]) -> Option<String> {
        let asked: Vec<_> = names.iter().filter(|name| !lost.contains(name)).collect();
        let answers =
            many::each(asked, |name| output(&self.remote(name), &["look"], Vec::new(), Instant::now() + LOOKING));
        let why = answers.err()?;
        Some(format!("a pod that works as far as the cluster knows does not answer: {why}"))
    }

    /// Watches all pods of the run.
    fn watch(&self, run: &str) -> Result<Watch<Pod>, LabError> {
        Watch::begin(&self.cluster, &self.api, "the pods of the run", Only::Labels(format!("{RUN}={run}")))
    }

    /// As [`Pods::watch`], but waits for the API server if it is away for a short time.
    fn watch_patiently(&self, run: &str) -> Result<Watch<Pod>, LabError> {
        self.watch(run).or_else(|_| {
            self.cluster.await_answer()?;
            self.watch(run)
        })
    }

    /// Removes lost pods and waits until they are gone.
    fn remove(&mut self, names: &[String], run: &str) -> Result<(), LabError> {
        self.hosts.retain(|name, _| !names.contains(name));
        // Lost pods need no grace period.
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        let attempt = |name: &String| format!("removing the lost pod {name}");
        many::each(names.iter().collect(), |name| {
            let removed = async {
                match self.api.delete(name, &at_once).await {
                    Err(error) if is_missing(&error) => Ok(()),
                    other => other.map(drop),
                }
            };
            self.cluster.ask(&attempt(name), removed)
        })?;
        let mut watch = self.watch(run)?;
        let is_gone = |pods: &BTreeMap<String, Pod>| (!names.iter().any(|name| pods.contains_key(name))).then_some(());
        if watch.find(Instant::now() + GOING, is_gone)?.is_some() {
            return Ok(());
        }
        let there = names.iter().find(|name| watch.objects().contains_key(*name));
        let attempt = there.map(attempt).unwrap_or_default();
        Err(LabError::cluster(format!("{attempt}: it is still there after {GOING:?}")).remedy("is its node up?"))
    }

    /// The pod with this name as a host of the agent.
    pub(crate) fn remote(&self, name: &str) -> PodRemote {
        PodRemote {
            cluster: Arc::clone(&self.cluster),
            api: self.api.clone(),
            pod: name.to_owned(),
            name: format!("the pod {name}"),
            node: self.node_of(name),
        }
    }

    /// The node of a pod.
    pub(crate) fn node_of(&self, name: &str) -> Option<String> {
        self.hosts.get(name)?.spot.node.clone()
    }

    /// One client per node. Routing is the same for all clients of a node.
    pub(crate) fn lookouts(&self, clients: &[String]) -> Vec<String> {
        let mut nodes = HashSet::new();
        clients.iter().filter(|name| nodes.insert(self.node_of(name))).cloned().collect()
    }

    /// Starts pods. Pods that others are placed relative to come first, one after the other: the scheduler places pods
    /// in order of creation and never moves them, so an early server might take the only node for the client. Further
    /// clients, possibly hundreds, must stay away from servers, which the scheduler has to know by then.
    fn start(&mut self, names: &[String], common: &Common<'_>, stop: &AtomicBool) -> Result<(), LabError> {
        let is_placing = |name: &&String| *name == CLIENT || common.layout.servers.contains_key(*name);
        let (placing, placed): (Vec<_>, Vec<_>) = names.iter().partition(is_placing);
        placing.iter().try_for_each(|name| self.create(&self.pod(name, common)))?;
        self.welcome_all(&placing, common, stop)?;
        many::each(placed.clone(), |name| self.create(&self.pod(name, common)))?;
        self.welcome_all(&placed, common, stop)
    }

    /// The specification of the pod with this name.
    fn pod(&self, name: &str, common: &Common<'_>) -> Pod {
        match (common.layout.servers.get(name), names::unmeshed(name)) {
            (Some(place), _) => common.server(name, place),
            (None, Some(outside)) => common.meshed_client(name, outside),
            (None, None) if name == CLIENT => common.client(&self.nodes),
            (None, None) => common.further_client(name),
        }
    }

    /// Waits until these pods are ready and records facts about them.
    fn welcome_all(&mut self, names: &[&String], common: &Common<'_>, stop: &AtomicBool) -> Result<(), LabError> {
        if names.is_empty() {
            return Ok(());
        }
        let ready = self.ready(names, common, stop)?;
        let nodes = all_nodes(&self.cluster)?;
        let network = plumbing::facts(&self.cluster, &nodes);
        let hosts = many::each(ready, |(name, address, pod)| {
            let mut host = self.welcome(&name, &address, &pod, &nodes)?;
            host.facts.extend(network.clone());
            Ok::<_, LabError>((name, host))
        })?;
        self.hosts.extend(hosts);
        Ok(())
    }

    /// Creates a pod.
    ///
    /// # Errors
    /// If the cluster refuses.
    pub(crate) fn create(&self, pod: &Pod) -> Result<(), LabError> {
        let attempt = format!("making the pod {}", pod.metadata.name.as_deref().unwrap_or_default());
        self.cluster.ask(&attempt, self.api.create(&PostParams::default(), pod)).map(drop)
    }

    /// Waits until these pods are ready; returns name, address and object of each.
    ///
    /// # Errors
    /// If a pod cannot start, is not ready in time, or `stop` was set.
    pub(crate) fn ready(
        &self,
        names: &[&String],
        common: &Common<'_>,
        stop: &AtomicBool,
    ) -> Result<Vec<(String, String, Pod)>, LabError> {
        let count = names.len() as u32;
        let limit = STARTING + STARTING_EACH * count;
        let deadline = Instant::now() + limit;
        let mut watch = self.watch(common.namespace)?;
        loop {
            let pods = watch.objects();
            let mut late = Vec::new();
            for name in names {
                let Some(pod) = pods.get(*name) else {
                    return Err(LabError::cluster(format!("the pod {name} was deleted while it started"))
                        .remedy("who deletes pods here?"));
                };
                if let Some(why) = state::hopeless(pod) {
                    return Err(cannot_start(name, &why, common.image));
                }
                if state::address(pod).is_none() {
                    late.push((*name, pod));
                }
            }
            if late.is_empty() {
                let ready = |name: &&String| {
                    let pod = pods.get(*name)?;
                    Some(((*name).clone(), state::address(pod)?, pod.clone()))
                };
                return Ok(names.iter().filter_map(ready).collect());
            }
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::interrupted("interrupted while pods were started"));
            }
            if Instant::now() > deadline {
                let late: Vec<_> =
                    late.into_iter().map(|(name, pod)| format!("{name} ({})", state::waits_for(pod))).collect();
                return Err(LabError::cluster(format!("pods are not ready after {limit:?}: {}", late.join(", "))));
            }
            watch.change(deadline.min(Instant::now() + SLICE))?;
        }
    }

    /// Reads the facts about a new pod.
    fn welcome(&self, name: &str, address: &str, pod: &Pod, nodes: &[ApiNode]) -> Result<Host, LabError> {
        let address = address
            .parse()
            .map_err(|_| LabError::cluster(format!("the pod {name} has `{address}`, which is no address")))?;
        let said = output(&self.remote(name), &["look"], Vec::new(), Instant::now() + LOOKING)?;
        let facts: Facts = serde_json::from_slice(&said).map_err(|error| {
            LabError::cluster(format!("the agent in the pod {name} is not understood"))
                .because(error)
                .remedy("is the image of another version?")
        })?;
        let own = env!("CARGO_PKG_VERSION");
        if facts.wirelab != own {
            return Err(LabError::cluster(format!("the image has wirelab {}, this is {own}", facts.wirelab))
                .remedy(format!("name an image of the same version in {}", crate::IMAGE)));
        }
        let mut known = Configured::new();
        let mut know = |fact: &str, value: Option<String>| {
            if let Some(value) = value {
                known.insert(fact.to_owned(), value.into());
            }
        };
        let node_name = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        let node = nodes.iter().find(|node| node.metadata.name.as_ref() == Some(&node_name));
        let node = node.ok_or_else(|| LabError::cluster(format!("the node {node_name} of the pod {name} is gone")))?;
        let internal = |status: &NodeStatus| {
            let mut addresses = status.addresses.iter().flatten();
            addresses.find(|address| address.type_ == "InternalIP")?.address.parse().ok()
        };
        let of_node = node.status.as_ref().and_then(internal);
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        let zone = node.metadata.labels.as_ref().and_then(|labels| labels.get(ZONE_LABEL).cloned());
        know("zone", zone.clone());
        know("kubelet", info.map(|info| info.kubelet_version.clone()));
        know("kernel", info.map(|info| info.kernel_version.clone()));
        know("container_runtime", info.map(|info| info.container_runtime_version.clone()));
        know("node", Some(node_name.clone()));
        know("image", state::image(pod));
        know("proxy", mesh::image(pod));
        know("kubernetes", Some(self.cluster.version.clone()));
        if let Some(mtu) = facts.mtu {
            known.insert("mtu".to_owned(), mtu.into());
        }
        let (uid, spot) = (pod.metadata.uid.clone().unwrap_or_default(), Spot { node: Some(node_name), zone });
        Ok(Host { address, node: of_node, uid, is_serving: false, spot, facts: known, sent: Sent::default() })
    }
}

/// The names of a run's pods in order of creation: the first client, because the others are placed relative to it, then
/// servers, then further clients.
fn all(common: &Common<'_>) -> Vec<String> {
    let layout = common.layout;
    let further = (1..layout.clients).map(names::client);
    let meshed = layout.meshed.iter().filter(|name| !layout.servers.contains_key(*name)).cloned();
    [CLIENT.to_owned()].into_iter().chain(layout.servers.keys().cloned()).chain(further).chain(meshed).collect()
}

/// Those of these pods that do not exist or are not ready.
fn lost_among(names: &[String], there: &BTreeMap<String, Pod>) -> Vec<String> {
    let works = |name: &&String| there.get(*name).is_some_and(|pod| state::address(pod).is_some());
    names.iter().filter(|name| !works(name)).cloned().collect()
}

/// Why a pod no longer works; `None` if the cluster reports no reason within `timeout`.
pub(crate) fn post_mortem(cluster: &Arc<Cluster>, api: &Api<Pod>, name: &str, limit: Duration) -> Option<Loss> {
    let deadline = Instant::now() + limit;
    let gone = |what: String| Loss { what, is_memory: false };
    let became = |pods: &BTreeMap<String, Pod>| match pods.get(name) {
        Some(pod) => state::loss(pod),
        None => Some(gone("it was deleted".to_owned())),
    };
    let watch = Watch::begin(cluster, api, &format!("the pod {name}"), Only::Name(name.to_owned()));
    let known = watch.and_then(|mut watch| match limit {
        Duration::ZERO => Ok(became(watch.objects())),
        _ => watch.find(deadline, became),
    });
    known.unwrap_or_else(|error| Some(gone(format!("its state is unknown: {error}"))))
}

fn cannot_start(pod: &str, why: &Hopeless, image: &str) -> LabError {
    let error = LabError::cluster(format!("the pod {pod} cannot start")).because(why.to_string());
    match why {
        Hopeless::Image { .. } => error.remedy(format!(
            "the image is `{image}`: have it on the nodes or in a registry, or name another one in {}",
            crate::IMAGE
        )),
        Hopeless::Lost(_) | Hopeless::Container { .. } => error,
    }
}

/// The nodes that accept pods.
fn nodes(cluster: &Cluster) -> Result<Vec<Node>, LabError> {
    Ok(all_nodes(cluster)?.iter().filter_map(node).collect())
}

fn all_nodes(cluster: &Cluster) -> Result<Vec<ApiNode>, LabError> {
    let api: Api<ApiNode> = Api::all(cluster.client.clone());
    Ok(cluster.ask("listing the nodes", api.list(&ListParams::default()))?.items)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_that_are_not_there_or_not_ready_are_lost() {
        let pod = |ready: &str| -> Pod {
            let conditions = json!([{ "type": "Ready", "status": ready }]);
            serde_json::from_value(
                json!({ "metadata": {}, "status": { "podIP": "10.0.0.1", "conditions": conditions } }),
            )
            .unwrap()
        };
        let there = [("client", pod("True")), ("near-0", pod("False")), ("other", pod("True"))];
        let there = there.map(|(name, pod)| (name.to_owned(), pod)).into();
        let names = ["client", "near-0", "near-1"].map(str::to_owned);
        assert_eq!(lost_among(&names, &there), ["near-0", "near-1"]);
    }
}
