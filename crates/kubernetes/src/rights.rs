//! What wirelab may do in a cluster, and nothing more: the rules that `wirelab labs rbac` prints and that `wirelab doctor` asks for.

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

/// A right, and what it is for.
#[derive(Debug, Clone, Copy)]
struct Rule {
    group: &'static str,
    resource: &'static str,
    /// Of this object only, in the namespace of the pair's first word; absent: of all.
    of: Option<(&'static str, &'static str)>,
    verbs: &'static [&'static str],
}

/// All of them. They hold in every namespace, because that of a run does not exist before it.
const RULES: &[Rule] = &[
    // A namespace for each run; `labs clean` finds those that were left.
    Rule { group: "", resource: "namespaces", of: None, verbs: &["create", "delete", "get", "list"] },
    // Which zones there are, and what each trial ran on.
    Rule { group: "", resource: "nodes", of: None, verbs: &["get", "list"] },
    // The pods of client and servers; it is waited for what becomes of them, a lost one is replaced, and a label says whom clients are to
    // find.
    Rule { group: "", resource: "pods", of: None, verbs: &["create", "delete", "list", "patch", "watch"] },
    // Endpoints are started in them; whether that is `get` or `create` depends on the version of the cluster.
    Rule { group: "", resource: "pods/exec", of: None, verbs: &["create", "get"] },
    // Services, led to the port of each trial.
    Rule { group: "", resource: "services", of: None, verbs: &["create", "patch"] },
    // When these lead to all servers.
    Rule { group: "discovery.k8s.io", resource: "endpointslices", of: None, verbs: &["list", "watch"] },
    // What the network is made of, which every trial records: the plugin, and the mode of kube-proxy. A run goes on without.
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

/// The rights that the user of the kubeconfig lacks, each as `verb resource`, and the version of the cluster.
///
/// # Errors
/// If there is no cluster, or it does not answer.
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
