//! Agents on nodes: privileged pods, created only with the user's permission, for observers that need privileges.
//!
//! They are pods, not a DaemonSet: they run only on the nodes of the trial's pods, and need no right beyond those of
//! the lab.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::sync::atomic::AtomicBool;

use crate::objects::Common;
use crate::pods::Pods;
use wirelab_lab::LabError;

/// The environment variable with the user's permission.
pub(crate) const VARIABLE: &str = "WIRELAB_KUBERNETES_NODE_AGENTS";

/// The value that gives permission; it names what it permits.
const PRIVILEGED: &str = "privileged";

/// Whether the user permits privileged pods.
///
/// # Errors
/// If the variable has another value.
pub(crate) fn are_allowed() -> Result<bool, LabError> {
    let value = env::var_os(VARIABLE);
    allowed(value.as_ref().map(|value| value.to_string_lossy()).as_deref())
}

fn allowed(value: Option<&str>) -> Result<bool, LabError> {
    match value {
        None | Some("") => Ok(false),
        Some(PRIVILEGED) => Ok(true),
        Some(other) => Err(LabError::cluster(format!("{VARIABLE} is `{other}`")).remedy(format!("set it to `{PRIVILEGED}` to let pods with all privileges count packets and system calls on the nodes of a run, or leave it out"))),
    }
}

/// The reason why metrics that need node agents are missing.
pub(crate) fn without() -> LabError {
    let remedy = format!("set {VARIABLE}={PRIVILEGED}, if you may");
    LabError::refused("it takes pods with all privileges on the nodes").remedy(remedy)
}

/// The node agents of a run.
#[derive(Debug, Default)]
pub(crate) struct NodeAgents {
    /// Pod names by node.
    by_node: BTreeMap<String, String>,
    made: usize,
}

impl NodeAgents {
    /// The agent's pod on a node.
    pub(crate) fn on(&self, node: &str) -> Result<&str, LabError> {
        let pod =
            self.by_node.get(node).ok_or_else(|| LabError::cluster(format!("there is no agent on the node {node}")))?;
        Ok(pod)
    }

    /// Creates the missing or lost agents on `nodes` and waits until they are ready.
    ///
    /// # Errors
    /// If the cluster refuses.
    pub(crate) fn ensure(&mut self, pods: &Pods, nodes: BTreeSet<String>, common: &Common<'_>) -> Result<(), LabError> {
        let known: Vec<_> = self.by_node.values().cloned().collect();
        let lost = if known.is_empty() { Vec::new() } else { pods.lost(&known, common.namespace)? };
        self.by_node.retain(|_, name| !lost.contains(name));
        let new: Vec<_> = nodes.into_iter().filter(|node| !self.by_node.contains_key(node)).collect();
        let mut names = Vec::new();
        for node in &new {
            // Names are not reused: the cluster may still be deleting a lost pod.
            let name = format!("node-agent-{}", self.made);
            self.made += 1;
            pods.create(&common.node_agent(&name, node))?;
            names.push(name);
        }
        if !names.is_empty() {
            pods.ready(&names.iter().collect::<Vec<_>>(), common, &AtomicBool::new(false))?;
        }
        self.by_node.extend(new.into_iter().zip(names));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_allowed_by_one_word_only() {
        assert_eq!((allowed(None), allowed(Some("")), allowed(Some("privileged"))), (Ok(false), Ok(false), Ok(true)));
        let why = allowed(Some("1")).unwrap_err().to_string();
        assert!(why.contains("is `1`; set it to `privileged`"), "{why}");
        assert!(without().to_string().contains("WIRELAB_KUBERNETES_NODE_AGENTS=privileged"));
    }

    #[test]
    fn one_that_is_not_there_is_named_by_its_node() {
        let why = NodeAgents::default().on("node7").unwrap_err().to_string();
        assert!(why.contains("node7"), "{why}");
    }
}
