//! Services: made with the run, led to the port of each trial's servers, and used only when they are proven to lead there.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::agent::{Kind, SUBCOMMAND};
use crate::exec::output;
use crate::names::{self, CLIENT, PROGRAM};
use crate::objects::{Common, ports};
use crate::pods::Pods;
use wirelab_lab::LabError;

/// The label by which the slices of a service are found.
const OF_SERVICE: &str = "kubernetes.io/service-name";

/// How long the cluster may take to lead a service to new servers.
const LEADING: Duration = Duration::from_secs(30);

/// How often it is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often each server has to have answered by chance before the service is believed: a server that does not is found out
/// with a probability of 98 %.
const PROBES: u32 = 4;

/// Makes a service; gives its address, which a headless one has not.
///
/// # Errors
/// If the cluster refuses.
pub(crate) fn make(pods: &Pods, common: &Common<'_>, set: usize, headless: bool) -> Result<Option<IpAddr>, LabError> {
    let api: Api<Service> = Api::namespaced(pods.cluster.client.clone(), common.namespace);
    let service = common.service(set, headless);
    let attempt = format!("making the service {}", names::service(set, headless));
    let made = pods.cluster.ask(&attempt, api.create(&PostParams::default(), &service))?;
    Ok(made.spec.and_then(|spec| spec.cluster_ip).and_then(|address| address.parse().ok()))
}

/// Leads a service to the servers at this port, and waits until it leads the client there.
///
/// # Errors
/// If it does not in time; says what was missing.
pub(crate) fn lead(
    pods: &Pods,
    namespace: &str,
    set: usize,
    address: IpAddr,
    port: u16,
    servers: &BTreeSet<IpAddr>,
    kind: Kind,
) -> Result<(), LabError> {
    let name = names::service(set, false);
    let api: Api<Service> = Api::namespaced(pods.cluster.client.clone(), namespace);
    let change = Patch::Merge(json!({ "spec": { "ports": ports(port) } }));
    let attempt = format!("leading the service {name} to port {port}");
    pods.cluster.ask(&attempt, api.patch(&name, &PatchParams::default(), &change))?;
    let deadline = Instant::now() + LEADING;
    await_slices(pods, namespace, &name, Some(port), servers, deadline)?;
    let (target, times) = (format!("{address}:{port}"), (PROBES * servers.len() as u32).to_string());
    let command = [PROGRAM, SUBCOMMAND, "probe", kind.word(), &target, &times];
    loop {
        // Its node learns of the change in its own time, which nothing but a packet can find out.
        match output(&pods.cluster, &pods.api, CLIENT, &command, Vec::new(), deadline) {
            Ok(_) => return Ok(()),
            Err(LabError(why)) if Instant::now() > deadline => {
                return Err(LabError(format!("the service {name} does not lead the client to its servers: {why}")));
            }
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// Waits until the name of a headless service resolves to its servers in the client's pod.
///
/// # Errors
/// If it does not in time.
pub(crate) fn await_name(pods: &Pods, namespace: &str, set: usize, servers: &BTreeSet<IpAddr>) -> Result<(), LabError> {
    let name = names::service(set, true);
    let deadline = Instant::now() + LEADING;
    await_slices(pods, namespace, &name, None, servers, deadline)?;
    let command = [PROGRAM, SUBCOMMAND, "resolve", &name];
    loop {
        let said = output(&pods.cluster, &pods.api, CLIENT, &command, Vec::new(), deadline);
        let found = said.map(|said| addresses(&String::from_utf8_lossy(&said)));
        if found.as_ref() == Ok(servers) {
            return Ok(());
        }
        if Instant::now() > deadline {
            let found = found.map_or_else(|LabError(why)| why, |found| format!("it resolves to {found:?}"));
            return Err(LabError(format!(
                "the name {name} does not resolve to {servers:?} in the client's pod: {found}"
            )));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn addresses(text: &str) -> BTreeSet<IpAddr> {
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

fn await_slices(
    pods: &Pods,
    namespace: &str,
    service: &str,
    port: Option<u16>,
    servers: &BTreeSet<IpAddr>,
    deadline: Instant,
) -> Result<(), LabError> {
    let api: Api<EndpointSlice> = Api::namespaced(pods.cluster.client.clone(), namespace);
    let of_service = ListParams::default().labels(&format!("{OF_SERVICE}={service}"));
    loop {
        let slices = pods.cluster.ask(&format!("looking at the endpoints of {service}"), api.list(&of_service))?;
        let ready = ready(&slices.items, port);
        if ready == *servers {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(LabError(format!(
                "the service {service} has the endpoints {ready:?}, not {servers:?}; are its servers ready, and does the \
                 controller of endpoint slices run?"
            )));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The addresses that are ready, in slices with this port.
fn ready(slices: &[EndpointSlice], port: Option<u16>) -> BTreeSet<IpAddr> {
    let with_port = |slice: &&EndpointSlice| {
        port.is_none_or(|port| slice.ports.iter().flatten().any(|of_slice| of_slice.port == Some(port.into())))
    };
    let endpoints = slices.iter().filter(with_port).flat_map(|slice| &slice.endpoints);
    let ready = endpoints
        .filter(|endpoint| endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready.unwrap_or(true)));
    ready.flat_map(|endpoint| &endpoint.addresses).filter_map(|address| address.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_endpoints_that_are_ready_at_the_port_count() {
        let slice = |port: i32, ready: bool, address: &str| -> EndpointSlice {
            serde_json::from_value(json!({
                "metadata": {}, "addressType": "IPv4", "ports": [{ "name": "tcp", "port": port, "protocol": "TCP" }],
                "endpoints": [{ "addresses": [address], "conditions": { "ready": ready } }],
            }))
            .unwrap()
        };
        let slices = [slice(20_000, true, "10.0.0.1"), slice(20_000, false, "10.0.0.2"), slice(1, true, "10.0.0.3")];
        assert_eq!(ready(&slices, Some(20_000)), BTreeSet::from(["10.0.0.1".parse().unwrap()]));
        assert_eq!(ready(&slices, None).len(), 2);
        assert_eq!(addresses("10.0.0.1\n10.0.0.2\n").len(), 2);
    }
}
