//! What a pod of a run is: it waits, without privileges; and, where the user allows it, with all of them.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Map, Value, json};

use crate::agent::SUBCOMMAND;
use crate::mesh;
use crate::names::{CLIENT, CONTAINER, HOST, PROGRAM, ROLE, SERVING};
use crate::objects::{Common, labels, object};

/// What a pod asks for, and may use of memory, in MiB; the client's so much more for each client but the first. With request and limit
/// equal it is among the last to be evicted. There is no limit on processors: what throttling does would be measured.
pub(crate) const MEMORY_MIB: usize = 512;
const MEMORY_OF_ANOTHER_MIB: usize = 32;
const PROCESSOR: &str = "100m";

/// What an agent on a node asks for, and may use: the rings of packets that it looks at are in it.
const MEMORY_OF_NODE_AGENT: &str = "256Mi";

/// A user that is nobody in particular, in the image and on the nodes.
const USER: u32 = 65532;

/// How long a pod may take to end. It ends at once, unless it is stuck.
const GRACE_S: u32 = 5;

impl Common<'_> {
    /// What a client's pod asks for: all clients of a timeline are in the first one.
    pub(crate) fn memory_mib(&self, client: &str) -> usize {
        let others = if client == CLIENT { self.layout.clients_in_a_pod.saturating_sub(1) } else { 0 };
        MEMORY_MIB + MEMORY_OF_ANOTHER_MIB * others
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
                    "command": [PROGRAM, SUBCOMMAND, "wait", name],
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
    pub(crate) fn pod(&self, name: &str, memory_mib: usize, more: Value) -> Pod {
        let memory = format!("{memory_mib}Mi");
        let mut labels = labels(self.namespace);
        labels.insert(HOST.to_owned(), name.into());
        if !self.layout.servers.contains_key(name) {
            labels.insert(ROLE.0.to_owned(), ROLE.1.into());
        }
        let mut command = vec![PROGRAM.to_owned(), SUBCOMMAND.to_owned(), "wait".to_owned(), name.to_owned()];
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
}

/// The annotations by which Prometheus is told what to scrape, where it goes by them.
fn scraped(port: u16) -> [(&'static str, String); 3] {
    [
        ("prometheus.io/scrape", "true".to_owned()),
        ("prometheus.io/port", port.to_string()),
        ("prometheus.io/path", "/metrics".to_owned()),
    ]
}

/// A pod's label that lets clients find it, or, taken away, keeps them from it.
pub(crate) fn serving(is_serving: bool) -> Value {
    let value = if is_serving { json!("") } else { Value::Null };
    json!({ "metadata": { "labels": { SERVING: value } } })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::distance::Distance;
    use crate::layout::Layout;
    use crate::objects::tests::{at, layout, of};
    use crate::yaml::yaml;

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
    }
}
