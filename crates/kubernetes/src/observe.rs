//! Remote observers: agents in the pods of the endpoints, or on their nodes, read before and after the window and wait
//! inside it.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::time::Instant;

use wirelab_lab::{LabError, RemoteObserver, Role, many};
use wirelab_model::metric::{Side, Values};
use wirelab_model::missing::Missing;
use wirelab_observe::packets::ABOUT as PACKETS;
use wirelab_observe::places;
use wirelab_observe::sidecars::ABOUT as SIDECARS;

use crate::nodes::NodeAgents;
use crate::pods::Pods;
use wirelab_agent::{ANSWERING, NO_PEERS, Peers, Watcher};

/// The sides of metrics.
const SIDES: [Side; 3] = [Side::Client, Side::Server, Side::Link];

/// An endpoint that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) pod: String,
    pub(crate) role: Role,
    /// The path of the spec on the endpoint's command line.
    pub(crate) spec: String,
}

/// The endpoints of a trial and the means to observe them.
pub(crate) struct Scene<'a> {
    pub(crate) pods: &'a Pods,
    /// The endpoints of the trial.
    pub(crate) started: &'a [Started],
    /// The node agents, or why the run has none.
    pub(crate) on_nodes: Result<&'a NodeAgents, LabError>,
    /// Whether the trial uses the proxies of the cluster's mesh.
    pub(crate) is_in_linkerd: bool,
}

/// The agents that observe a trial.
#[derive(Default)]
pub(crate) struct Observing {
    agents: Vec<Agent>,
    /// The observers that run in the pods, and those on the nodes.
    beside: Vec<String>,
    on_nodes: Vec<String>,
    /// Observers that cannot run: name, affected sides, and reason.
    undone: Vec<(String, Vec<Side>, Missing)>,
}

/// The agent for all endpoints of a pod.
struct Agent {
    is_on_node: bool,
    /// The sides of the observed endpoints, and the link.
    sides: Vec<Side>,
    /// Whether it observes a server on the clients' node, whose packets to clients never leave the node.
    is_beside_clients: bool,
    watcher: Watcher,
}

impl Observing {
    /// Starts agents for the wanted observers on the trial's endpoints; `None` if no wanted observer can run remotely.
    ///
    /// # Errors
    /// If the cluster refuses.
    pub(crate) fn start(scene: &Scene<'_>, wanted: &[&str]) -> Result<Option<Self>, LabError> {
        let of = |known: &[&str]| -> Vec<String> {
            known.iter().filter(|name| wanted.contains(name)).map(|name| (*name).to_owned()).collect()
        };
        let mut observing =
            Self { beside: of(&places::PROCESS_OBSERVERS), on_nodes: of(&places::NODE_OBSERVERS), ..Self::default() };
        let places = places(scene.started);
        let names = observing.beside.join(",");
        if !names.is_empty() {
            observing.agents = many::each(places.iter().collect(), |(pod, played)| {
                let command = ["observe", &names];
                Agent::start(scene.pods, pod, false, &command, played)
            })?;
        }
        if !observing.on_nodes.is_empty() {
            match observing.start_on_nodes(scene, &places) {
                Ok(agents) => observing.agents.extend(agents),
                Err(error) => {
                    let why = Missing::Lab { reason: error.to_string() };
                    let nobody = observing.on_nodes.drain(..).map(|name| (name, SIDES.to_vec(), why.clone()));
                    observing.undone.extend(nobody);
                }
            }
        }
        if scene.is_in_linkerd && observing.beside.iter().any(|name| name == SIDECARS.name) {
            observing.undone.push((SIDECARS.name.to_owned(), SIDES.to_vec(), Missing::LinkerdContainers));
        }
        observing.hear_all();
        let is_idle = observing.agents.is_empty() && observing.undone.is_empty();
        Ok((!is_idle).then_some(observing))
    }

    /// Starts an agent on the node of each pod, for the pod's endpoints.
    fn start_on_nodes(&mut self, scene: &Scene<'_>, places: &Places<'_>) -> Result<Vec<Agent>, LabError> {
        let nodes = scene.on_nodes.as_ref().map_err(Clone::clone)?;
        let clients: Vec<_> =
            places.iter().filter(|(_, played)| sides(played).contains(&Side::Client)).map(|(pod, _)| *pod).collect();
        let has_several = clients.len() > 1;
        if has_several && self.on_nodes.iter().any(|name| name == PACKETS.name) {
            self.undone.push((PACKETS.name.to_owned(), vec![Side::Client], Missing::SeveralClients));
        }
        let agents = many::each(places.iter().collect(), |(pod, played)| {
            let is_server = sides(played).contains(&Side::Server);
            let is_wanted = |name: &&String| *name != PACKETS.name || is_server || !has_several;
            let names: Vec<_> = self.on_nodes.iter().filter(is_wanted).map(String::as_str).collect();
            if names.is_empty() {
                return Ok::<_, LabError>(None);
            }
            let host = scene.pods.hosts.get(*pod).ok_or_else(|| not_there(pod))?;
            let agent = nodes.on(&scene.pods.node_of(pod).unwrap_or_default())?;
            let peers = if is_server { peers(scene.pods, pod, &clients)? } else { None };
            let (names, word) =
                (names.join(","), peers.as_ref().map_or_else(|| NO_PEERS.to_owned(), ToString::to_string));
            let command = ["observe-node", &host.uid, &word, &names];
            let mut agent = Agent::start(scene.pods, agent, true, &command, played)?;
            agent.is_beside_clients = is_server && peers.is_none();
            Ok(Some(agent))
        })?;
        Ok(agents.into_iter().flatten().collect())
    }

    /// Sends a line to all agents and waits for their answers.
    fn say(&mut self, word: &str) {
        self.tell(word);
        self.hear_all();
    }

    fn tell(&self, word: &str) {
        for agent in &self.agents {
            agent.watcher.tell(word);
        }
    }

    fn hear_all(&mut self) {
        let deadline = Instant::now() + ANSWERING;
        for agent in &mut self.agents {
            agent.watcher.acknowledge(deadline);
        }
    }
}

/// The endpoints in each pod.
type Places<'a> = BTreeMap<&'a str, Vec<&'a Started>>;

fn places(started: &[Started]) -> Places<'_> {
    let mut places = Places::new();
    for one in started {
        places.entry(&*one.pod).or_default().push(one);
    }
    places
}

/// The sides of these endpoints, and the link.
fn sides(played: &[&Started]) -> Vec<Side> {
    let plays = |role| played.iter().any(|one| one.role == role);
    let sides = [(Side::Client, plays(Role::Client)), (Side::Server, plays(Role::Server)), (Side::Link, true)];
    sides.into_iter().filter(|(_, is_here)| *is_here).map(|(side, _)| side).collect()
}

fn not_there(pod: &str) -> LabError {
    LabError::cluster(format!("the pod {pod} is not there"))
}

/// The peers of a server's pod on other nodes; `None` if all clients are on its node.
fn peers(pods: &Pods, server: &str, clients: &[&str]) -> Result<Option<Peers>, LabError> {
    let host = |pod: &str| pods.hosts.get(pod).ok_or_else(|| not_there(pod));
    let server = host(server)?;
    let mut peers = Peers { own: server.address, clients: BTreeSet::new(), nodes: BTreeSet::new() };
    for client in clients {
        let client = host(client)?;
        if client.spot.node != server.spot.node {
            peers.clients.insert(client.address);
            peers.nodes.extend(client.node);
        }
    }
    Ok((!peers.clients.is_empty()).then_some(peers))
}

impl RemoteObserver for Observing {
    fn begin(&mut self) {
        self.say("begin");
    }

    fn end(&mut self) {
        self.say("end");
    }

    fn values(&mut self, window_ns: u64, requests: u64, bytes: u64) -> Values {
        self.tell(&format!("values {window_ns} {requests} {bytes}"));
        let deadline = Instant::now() + ANSWERING;
        let read: Vec<_> = self.agents.iter_mut().map(|agent| agent.values(deadline)).collect();
        let mut all = Values::new();
        for (names, is_on_node) in [(&self.beside, false), (&self.on_nodes, true)] {
            for side in SIDES {
                let here = self.agents.iter().zip(&read);
                let here = here.filter(|(agent, _)| agent.is_on_node == is_on_node && agent.sides.contains(&side));
                let places: Result<Vec<_>, _> = here.map(|(_, read)| read.clone()).collect();
                all.extend(match places {
                    Ok(places) => places::merge(side, names, &places),
                    Err(error) => places::all_missing(side, names, &Missing::Lab { reason: error.to_string() }),
                });
            }
        }
        for (name, sides, why) in &self.undone {
            all.extend(sides.iter().flat_map(|side| places::all_missing(*side, slice::from_ref(name), why)));
        }
        all
    }
}

impl Agent {
    fn start(
        pods: &Pods,
        pod: &str,
        is_on_node: bool,
        command: &[&str],
        played: &[&Started],
    ) -> Result<Self, LabError> {
        let endpoints = played.iter().map(|one| (one.role, one.spec.as_str()));
        let watcher = Watcher::start(&pods.remote(pod), command, endpoints)?;
        Ok(Self { is_on_node, sides: sides(played), is_beside_clients: false, watcher })
    }

    /// The answer to `values`.
    fn values(&mut self, deadline: Instant) -> Result<Values, LabError> {
        let mut values = self.watcher.values(deadline)?;
        if self.is_beside_clients {
            values.extend(places::all_missing(Side::Server, &[PACKETS.name.to_owned()], &Missing::OnClientNode));
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use wirelab_lab::Beside;

    use super::*;

    #[test]
    fn one_agent_observes_all_endpoints_in_its_pod_and_knows_their_sides() {
        let started = |pod: &str, role, spec: &str| Started { pod: pod.to_owned(), role, spec: spec.to_owned() };
        let all = [
            started("near-0", Role::Server, "/s0"),
            started("near-0", Role::Sidecar(Beside::Server), "/ss0"),
            started("client", Role::Client, "/c0"),
            started("client", Role::Client, "/c1"),
            started("client", Role::Sidecar(Beside::Clients), "/cs"),
        ];
        let places: Vec<_> = places(&all).into_iter().collect();
        let [client, server] = &places[..] else { panic!("{places:?}") };
        assert_eq!((client.0, sides(&client.1)), ("client", vec![Side::Client, Side::Link]));
        assert_eq!((server.0, sides(&server.1)), ("near-0", vec![Side::Server, Side::Link]));
        let specs = |played: &[&Started]| played.iter().map(|one| one.spec.clone()).collect::<Vec<_>>();
        assert_eq!(
            (specs(&client.1), specs(&server.1)),
            (["/c0", "/c1", "/cs"].map(str::to_owned).to_vec(), ["/s0", "/ss0"].map(str::to_owned).to_vec(),)
        );
    }
}
