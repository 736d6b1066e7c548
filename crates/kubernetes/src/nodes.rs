//! Agents on nodes: pods with all privileges, made only when the user says so, for what nobody without them can observe.
//!
//! Pods, no DaemonSet: they are on the nodes of the trial's pods and on no others, and need no right that the lab has not anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::sync::atomic::AtomicBool;

use crate::objects::Common;
use crate::pods::Pods;
use wirelab_lab::LabError;

/// The environment variable by which the user says so.
pub(crate) const VARIABLE: &str = "WIRELAB_KUBERNETES_NODE_AGENTS";

/// What it has to be, so that nobody sets it without knowing what it allows.
const PRIVILEGED: &str = "privileged";

/// Whether there may be any.
///
/// # Errors
/// If the variable is neither absent nor what it has to be.
pub(crate) fn are_allowed() -> Result<bool, LabError> {
    let value = env::var_os(VARIABLE);
    allowed(value.as_ref().map(|value| value.to_string_lossy()).as_deref())
}

fn allowed(value: Option<&str>) -> Result<bool, LabError> {
    match value {
        None | Some("") => Ok(false),
        Some(PRIVILEGED) => Ok(true),
        Some(other) => Err(LabError(format!(
            "{VARIABLE} is `{other}`; set it to `{PRIVILEGED}` to let pods with all privileges count packets and system calls on the \
             nodes of a run, or leave it out"
        ))),
    }
}

/// Why nothing is known of what only they can observe.
pub(crate) fn without() -> String {
    format!("it takes pods with all privileges on the nodes; set {VARIABLE}={PRIVILEGED}, if you may")
}

/// Those of a run.
#[derive(Debug, Default)]
pub(crate) struct NodeAgents {
    /// Their pods, by node.
    by_node: BTreeMap<String, String>,
    made: usize,
}

impl NodeAgents {
    /// The pod of the one on a node.
    pub(crate) fn on(&self, node: &str) -> Result<&str, LabError> {
        let pod = self.by_node.get(node).ok_or_else(|| LabError(format!("there is no agent on the node {node}")))?;
        Ok(pod)
    }

    /// Makes those that are not there yet, or no more, and waits until they are ready.
    ///
    /// # Errors
    /// If the cluster refuses them.
    pub(crate) fn ensure(&mut self, pods: &Pods, nodes: BTreeSet<String>, common: &Common<'_>) -> Result<(), LabError> {
        let known: Vec<_> = self.by_node.values().cloned().collect();
        let lost = if known.is_empty() { Vec::new() } else { pods.lost(&known, common.namespace)? };
        self.by_node.retain(|_, name| !lost.contains(name));
        let new: Vec<_> = nodes.into_iter().filter(|node| !self.by_node.contains_key(node)).collect();
        let mut names = Vec::new();
        for node in &new {
            // A name is not used twice: one that was lost may still be going.
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
        let LabError(why) = allowed(Some("1")).unwrap_err();
        assert!(why.contains("is `1`; set it to `privileged`"), "{why}");
        assert!(without().contains("WIRELAB_KUBERNETES_NODE_AGENTS=privileged"));
    }

    #[test]
    fn one_that_is_not_there_is_named_by_its_node() {
        let LabError(why) = NodeAgents::default().on("node7").unwrap_err();
        assert!(why.contains("node7"), "{why}");
    }
}
