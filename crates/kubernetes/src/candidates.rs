//! The nodes where the first client may run.

use std::collections::{BTreeMap, BTreeSet};

use wirelab_lab::LabError;
use wirelab_model::nodes::Labels;
use wirelab_model::placement::Spot;

use crate::distance::Place;
use crate::names;

/// A node that accepts pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// The value of the hostname label, which affinities use; often the node's name.
    pub(crate) name: String,
    pub(crate) zone: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
}

impl Node {
    fn has(&self, labels: Option<&Labels>) -> bool {
        labels.is_none_or(|labels| labels.iter().all(|(key, value)| self.labels.get(key).is_some_and(|is| is == value)))
    }

    fn spot(&self) -> Spot {
        Spot { node: Some(self.name.clone()), zone: self.zone.clone() }
    }
}

/// The nodes for the client from which every place exists on some node. The scheduler places pods one by one, so it
/// could otherwise choose a node for the client that leaves no node for a server.
///
/// # Errors
/// If there is no such node; names the unmet requirements.
pub(crate) fn candidates(
    nodes: &[Node],
    client: Option<&Labels>,
    places: &BTreeSet<Place>,
) -> Result<Vec<String>, LabError> {
    let wanted = places.iter().map(|place| ("server_nodes", place.nodes.as_ref()));
    for (key, labels) in [("client_nodes", client)].into_iter().chain(wanted) {
        if let Some(labels) = labels.filter(|_| !nodes.iter().any(|node| node.has(labels))) {
            let all: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
            return Err(LabError::unsupported(format!(
                "no node has the labels `{labels}` (`{key}`); nodes that take pods: {}. Give one of them these labels (`kubectl label node \
                 NAME {}`), or choose others (`kubectl get nodes --show-labels`)",
                if all.is_empty() { "none".to_owned() } else { all.join(", ") },
                labels.to_string().replace(',', " ")
            )));
        }
    }
    let reaches = |from: &Node, place: &Place| {
        let is_at = |to: &Node| place.distance.holds(&from.spot(), &to.spot());
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
    Err(LabError::unsupported(format!(
        "no node has what {} together need; nodes that take pods: {}. Choose another placement, or a cluster with more nodes or zones",
        wanted.join(", "),
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    )))
}

#[cfg(test)]
mod tests {
    use wirelab_model::placement::Distance;

    use super::*;
    use crate::place::tests::labels;

    fn node(name: &str, zone: &str) -> Node {
        Node { name: name.to_owned(), zone: Some(zone.to_owned()), labels: BTreeMap::new() }
    }

    #[test]
    fn the_client_comes_to_a_node_from_which_every_server_has_its_place() {
        let three = [node("a1", "a"), node("b1", "b"), node("a2", "a")];
        let place = |distance: &Distance| Place { distance: *distance, nodes: None };
        let of =
            |nodes: &[Node], distances: &[Distance]| candidates(nodes, None, &distances.iter().map(place).collect());
        assert_eq!(of(&three, &[Distance::SameNode]).unwrap().len(), 3);
        assert_eq!(of(&three, &[Distance::OtherNode, Distance::OtherZone]).unwrap().len(), 3);
        assert!(of(&three[..1], &[Distance::OtherNode]).unwrap_err().to_string().contains("`other-node`"));
        assert_eq!(of(&three, &[Distance::SameZone, Distance::OtherZone]).unwrap(), ["a1", "a2"]);
        let why = of(&three[..2], &[Distance::SameZone]).unwrap_err().to_string();
        assert!(why.contains("`same-zone`") && why.contains("a1 (a), b1 (b)"), "{why}");
        let unlabelled = Node { zone: None, ..node("c", "") };
        let why = of(&[unlabelled.clone(), three[0].clone()], &[Distance::OtherZone]).unwrap_err().to_string();
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
        let why = of("disk=ssd", Distance::OtherNode, "disk=tape").unwrap_err().to_string();
        assert!(
            why.contains("`disk=tape` (`server_nodes`)") && why.contains("kubectl label node NAME disk=tape"),
            "{why}"
        );
        assert!(of("disk=tape", Distance::OtherNode, "disk=ssd").unwrap_err().to_string().contains("(`client_nodes`)"));
        let why = of("disk=hdd", Distance::SameZone, "disk=hdd").unwrap_err().to_string();
        assert!(why.contains("`same-zone` on nodes with `disk=hdd`, `client_nodes = \"disk=hdd\"`"), "{why}");
    }
}
