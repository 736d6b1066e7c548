//! What the objects of a run are called, and by which labels they are found again.

use std::time::{SystemTime, UNIX_EPOCH};

use wirelab_model::network::SERVER_NAME;

/// On every object of wirelab: the label by which it is listed, and cleaned up.
pub(crate) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "wirelab");

/// On every object of a run: the run's label.
pub(crate) const RUN: &str = "wirelab/run";

/// On every pod: its name, by which other pods are placed near it or away from it.
pub(crate) const HOST: &str = "wirelab/host";

/// On the namespace of a run: who made it, as an annotation.
pub(crate) const OWNER: &str = "wirelab/owner";

/// On the namespace of a run: the run's folder, as an annotation.
pub(crate) const FOLDER: &str = "wirelab/folder";

/// The only container of a pod.
pub(crate) const CONTAINER: &str = "wirelab";

/// Where the image has wirelab.
pub(crate) const PROGRAM: &str = "/wirelab";

/// The pod of the client; of several that share a workload, of the first one.
pub(crate) const CLIENT: &str = "client";

/// The pod of the client of this number, where each has one of its own.
pub(crate) fn client(number: u32) -> String {
    if number == 0 { CLIENT.to_owned() } else { format!("{CLIENT}-{number}") }
}

/// What the names of pods begin with that are in the mesh of the cluster.
const MESHED: &str = "meshed-";

/// The pod in the mesh that stands for this one.
pub(crate) fn meshed(name: &str) -> String {
    format!("{MESHED}{name}")
}

/// The pod that a pod in the mesh stands for; absent: it is in none.
pub(crate) fn unmeshed(name: &str) -> Option<&str> {
    name.strip_prefix(MESHED)
}

/// On the pods of clients, with this value: by which they are spread over nodes.
pub(crate) const ROLE: (&str, &str) = ("wirelab/role", "client");

/// On the pods of servers that clients are to find, behind the service's address and by the name.
pub(crate) const SERVING: &str = "wirelab/serving";

/// The service with an address, and with ports of nodes.
pub(crate) const SERVICE: &str = "servers";

/// The port at which each pod says its name to whoever connects; below those of servers.
pub(crate) const NAMING_PORT: u16 = 19_999;

/// The two parts of the name that servers have in all labs, the last of which is that of the headless service. A pod that is called by the
/// first one and says that it belongs to the second is found by both in its own namespace.
pub(crate) fn name_of_servers() -> (&'static str, &'static str) {
    SERVER_NAME.split_once('.').expect("the name of the servers has two parts")
}

/// The labels by which the cluster names places.
pub(crate) const NODE_LABEL: &str = "kubernetes.io/hostname";
pub(crate) const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// A name for the namespace of a run that no other run has: the moment, and the process.
pub(crate) fn namespace() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("wirelab-{:x}-{:x}", now.as_nanos(), std::process::id())
}

/// What lists all that wirelab made.
pub(crate) fn ours() -> String {
    format!("{}={}", MANAGED_BY.0, MANAGED_BY.1)
}
