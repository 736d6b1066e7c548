//! A Kubernetes cluster's overlay network on two nodes: pods behind veth pairs, and VXLAN (RFC 7348) between the nodes.
//!
//! Built as Calico builds it: pods have an address of their own and know but one neighbour, their node; nodes route each
//! address to its pod, and those of the other node's pods into the VXLAN device. A packet from pod to pod passes four interfaces
//! on either node: the pod's, its other end, the VXLAN device, and the node's own. All neighbours are known from the
//! start, so nothing is ever asked on the wire.

use std::io;
use std::net::Ipv4Addr;

use wirelab_model::network::Servers;

use crate::netns::interface::{self, End};
use crate::netns::namespace::Namespace;
use crate::netns::settings;

/// Bytes that VXLAN adds to each packet: the inner Ethernet header, and those of VXLAN, UDP and IPv4.
pub(crate) const ENCAPSULATION: u32 = 14 + 8 + 8 + 20;

/// The interface of a pod.
pub(crate) const POD_INTERFACE: &str = "eth0";

const TUNNEL: &str = "vxlan0";

/// What pods take for their router; it answers for every address.
const ROUTER: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);

/// Calico's network identifier, and the port that RFC 7348 assigns.
const IDENTIFIER: u32 = 4096;
const PORT: u16 = 4789;

/// The network of the pods of a node, and how many of its bits are fixed.
const fn pods(node: usize) -> (Ipv4Addr, u8) {
    (Ipv4Addr::new(10, 79, node as u8 + 1, 0), 24)
}

/// The address of a pod of a node.
pub(crate) const fn address(node: usize, pod: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 79, node as u8 + 1, pod as u8 + 1)
}

/// The node and the pod of the client, and of the server of this number.
pub(crate) const CLIENT: (usize, u32) = (0, 0);

pub(crate) const fn server(servers: Servers, number: u32) -> (usize, u32) {
    if servers.is_near(number) { (0, 1 + number) } else { (1, number - servers.near) }
}

/// The pods of both nodes; they stay until the end, so that a later trial finds them.
pub(crate) struct Overlay {
    pods: [Vec<Namespace>; 2],
}

impl Overlay {
    /// Makes routers of the nodes, and the tunnel between them.
    pub(crate) fn build(nodes: &[Namespace; 2]) -> io::Result<Self> {
        for (node, namespace) in nodes.iter().enumerate() {
            settings::route(namespace)?;
            let end = End { namespace, name: TUNNEL, mac: mac(node, 0xff, false) };
            interface::tunnel(end, IDENTIFIER, PORT)?;
            let (own, other) = (tunnel_address(node), tunnel_address(1 - node));
            interface::assign(namespace, TUNNEL, own, 32)?;
            interface::introduce(namespace, TUNNEL, other, mac(1 - node, 0xff, false))?;
            interface::route(namespace, pods(1 - node), TUNNEL, Some(other))?;
        }
        Ok(Self { pods: [Vec::new(), Vec::new()] })
    }

    /// Leads the tunnel from node to node: the address of each on the network that joins them.
    pub(crate) fn lead(&self, nodes: &[Namespace; 2], through: [Ipv4Addr; 2]) -> io::Result<()> {
        for (node, namespace) in nodes.iter().enumerate() {
            interface::lead(namespace, TUNNEL, mac(1 - node, 0xff, false), through[1 - node])?;
        }
        Ok(())
    }

    /// Makes the pods that are missing for the client and these servers.
    pub(crate) fn populate(&mut self, nodes: &[Namespace; 2], servers: Servers) -> io::Result<()> {
        for (node, wanted) in [1 + servers.near, servers.far].into_iter().enumerate() {
            for number in self.pods[node].len() as u32..wanted {
                let pod = pod(&nodes[node], node, number)?;
                self.pods[node].push(pod);
            }
        }
        Ok(())
    }

    /// Sets the MTU of the tunnel and of every pod for a network between the nodes with this one.
    pub(crate) fn set_mtu(&self, nodes: &[Namespace; 2], outer: u32) -> io::Result<()> {
        let mtu = outer - ENCAPSULATION;
        for (node, namespace) in nodes.iter().enumerate() {
            interface::set_mtu(namespace, TUNNEL, mtu)?;
            for (number, pod) in self.pods[node].iter().enumerate() {
                interface::set_mtu(namespace, &name(number as u32), mtu)?;
                interface::set_mtu(pod, POD_INTERFACE, mtu)?;
            }
        }
        Ok(())
    }

    pub(crate) fn pod(&self, (node, number): (usize, u32)) -> &Namespace {
        &self.pods[node][number as usize]
    }
}

fn pod(node: &Namespace, number_of_node: usize, number: u32) -> io::Result<Namespace> {
    let pod = Namespace::create()?;
    settings::apply(&pod)?;
    let name = name(number);
    let outer = End { namespace: node, name: &name, mac: mac(number_of_node, number as u8, true) };
    let inner = End { namespace: &pod, name: POD_INTERFACE, mac: mac(number_of_node, number as u8, false) };
    interface::pair(outer, inner)?;
    interface::bring_up(node, &name)?;
    interface::bring_up(&pod, POD_INTERFACE)?;
    let own = address(number_of_node, number);
    interface::assign(&pod, POD_INTERFACE, own, 32)?;
    interface::introduce(&pod, POD_INTERFACE, ROUTER, outer.mac)?;
    interface::route(&pod, (ROUTER, 32), POD_INTERFACE, None)?;
    interface::route(&pod, (Ipv4Addr::UNSPECIFIED, 0), POD_INTERFACE, Some(ROUTER))?;
    interface::introduce(node, &name, own, inner.mac)?;
    interface::route(node, (own, 32), &name, None)?;
    Ok(pod)
}

/// The node's end of a pod's veth pair.
fn name(pod: u32) -> String {
    format!("pod{pod}")
}

/// Beyond those of the pods.
fn tunnel_address(node: usize) -> Ipv4Addr {
    address(node, 0xfd)
}

fn mac(node: usize, number: u8, is_outer: bool) -> [u8; 6] {
    // Locally administered, so that it is nobody's.
    [0x02, 0x79, node as u8, 0, u8::from(is_outer), number]
}
