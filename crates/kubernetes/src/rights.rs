//! wirelab's rights in a cluster: the rules that `wirelab labs rbac` prints and `wirelab doctor` checks.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;

use crate::cluster::Cluster;
use crate::names::MANAGED_BY;
use crate::nodes;
use crate::plumbing::KUBE_PROXY;
use crate::yaml::yaml;
use wirelab_lab::LabError;

/// Verbs on a resource.
#[derive(Debug, Clone, Copy)]
struct Rule {
    group: &'static str,
    resource: &'static str,
    /// Namespace and name of the only object that the rule covers; `None`: all objects.
    of: Option<(&'static str, &'static str)>,
    verbs: &'static [&'static str],
}

/// All rules. They apply to every namespace, because a run's namespace does not exist before the run.
const RULES: &[Rule] = &[
    // A namespace per run; `labs clean` finds namespaces that killed runs left.
    Rule { group: "", resource: "namespaces", of: None, verbs: &["create", "delete", "get", "list"] },
    // The zones, and the nodes' facts for each trial's record.
    Rule { group: "", resource: "nodes", of: None, verbs: &["get", "list"] },
    // The pods of client and servers: wirelab watches them, replaces lost ones, and sets the label that routes clients
    // to servers.
    Rule { group: "", resource: "pods", of: None, verbs: &["create", "delete", "list", "patch", "watch"] },
    // Endpoints run in them; the cluster's version decides between `get` and `create`.
    Rule { group: "", resource: "pods/exec", of: None, verbs: &["create", "get"] },
    // Services, updated to the port of each trial.
    Rule { group: "", resource: "services", of: None, verbs: &["create", "patch"] },
    // The endpoints of services, to see when they include all servers.
    Rule { group: "discovery.k8s.io", resource: "endpointslices", of: None, verbs: &["list", "watch"] },
    // The network plugin and the mode of kube-proxy, which every trial records. Runs work without these rights.
    Rule { group: "apps", resource: "daemonsets", of: None, verbs: &["list"] },
    Rule { group: "", resource: "configmaps", of: Some(KUBE_PROXY), verbs: &["get"] },
];

/// The cluster role with these rights, as YAML.
#[must_use]
pub fn rbac() -> String {
    let name = MANAGED_BY.1;
    let rules = RULES.iter().map(|rule| PolicyRule {
        api_groups: Some(vec![rule.group.to_owned()]),
        resources: Some(vec![rule.resource.to_owned()]),
        resource_names: rule.of.map(|(_, name)| vec![name.to_owned()]),
        verbs: rule.verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    });
    let labels = [(MANAGED_BY.0.to_owned(), name.to_owned())].into();
    let role = ClusterRole {
        metadata: ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() },
        rules: Some(rules.collect()),
        ..ClusterRole::default()
    };
    let yaml = yaml(&role);
    format!(
        "# The rights for `wirelab run --lab kubernetes` and `wirelab labs clean`. To grant them to an account:\n\
         #   wirelab labs rbac | kubectl apply --filename -\n\
         #   kubectl create clusterrolebinding wirelab --clusterrole wirelab --user NAME\n\
         # Agents on nodes are privileged pods, which wirelab makes only with {}=privileged.\n\
         # They need no other rights, but the cluster must admit privileged pods to namespaces with the label\n\
         # pod-security.kubernetes.io/enforce: privileged.\n\
         {yaml}",
        nodes::VARIABLE
    )
}

/// The version of the cluster, and the rights that the kubeconfig's user lacks, each as `verb resource`.
///
/// # Errors
/// If no cluster can be reached, or it does not answer.
pub fn lacking() -> Result<(String, Vec<String>), LabError> {
    let cluster = Cluster::connect()?;
    let api: Api<SelfSubjectAccessReview> = Api::all(cluster.client.clone());
    let mut lacking = Vec::new();
    for rule in RULES {
        for verb in rule.verbs {
            let review = review(rule, verb);
            let answer = cluster.ask("asking what this user may do", api.create(&PostParams::default(), &review))?;
            if !answer.status.is_some_and(|status| status.allowed) {
                lacking.push(format!("{verb} {}", rule.resource));
            }
        }
    }
    Ok((cluster.version.clone(), lacking))
}

fn review(rule: &Rule, verb: &str) -> SelfSubjectAccessReview {
    let (resource, subresource) = match rule.resource.split_once('/') {
        Some((resource, sub)) => (resource, Some(sub.to_owned())),
        None => (rule.resource, None),
    };
    let attributes = ResourceAttributes {
        group: Some(rule.group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(verb.to_owned()),
        namespace: rule.of.map(|(namespace, _)| namespace.to_owned()),
        name: rule.of.map(|(_, name)| name.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), non_resource_attributes: None };
    SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_has_the_rights_that_are_used_and_no_others() {
        let expected = r#"apiVersion: "rbac.authorization.k8s.io/v1"
kind: "ClusterRole"
metadata:
  labels:
    app.kubernetes.io/managed-by: "wirelab"
  name: "wirelab"
rules:
  - apiGroups: [""]
    resources: ["namespaces"]
    verbs: ["create","delete","get","list"]
  - apiGroups: [""]
    resources: ["nodes"]
    verbs: ["get","list"]
  - apiGroups: [""]
    resources: ["pods"]
    verbs: ["create","delete","list","patch","watch"]
  - apiGroups: [""]
    resources: ["pods/exec"]
    verbs: ["create","get"]
  - apiGroups: [""]
    resources: ["services"]
    verbs: ["create","patch"]
  - apiGroups: ["discovery.k8s.io"]
    resources: ["endpointslices"]
    verbs: ["list","watch"]
  - apiGroups: ["apps"]
    resources: ["daemonsets"]
    verbs: ["list"]
  - apiGroups: [""]
    resourceNames: ["kube-proxy"]
    resources: ["configmaps"]
    verbs: ["get"]
"#;
        let role: String =
            rbac().lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
        assert_eq!(role, expected);
    }
}
