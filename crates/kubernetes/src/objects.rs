//! The objects that a run makes: its namespace, pods that wait for work, and services.

use std::path::Path;

use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use wirelab_model::network::Address;
use wirelab_model::nodes::Labels;

use crate::mesh;
use crate::names::{
    CLIENT, CONTAINER, FOLDER, HOST, MANAGED_BY, NAMING_PORT, NODE_LABEL, OWNER, PROGRAM, ROLE, RUN, SERVICE, SERVING,
    ZONE_LABEL, name_of_servers,
};
use crate::owner::Owner;
use crate::place::{Distance, Layout, Place};

/// What a pod asks for, and may use of memory, in MiB; the client's so much more for each client but the first. With request and limit
/// equal it is among the last to be evicted. There is no limit on processors: what throttling does would be measured.
const MEMORY_MIB: usize = 512;
const MEMORY_OF_ANOTHER_MIB: usize = 32;
const PROCESSOR: &str = "100m";

/// What an agent on a node asks for, and may use: the rings of packets that it looks at are in it.
const MEMORY_OF_NODE_AGENT: &str = "256Mi";

/// A user that is nobody in particular, in the image and on the nodes.
const USER: u32 = 65532;

/// How long a pod may take to end. It ends at once, unless it is stuck.
const GRACE_S: u32 = 5;

/// What the objects of a run have in common.
#[derive(Debug, Clone)]
pub(crate) struct Common<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) image: &'a str,
    /// The run's folder. It has the same path in each pod, so that paths in specs mean the same there.
    pub(crate) folder: &'a Path,
    pub(crate) layout: &'a Layout,
    /// The folder of the endpoints' sockets, and the port at which Prometheus is answered; absent: it is not.
    pub(crate) metrics: Option<(&'a Path, u16)>,
}

/// The namespace of a run, in which pods with all privileges are admitted or not.
pub(crate) fn namespace(name: &str, folder: &Path, owner: &Owner, has_node_agents: bool) -> Namespace {
    let owner = serde_json::to_string(owner).expect("an owner always serialises");
    let mut labels = labels(name);
    if has_node_agents {
        labels.insert("pod-security.kubernetes.io/enforce".to_owned(), "privileged".into());
    }
    object(json!({
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": { OWNER: owner, FOLDER: folder.display().to_string() },
        }
    }))
}

fn labels(run: &str) -> Map<String, Value> {
    [(MANAGED_BY.0, MANAGED_BY.1), (RUN, run)].map(|(key, value)| (key.to_owned(), value.into())).into_iter().collect()
}

impl Common<'_> {
    /// The pod of the client, on one of these nodes.
    pub(crate) fn client(&self, nodes: &[String]) -> Pod {
        let on = json!({ "key": NODE_LABEL, "operator": "In", "values": nodes });
        let terms = json!([{ "matchExpressions": [on] }]);
        let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } });
        self.pod(CLIENT, self.memory_mib(CLIENT), json!({ "affinity": { "nodeAffinity": required } }))
    }

    /// The pod of a client in the mesh: on the node of this one outside.
    pub(crate) fn meshed_client(&self, name: &str, outside: &str) -> Pod {
        let term = json!([{ "labelSelector": { "matchLabels": { HOST: outside } }, "topologyKey": NODE_LABEL }]);
        let near = json!({ "requiredDuringSchedulingIgnoredDuringExecution": term });
        self.pod(name, self.memory_mib(outside), json!({ "affinity": { "podAffinity": near } }))
    }

    /// What a client's pod asks for: all clients of a timeline are in the first one.
    fn memory_mib(&self, client: &str) -> usize {
        let others = if client == CLIENT { self.layout.clients_in_a_pod.saturating_sub(1) } else { 0 };
        MEMORY_MIB + MEMORY_OF_ANOTHER_MIB * others
    }

    /// The pod of another client: as far from each server as the first one is, and otherwise on the node that has the fewest of them. Where
    /// some server is on the node of the first one, so are all clients.
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

    /// The pod of a server, at this place seen from the client.
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

    /// The pod of the agent on a node: it sees all processes there, and may do with them what root may.
    pub(crate) fn node_agent(&self, name: &str, node: &str) -> Pod {
        object(json!({
            "metadata": { "name": name, "namespace": self.namespace, "labels": labels(self.namespace) },
            "spec": {
                "nodeName": node,
                "hostPID": true,
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": GRACE_S,
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "containers": [{
                    "name": CONTAINER,
                    "image": self.image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": [PROGRAM, super::agent::SUBCOMMAND, "wait", name],
                    "securityContext": { "privileged": true, "runAsUser": 0 },
                    "resources": {
                        "requests": { "cpu": PROCESSOR, "memory": MEMORY_OF_NODE_AGENT },
                        "limits": { "memory": MEMORY_OF_NODE_AGENT },
                    },
                }],
            }
        }))
    }

    /// A pod that waits, with so much memory and more in its spec.
    fn pod(&self, name: &str, memory_mib: usize, more: Value) -> Pod {
        let memory = format!("{memory_mib}Mi");
        let mut labels = labels(self.namespace);
        labels.insert(HOST.to_owned(), name.into());
        if !self.layout.servers.contains_key(name) {
            labels.insert(ROLE.0.to_owned(), ROLE.1.into());
        }
        let mut command =
            vec![PROGRAM.to_owned(), super::agent::SUBCOMMAND.to_owned(), "wait".to_owned(), name.to_owned()];
        if let Some((sockets, port)) = self.metrics {
            let sockets = sockets.display().to_string();
            command.extend(["--metrics".to_owned(), format!("0.0.0.0:{port}"), sockets]);
        }
        let mut pod = json!({
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": labels,
                "annotations": self.annotations(name),
            },
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": GRACE_S,
                "automountServiceAccountToken": false,
                // Variables for each service of the namespace, which nobody reads.
                "enableServiceLinks": false,
                "securityContext": {
                    "runAsNonRoot": true,
                    "runAsUser": USER,
                    "runAsGroup": USER,
                    "fsGroup": USER,
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
                "containers": [{
                    "name": CONTAINER,
                    "image": self.image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": command,
                    "ports": self.metrics.map(|(_, port)| json!([{ "name": "metrics", "containerPort": port }])),
                    "securityContext": {
                        "allowPrivilegeEscalation": false,
                        "readOnlyRootFilesystem": true,
                        "capabilities": self.capabilities(),
                    },
                    "resources": {
                        "requests": { "cpu": PROCESSOR, "memory": memory },
                        "limits": { "memory": memory },
                    },
                    "volumeMounts": [{ "name": "run", "mountPath": self.folder.display().to_string() }],
                }],
                "volumes": [{ "name": "run", "emptyDir": {} }],
            }
        });
        if let (Some(spec), Value::Object(more)) = (pod["spec"].as_object_mut(), more) {
            spec.extend(more);
        }
        object(pod)
    }

    /// Those of a pod, if it has any.
    fn annotations(&self, name: &str) -> Option<Map<String, Value>> {
        let scraped = self.metrics.into_iter().flat_map(|(_, port)| scraped(port));
        let meshed = self.layout.meshed.contains(name).then(mesh::annotations).into_iter().flatten();
        let all: Map<_, _> = scraped.chain(meshed).map(|(key, value)| (key.to_owned(), value.into())).collect();
        (!all.is_empty()).then_some(all)
    }

    /// Endpoints whose library is a program of its own ask the kernel for copies of this program's sockets (pidfd_getfd), to set and read
    /// their options. It allows that for a child; but container runtimes' default profile of seccomp forbids the call in containers
    /// without this capability. As the user is not root no process ever has it: it changes nothing but the profile.
    fn capabilities(&self) -> Value {
        match self.layout.has_others {
            true => json!({ "drop": ["ALL"], "add": ["SYS_PTRACE"] }),
            false => json!({ "drop": ["ALL"] }),
        }
    }

    /// The services that stand for the servers of each trial: one with an address and, if any job wants that, with ports of nodes, and one
    /// that is a name only.
    pub(crate) fn services(&self) -> Vec<Service> {
        let has = |address| self.layout.addresses.contains(&address);
        let mut services = Vec::new();
        if has(Address::Service) || has(Address::NodePort) {
            let kind = if has(Address::NodePort) { "NodePort" } else { "ClusterIP" };
            // The port is that of a trial's servers; one has to be named before there are any.
            services.push(self.service(SERVICE, json!({ "type": kind, "ports": ports(1) })));
        }
        if has(Address::Headless) {
            services.push(self.service(name_of_servers().1, json!({ "clusterIP": "None" })));
        }
        services
    }

    fn service(&self, name: &str, mut spec: Value) -> Service {
        spec["selector"] = json!({ SERVING: "" });
        object(json!({
            "metadata": { "name": name, "namespace": self.namespace, "labels": labels(self.namespace) },
            "spec": spec,
        }))
    }
}

/// The affinity to nodes with these labels.
fn on_nodes(labels: &Labels) -> Value {
    let label = |(key, value): (&str, &str)| json!({ "key": key, "operator": "In", "values": [value] });
    let terms = json!([{ "matchExpressions": labels.iter().map(label).collect::<Vec<_>>() }]);
    json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } })
}

/// The annotations by which Prometheus is told what to scrape, where it goes by them.
fn scraped(port: u16) -> [(&'static str, String); 3] {
    [
        ("prometheus.io/scrape", "true".to_owned()),
        ("prometheus.io/port", port.to_string()),
        ("prometheus.io/path", "/metrics".to_owned()),
    ]
}

/// The ports of a service whose servers listen at this one, and that at which their pods say who they are.
pub(crate) fn ports(port: u16) -> Value {
    let of = |name: &str, protocol: &str, port: u16| json!({ "name": name, "protocol": protocol, "port": port, "targetPort": port });
    json!([of("tcp", "TCP", port), of("udp", "UDP", port), of("naming", "TCP", NAMING_PORT)])
}

/// A pod's label that lets clients find it, or, taken away, keeps them from it.
pub(crate) fn serving(is_serving: bool) -> Value {
    let value = if is_serving { json!("") } else { Value::Null };
    json!({ "metadata": { "labels": { SERVING: value } } })
}

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("what is written here is an object of its kind")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::yaml;

    fn at(distance: Distance) -> Place {
        Place { distance, nodes: None }
    }

    fn layout() -> Layout {
        let name = "other-0".to_owned();
        let addresses = [Address::Service, Address::Headless].into();
        let servers = [(name, at(Distance::OtherZone))].into();
        Layout { servers, addresses, clients: 4, clients_in_a_pod: 31, ..Layout::default() }
    }

    fn of<T>(make: impl Fn(&Common<'_>) -> T) -> T {
        let (layout, folder) = (layout(), Path::new("/runs/a"));
        make(&Common { namespace: "wirelab-1", image: "wirelab:1", folder, layout: &layout, metrics: None })
    }

    #[test]
    fn a_pod_is_scraped_where_that_is_wanted_and_only_there() {
        let of = |metrics| of(|common| common_with(common, metrics).server("other-0", &at(Distance::OtherZone)));
        let plain = of(None);
        assert_eq!((plain.metadata.annotations, plain.spec.unwrap().containers[0].ports.clone()), (None, None));
        let scraped = of(Some((Path::new("/runs/a/metrics"), 9464)));
        let annotations = scraped.metadata.annotations.unwrap();
        assert_eq!(annotations["prometheus.io/port"], "9464");
        let container = &scraped.spec.unwrap().containers[0];
        let port = &container.ports.as_ref().unwrap()[0];
        assert_eq!((port.name.as_deref(), port.container_port), (Some("metrics"), 9464));
        let command = container.command.as_ref().unwrap().join(" ");
        assert_eq!(command, "/wirelab agent wait other-0 --metrics 0.0.0.0:9464 /runs/a/metrics");
    }

    fn common_with<'a>(common: &Common<'a>, metrics: Option<(&'a Path, u16)>) -> Common<'a> {
        Common { metrics, ..common.clone() }
    }

    #[test]
    fn a_server_in_another_zone_is_an_unprivileged_pod_that_waits() {
        let expected = r#"apiVersion: "v1"
kind: "Pod"
metadata:
  labels:
    app.kubernetes.io/managed-by: "wirelab"
    wirelab/host: "other-0"
    wirelab/run: "wirelab-1"
  name: "other-0"
  namespace: "wirelab-1"
spec:
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - labelSelector:
            matchLabels:
              wirelab/host: "client"
          topologyKey: "topology.kubernetes.io/zone"
  automountServiceAccountToken: false
  containers:
    - command: ["/wirelab","agent","wait","other-0"]
      image: "wirelab:1"
      imagePullPolicy: "IfNotPresent"
      name: "wirelab"
      resources:
        limits:
          memory: "512Mi"
        requests:
          cpu: "100m"
          memory: "512Mi"
      securityContext:
        allowPrivilegeEscalation: false
        capabilities:
          drop: ["ALL"]
        readOnlyRootFilesystem: true
      volumeMounts:
        - mountPath: "/runs/a"
          name: "run"
  enableServiceLinks: false
  hostname: "wirelab"
  restartPolicy: "Never"
  securityContext:
    fsGroup: 65532
    runAsGroup: 65532
    runAsNonRoot: true
    runAsUser: 65532
    seccompProfile:
      type: "RuntimeDefault"
  subdomain: "test"
  terminationGracePeriodSeconds: 5
  volumes:
    - emptyDir: {}
      name: "run"
"#;
        assert_eq!(yaml(&of(|common| common.server("other-0", &at(Distance::OtherZone)))), expected);
    }

    #[test]
    fn pods_whose_endpoints_look_at_their_childrens_sockets_may_make_that_call_and_are_unprivileged_all_the_same() {
        let layout = Layout { has_others: true, ..layout() };
        let pod = of(|common| Common { layout: &layout, ..common.clone() }.server("other-0", &at(Distance::OtherZone)));
        let security = yaml(pod.spec.unwrap().containers[0].security_context.as_ref().unwrap());
        let expected = "allowPrivilegeEscalation: false\ncapabilities:\n  add: [\"SYS_PTRACE\"]\n  drop: [\"ALL\"]\nreadOnlyRootFilesystem: true\n";
        assert_eq!(security, expected);
    }

    #[test]
    fn the_agent_on_a_node_says_of_itself_that_it_is_privileged_and_where() {
        let expected = r#"apiVersion: "v1"
kind: "Pod"
metadata:
  labels:
    app.kubernetes.io/managed-by: "wirelab"
    wirelab/run: "wirelab-1"
  name: "node-agent-0"
  namespace: "wirelab-1"
spec:
  automountServiceAccountToken: false
  containers:
    - command: ["/wirelab","agent","wait","node-agent-0"]
      image: "wirelab:1"
      imagePullPolicy: "IfNotPresent"
      name: "wirelab"
      resources:
        limits:
          memory: "256Mi"
        requests:
          cpu: "100m"
          memory: "256Mi"
      securityContext:
        privileged: true
        runAsUser: 0
  enableServiceLinks: false
  hostPID: true
  nodeName: "a"
  restartPolicy: "Never"
  terminationGracePeriodSeconds: 5
"#;
        assert_eq!(yaml(&of(|common| common.node_agent("node-agent-0", "a"))), expected);
        let labels = |has_node_agents| {
            let namespace = namespace("wirelab-1", Path::new("/runs/a"), &Owner::this(), has_node_agents);
            namespace.metadata.labels.unwrap()
        };
        assert_eq!(labels(true)["pod-security.kubernetes.io/enforce"], "privileged");
        assert!(!labels(false).contains_key("pod-security.kubernetes.io/enforce"));
    }

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
        // One that has to be near the client is near all clients only if these are together.
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

    #[test]
    fn services_stand_for_the_servers_of_the_moment_by_an_address_a_port_of_nodes_or_a_name() {
        let expected = r#"apiVersion: "v1"
kind: "Service"
metadata:
  labels:
    app.kubernetes.io/managed-by: "wirelab"
    wirelab/run: "wirelab-1"
  name: "test"
  namespace: "wirelab-1"
spec:
  clusterIP: "None"
  selector:
    wirelab/serving: ""
"#;
        let services = of(|common| common.services());
        assert_eq!(yaml(&services[1]), expected);
        let service = services[0].spec.clone().unwrap();
        assert_eq!((service.type_.as_deref(), service.ports.map(|ports| ports.len())), (Some("ClusterIP"), Some(3)));
        let with_ports = Layout { addresses: [Address::NodePort].into(), ..layout() };
        let common =
            Common { namespace: "wirelab-1", image: "", folder: Path::new("/"), layout: &with_ports, metrics: None };
        let services = common.services();
        assert_eq!((services.len(), services[0].spec.clone().unwrap().type_.as_deref()), (1, Some("NodePort")));
    }
}
