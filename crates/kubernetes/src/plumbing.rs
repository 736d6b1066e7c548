//! The cluster's network, as far as its objects show it: the network plugin, and how services are routed.
//!
//! No API reports either. Network plugins run as DaemonSets with known names, or annotate nodes. The mode of kube-proxy
//! is in its ConfigMap, as kubeadm and tools based on it write it.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Api;
use kube::api::ListParams;
use wirelab_model::event::Configured;

use crate::cluster::{Cluster, is_missing};
use wirelab_lab::LabError;

/// Namespace and name of kube-proxy's ConfigMap.
pub(crate) const KUBE_PROXY: (&str, &str) = ("kube-system", "kube-proxy");

/// Network plugins: name, prefix of their DaemonSets' names, prefix of their annotations on nodes.
const PLUGINS: &[(&str, &str, &str)] = &[
    ("calico", "calico-node", "projectcalico.org/"),
    ("canal", "canal", "projectcalico.org/"),
    ("cilium", "cilium", "network.cilium.io/"),
    ("flannel", "kube-flannel", "flannel.alpha.coreos.com/"),
    ("antrea", "antrea-agent", "node.antrea.io/"),
    ("ovn-kubernetes", "ovnkube-node", "k8s.ovn.org/"),
    ("amazon-vpc", "aws-node", "vpc.amazonaws.com/"),
    ("azure", "azure-cni", "azure-cni."),
    ("kindnet", "kindnet", "kindnet."),
    ("kube-router", "kube-router", "kube-router.io/"),
    ("weave", "weave-net", "weave.works/"),
];

/// The network plugin (`cni`) and the mode of kube-proxy (`kube_proxy`), or why they are not known. Missing facts do
/// not fail a run.
pub(crate) fn facts(cluster: &Cluster, nodes: &[Node]) -> Configured {
    let cni = daemon_sets(cluster).map(|names| plugin(&names, nodes));
    let kube_proxy = kube_proxy(cluster);
    let told = |known: Result<String, LabError>| known.unwrap_or_else(|error| format!("not known: {error}"));
    [("cni", told(cni)), ("kube_proxy", told(kube_proxy))]
        .map(|(fact, value)| (fact.to_owned(), value.into()))
        .into_iter()
        .collect()
}

fn daemon_sets(cluster: &Cluster) -> Result<Vec<String>, LabError> {
    let api: Api<DaemonSet> = Api::all(cluster.client.clone());
    let all = cluster.ask("listing the DaemonSets, to name the network plugin", api.list(&ListParams::default()))?;
    Ok(all.items.into_iter().filter_map(|one| one.metadata.name).collect())
}

/// The plugin of these DaemonSets, or of the annotations on these nodes.
fn plugin(daemon_sets: &[String], nodes: &[Node]) -> String {
    let noted = || nodes.iter().flat_map(|node| node.metadata.annotations.iter().flatten()).map(|(key, _)| key);
    let by_name = |(_, name, _): &&(&str, &str, &str)| daemon_sets.iter().any(|set| set.starts_with(name));
    let by_note = |(.., note): &&(&str, &str, &str)| noted().any(|key| key.starts_with(note));
    let found = PLUGINS.iter().find(by_name).or_else(|| PLUGINS.iter().find(by_note));
    found.map_or_else(
        || "not known: no DaemonSet and no annotation of a node names it".to_owned(),
        |(plugin, ..)| (*plugin).to_owned(),
    )
}

fn kube_proxy(cluster: &Cluster) -> Result<String, LabError> {
    let (namespace, name) = KUBE_PROXY;
    let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), namespace);
    let asked = async {
        match api.get(name).await {
            Err(error) if is_missing(&error) => Ok(None),
            other => other.map(Some),
        }
    };
    let map = cluster.ask(&format!("reading the ConfigMap {namespace}/{name}"), asked)?;
    let missing = || LabError::cluster(format!("there is no ConfigMap {namespace}/{name} with a configuration of it"));
    let data = map.and_then(|map| map.data).ok_or_else(missing)?;
    data.values().find_map(|text| mode(text)).ok_or_else(missing)
}

/// The mode in kube-proxy's configuration. If it is empty, kube-proxy uses its default on Linux (kubernetes.io,
/// *Virtual IPs*).
fn mode(configuration: &str) -> Option<String> {
    if !configuration.contains("KubeProxyConfiguration") {
        return None;
    }
    let value = configuration.lines().find_map(|line| line.strip_prefix("mode:"))?;
    let value = value.trim().trim_matches(['"', '\'']);
    Some(if value.is_empty() { "iptables (by default)".to_owned() } else { value.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_plugin_is_known_by_its_daemon_set_or_by_what_it_notes_on_nodes() {
        let node = |key: &str| serde_json::from_value(json!({ "metadata": { "annotations": { key: "x" } } })).unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(plugin(&names(&["kube-proxy", "cilium"]), &[]), "cilium");
        assert_eq!(plugin(&names(&["kube-flannel-ds"]), &[node("a/b")]), "flannel");
        assert_eq!(plugin(&names(&["kube-proxy"]), &[node("a/b"), node("projectcalico.org/IPv4Address")]), "calico");
        assert!(plugin(&names(&["kube-proxy"]), &[node("a/b")]).starts_with("not known: "));
    }

    #[test]
    fn the_mode_of_kube_proxy_is_read_from_its_configuration() {
        let with = |line: &str| {
            format!(
                "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n{line}\nwinkernel: {{}}\n"
            )
        };
        assert_eq!(mode(&with("mode: nftables")).as_deref(), Some("nftables"));
        assert_eq!(mode(&with("mode: \"ipvs\"")).as_deref(), Some("ipvs"));
        assert_eq!(mode(&with("mode: \"\"")).as_deref(), Some("iptables (by default)"));
        assert_eq!(mode(&with("bindAddress: 0.0.0.0")), None);
        assert_eq!(mode("apiVersion: v1\nkind: Config\nmode: x\n"), None, "another file of the same ConfigMap");
    }
}
