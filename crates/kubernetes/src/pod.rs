//! The pods of a run: unprivileged pods that wait for endpoints, and privileged node agents, if the user allows them.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Map, Value, json};

use crate::mesh;
use crate::names::{CLIENT, CONTAINER, HOST, PROGRAM, ROLE, SERVING};
use crate::objects::{Common, labels, object};
use wirelab_agent::SUBCOMMAND;

/// Memory request and limit of a pod in MiB, and the increment for each further client in a pod. Request and limit are
/// equal, so that the pod is among the last to be evicted. Processors have no limit, because throttling would distort
/// the measurement.
pub(crate) const MEMORY_MIB: usize = 512;
const MEMORY_OF_ANOTHER_MIB: usize = 32;
const PROCESSOR: &str = "100m";

/// Memory request and limit of a node agent, including the packet rings.
const MEMORY_OF_NODE_AGENT: &str = "256Mi";

/// An unprivileged user id that neither the image nor the nodes use.
const USER: u32 = 65532;

/// Grace period of a pod's end in seconds. A pod ends at once, unless it is stuck.
const GRACE_S: u32 = 5;

impl Common<'_> {
    /// The memory of a client's pod: all clients of a timeline share the first.
    pub(crate) fn memory_mib(&self, client: &str) -> usize {
        let others = if client == CLIENT { self.layout.clients_in_a_pod.saturating_sub(1) } else { 0 };
        MEMORY_MIB + MEMORY_OF_ANOTHER_MIB * others
    }

    /// The pod of a node agent: it sees all processes of the node and has root's rights on them.
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

    /// A waiting pod with this much memory; `more` is merged into its spec.
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
                // Suppresses environment variables for each service of the namespace; no program reads them.
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

    /// The pod's annotations, if it has any.
    fn annotations(&self, name: &str) -> Option<Map<String, Value>> {
        let scraped = self.metrics.into_iter().flat_map(|(_, port)| scraped(port));
        let meshed = self.layout.meshed.contains(name).then(mesh::annotations).into_iter().flatten();
        let all: Map<_, _> = scraped.chain(meshed).map(|(key, value)| (key.to_owned(), value.into())).collect();
        (!all.is_empty()).then_some(all)
    }

    /// Endpoints that run their library as a child program copy its sockets (pidfd_getfd) to set and read socket
    /// options. The kernel allows this on child processes, but the default seccomp profile of container runtimes
    /// forbids the call without this capability. The user is not root, so no process ever has the capability; it
    /// changes the profile only.
    fn capabilities(&self) -> Value {
        match self.layout.has_others {
            true => json!({ "drop": ["ALL"], "add": ["SYS_PTRACE"] }),
            false => json!({ "drop": ["ALL"] }),
        }
    }
}

/// The annotations by which Prometheus finds the pod's metrics, if it is configured to use them.
fn scraped(port: u16) -> [(&'static str, String); 3] {
    [
        ("prometheus.io/scrape", "true".to_owned()),
        ("prometheus.io/port", port.to_string()),
        ("prometheus.io/path", "/metrics".to_owned()),
    ]
}

/// The patch that adds or removes the label which routes clients to a pod.
pub(crate) fn serving(is_serving: bool) -> Value {
    let value = if is_serving { json!("") } else { Value::Null };
    json!({ "metadata": { "labels": { SERVING: value } } })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use wirelab_model::placement::Distance;

    use super::*;
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
    fn the_manifest_of_an_agent_on_a_node_is_as_agreed() {
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
