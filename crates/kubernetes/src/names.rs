//! Names and labels of a run's objects.

use std::time::{SystemTime, UNIX_EPOCH};

use wirelab_model::network::SERVER_NAME;

/// Label of every object of wirelab, to list and remove them.
pub(crate) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "wirelab");

/// Label of every object of a run: the run.
pub(crate) const RUN: &str = "wirelab/run";

/// Label of every pod: its name, which affinities of other pods refer to.
pub(crate) const HOST: &str = "wirelab/host";

/// Annotation of a run's namespace: the process that made it.
pub(crate) const OWNER: &str = "wirelab/owner";

/// Annotation of a run's namespace: the run's folder.
pub(crate) const FOLDER: &str = "wirelab/folder";

/// The container of wirelab in a pod.
pub(crate) const CONTAINER: &str = "wirelab";

/// The path of wirelab in the image.
pub(crate) const PROGRAM: &str = "/wirelab";

/// The pod of the only or first client.
pub(crate) const CLIENT: &str = "client";

/// The pod of a client, if each client has its own.
pub(crate) fn client(number: u32) -> String {
    if number == 0 { CLIENT.to_owned() } else { format!("{CLIENT}-{number}") }
}

/// Prefix of the names of pods in the mesh.
const MESHED: &str = "meshed-";

/// The name of a pod's counterpart in the mesh.
pub(crate) fn meshed(name: &str) -> String {
    format!("{MESHED}{name}")
}

/// The name of the counterpart outside the mesh; `None` if the pod is not in the mesh.
pub(crate) fn unmeshed(name: &str) -> Option<&str> {
    name.strip_prefix(MESHED)
}

/// Label of client pods, by which they are spread over nodes.
pub(crate) const ROLE: (&str, &str) = ("wirelab/role", "client");

/// Label of the servers that clients are routed to, by the service's address and by name.
pub(crate) const SERVING: &str = "wirelab/serving";

/// The service with an address, and with node ports.
pub(crate) const SERVICE: &str = "servers";

/// Hostname and subdomain of the name that servers have in all labs. The subdomain is the headless service's name. A
/// pod with this hostname and subdomain is found by this name within its namespace.
pub(crate) fn name_of_servers() -> (&'static str, &'static str) {
    SERVER_NAME.split_once('.').expect("the name of the servers has two parts")
}

/// The cluster's labels of nodes and zones.
pub(crate) const NODE_LABEL: &str = "kubernetes.io/hostname";
pub(crate) const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// A unique name for a run's namespace, from the time and the process id.
pub(crate) fn namespace() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("wirelab-{:x}-{:x}", now.as_nanos(), std::process::id())
}

/// The selector of all objects of wirelab.
pub(crate) fn ours() -> String {
    format!("{}={}", MANAGED_BY.0, MANAGED_BY.1)
}
