//! Placement of the run's pods as scheduler affinities, all relative to the first client's pod.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use wirelab_model::nodes::Labels;
use wirelab_model::placement::Distance;

use crate::distance::Place;
use crate::names::{CLIENT, HOST, NODE_LABEL, ROLE, ZONE_LABEL, name_of_servers};
use crate::objects::Common;
use crate::pod::MEMORY_MIB;

impl Common<'_> {
    /// The first client's pod, on one of `nodes`.
    pub(crate) fn client(&self, nodes: &[String]) -> Pod {
        let on = json!({ "key": NODE_LABEL, "operator": "In", "values": nodes });
        let terms = json!([{ "matchExpressions": [on] }]);
        let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } });
        self.pod(CLIENT, self.memory_mib(CLIENT), json!({ "affinity": { "nodeAffinity": required } }))
    }

    /// A client's pod in the mesh, on the same node as its counterpart `outside` the mesh.
    pub(crate) fn meshed_client(&self, name: &str, outside: &str) -> Pod {
        let term = json!([{ "labelSelector": { "matchLabels": { HOST: outside } }, "topologyKey": NODE_LABEL }]);
        let near = json!({ "requiredDuringSchedulingIgnoredDuringExecution": term });
        self.pod(name, self.memory_mib(outside), json!({ "affinity": { "podAffinity": near } }))
    }

    /// The pod of a further client: as far from each server as the first client, and otherwise on the node with the
    /// fewest clients. If any server is on the first client's node, all clients are.
    pub(crate) fn further_client(&self, name: &str) -> Pod {
        let to_the_first =
            |key: &str| json!([{ "labelSelector": { "matchLabels": { HOST: CLIENT } }, "topologyKey": key }]);
        let required = |terms: Value| json!({ "requiredDuringSchedulingIgnoredDuringExecution": terms });
        let is_there = |distance| self.layout.servers.values().any(|one| one.distance == distance);
        if is_there(Distance::SameNode) {
            let near = required(to_the_first(NODE_LABEL));
            return self.pod(name, MEMORY_MIB, json!({ "affinity": { "podAffinity": near } }));
        }
        let from = |distance| {
            let servers = self.layout.servers.iter().filter(move |(_, one)| one.distance == distance);
            let names: Vec<_> = servers.map(|(name, _)| name).collect();
            let key = if distance == Distance::OtherZone { ZONE_LABEL } else { NODE_LABEL };
            let chosen = json!([{ "key": HOST, "operator": "In", "values": names }]);
            (!names.is_empty()).then(|| json!({ "labelSelector": { "matchExpressions": chosen }, "topologyKey": key }))
        };
        let away: Vec<_> =
            [Distance::OtherNode, Distance::SameZone, Distance::OtherZone].into_iter().filter_map(from).collect();
        let mut affinity = json!({ "podAntiAffinity": required(away.into()) });
        if is_there(Distance::SameZone) {
            affinity["podAffinity"] = required(to_the_first(ZONE_LABEL));
        }
        if let Some(labels) = &self.layout.client_nodes {
            affinity["nodeAffinity"] = on_nodes(labels);
        }
        let spread = json!([{
            "maxSkew": 1,
            "topologyKey": NODE_LABEL,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": { "matchLabels": { ROLE.0: ROLE.1 } },
        }]);
        self.pod(name, MEMORY_MIB, json!({ "affinity": affinity, "topologySpreadConstraints": spread }))
    }

    /// A server's pod at a place relative to the client.
    pub(crate) fn server(&self, name: &str, place: &Place) -> Pod {
        let client = json!({ HOST: CLIENT });
        let term = |key: &str| json!([{ "labelSelector": { "matchLabels": client }, "topologyKey": key }]);
        let near = |key: &str| json!({ "requiredDuringSchedulingIgnoredDuringExecution": term(key) });
        let mut affinity = match place.distance {
            Distance::SameNode => json!({ "podAffinity": near(NODE_LABEL) }),
            Distance::OtherNode => json!({ "podAntiAffinity": near(NODE_LABEL) }),
            Distance::SameZone => json!({ "podAffinity": near(ZONE_LABEL), "podAntiAffinity": near(NODE_LABEL) }),
            Distance::OtherZone => json!({ "podAntiAffinity": near(ZONE_LABEL) }),
        };
        if let Some(labels) = &place.nodes {
            affinity["nodeAffinity"] = on_nodes(labels);
        }
        let (hostname, subdomain) = name_of_servers();
        self.pod(name, MEMORY_MIB, json!({ "affinity": affinity, "hostname": hostname, "subdomain": subdomain }))
    }
}

/// Node affinity to nodes with these labels.
fn on_nodes(labels: &Labels) -> Value {
    let label = |(key, value): (&str, &str)| json!({ "key": key, "operator": "In", "values": [value] });
    let terms = json!([{ "matchExpressions": labels.iter().map(label).collect::<Vec<_>>() }]);
    json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::layout::Layout;
    use crate::objects::tests::{at, layout, of};
    use crate::yaml::yaml;

    #[test]
    fn placement_is_affinity_to_the_client_which_is_on_one_of_the_nodes_that_fit() {
        let affinity = |pod: Pod| yaml(&pod.spec.unwrap().affinity.unwrap());
        let client = of(|common| common.client(&["a".to_owned(), "b".to_owned()]));
        assert!(yaml(&client).contains("memory: \"1472Mi\""), "room for 31 clients: {}", yaml(&client));
        let client = affinity(client);
        assert!(client.contains("key: \"kubernetes.io/hostname\"") && client.contains("[\"a\",\"b\"]"), "{client}");
        let near = affinity(of(|common| common.server("near-0", &at(Distance::SameNode))));
        assert!(near.starts_with("podAffinity:") && near.contains("hostname") && !near.contains("zone"), "{near}");
        let zone = affinity(of(|common| common.server("zone-0", &at(Distance::SameZone))));
        let (to, from) = zone.split_once("podAntiAffinity:").unwrap();
        assert!(to.contains("topology.kubernetes.io/zone") && from.contains("kubernetes.io/hostname"), "{zone}");
    }

    #[test]
    fn further_clients_are_as_far_from_the_servers_as_the_first_one_and_spread_over_nodes() {
        let spec = |servers: &[(&str, Distance)]| {
            let servers = servers.iter().map(|(name, distance)| ((*name).to_owned(), at(*distance))).collect();
            let layout = Layout { servers, ..layout() };
            of(|common| Common { layout: &layout, ..common.clone() }.further_client("client-1")).spec.unwrap()
        };
        let other = spec(&[("other-0", Distance::OtherZone), ("node-0", Distance::OtherNode)]);
        let affinity = yaml(&other.affinity.unwrap());
        let (nodes, zones) = (affinity.find("[\"node-0\"]").unwrap(), affinity.find("[\"other-0\"]").unwrap());
        let hostname = affinity.find("kubernetes.io/hostname").unwrap();
        assert!(nodes < hostname && hostname < zones && affinity[zones..].contains(ZONE_LABEL), "{affinity}");
        assert!(affinity.starts_with("podAntiAffinity:") && !affinity.contains("podAffinity"), "{affinity}");
        let spread = &other.topology_spread_constraints.unwrap()[0];
        assert_eq!((spread.max_skew, spread.when_unsatisfiable.as_str()), (1, "ScheduleAnyway"));

        let zone = yaml(&spec(&[("zone-0", Distance::SameZone)]).affinity.unwrap());
        assert!(zone.contains("podAffinity:") && zone.contains("[\"zone-0\"]"), "{zone}");
        // A server on the client's node is near all clients only if these share that node.
        let near = spec(&[("near-0", Distance::SameNode), ("other-0", Distance::OtherZone)]);
        let affinity = yaml(&near.affinity.unwrap());
        assert!(affinity.starts_with("podAffinity:") && !affinity.contains("Anti"), "{affinity}");
        assert!(near.topology_spread_constraints.is_none());
        let labels = of(|common| common.further_client("client-1")).metadata.labels.unwrap();
        assert_eq!((labels["wirelab/host"].as_str(), labels["wirelab/role"].as_str()), ("client-1", "client"));
    }

    #[test]
    fn pods_in_the_mesh_ask_for_its_proxy_and_are_where_those_outside_are() {
        let meshed = ["meshed-client", "meshed-other-0"].map(str::to_owned).into();
        let servers = [("meshed-other-0".to_owned(), at(Distance::OtherZone))].into();
        let layout = Layout { meshed, servers, ..layout() };
        let [outside, client, server] = of(|common| {
            let common =
                Common { layout: &layout, metrics: Some((Path::new("/runs/a/metrics"), 9464)), ..common.clone() };
            let nodes = ["a".to_owned()];
            let place = at(Distance::OtherZone);
            [
                common.client(&nodes),
                common.meshed_client("meshed-client", CLIENT),
                common.server("meshed-other-0", &place),
            ]
        });
        for pod in [&client, &server] {
            let annotations = pod.metadata.annotations.as_ref().unwrap();
            assert_eq!(annotations["linkerd.io/inject"], "enabled");
            assert_eq!(annotations["config.linkerd.io/skip-inbound-ports"], "19999");
            assert_eq!(annotations["config.linkerd.io/skip-outbound-ports"], "19999");
            assert_eq!(annotations["prometheus.io/port"], "9464");
        }
        assert!(!outside.metadata.annotations.as_ref().unwrap().contains_key("linkerd.io/inject"));
        assert_eq!(client.metadata.labels.as_ref().unwrap()["wirelab/role"], "client");
        assert!(!server.metadata.labels.as_ref().unwrap().contains_key("wirelab/role"));
        let [outside, client] = [outside, client].map(|pod| pod.spec.unwrap());
        assert_eq!(client.containers[0].resources, outside.containers[0].resources, "room for as many clients");
        let affinity = yaml(&client.affinity.unwrap());
        assert!(affinity.starts_with("podAffinity:") && affinity.contains("hostname"), "{affinity}");
        assert!(affinity.contains("wirelab/host: \"client\""), "{affinity}");
    }

    #[test]
    fn labels_of_nodes_are_required_of_servers_and_of_all_clients() {
        let labels: Labels = serde_json::from_value(json!("disk=ssd,kubernetes.io/arch=arm64")).unwrap();
        let layout = Layout { client_nodes: Some(labels.clone()), ..layout() };
        let place = Place { nodes: Some(labels), ..at(Distance::OtherZone) };
        let pods = of(|common| {
            let common = Common { layout: &layout, ..common.clone() };
            [common.server("other-1", &place), common.further_client("client-1")]
        });
        for pod in pods {
            let affinity = yaml(&pod.spec.unwrap().affinity.unwrap().node_affinity.unwrap());
            for words in ["key: \"disk\"", "[\"ssd\"]", "key: \"kubernetes.io/arch\"", "[\"arm64\"]"] {
                assert!(affinity.contains(words), "{affinity}");
            }
        }
    }
}
