//! The state of a pod, from its status: ready, waiting, or lost, with the reason.

use std::fmt;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};

use crate::names::CONTAINER;
use wirelab_agent::Loss;

/// Why a pod will never become ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hopeless {
    /// It no longer works.
    Lost(Loss),
    /// The node cannot get its image.
    Image { reason: String, message: String },
    /// The node cannot create its container.
    Container { reason: String, message: String },
}

impl fmt::Display for Hopeless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(loss) => f.write_str(&loss.what),
            Self::Image { reason, message } | Self::Container { reason, message } => write!(f, "{reason}: {message}"),
        }
    }
}

/// The address of a ready pod; `None` if it is not ready.
pub(crate) fn address(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    // Uses the pod's condition, not the container's: only the pod's is withdrawn when the node is lost.
    let mut conditions = status.conditions.iter().flatten();
    let is_ready =
        conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True") && loss(pod).is_none();
    status.pod_ip.clone().filter(|_| is_ready)
}

/// Why a pod will never become ready; `None` if it still may.
pub(crate) fn hopeless(pod: &Pod) -> Option<Hopeless> {
    if let Some(loss) = loss(pod) {
        return Some(Hopeless::Lost(loss));
    }
    let waiting = container(pod)?.state.as_ref()?.waiting.as_ref()?;
    let (reason, message) = (waiting.reason.clone()?, waiting.message.clone());
    let message = message.unwrap_or_else(|| "no message".to_owned());
    match reason.as_str() {
        "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => Some(Hopeless::Image { reason, message }),
        "CreateContainerConfigError" | "CreateContainerError" => Some(Hopeless::Container { reason, message }),
        _ => None,
    }
}

/// The reason that a pod reports for not being ready.
pub(crate) fn waits_for(pod: &Pod) -> String {
    let waiting = container(pod).and_then(|container| container.state.as_ref()?.waiting.clone());
    let unscheduled = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut unscheduled =
        unscheduled.filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    let text = |reason: Option<String>, message: Option<String>| {
        [reason, message].into_iter().flatten().collect::<Vec<_>>().join(": ")
    };
    let words = match (waiting, unscheduled.next_back()) {
        (Some(waiting), _) => text(waiting.reason, waiting.message),
        (None, Some(condition)) => text(condition.reason.clone(), condition.message.clone()),
        (None, None) => String::new(),
    };
    if words.is_empty() { "it says nothing".to_owned() } else { words }
}

/// Why a pod no longer works; `None` if it works or is still starting.
pub(crate) fn loss(pod: &Pod) -> Option<Loss> {
    let of_place = |what: String| Some(Loss { what, is_memory: false });
    let status = pod.status.as_ref();
    let message = |reason: &str, message: Option<&String>| match message {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        _ => reason.to_owned(),
    };
    // A disruption explains more than the end of the container that follows from it.
    let disrupted = status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut disrupted =
        disrupted.filter(|condition| condition.type_ == "DisruptionTarget" && condition.status == "True");
    if let Some(condition) = disrupted.next() {
        let reason = condition.reason.as_deref().unwrap_or("evicted");
        return of_place(message(reason, condition.message.as_ref()));
    }
    if let Some(reason) = status.and_then(|status| status.reason.as_ref()) {
        return of_place(message(reason, status.and_then(|status| status.message.as_ref())));
    }
    let container = container(pod);
    let ended = container.and_then(|container| {
        let now = container.state.as_ref().and_then(|state| state.terminated.as_ref());
        now.or_else(|| container.last_state.as_ref().and_then(|state| state.terminated.as_ref()))
    });
    if let Some(ended) = ended {
        let reason = ended.reason.as_deref().unwrap_or("its container ended");
        let limit = container.and_then(|_| memory_limit(pod)).unwrap_or_else(|| "unknown".to_owned());
        let is_memory = reason == "OOMKilled";
        let what = if is_memory {
            format!("{reason}: more memory than the pod's limit of {limit}")
        } else {
            format!("{reason}, exit status {}", ended.exit_code)
        };
        return Some(Loss { what, is_memory });
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return of_place("it is being deleted".to_owned());
    }
    let phase = status.and_then(|status| status.phase.as_deref());
    phase.filter(|phase| matches!(*phase, "Failed" | "Succeeded")).and_then(|phase| of_place(format!("phase {phase}")))
}

/// The status of wirelab's container; a mesh may have added others.
fn container(pod: &Pod) -> Option<&ContainerStatus> {
    let mut all = pod.status.as_ref()?.container_statuses.iter().flatten();
    all.find(|container| container.name == CONTAINER)
}

fn memory_limit(pod: &Pod) -> Option<String> {
    let is_ours = |container: &&Container| container.name == CONTAINER;
    let resources = pod.spec.as_ref()?.containers.iter().find(is_ours)?.resources.as_ref()?;
    resources.limits.as_ref()?.get("memory").map(|limit| limit.0.clone())
}

/// The image that the pod runs, with its digest.
pub(crate) fn image(pod: &Pod) -> Option<String> {
    container(pod).map(|container| container.image_id.clone()).filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: Value) -> Pod {
        let limits = json!({ "limits": { "memory": "512Mi" } });
        let containers = json!([{ "name": "wirelab", "resources": limits }]);
        serde_json::from_value(json!({ "metadata": {}, "spec": { "containers": containers }, "status": status }))
            .unwrap()
    }

    fn with(state: Value, ready: bool) -> Value {
        json!({ "name": "wirelab", "image": "", "imageID": "x@sha256:1", "ready": ready, "restartCount": 0, "state": state })
    }

    #[test]
    fn a_pod_is_ready_with_its_container_and_has_then_an_address() {
        let of = |ready: &str| {
            let conditions = [json!({ "type": "Ready", "status": ready })];
            let container = with(json!({ "running": {} }), true);
            pod(
                json!({ "phase": "Running", "podIP": "10.0.0.7", "conditions": conditions, "containerStatuses": [container] }),
            )
        };
        let ready = of("True");
        assert_eq!((address(&ready), loss(&ready), hopeless(&ready)), (Some("10.0.0.7".to_owned()), None, None));
        assert_eq!(image(&ready), Some("x@sha256:1".to_owned()));
        let not_yet = of("False");
        assert_eq!((address(&not_yet), hopeless(&not_yet)), (None, None));
    }

    #[test]
    fn a_pod_that_waits_says_for_what_and_whether_in_vain() {
        let unscheduled =
            json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes" });
        let pending = pod(json!({ "phase": "Pending", "conditions": [unscheduled] }));
        assert_eq!((waits_for(&pending).as_str(), hopeless(&pending)), ("Unschedulable: 0/2 nodes", None));
        let waiting = |reason: &str| {
            let state = json!({ "waiting": { "reason": reason, "message": "no such image" } });
            pod(json!({ "phase": "Pending", "containerStatuses": [with(state, false)] }))
        };
        assert_eq!(hopeless(&waiting("ErrImagePull")), None, "it is tried again");
        assert_eq!(hopeless(&waiting("ImagePullBackOff")).unwrap().to_string(), "ImagePullBackOff: no such image");
    }

    #[test]
    fn the_loss_of_a_pod_has_its_reason() {
        let killed = with(json!({ "terminated": { "reason": "OOMKilled", "exitCode": 137 } }), false);
        let out_of_memory = loss(&pod(json!({ "phase": "Failed", "containerStatuses": [killed.clone()] }))).unwrap();
        assert!(out_of_memory.is_memory && out_of_memory.what.contains("limit of 512Mi"), "{out_of_memory:?}");
        let full = "The node was low on resource: memory.";
        let evicted = loss(&pod(json!({ "phase": "Failed", "reason": "Evicted", "message": full }))).unwrap();
        assert_eq!(evicted, Loss { what: format!("Evicted: {full}"), is_memory: false });
        let target = json!({ "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "by x" });
        let by_api = loss(&pod(json!({ "conditions": [target], "containerStatuses": [killed] }))).unwrap();
        assert_eq!(by_api, Loss { what: "EvictionByEvictionAPI: by x".to_owned(), is_memory: false });
        let mut deleted = pod(json!({ "phase": "Running" }));
        deleted.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        assert_eq!(loss(&deleted).unwrap().what, "it is being deleted");
    }
}
