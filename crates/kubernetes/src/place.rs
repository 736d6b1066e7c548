//! Which pods the jobs of a run need, and on which nodes they can be.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use wirelab_model::link::{Link, preset};
use wirelab_model::nearest::did_you_mean;
use wirelab_model::network::{Address, Network};
use wirelab_model::nodes::Labels;
use wirelab_model::plan::Job;
use wirelab_model::timeline::Course;

use crate::{INFO, names};
use wirelab_lab::endpoints::BUILTIN;
use wirelab_lab::internet::only_inside;

/// Where a pod is, seen from the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Distance {
    /// On the same node.
    SameNode,
    /// On another node, of whatever zone.
    OtherNode,
    /// On another node of the same zone.
    SameZone,
    /// In another zone.
    OtherZone,
}

/// The placements by name. All but the first have those of the emulated links that stand for them in the lab `netns`, too.
const PLACEMENTS: [(&str, Distance); 7] = [
    ("same-node", Distance::SameNode),
    ("other-node", Distance::OtherNode),
    ("lan", Distance::OtherNode),
    ("same-zone", Distance::SameZone),
    ("single-az", Distance::SameZone),
    ("other-zone", Distance::OtherZone),
    ("multi-az", Distance::OtherZone),
];

impl Distance {
    fn parse(placement: &str) -> Result<Self, String> {
        if let Some((_, distance)) = PLACEMENTS.iter().find(|(name, _)| *name == placement) {
            return Ok(*distance);
        }
        let names = PLACEMENTS.map(|(name, _)| name);
        Err(format!(
            "the lab `{}` has no placement `{placement}`{}; it has {} (the last three as `lan`, `single-az` and `multi-az`, too)",
            INFO.name,
            did_you_mean(placement, names),
            wirelab_model::network::PLACEMENTS.join(", ")
        ))
    }

    /// Its placement.
    fn placement(self) -> &'static str {
        PLACEMENTS.iter().find(|(_, of)| *of == self).map_or("", |(name, _)| name)
    }

    /// Whether a pod at one spot is at this distance from one at the other.
    pub(crate) fn holds(self, one: &Spot, other: &Spot) -> bool {
        let are_known = one.node.is_some() && other.node.is_some();
        let have_zones = one.zone.is_some() && other.zone.is_some();
        match self {
            Self::SameNode => are_known && one.node == other.node,
            Self::OtherNode => are_known && one.node != other.node,
            Self::SameZone => are_known && one.node != other.node && have_zones && one.zone == other.zone,
            Self::OtherZone => have_zones && one.zone != other.zone,
        }
    }

    /// What the pods there are called, before their number.
    const fn word(self) -> &'static str {
        match self {
            Self::SameNode => "near",
            Self::OtherNode => "node",
            Self::SameZone => "zone",
            Self::OtherZone => "other",
        }
    }
}

/// Where a pod really is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) node: Option<String>,
    pub(crate) zone: Option<String>,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |of: &Option<String>| of.clone().unwrap_or_else(|| "unknown".to_owned());
        write!(f, "node {}, zone {}", text(&self.node), text(&self.zone))
    }
}

/// Proves that each server is where its place is, seen from each client.
///
/// # Errors
/// If one is not; says which, and where it is.
pub(crate) fn proven<'a>(
    clients: &[String],
    servers: &[(String, Place)],
    spot: impl Fn(&str) -> Option<&'a Spot>,
) -> Result<(), String> {
    let unknown = Spot::default();
    let spot = |name: &str| spot(name).unwrap_or(&unknown);
    for client in clients {
        for (server, place) in servers {
            if !place.distance.holds(spot(client), spot(server)) {
                return Err(format!(
                    "the pod {server} ({}) is not at the placement `{}`, seen from the pod {client} ({}), though their affinities say so",
                    spot(server),
                    place.distance.placement(),
                    spot(client)
                ));
            }
        }
    }
    Ok(())
}

/// Where a server is: at which distance from the client, and on a node with which labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) distance: Distance,
    pub(crate) nodes: Option<Labels>,
}

/// The pods that play the servers of a job, all that ever come, in their order, each with its place.
///
/// # Errors
/// If a cluster cannot be what the job says; the message says what to change.
pub(crate) fn servers(job: &Job) -> Result<Vec<(String, Place)>, String> {
    only_inside(INFO.name, job).map_err(|error| error.0)?;
    let far = Distance::parse(&job.placement)?;
    if job.network == Network::Direct {
        return Err(format!(
            "in the lab `{}` hosts are pods, joined by the cluster's network; set `network = \"overlay\"`, or leave it out",
            INFO.name
        ));
    }
    // A wire is no condition, either.
    let is_plain = |link: Link| {
        preset(&job.placement)
            .is_some_and(|preset| preset.link == link || (link.is_wire() && preset.link.mtu == link.mtu))
    };
    if job.link.is_some_and(|link| !is_plain(link)) {
        return Err(format!(
            "the network of a cluster is what it is, and the lab `{}` shapes no links; leave out the keys of the link (from \
             `round_trip` to `mtu`), or use the lab `netns`",
            INFO.name
        ));
    }
    if job.offloads.is_some() {
        return Err(format!("the lab `{}` leaves the pods' interfaces as they are; leave `offloads` out", INFO.name));
    }
    if far == Distance::SameNode && job.servers.far > 0 {
        return Err(format!(
            "`servers` is `{}`, but the placement `{}` has no other node; set `servers` to `near`, or `placement` to `other-zone`",
            job.servers, job.placement
        ));
    }
    if let Some(labels) = job.server_nodes.as_ref().filter(|_| job.servers.far == 0) {
        return Err(format!(
            "`server_nodes` is `{labels}`, but all servers are on the client's node (`servers` is `{}`); set `client_nodes`, or `servers` to \
             `far` and `placement` to `other-node`",
            job.servers
        ));
    }
    let host = |number| {
        let (name, place) = match job.servers.is_near(number) {
            true => named(Place { distance: Distance::SameNode, nodes: None }, number),
            false => named(Place { distance: far, nodes: job.server_nodes.clone() }, number - job.servers.near),
        };
        (in_its_mesh(job, name), place)
    };
    Ok((0..Course::of(job).servers).map(host).collect())
}

/// A pod has its name from its place, so that jobs share it that want the same.
fn named(place: Place, number: u32) -> (String, Place) {
    let word = place.distance.word();
    let name = match &place.nodes {
        None => format!("{word}-{number}"),
        Some(labels) => {
            let mut hasher = DefaultHasher::new();
            labels.hash(&mut hasher);
            format!("{word}-{:08x}-{number}", hasher.finish() as u32)
        }
    };
    (name, place)
}

/// The pods that play the clients of a job, in their order. Those of a timeline are all in one.
pub(crate) fn clients(job: &Job) -> Vec<String> {
    (0..job.clients).map(|number| in_its_mesh(job, names::client(number))).collect()
}

/// The pod of one of them.
pub(crate) fn client(job: &Job, number: u32) -> String {
    in_its_mesh(job, if job.timeline.is_some() { names::CLIENT.to_owned() } else { names::client(number) })
}

/// A pod comes into the mesh when it is made, so those in it are others than those outside.
fn in_its_mesh(job: &Job, name: String) -> String {
    if job.is_in_linkerd() { names::meshed(&name) } else { name }
}

/// The endpoints that play in a job.
fn players(job: &Job) -> impl Iterator<Item = &String> {
    [Some(&job.server), Some(&job.client), job.sidecar(), job.control_plane.as_ref()].into_iter().flatten()
}

/// What a run needs of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The pods of servers, by name.
    pub(crate) servers: BTreeMap<String, Place>,
    /// The labels that clients' nodes have to have.
    pub(crate) client_nodes: Option<Labels>,
    /// What clients connect to, in some job.
    pub(crate) addresses: HashSet<Address>,
    /// How many pods of clients there are outside of the mesh. The first one is always there: all others are placed by where it is.
    pub(crate) clients: u32,
    /// The pods in the mesh, by name: servers, and clients that stand for some of those outside.
    pub(crate) meshed: BTreeSet<String>,
    /// How many clients are in one pod at most.
    pub(crate) clients_in_a_pod: usize,
    /// Whether endpoints other than the built-in one play.
    pub(crate) has_others: bool,
}

impl Layout {
    /// That of all these jobs together.
    ///
    /// # Errors
    /// As [`servers`].
    pub(crate) fn of(jobs: &[&Job]) -> Result<Self, String> {
        let client_nodes = jobs.first().and_then(|job| job.client_nodes.clone());
        if jobs.iter().any(|job| job.client_nodes != client_nodes) {
            return Err("`client_nodes` is not the same in all cells, but the client's pod lives as long as the run; set it in `[workload]`, and \
                        run the study once for each"
                .to_owned());
        }
        let mut layout = Self { client_nodes, ..Self::default() };
        for job in jobs {
            let servers = servers(job)?;
            if job.is_in_linkerd() {
                layout.meshed.extend(clients(job));
                layout.meshed.extend(servers.iter().map(|(name, _)| name.clone()));
            }
            layout.servers.extend(servers);
            layout.addresses.insert(job.address);
            layout.clients = layout.clients.max(job.clients);
            let in_a_pod = if job.timeline.is_some() { Course::of(job).clients.len() } else { 1 };
            layout.clients_in_a_pod = layout.clients_in_a_pod.max(in_a_pod);
            layout.has_others |= players(job).any(|name| name != BUILTIN);
        }
        Ok(layout)
    }
}

/// A node that takes pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// The value of its label for affinity, which often is its name.
    pub(crate) name: String,
    pub(crate) zone: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
}

impl Node {
    fn has(&self, labels: Option<&Labels>) -> bool {
        labels.is_none_or(|labels| labels.iter().all(|(key, value)| self.labels.get(key).is_some_and(|is| is == value)))
    }
}

/// The nodes that the client may be on, from which each of these places is on some node. The scheduler takes pods one by one, so without
/// this the client could come to a node that leaves its servers no place.
///
/// # Errors
/// If there is none; says what is in the way.
pub(crate) fn candidates(
    nodes: &[Node],
    client: Option<&Labels>,
    places: &BTreeSet<Place>,
) -> Result<Vec<String>, String> {
    let wanted = places.iter().map(|place| ("server_nodes", place.nodes.as_ref()));
    for (key, labels) in [("client_nodes", client)].into_iter().chain(wanted) {
        if let Some(labels) = labels.filter(|_| !nodes.iter().any(|node| node.has(labels))) {
            let all: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
            return Err(format!(
                "no node has the labels `{labels}` (`{key}`); nodes that take pods: {}. Give one of them these labels (`kubectl label node \
                 NAME {}`), or choose others (`kubectl get nodes --show-labels`)",
                if all.is_empty() { "none".to_owned() } else { all.join(", ") },
                labels.to_string().replace(',', " ")
            ));
        }
    }
    let reaches = |from: &Node, place: &Place| {
        let is_at = |to: &Node| match place.distance {
            Distance::SameNode => to.name == from.name,
            Distance::OtherNode => to.name != from.name,
            Distance::SameZone => to.name != from.name && from.zone.is_some() && to.zone == from.zone,
            Distance::OtherZone => from.zone.is_some() && to.zone.is_some() && to.zone != from.zone,
        };
        nodes.iter().any(|to| is_at(to) && to.has(place.nodes.as_ref()))
    };
    let fits = |node: &&Node| node.has(client) && places.iter().all(|place| reaches(node, place));
    let found: Vec<_> = nodes.iter().filter(fits).map(|node| node.name.clone()).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let zone = |node: &Node| node.zone.clone().unwrap_or_else(|| format!("no label {}", names::ZONE_LABEL));
    let all: Vec<_> = nodes.iter().map(|node| format!("{} ({})", node.name, zone(node))).collect();
    let mut wanted: Vec<_> = places
        .iter()
        .map(|place| match &place.nodes {
            None => format!("`{}`", place.distance.placement()),
            Some(labels) => format!("`{}` on nodes with `{labels}`", place.distance.placement()),
        })
        .collect();
    wanted.extend(client.map(|labels| format!("`client_nodes = \"{labels}\"`")));
    Err(format!(
        "no node has what {} together need; nodes that take pods: {}. Choose another placement, or a cluster with more nodes or zones",
        wanted.join(", "),
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    ))
}

#[cfg(test)]
mod tests {
    use wirelab_model::network::Servers;
    use wirelab_model::protocol::Protocol;
    use wirelab_model::spec::Extent;
    use wirelab_model::units::Span;

    use super::*;

    fn job(placement: &str, servers: Servers, address: Address) -> Job {
        let link = preset(placement).map(|preset| preset.link);
        let network = Network::Overlay;
        Job { placement: placement.to_owned(), link, network, servers, address, ..Job::plain(Protocol::H2) }
    }

    fn labels(text: &str) -> Option<Labels> {
        serde_json::from_value(text.into()).ok()
    }

    fn node(name: &str, zone: &str) -> Node {
        Node { name: name.to_owned(), zone: Some(zone.to_owned()), labels: BTreeMap::new() }
    }

    const NEAR: Servers = Servers { near: 1, far: 0 };
    const SPREAD: Servers = Servers { near: 1, far: 2 };

    #[test]
    fn pods_are_shared_by_jobs() {
        let jobs = [
            job("same-node", NEAR, Address::Server),
            job("multi-az", SPREAD, Address::Service),
            job("other-zone", SPREAD, Address::Headless),
            job("same-zone", Servers::ONE, Address::Service),
        ];
        let layout = Layout::of(&jobs.iter().collect::<Vec<_>>()).unwrap();
        let pods: Vec<_> = layout.servers.iter().map(|(name, place)| (name.as_str(), place.distance)).collect();
        let expected = [
            ("near-0", Distance::SameNode),
            ("other-0", Distance::OtherZone),
            ("other-1", Distance::OtherZone),
            ("zone-0", Distance::SameZone),
        ];
        assert_eq!(pods, expected);
        assert_eq!(layout.addresses, HashSet::from([Address::Server, Address::Service, Address::Headless]));
        assert_eq!((layout.clients, layout.clients_in_a_pod, layout.has_others), (1, 1, false));
        let with_sidecars = Job { mesh: Some("proxy".to_owned()), ..jobs[1].clone() };
        assert!(Layout::of(&[&jobs[0], &with_sidecars]).unwrap().has_others);
        let shared = Job { clients: 3, ..jobs[0].clone() };
        assert_eq!(clients(&shared), ["client", "client-1", "client-2"]);
        assert_eq!(client(&shared, 2), "client-2");
        let layout = Layout::of(&[&jobs[0], &shared]).unwrap();
        assert_eq!((layout.clients, layout.clients_in_a_pod), (3, 1));
    }

    #[test]
    fn cells_in_the_mesh_have_pods_of_their_own_beside_those_outside() {
        let plain = Job { clients: 2, ..job("other-zone", SPREAD, Address::Service) };
        let meshed = Job { mesh: Some("linkerd".to_owned()), ..plain.clone() };
        let layout = Layout::of(&[&meshed, &plain]).unwrap();
        let names = ["meshed-client", "meshed-client-1", "meshed-near-0", "meshed-other-0", "meshed-other-1"];
        assert_eq!(layout.meshed, names.map(str::to_owned).into());
        assert_eq!((layout.clients, layout.servers.len(), layout.has_others), (2, 6, false));
        assert_eq!(layout.servers["meshed-other-1"], layout.servers["other-1"], "at the same places");
        assert_eq!(
            (client(&meshed, 1), names::unmeshed("meshed-client-1")),
            ("meshed-client-1".to_owned(), Some("client-1"))
        );
        assert!(Layout::of(&[&plain]).unwrap().meshed.is_empty());
    }

    #[test]
    fn a_server_that_comes_later_has_its_pod_from_the_start() {
        let later = serde_json::json!({ "actions": [{ "name": "T2", "at": "50 %", "servers": "near + 3 far" }] });
        let timeline = serde_json::from_value(later).unwrap();
        let extent = Extent::DurationNs(1_000_000_000);
        let job = Job { timeline: Some(timeline), extent, ..job("other-zone", SPREAD, Address::Service) };
        let names: Vec<_> = servers(&job).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["near-0", "other-0", "other-1", "other-2"]);
        assert_eq!(client(&job, 7), "client", "all clients of a timeline are in one pod");
    }

    #[test]
    fn what_a_cluster_cannot_be_is_refused_with_the_remedy() {
        let plain = job("multi-az", Servers::ONE, Address::Server);
        let mut shaped = plain.clone();
        shaped.link.as_mut().unwrap().round_trip = Span::from_millis(9);
        for (job, remedy) in [
            (job("other-zon", Servers::ONE, Address::Server), "did you mean `other-zone`"),
            (job("local", Servers::ONE, Address::Server), "same-node, other-node, same-zone, other-zone"),
            (Job { network: Network::Direct, ..plain.clone() }, "`network = \"overlay\"`"),
            (Job { offloads: Some(true), ..plain.clone() }, "leave `offloads` out"),
            (shaped, "leave out the keys of the link"),
            (job("same-node", Servers::ONE, Address::Server), "set `servers` to `near`"),
            (Job { server_nodes: labels("disk=ssd"), ..job("same-node", NEAR, Address::Server) }, "set `client_nodes`"),
        ] {
            let why = servers(&job).unwrap_err();
            assert!(why.contains(remedy), "{remedy}: {why}");
        }
        let mut wire = job("lan", Servers::ONE, Address::Server);
        wire.link.as_mut().unwrap().round_trip = Span(0);
        assert_eq!(
            servers(&wire).unwrap(),
            [("node-0".to_owned(), Place { distance: Distance::OtherNode, nodes: None })]
        );
        wire.link.as_mut().unwrap().mtu = 9000;
        assert!(servers(&wire).is_err());
    }

    #[test]
    fn a_distance_holds_between_the_nodes_and_zones_where_pods_really_are() {
        let spot = |node: &str, zone: Option<&str>| Spot { node: Some(node.to_owned()), zone: zone.map(str::to_owned) };
        let [a1, a2, b1, bare] = [spot("a1", Some("a")), spot("a2", Some("a")), spot("b1", Some("b")), spot("c", None)];
        let all = [Distance::SameNode, Distance::OtherNode, Distance::SameZone, Distance::OtherZone];
        let which = |other: &Spot| all.map(|distance| distance.holds(&a1, other));
        assert_eq!(which(&a1), [true, false, false, false]);
        assert_eq!(which(&a2), [false, true, true, false]);
        assert_eq!(which(&b1), [false, true, false, true]);
        assert_eq!(which(&bare), [false, true, false, false], "without a label there is no zone");
        assert_eq!(which(&Spot::default()), [false; 4], "what is not known does not hold");

        let servers = servers(&job("other-zone", SPREAD, Address::Service)).unwrap();
        let at = |name: &str| Some(if name.starts_with("other") { &b1 } else { &a1 });
        assert_eq!(proven(&["client".to_owned()], &servers, at), Ok(()));
        let moved = |name: &str| if name == "other-1" { Some(&a2) } else { at(name) };
        let why = proven(&["client".to_owned()], &servers, moved).unwrap_err();
        assert!(why.contains("other-1 (node a2, zone a)") && why.contains("`other-zone`"), "{why}");
    }

    #[test]
    fn the_client_comes_to_a_node_from_which_every_server_has_its_place() {
        let three = [node("a1", "a"), node("b1", "b"), node("a2", "a")];
        let place = |distance: &Distance| Place { distance: *distance, nodes: None };
        let of =
            |nodes: &[Node], distances: &[Distance]| candidates(nodes, None, &distances.iter().map(place).collect());
        assert_eq!(of(&three, &[Distance::SameNode]).unwrap().len(), 3);
        assert_eq!(of(&three, &[Distance::OtherNode, Distance::OtherZone]).unwrap().len(), 3);
        assert!(of(&three[..1], &[Distance::OtherNode]).unwrap_err().contains("`other-node`"));
        assert_eq!(of(&three, &[Distance::SameZone, Distance::OtherZone]).unwrap(), ["a1", "a2"]);
        let why = of(&three[..2], &[Distance::SameZone]).unwrap_err();
        assert!(why.contains("`same-zone`") && why.contains("a1 (a), b1 (b)"), "{why}");
        let unlabelled = Node { zone: None, ..node("c", "") };
        let why = of(&[unlabelled.clone(), three[0].clone()], &[Distance::OtherZone]).unwrap_err();
        assert!(why.contains("c (no label topology.kubernetes.io/zone)"), "{why}");
    }

    #[test]
    fn client_and_servers_come_to_nodes_with_their_labels_and_without_these_the_remedy_is_named() {
        let disk = |name: &str, zone: &str, disk: &str| Node {
            labels: [("disk".to_owned(), disk.to_owned())].into(),
            ..node(name, zone)
        };
        let nodes = [disk("a1", "a", "ssd"), disk("b1", "b", "ssd"), disk("a2", "a", "hdd"), node("b2", "b")];
        let of = |client: &str, distance: Distance, server: &str| {
            candidates(&nodes, labels(client).as_ref(), &[Place { distance, nodes: labels(server) }].into())
        };
        assert_eq!(of("disk=ssd", Distance::OtherNode, "disk=hdd").unwrap(), ["a1", "b1"]);
        assert_eq!(of("disk=ssd", Distance::SameZone, "disk=hdd").unwrap(), ["a1"]);
        assert_eq!(of("disk=hdd", Distance::OtherZone, "disk=ssd").unwrap(), ["a2"]);
        let why = of("disk=ssd", Distance::OtherNode, "disk=tape").unwrap_err();
        assert!(
            why.contains("`disk=tape` (`server_nodes`)") && why.contains("kubectl label node NAME disk=tape"),
            "{why}"
        );
        assert!(of("disk=tape", Distance::OtherNode, "disk=ssd").unwrap_err().contains("(`client_nodes`)"));
        let why = of("disk=hdd", Distance::SameZone, "disk=hdd").unwrap_err();
        assert!(why.contains("`same-zone` on nodes with `disk=hdd`, `client_nodes = \"disk=hdd\"`"), "{why}");
    }

    #[test]
    fn servers_on_other_nodes_are_other_pods_and_the_client_has_one() {
        let plain = job("other-zone", Servers::ONE, Address::Server);
        let on = |disk: &str| Job { server_nodes: labels(disk), ..plain.clone() };
        let name = |job: &Job| servers(job).unwrap()[0].0.clone();
        let names = [name(&plain), name(&on("disk=ssd")), name(&on("disk=hdd"))];
        assert_eq!(names[0], "other-0");
        assert!(
            names[1].starts_with("other-") && names[1] != names[2] && names[1] == name(&on("disk=ssd")),
            "{names:?}"
        );
        let elsewhere = Job { client_nodes: labels("disk=ssd"), ..plain.clone() };
        let layout = Layout::of(&[&elsewhere, &elsewhere]).unwrap();
        assert_eq!(layout.client_nodes, labels("disk=ssd"));
        assert!(Layout::of(&[&plain, &elsewhere]).unwrap_err().contains("set it in `[workload]`"));
    }
}
