//! The overlay network of a Kubernetes cluster with two nodes: pods behind veth pairs, and VXLAN (RFC 7348) between
//! the nodes.
//!
//! It follows Calico: each pod has its own address and its node as the only neighbour. A node routes addresses of its
//! pods to their veth pairs, and those of the other node's pods into the VXLAN device. A packet between pods of both
//! nodes passes four interfaces on each: the pod's, its peer, the VXLAN device, and the node's own. All neighbour
//! entries are static, so no ARP requests are sent.

use std::io;
use std::net::Ipv4Addr;

use wirelab_model::network::Servers;

use crate::netns::interface::{self, End};
use crate::netns::namespace::Namespace;
use crate::netns::settings;

/// Bytes that VXLAN adds to each packet: the inner Ethernet header, and the headers of VXLAN, UDP and IPv4.
pub(crate) const ENCAPSULATION: u32 = 14 + 8 + 8 + 20;

/// Interface name in a pod.
pub(crate) const POD_INTERFACE: &str = "eth0";

const TUNNEL: &str = "vxlan0";

/// Gateway of the pods; the node answers for every address.
const ROUTER: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);

/// Calico's network identifier, and the port that RFC 7348 assigns.
const IDENTIFIER: u32 = 4096;
const PORT: u16 = 4789;

/// Network of a node's pods, with its prefix length.
const fn pods(node: usize) -> (Ipv4Addr, u8) {
    (Ipv4Addr::new(10, 79, node as u8 + 1, 0), 24)
}

/// Address of a pod.
pub(crate) const fn address(node: usize, pod: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 79, node as u8 + 1, pod as u8 + 1)
}

/// Node and pod number of the client.
pub(crate) const CLIENT: (usize, u32) = (0, 0);

pub(crate) const fn server(servers: Servers, number: u32) -> (usize, u32) {
    if servers.is_near(number) { (0, 1 + number) } else { (1, number - servers.near) }
}

/// The pods of both nodes. They stay until the end, for later trials.
pub(crate) struct Overlay {
    pods: [Vec<Namespace>; 2],
}

impl Overlay {
    /// Makes the nodes routers, and creates the tunnel between them.
    pub(crate) fn build(nodes: &[Namespace; 2]) -> io::Result<Self> {
        for (node, namespace) in nodes.iter().enumerate() {
            settings::route(namespace)?;
            let end = End { namespace, name: TUNNEL, mac: mac(node, 0xff, false) };
            interface::tunnel(end, IDENTIFIER, PORT)?;
            let (own, other) = (tunnel_address(node), tunnel_address(1 - node));
            interface::assign(namespace, TUNNEL, own, 32)?;
            interface::add_neighbour(namespace, TUNNEL, other, mac(1 - node, 0xff, false))?;
            interface::route(namespace, pods(1 - node), TUNNEL, Some(other))?;
        }
        Ok(Self { pods: [Vec::new(), Vec::new()] })
    }

    /// Sets the outer addresses of the tunnel: the nodes' addresses on the network between them.
    pub(crate) fn set_tunnel(&self, nodes: &[Namespace; 2], through: [Ipv4Addr; 2]) -> io::Result<()> {
        for (node, namespace) in nodes.iter().enumerate() {
            interface::add_tunnel_entry(namespace, TUNNEL, mac(1 - node, 0xff, false), through[1 - node])?;
        }
        Ok(())
    }

    /// Creates missing pods for the client and these servers.
    pub(crate) fn populate(&mut self, nodes: &[Namespace; 2], servers: Servers) -> io::Result<()> {
        for (node, wanted) in [1 + servers.near, servers.far].into_iter().enumerate() {
            for number in self.pods[node].len() as u32..wanted {
                let pod = pod(&nodes[node], node, number)?;
                self.pods[node].push(pod);
            }
        }
        Ok(())
    }

    /// Sets the MTU of the tunnel and of every pod, derived from the MTU of the network between the nodes.
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
    interface::add_neighbour(&pod, POD_INTERFACE, ROUTER, outer.mac)?;
    interface::route(&pod, (ROUTER, 32), POD_INTERFACE, None)?;
    interface::route(&pod, (Ipv4Addr::UNSPECIFIED, 0), POD_INTERFACE, Some(ROUTER))?;
    interface::add_neighbour(node, &name, own, inner.mac)?;
    interface::route(node, (own, 32), &name, None)?;
    Ok(pod)
}

/// Name of the node's end of a pod's veth pair.
fn name(pod: u32) -> String {
    format!("pod{pod}")
}

/// Above the addresses of pods.
fn tunnel_address(node: usize) -> Ipv4Addr {
    address(node, 0xfd)
}

fn mac(node: usize, number: u8, is_outer: bool) -> [u8; 6] {
    // Locally administered, so it conflicts with no device.
    [0x02, 0x79, node as u8, 0, u8::from(is_outer), number]
}
