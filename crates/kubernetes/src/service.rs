//! The services of a run: created with it, updated to the port of each trial's servers, and verified before use.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wirelab_model::network::Address;

use crate::change::SAYING;
use crate::names::{SERVICE, SERVING, name_of_servers};
use crate::objects::{Common, labels, object};
use crate::pods::Pods;
use crate::watch::{Only, Watch};
use wirelab_agent::{Kind, NAMING_PORT, ROUTING_TIMEOUT, output};
use wirelab_lab::LabError;

/// The label of a service's endpoint slices.
const OF_SERVICE: &str = "kubernetes.io/service-name";

/// Probes per server. A server that does not answer is detected with a probability of 98 %.
const PROBES: u32 = 4;

impl Common<'_> {
    /// The services in front of each trial's servers: one with an address (and node ports, if any job needs them), and
    /// a headless one.
    fn services(&self) -> Vec<Service> {
        let has = |address| self.layout.addresses.contains(&address);
        let mut services = Vec::new();
        if has(Address::Service) || has(Address::NodePort) {
            let kind = if has(Address::NodePort) { "NodePort" } else { "ClusterIP" };
            // The port changes with each trial; a service needs one from the start.
            services.push(self.service(SERVICE, json!({ "type": kind, "ports": ports(1) })));
        }
        if has(Address::Headless) {
            services.push(self.service(name_of_servers().1, json!({ "clusterIP": "None" })));
        }
        services
    }

    fn service(&self, name: &str, mut spec: Value) -> Service {
        spec["selector"] = json!({ SERVING: "" });
        object(json!({
            "metadata": { "name": name, "namespace": self.namespace, "labels": labels(self.namespace) },
            "spec": spec,
        }))
    }
}

/// The ports of a service: that of the servers, and the naming port.
fn ports(port: u16) -> Value {
    let of = |name: &str, protocol: &str, port: u16| json!({ "name": name, "protocol": protocol, "port": port, "targetPort": port });
    json!([of("tcp", "TCP", port), of("udp", "UDP", port), of("naming", "TCP", NAMING_PORT)])
}

/// Creates the services of a run; returns the address of the service that has one.
///
/// # Errors
/// If the cluster refuses.
pub(crate) fn make(pods: &Pods, common: &Common<'_>) -> Result<Option<IpAddr>, LabError> {
    let api: Api<Service> = Api::namespaced(pods.cluster.client.clone(), common.namespace);
    let mut address = None;
    for service in common.services() {
        let attempt = format!("making the service {}", service.metadata.name.as_deref().unwrap_or_default());
        let made = pods.cluster.ask(&attempt, api.create(&PostParams::default(), &service))?;
        address = address.or(made.spec.and_then(|spec| spec.cluster_ip).and_then(|address| address.parse().ok()));
    }
    Ok(address)
}

/// The node ports of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodePorts {
    /// The node port of the servers.
    pub(crate) servers: u16,
    /// The node port of [`NAMING_PORT`].
    pub(crate) naming: u16,
}

/// Updates the service to the servers' port; returns its node ports, if it has any.
///
/// # Errors
/// If the cluster refuses.
pub(crate) fn lead(pods: &Pods, namespace: &str, port: u16, kind: Kind) -> Result<Option<NodePorts>, LabError> {
    let api: Api<Service> = Api::namespaced(pods.cluster.client.clone(), namespace);
    let change = Patch::Merge(json!({ "spec": { "ports": ports(port) } }));
    let attempt = format!("leading the service {SERVICE} to port {port}");
    let led = pods.cluster.ask(&attempt, api.patch(SERVICE, &PatchParams::default(), &change))?;
    Ok(led.spec.and_then(|spec| node_ports(&spec.ports.unwrap_or_default(), port, kind)))
}

fn node_ports(all: &[ServicePort], port: u16, kind: Kind) -> Option<NodePorts> {
    let of = |port: u16, protocol: &str| {
        let mut found =
            all.iter().filter(|one| one.port == i32::from(port) && one.protocol.as_deref() == Some(protocol));
        u16::try_from(found.next()?.node_port?).ok()
    };
    Some(NodePorts { servers: of(port, kind.transport())?, naming: of(NAMING_PORT, "TCP")? })
}

/// Waits until this many servers answer at this address, as seen from a client's pod.
///
/// # Errors
/// If they do not in time.
pub(crate) fn prove(
    pods: &Pods,
    client: &str,
    address: SocketAddr,
    servers: usize,
    kind: Kind,
) -> Result<(), LabError> {
    let (target, times) = (address.to_string(), (PROBES * servers as u32).to_string());
    let command = ["probe", kind.word(), &target, &times];
    let deadline = Instant::now() + ROUTING_TIMEOUT + SAYING;
    output(&pods.remote(client), &command, Vec::new(), deadline)
        .map(drop)
        .map_err(|error| LabError::cluster(format!("{address} does not lead the client to its servers")).because(error))
}

/// Watches the endpoint slices of a service.
///
/// # Errors
/// If the cluster refuses.
pub(crate) fn watch(pods: &Pods, namespace: &str, service: &str) -> Result<Watch<EndpointSlice>, LabError> {
    let api = Api::namespaced(pods.cluster.client.clone(), namespace);
    let of_service = Only::Labels(format!("{OF_SERVICE}={service}"));
    Watch::begin(&pods.cluster, &api, &format!("the endpoints of {service}"), of_service)
}

/// The addresses of the ready endpoints.
pub(crate) fn ready<'a>(slices: impl Iterator<Item = &'a EndpointSlice>) -> BTreeSet<IpAddr> {
    let endpoints = slices.flat_map(|slice| &slice.endpoints);
    let ready = endpoints
        .filter(|endpoint| endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready.unwrap_or(true)));
    ready.flat_map(|endpoint| &endpoint.addresses).filter_map(|address| address.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::layout::Layout;
    use crate::objects::tests::{layout, of};
    use crate::yaml::yaml;

    #[test]
    fn only_endpoints_that_are_ready_count() {
        let slice = |ready: bool, address: &str| -> EndpointSlice {
            serde_json::from_value(json!({
                "metadata": {}, "addressType": "IPv4", "ports": [{ "name": "tcp", "port": 20_000, "protocol": "TCP" }],
                "endpoints": [{ "addresses": [address], "conditions": { "ready": ready } }],
            }))
            .unwrap()
        };
        let slices = [slice(true, "10.0.0.1"), slice(false, "10.0.0.2"), slice(true, "10.0.0.3")];
        assert_eq!(
            super::ready(slices.iter()),
            ["10.0.0.1", "10.0.0.3"].map(|address| address.parse().unwrap()).into()
        );
    }

    #[test]
    fn the_port_of_nodes_is_that_of_what_the_servers_speak_over() {
        let mut all: Vec<ServicePort> = serde_json::from_value(ports(20_000)).unwrap();
        assert_eq!(node_ports(&all, 20_000, Kind::Tcp), None, "a service without such ports");
        for (port, node_port) in all.iter_mut().zip([30_001, 30_002, 30_003]) {
            port.node_port = Some(node_port);
        }
        let of = |kind| node_ports(&all, 20_000, kind).unwrap();
        assert_eq!(of(Kind::Tcp), NodePorts { servers: 30_001, naming: 30_003 });
        assert_eq!(of(Kind::Quic), NodePorts { servers: 30_002, naming: 30_003 });
    }

    #[test]
    fn services_stand_for_the_servers_of_the_moment_by_an_address_a_port_of_nodes_or_a_name() {
        let expected = r#"apiVersion: "v1"
kind: "Service"
metadata:
  labels:
    app.kubernetes.io/managed-by: "wirelab"
    wirelab/run: "wirelab-1"
  name: "test"
  namespace: "wirelab-1"
spec:
  clusterIP: "None"
  selector:
    wirelab/serving: ""
"#;
        let services = of(|common| common.services());
        assert_eq!(yaml(&services[1]), expected);
        let service = services[0].spec.clone().unwrap();
        assert_eq!((service.type_.as_deref(), service.ports.map(|ports| ports.len())), (Some("ClusterIP"), Some(3)));
        let with_ports = Layout { addresses: [Address::NodePort].into(), ..layout() };
        let common =
            Common { namespace: "wirelab-1", image: "", folder: Path::new("/"), layout: &with_ports, metrics: None };
        let services = common.services();
        assert_eq!((services.len(), services[0].spec.clone().unwrap().type_.as_deref()), (1, Some("NodePort")));
    }
}
