//! Which pods the jobs of a run need, and on which nodes they can be.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use wirelab_model::link::{Link, preset};
use wirelab_model::nearest::did_you_mean;
use wirelab_model::network::{Address, Network};
use wirelab_model::plan::Job;
use wirelab_model::timeline::Course;

use crate::{INFO, names};
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

/// The pods that play the servers of a job, all that ever come, in their order, each with its distance.
///
/// # Errors
/// If a cluster cannot be what the job says; the message says what to change.
pub(crate) fn servers(job: &Job) -> Result<Vec<(String, Distance)>, String> {
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
    let host = |number| match job.servers.is_near(number) {
        true => (Distance::SameNode, number),
        false => (far, number - job.servers.near),
    };
    let named = |(distance, number): (Distance, u32)| (format!("{}-{number}", distance.word()), distance);
    Ok((0..Course::of(job).servers).map(|number| named(host(number))).collect())
}

/// What a run needs of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The pods of servers, by name.
    pub(crate) servers: BTreeMap<String, Distance>,
    /// What clients connect to, in some job.
    pub(crate) addresses: HashSet<Address>,
    /// How many clients a trial has at most, all in one pod.
    pub(crate) clients: usize,
}

impl Layout {
    /// That of all these jobs together.
    ///
    /// # Errors
    /// As [`servers`].
    pub(crate) fn of(jobs: &[&Job]) -> Result<Self, String> {
        let mut layout = Self::default();
        for job in jobs {
            layout.servers.extend(servers(job)?);
            layout.addresses.insert(job.address);
            layout.clients = layout.clients.max(Course::of(job).clients.len());
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
}

/// The nodes from which all these distances lead to some other node. The scheduler takes pods one by one, so without this the
/// client could come to a node that leaves its servers no place.
///
/// # Errors
/// If there is none; says which distance is in the way.
pub(crate) fn candidates(nodes: &[Node], distances: &BTreeSet<Distance>) -> Result<Vec<String>, String> {
    let reaches = |from: &Node, distance: &Distance| match distance {
        Distance::SameNode => true,
        Distance::OtherNode => nodes.iter().any(|to| to.name != from.name),
        Distance::SameZone => {
            nodes.iter().any(|to| to.name != from.name && from.zone.is_some() && to.zone == from.zone)
        }
        Distance::OtherZone => from.zone.is_some() && nodes.iter().any(|to| to.zone.is_some() && to.zone != from.zone),
    };
    let fits = |node: &&Node| distances.iter().all(|distance| reaches(node, distance));
    let found: Vec<_> = nodes.iter().filter(fits).map(|node| node.name.clone()).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let zone = |node: &Node| node.zone.clone().unwrap_or_else(|| format!("no label {}", names::ZONE_LABEL));
    let all: Vec<_> = nodes.iter().map(|node| format!("{} ({})", node.name, zone(node))).collect();
    let wanted: Vec<_> = distances
        .iter()
        .filter_map(|distance| PLACEMENTS.iter().find(|(_, of)| of == distance).map(|(name, _)| format!("`{name}`")))
        .collect();
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
        let pods: Vec<_> = layout.servers.iter().map(|(name, distance)| (name.as_str(), *distance)).collect();
        let expected = [
            ("near-0", Distance::SameNode),
            ("other-0", Distance::OtherZone),
            ("other-1", Distance::OtherZone),
            ("zone-0", Distance::SameZone),
        ];
        assert_eq!(pods, expected);
        assert_eq!(layout.addresses, HashSet::from([Address::Server, Address::Service, Address::Headless]));
        assert_eq!(layout.clients, 1);
    }

    #[test]
    fn a_server_that_comes_later_has_its_pod_from_the_start() {
        let later = serde_json::json!({ "actions": [{ "name": "T2", "at": "50 %", "servers": "near + 3 far" }] });
        let timeline = serde_json::from_value(later).unwrap();
        let extent = Extent::DurationNs(1_000_000_000);
        let job = Job { timeline: Some(timeline), extent, ..job("other-zone", SPREAD, Address::Service) };
        let names: Vec<_> = servers(&job).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["near-0", "other-0", "other-1", "other-2"]);
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
        ] {
            let why = servers(&job).unwrap_err();
            assert!(why.contains(remedy), "{remedy}: {why}");
        }
        let mut wire = job("lan", Servers::ONE, Address::Server);
        wire.link.as_mut().unwrap().round_trip = Span(0);
        assert_eq!(servers(&wire).unwrap(), [("node-0".to_owned(), Distance::OtherNode)]);
        wire.link.as_mut().unwrap().mtu = 9000;
        assert!(servers(&wire).is_err());
    }

    #[test]
    fn the_client_comes_to_a_node_from_which_every_server_has_its_place() {
        let node = |name: &str, zone: &str| Node { name: name.to_owned(), zone: Some(zone.to_owned()) };
        let three = [node("a1", "a"), node("b1", "b"), node("a2", "a")];
        let of = |nodes: &[Node], distances: &[Distance]| candidates(nodes, &distances.iter().copied().collect());
        assert_eq!(of(&three, &[Distance::SameNode]).unwrap().len(), 3);
        assert_eq!(of(&three, &[Distance::OtherNode, Distance::OtherZone]).unwrap().len(), 3);
        assert!(of(&three[..1], &[Distance::OtherNode]).unwrap_err().contains("`other-node`"));
        assert_eq!(of(&three, &[Distance::SameZone, Distance::OtherZone]).unwrap(), ["a1", "a2"]);
        let why = of(&three[..2], &[Distance::SameZone]).unwrap_err();
        assert!(why.contains("`same-zone`") && why.contains("a1 (a), b1 (b)"), "{why}");
        let unlabelled = Node { name: "c".to_owned(), zone: None };
        let why = of(&[unlabelled.clone(), three[0].clone()], &[Distance::OtherZone]).unwrap_err();
        assert!(why.contains("c (no label topology.kubernetes.io/zone)"), "{why}");
    }
}
