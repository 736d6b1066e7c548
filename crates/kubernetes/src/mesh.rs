//! Linkerd, the cluster's mesh: how pods join it, and how wirelab verifies that a pod is in it, or in no mesh.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Api;
use kube::api::ListParams;

use crate::cluster::Cluster;
use crate::state;
use wirelab_agent::NAMING_PORT;
use wirelab_lab::LabError;

/// The label of Linkerd's proxy injector pods, in any namespace.
const INJECTOR: &str = "linkerd.io/control-plane-component=proxy-injector";

/// The container that the injector adds.
const PROXY: &str = "linkerd-proxy";

/// The container names of known mesh proxies.
const PROXIES: [&str; 2] = [PROXY, "istio-proxy"];

/// The annotations of a pod in the mesh.
pub(crate) fn annotations() -> [(&'static str, String); 3] {
    // The naming port bypasses the proxy: kube-proxy's routing is under test there. The server also speaks first, which
    // makes a proxy wait.
    let past_the_proxy = NAMING_PORT.to_string();
    [
        ("linkerd.io/inject", "enabled".to_owned()),
        ("config.linkerd.io/skip-inbound-ports", past_the_proxy.clone()),
        ("config.linkerd.io/skip-outbound-ports", past_the_proxy),
    ]
}

/// Checks that Linkerd is installed and works.
///
/// # Errors
/// If not; names the remedy.
pub(crate) fn installed(cluster: &Cluster) -> Result<(), LabError> {
    let api: Api<Pod> = Api::all(cluster.client.clone());
    let injectors = cluster.ask("looking for Linkerd", api.list(&ListParams::default().labels(INJECTOR)))?;
    works(&injectors.items)
}

fn works(injectors: &[Pod]) -> Result<(), LabError> {
    if injectors.iter().any(|pod| state::address(pod).is_some()) {
        return Ok(());
    }
    let what = match injectors.first() {
        None => format!(
            "which is not installed in the cluster (no pod has the label {INJECTOR}); install it: `linkerd install --crds | kubectl apply \
             -f -`, then `linkerd install | kubectl apply -f -`"
        ),
        Some(pod) => format!(
            "which does not work: its injector, the pod {}, is not ready ({}); see `linkerd check`",
            pod.metadata.name.as_deref().unwrap_or_default(),
            state::hopeless(pod).map_or_else(|| state::waits_for(pod), |why| why.to_string())
        ),
    };
    Err(LabError::cluster(format!(
        "`mesh` is `linkerd`, {what}; or name an endpoint that plays sidecars (`wirelab endpoints` lists them)"
    )))
}

/// Verifies that a pod's traffic passes a mesh exactly if its trial requires it: the proxy is there and ready, or the
/// pod has none.
///
/// # Errors
/// If not; names the problem and the remedy.
pub(crate) fn proven(pod: &Pod, is_meshed: bool) -> Result<(), LabError> {
    match (is_meshed, proxy(pod)) {
        (false, None) => Ok(()),
        (false, Some(name)) => Err(LabError::cluster(format!(
            "it has a container `{name}`, so its packets pass a mesh that the cell does not name; keep that mesh from injecting into the \
             namespaces of wirelab"
        ))),
        (true, Some(PROXY)) => match status(pod, PROXY) {
            Some(status) if status.ready => Ok(()),
            _ => Err(LabError::cluster(format!(
                "its container `{PROXY}` is not ready, so it is not in the mesh; see `linkerd check --proxy`"
            ))),
        },
        (true, _) => Err(LabError::cluster(format!(
            "it asks for Linkerd's proxy by an annotation, and has no container `{PROXY}`: the injector has not seen it; see `linkerd \
             check` and the webhook `linkerd-proxy-injector-webhook-config`"
        ))),
    }
}

/// The image of a pod's proxy.
pub(crate) fn image(pod: &Pod) -> Option<String> {
    let status = status(pod, proxy(pod)?)?;
    Some(if status.image_id.is_empty() { status.image.clone() } else { status.image_id.clone() })
}

/// The name of the mesh proxy in a pod, among its containers and its init containers.
fn proxy(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    let mut names =
        spec.containers.iter().chain(spec.init_containers.iter().flatten()).map(|container| container.name.as_str());
    names.find(|name| PROXIES.contains(name))
}

fn status<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let mut all = status.container_statuses.iter().flatten().chain(status.init_container_statuses.iter().flatten());
    all.find(|one| one.name == name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A pod with these containers and init containers; `ready` names the ready ones.
    fn pod(containers: &[&str], before: &[&str], ready: &[&str]) -> Pod {
        let named = |names: &[&str]| names.iter().map(|name| json!({ "name": name })).collect::<Value>();
        let status = |names: &[&str]| -> Value {
            let of = |name: &&str| json!({ "name": name, "image": "proxy:1", "imageID": "", "ready": ready.contains(name), "restartCount": 0 });
            names.iter().map(of).collect()
        };
        serde_json::from_value(json!({
            "metadata": { "name": "a" },
            "spec": { "containers": named(containers), "initContainers": named(before) },
            "status": { "containerStatuses": status(containers), "initContainerStatuses": status(before) },
        }))
        .unwrap()
    }

    #[test]
    fn a_pod_is_in_the_mesh_with_its_proxy_ready_beside_it_or_before_it() {
        let both = ["wirelab", PROXY];
        for meshed in [pod(&both, &[], &both), pod(&["wirelab"], &["linkerd-init", PROXY], &both)] {
            assert_eq!(proven(&meshed, true), Ok(()));
            assert_eq!(image(&meshed).as_deref(), Some("proxy:1"));
            let why = proven(&meshed, false).unwrap_err().to_string();
            assert!(why.contains("a container `linkerd-proxy`"), "{why}");
        }
        let late = proven(&pod(&both, &[], &["wirelab"]), true).unwrap_err().to_string();
        assert!(late.contains("is not ready") && late.contains("linkerd check --proxy"), "{late}");
    }

    #[test]
    fn a_pod_without_its_proxy_is_in_no_mesh() {
        let plain = pod(&["wirelab"], &[], &["wirelab"]);
        assert_eq!((proven(&plain, false), image(&plain)), (Ok(()), None));
        let why = proven(&plain, true).unwrap_err().to_string();
        assert!(why.contains("has no container `linkerd-proxy`") && why.contains("linkerd check"), "{why}");
        let other = pod(&["wirelab", "istio-proxy"], &[], &["wirelab", "istio-proxy"]);
        assert!(proven(&other, true).is_err(), "the mesh of another operator");
        assert!(proven(&other, false).unwrap_err().to_string().contains("`istio-proxy`"));
    }

    #[test]
    fn without_linkerd_or_its_injector_the_remedy_is_named() {
        let why = works(&[]).unwrap_err().to_string();
        assert!(why.contains("`linkerd install | kubectl apply -f -`") && why.contains("plays sidecars"), "{why}");
        let waiting = pod(&["proxy-injector"], &[], &[]);
        let why = works(std::slice::from_ref(&waiting)).unwrap_err().to_string();
        assert!(why.contains("the pod a, is not ready") && why.contains("`linkerd check`"), "{why}");
        let ready = serde_json::from_value(json!({
            "metadata": { "name": "b" },
            "status": { "podIP": "10.0.0.9", "conditions": [{ "type": "Ready", "status": "True" }] },
        }));
        assert_eq!(works(&[waiting, ready.unwrap()]), Ok(()));
    }
}
