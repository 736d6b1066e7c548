//! The chart `deploy/helm/wirelab` under Helm, on the test cluster: `make test-cluster`. NODES and PROXY are the
//! settings of `make cluster`. A running cluster is used, and stays.
//!
//! One test, because starting the cluster is the most expensive step.

use std::env;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use wirelab_testkit::cluster::{Cluster, image, root, script};
use wirelab_testkit::{Said, run};

/// The name of the release and of its objects without a namespace, so that they collide with no other object in the
/// cluster.
const RELEASE: &str = "chart-test";

const NAMESPACE: &str = "wirelab-chart-test";

/// Switches every feature on, each with another value than the default.
const EVERYTHING: [&str; 10] = [
    "--set",
    "rbac.serviceAccount=runner",
    "--set",
    "dashboard.labels.team=web",
    "--set",
    "podMonitor.create=true",
    "--set",
    "podMonitor.labels.release=prometheus",
    "--set",
    "podMonitor.interval=7s",
];

/// The part of the Prometheus operator's definition that the chart uses.
const POD_MONITORS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podmonitors.monitoring.coreos.com
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: { kind: PodMonitor, listKind: PodMonitorList, plural: podmonitors, singular: podmonitor }
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              required: [selector]
              properties:
                namespaceSelector:
                  type: object
                  properties:
                    any: { type: boolean }
                selector:
                  type: object
                  properties:
                    matchLabels: { type: object, additionalProperties: { type: string } }
                podMetricsEndpoints:
                  type: array
                  items:
                    type: object
                    properties:
                      port: { type: string }
                      path: { type: string }
                      interval: { type: string }
                      honorLabels: { type: boolean }
"#;

#[test]
#[ignore = "brings a cluster up, for minutes, as root: make test-cluster"]
fn helm_installs_what_is_switched_on_and_removes_all_of_it() {
    let word = |name: &str, default: &str| env::var(name).unwrap_or_else(|_| default.to_owned());
    let Some(cluster) = Cluster::up(&word("NODES", "2"), &word("PROXY", "nftables"), &image()) else { return };
    let place = Place::made(&cluster);
    let defaults: &[&str] = &[];
    for values in [defaults, &EVERYTHING] {
        helm(&[&["lint", "--strict", &chart()], values].concat()).with_status(0);
    }
    the_defaults_are_rights_and_dashboard(&place);
    a_pod_monitor_needs_the_operator(&place);
    everything_is_accepted(&place);
    nothing_is_possible_too(&place);
}

fn chart() -> String {
    root().join("deploy/helm/wirelab").to_string_lossy().into_owned()
}

fn helm(args: &[&str]) -> Said {
    script(&[&["helm"], args].concat())
}

/// A namespace of the test. It is removed with its objects and the release, however the test ends.
struct Place<'a>(&'a Cluster);

impl<'a> Place<'a> {
    fn made(cluster: &'a Cluster) -> Self {
        let place = Self(cluster);
        place.0.kubectl(&["create", "namespace", NAMESPACE]);
        place
    }

    fn kubectl(&self, args: &[&str]) -> String {
        self.0.kubectl(&[&["--namespace", NAMESPACE], args].concat())
    }

    fn get(&self, kind: &str, name: &str) -> Value {
        serde_json::from_str(&self.kubectl(&["get", kind, name, "--output", "json"])).unwrap()
    }

    fn install(&self, values: &[&str]) -> Said {
        helm(&[&["install", RELEASE, &chart(), "--namespace", NAMESPACE], values].concat())
    }

    fn uninstall(&self) {
        helm(&["uninstall", RELEASE, "--namespace", NAMESPACE]).with_status(0);
        assert_eq!(self.objects(), [""; 0]);
    }

    /// The objects of the release, by kind and name.
    fn objects(&self) -> Vec<String> {
        let own = self.kubectl(&["get", "serviceaccounts,configmaps,secrets", "--output", "name"]);
        let of_all = self.kubectl(&["get", "clusterroles,clusterrolebindings", "--output", "name"]);
        // Objects that every namespace has.
        let everywhere = ["serviceaccount/default", "configmap/kube-root-ca.crt"];
        let own = own.lines().filter(|name| !everywhere.contains(name));
        let of_all = of_all.lines().filter(|name| name.ends_with(&format!("/{RELEASE}")));
        own.chain(of_all).map(str::to_owned).collect()
    }

    /// Whether the account has this right anywhere in the cluster.
    fn may(&self, account: &str, verb: &str, what: &str) -> bool {
        let subject = format!("system:serviceaccount:{NAMESPACE}:{account}");
        let said = self.0.try_kubectl(&["auth", "can-i", verb, what, "--all-namespaces", "--as", &subject], "");
        match said.out.trim() {
            "yes" => true,
            "no" => false,
            _ => panic!("{said:?}"),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        helm(&["uninstall", RELEASE, "--namespace", NAMESPACE, "--ignore-not-found"]);
        self.0.try_kubectl(&["delete", "namespace", NAMESPACE], "");
        self.0.try_kubectl(&["delete", "--ignore-not-found", "--filename", "-"], POD_MONITORS);
    }
}

fn the_defaults_are_rights_and_dashboard(place: &Place) {
    assert!(!place.may("wirelab", "create", "pods"));
    place.install(&[]).with_status(0);
    let expected = [
        "serviceaccount/wirelab",
        "configmap/chart-test-dashboard",
        "secret/sh.helm.release.v1.chart-test.v1",
        "clusterrole.rbac.authorization.k8s.io/chart-test",
        "clusterrolebinding.rbac.authorization.k8s.io/chart-test",
    ];
    assert_eq!(place.objects(), expected);

    let printed = run(Path::new("."), &["labs", "rbac"]).with_status(0).out;
    let read = ["create", "--dry-run=client", "--output", "json", "--filename", "-"];
    let printed: Value = serde_json::from_str(&place.0.try_kubectl(&read, &printed).with_status(0).out).unwrap();
    assert!(printed["rules"].as_array().is_some_and(|rules| !rules.is_empty()), "{printed}");
    assert_eq!(place.get("clusterrole", RELEASE)["rules"], printed["rules"]);
    assert!(place.may("wirelab", "create", "pods") && place.may("wirelab", "create", "namespaces"));
    assert!(!place.may("wirelab", "get", "secrets") && !place.may("default", "create", "pods"));

    let dashboard = place.get("configmap", "chart-test-dashboard");
    assert_eq!(dashboard["metadata"]["labels"]["grafana_dashboard"], "1");
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let file = fs::read_to_string(Path::new(&chart()).join("dashboard.json")).unwrap();
    assert_eq!(json(dashboard["data"]["wirelab.json"].as_str().unwrap()), json(&file));
    place.uninstall();
    assert!(!place.may("wirelab", "create", "pods"));
}

fn a_pod_monitor_needs_the_operator(place: &Place) {
    let said = place.install(&EVERYTHING);
    assert!(said.status != 0 && said.err.contains("PodMonitor"), "{said:?}");
    assert_eq!(place.objects(), [""; 0]);
}

fn everything_is_accepted(place: &Place) {
    place.0.apply(POD_MONITORS);
    place.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd/podmonitors.monitoring.coreos.com"]);
    place.install(&EVERYTHING).with_status(0);
    assert_eq!(place.objects().len(), 5, "{:?}", place.objects());
    assert!(place.may("runner", "create", "pods"));
    let labels = &place.get("configmap", "chart-test-dashboard")["metadata"]["labels"];
    assert_eq!((&labels["team"], &labels["grafana_dashboard"]), (&"web".into(), &"1".into()));
    let monitor = place.get("podmonitor", RELEASE);
    assert_eq!(monitor["metadata"]["labels"]["release"], "prometheus");
    // The definition knows every field; unknown fields would be missing here.
    let expected = json!({
        "namespaceSelector": { "any": true },
        "selector": { "matchLabels": { "app.kubernetes.io/managed-by": "wirelab" } },
        "podMetricsEndpoints": [{ "port": "metrics", "path": "/metrics", "interval": "7s", "honorLabels": true }],
    });
    assert_eq!(monitor["spec"], expected);
    place.uninstall();
    assert_eq!(place.kubectl(&["get", "podmonitors", "--output", "name"]), "");
}

fn nothing_is_possible_too(place: &Place) {
    place.install(&["--set", "rbac.create=false", "--set", "dashboard.create=false"]).with_status(0);
    assert_eq!(place.objects(), ["secret/sh.helm.release.v1.chart-test.v1"]);
    place.uninstall();
}
