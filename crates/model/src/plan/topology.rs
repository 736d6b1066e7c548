//! The hosts of a trial and the network between them.

use crate::link::Link;
use crate::network::Network;
use crate::nodes::Labels;
use crate::processors::Cpus;

/// The hosts of a trial and the network between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// The placement; the lab defines the names.
    pub placement: String,
    /// The emulated link, if the placement defines one.
    pub link: Option<Link>,
    /// The network between the hosts.
    pub network: Network,
    /// Whether the hosts' interfaces segment, merge and checksum packets; absent: the kernel's default.
    pub offloads: Option<bool>,
    /// Required labels of the client's node.
    pub client_nodes: Option<Labels>,
    /// Processors on which the processes may run.
    pub cpus: Cpus,
}

impl Topology {
    /// Hosts at this placement, joined directly.
    #[must_use]
    pub fn at(placement: &str) -> Self {
        let placement = placement.to_owned();
        let cpus = Cpus::Free;
        Self { placement, link: None, network: Network::Direct, offloads: None, client_nodes: None, cpus }
    }
}
