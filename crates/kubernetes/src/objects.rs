//! The objects that a run makes: its namespace, pods that wait for work, and services.

use std::path::Path;

use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::names::{self, CLIENT, CONTAINER, FOLDER, HOST, MANAGED_BY, NODE_LABEL, OWNER, PROGRAM, RUN, ZONE_LABEL};
use crate::owner::Owner;
use crate::place::{Distance, Layout};

/// What a pod asks for, and may use of memory. With the two equal it is among the last to be evicted. There is no limit on
/// processors: what throttling does would be measured.
const MEMORY: &str = "512Mi";
const PROCESSOR: &str = "100m";

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
}

/// The namespace of a run.
pub(crate) fn namespace(name: &str, folder: &Path, owner: &Owner) -> Namespace {
    let owner = serde_json::to_string(owner).expect("an owner always serialises");
    object(json!({
        "metadata": {
            "name": name,
            "labels": labels(name),
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
        self.pod(CLIENT, json!({ "nodeAffinity": required }))
    }

    /// The pod of a server, at this distance from the client.
    pub(crate) fn server(&self, name: &str, distance: Distance) -> Pod {
        let client = json!({ HOST: CLIENT });
        let term = |key: &str| json!([{ "labelSelector": { "matchLabels": client }, "topologyKey": key }]);
        let near = |key: &str| json!({ "requiredDuringSchedulingIgnoredDuringExecution": term(key) });
        let affinity = match distance {
            Distance::SameNode => json!({ "podAffinity": near(NODE_LABEL) }),
            Distance::SameZone => json!({ "podAffinity": near(ZONE_LABEL), "podAntiAffinity": near(NODE_LABEL) }),
            Distance::OtherZone => json!({ "podAntiAffinity": near(ZONE_LABEL) }),
        };
        self.pod(name, affinity)
    }

    fn pod(&self, name: &str, affinity: Value) -> Pod {
        let mut labels = labels(self.namespace);
        labels.insert(HOST.to_owned(), name.into());
        labels.extend(self.layout.set_labels(name).map(|label| (label, "".into())));
        object(json!({
            "metadata": { "name": name, "namespace": self.namespace, "labels": labels },
            "spec": {
                "affinity": affinity,
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
                    "command": [PROGRAM, super::agent::SUBCOMMAND, "wait"],
                    "securityContext": {
                        "allowPrivilegeEscalation": false,
                        "readOnlyRootFilesystem": true,
                        "capabilities": { "drop": ["ALL"] },
                    },
                    "resources": {
                        "requests": { "cpu": PROCESSOR, "memory": MEMORY },
                        "limits": { "memory": MEMORY },
                    },
                    "volumeMounts": [{ "name": "run", "mountPath": self.folder.display().to_string() }],
                }],
                "volumes": [{ "name": "run", "emptyDir": {} }],
            }
        }))
    }

    /// The service of a set.
    pub(crate) fn service(&self, set: usize, headless: bool) -> Service {
        let selector = json!({ names::set_label(set): "" });
        let spec = if headless {
            json!({ "clusterIP": "None", "selector": selector })
        } else {
            // The port is that of a trial's servers; one has to be named before there are any.
            json!({ "type": "ClusterIP", "selector": selector, "ports": ports(1) })
        };
        let name = names::service(set, headless);
        object(json!({
            "metadata": { "name": name, "namespace": self.namespace, "labels": labels(self.namespace) },
            "spec": spec,
        }))
    }
}

/// The ports of a service whose servers listen at this one.
pub(crate) fn ports(port: u16) -> Value {
    json!([
        { "name": "tcp", "protocol": "TCP", "port": port, "targetPort": port },
        { "name": "udp", "protocol": "UDP", "port": port, "targetPort": port },
    ])
}

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("what is written here is an object of its kind")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::yaml::yaml;

    fn layout() -> Layout {
        let name = "other-0".to_owned();
        Layout {
            servers: [(name.clone(), Distance::OtherZone)].into(),
            sets: vec![BTreeSet::from([name])],
            services: [(0, false), (0, true)].into(),
        }
    }

    fn of<T>(make: impl Fn(&Common<'_>) -> T) -> T {
        make(&Common { namespace: "wirelab-1", image: "wirelab:1", folder: Path::new("/runs/a"), layout: &layout() })
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
    wirelab/set-0: ""
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
    - command: ["/wirelab","agent","wait"]
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
  restartPolicy: "Never"
  securityContext:
    fsGroup: 65532
    runAsGroup: 65532
    runAsNonRoot: true
    runAsUser: 65532
    seccompProfile:
      type: "RuntimeDefault"
  terminationGracePeriodSeconds: 5
  volumes:
    - emptyDir: {}
      name: "run"
"#;
        assert_eq!(yaml(&of(|common| common.server("other-0", Distance::OtherZone))), expected);
    }

    #[test]
    fn placement_is_affinity_to_the_client_which_is_on_one_of_the_nodes_that_fit() {
        let affinity = |pod: Pod| yaml(&pod.spec.unwrap().affinity.unwrap());
        let client = affinity(of(|common| common.client(&["a".to_owned(), "b".to_owned()])));
        assert!(client.contains("key: \"kubernetes.io/hostname\"") && client.contains("[\"a\",\"b\"]"), "{client}");
        let near = affinity(of(|common| common.server("near-0", Distance::SameNode)));
        assert!(near.starts_with("podAffinity:") && near.contains("hostname") && !near.contains("zone"), "{near}");
        let zone = affinity(of(|common| common.server("zone-0", Distance::SameZone)));
        let (to, from) = zone.split_once("podAntiAffinity:").unwrap();
        assert!(to.contains("topology.kubernetes.io/zone") && from.contains("kubernetes.io/hostname"), "{zone}");
    }

    #[test]
    fn a_service_stands_for_its_set_with_or_without_an_address() {
        let expected = r#"apiVersion: "v1"
kind: "Service"
metadata:
  labels:
    app.kubernetes.io/managed-by: "wirelab"
    wirelab/run: "wirelab-1"
  name: "set-0-all"
  namespace: "wirelab-1"
spec:
  clusterIP: "None"
  selector:
    wirelab/set-0: ""
"#;
        assert_eq!(yaml(&of(|common| common.service(0, true))), expected);
        let service = of(|common| common.service(0, false)).spec.unwrap();
        assert_eq!((service.type_.as_deref(), service.ports.map(|ports| ports.len())), (Some("ClusterIP"), Some(2)));
    }
}
