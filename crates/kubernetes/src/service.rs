//! Services: made with the run, led to the port of each trial's servers, and used only when they are proven to lead there.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::agent::{Kind, SUBCOMMAND};
use crate::call::output;
use crate::names::{NAMING_PORT, PROGRAM, SERVICE};
use crate::objects::{Common, ports};
use crate::pods::Pods;
use wirelab_lab::LabError;

/// The label by which the slices of a service are found.
const OF_SERVICE: &str = "kubernetes.io/service-name";

/// How long the cluster may take to lead a service to another port.
const LEADING: Duration = Duration::from_secs(30);

/// How often it is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often each server has to have answered by chance before the service is believed: a server that does not is found out
/// with a probability of 98 %.
const PROBES: u32 = 4;

/// Makes the services of a run; gives the address of the one that has one.
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

/// The ports of nodes that stand for those of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodePorts {
    /// That of the servers.
    pub(crate) servers: u16,
    /// That at which pods say who they are.
    pub(crate) naming: u16,
}

/// Orders that the service leads to this port; gives the ports of nodes, where it has such.
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

/// Waits until so many servers answer at this address, seen from the pod of a client.
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
    let deadline = Instant::now() + LEADING;
    let (target, times) = (address.to_string(), (PROBES * servers as u32).to_string());
    let command = [PROGRAM, SUBCOMMAND, "probe", kind.word(), &target, &times];
    loop {
        // Its node learns of the change in its own time, which nothing but a packet can find out.
        match output(&pods.cluster, &pods.api, client, &command, Vec::new(), deadline) {
            Ok(_) => return Ok(()),
            Err(LabError(why)) if Instant::now() > deadline => {
                return Err(LabError(format!("{address} does not lead the client to its servers: {why}")));
            }
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// The addresses that a service has endpoints of.
///
/// # Errors
/// If the cluster does not say.
pub(crate) fn ready(pods: &Pods, namespace: &str, service: &str) -> Result<BTreeSet<IpAddr>, LabError> {
    let api: Api<EndpointSlice> = Api::namespaced(pods.cluster.client.clone(), namespace);
    let of_service = ListParams::default().labels(&format!("{OF_SERVICE}={service}"));
    let slices = pods.cluster.ask(&format!("looking at the endpoints of {service}"), api.list(&of_service))?;
    Ok(of_slices(&slices.items))
}

fn of_slices(slices: &[EndpointSlice]) -> BTreeSet<IpAddr> {
    let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
    let ready = endpoints
        .filter(|endpoint| endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready.unwrap_or(true)));
    ready.flat_map(|endpoint| &endpoint.addresses).filter_map(|address| address.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(of_slices(&slices), ["10.0.0.1", "10.0.0.3"].map(|address| address.parse().unwrap()).into());
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
}
