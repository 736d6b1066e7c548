//! The values that all objects of a run share, and the run's namespace.

use std::path::Path;

use k8s_openapi::api::core::v1::Namespace;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::layout::Layout;
use crate::names::{FOLDER, MANAGED_BY, OWNER, RUN};
use crate::owner::Owner;

/// The values that all objects of a run share.
#[derive(Debug, Clone)]
pub(crate) struct Common<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) image: &'a str,
    /// The run's folder. It has the same path in each pod, so that paths in specs are valid there.
    pub(crate) folder: &'a Path,
    pub(crate) layout: &'a Layout,
    /// The folder of the endpoints' sockets, and the port for Prometheus; `None`: metrics are not exported.
    pub(crate) metrics: Option<(&'a Path, u16)>,
}

/// The namespace of a run. With `has_node_agents` it admits privileged pods.
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

/// The labels of every object of a run.
pub(crate) fn labels(run: &str) -> Map<String, Value> {
    [(MANAGED_BY.0, MANAGED_BY.1), (RUN, run)].map(|(key, value)| (key.to_owned(), value.into())).into_iter().collect()
}

/// Converts a JSON literal to an object.
pub(crate) fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("what is written here is an object of its kind")
}

#[cfg(test)]
pub(crate) mod tests {
    use wirelab_model::network::Address;
    use wirelab_model::placement::Distance;

    use super::*;
    use crate::distance::Place;

    pub(crate) fn at(distance: Distance) -> Place {
        Place { distance, nodes: None }
    }

    pub(crate) fn layout() -> Layout {
        let name = "other-0".to_owned();
        let addresses = [Address::Service, Address::Headless].into();
        let servers = [(name, at(Distance::OtherZone))].into();
        Layout { servers, addresses, clients: 4, clients_in_a_pod: 31, ..Layout::default() }
    }

    pub(crate) fn of<T>(make: impl Fn(&Common<'_>) -> T) -> T {
        let (layout, folder) = (layout(), Path::new("/runs/a"));
        make(&Common { namespace: "wirelab-1", image: "wirelab:1", folder, layout: &layout, metrics: None })
    }

    #[test]
    fn a_namespace_admits_privileged_pods_only_where_there_are_agents_on_nodes() {
        let labels = |has_node_agents| {
            let namespace = namespace("wirelab-1", Path::new("/runs/a"), &Owner::this(), has_node_agents);
            namespace.metadata.labels.unwrap()
        };
        assert_eq!(labels(true)["pod-security.kubernetes.io/enforce"], "privileged");
        assert!(!labels(false).contains_key("pod-security.kubernetes.io/enforce"));
    }
}
