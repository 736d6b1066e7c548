//! Namespaces that killed runs left in a cluster: found by their labels, and removed.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, ListParams};

use crate::cluster::{Cluster, is_missing};
use crate::names::{FOLDER, OWNER, ours};
use crate::owner::{Owner, State};
use wirelab_lab::LabError;

/// The namespace of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Its name.
    pub namespace: String,
    /// The folder of the run.
    pub folder: String,
    /// Whether the run still needs the namespace.
    pub fate: Fate,
}

/// The state of a run's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The run is in progress.
    InUse,
    /// The run has ended and left the namespace behind.
    Left,
    /// The run's process is, or was, on this other machine; only that machine can tell.
    Elsewhere(String),
    /// The cluster is deleting the namespace.
    Going,
}

/// Every namespace of a run in the cluster; `None` if no cluster is configured.
///
/// # Errors
/// If the configured cluster cannot be reached, or it refuses.
pub fn find() -> Result<Option<Vec<Left>>, LabError> {
    let Some(cluster) = Cluster::connect_if_configured()? else { return Ok(None) };
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let all = cluster.ask("listing the namespaces of wirelab", api.list(&ListParams::default().labels(&ours())))?;
    Ok(Some(all.items.iter().filter_map(left).collect()))
}

/// Removes a namespace and everything in it.
///
/// # Errors
/// If the cluster refuses.
pub fn remove(namespace: &str) -> Result<(), LabError> {
    delete(&Cluster::connect()?, namespace)
}

pub(crate) fn delete(cluster: &Cluster, namespace: &str) -> Result<(), LabError> {
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let deleted = async {
        match api.delete(namespace, &DeleteParams::default()).await {
            Err(error) if is_missing(&error) => Ok(()),
            other => other.map(drop),
        }
    };
    cluster.ask(&format!("removing the namespace {namespace}"), deleted)
}

/// `None` if the namespace has no owner: it belongs to no run, whatever its labels are.
fn left(namespace: &Namespace) -> Option<Left> {
    let annotations = namespace.metadata.annotations.as_ref()?;
    let owner: Owner = serde_json::from_str(annotations.get(OWNER)?).ok()?;
    let fate = match owner.state() {
        _ if namespace.metadata.deletion_timestamp.is_some() => Fate::Going,
        State::Alive => Fate::InUse,
        State::Gone => Fate::Left,
        State::Elsewhere(machine) => Fate::Elsewhere(machine),
    };
    let folder = annotations.get(FOLDER).cloned().unwrap_or_default();
    Some(Left { namespace: namespace.metadata.name.clone()?, folder, fate })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::objects;

    #[test]
    fn a_namespace_is_left_when_its_owner_is_gone_and_strangers_are_not_looked_at() {
        let made = |owner: &Owner| objects::namespace("wirelab-1", Path::new("/runs/quick"), owner, false);
        let of = |namespace: &Namespace| left(namespace).map(|left| (left.folder, left.fate));
        let mut owner = Owner::this();
        assert_eq!(of(&made(&owner)), Some(("/runs/quick".to_owned(), Fate::InUse)));
        owner.host = "another".to_owned();
        assert_eq!(of(&made(&owner)), Some(("/runs/quick".to_owned(), Fate::Elsewhere("another".to_owned()))));
        let mut stranger = made(&Owner::this());
        stranger.metadata.annotations = None;
        assert_eq!(of(&stranger), None);
    }
}
