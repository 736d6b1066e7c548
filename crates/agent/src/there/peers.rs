//! The packets of a server for observers on its node, and the interface through which they leave that node.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use wirelab_model::network::Between;

/// A server's pod, and the clients on other nodes that it exchanges packets with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peers {
    /// The address of the server's pod.
    pub own: IpAddr,
    /// The addresses of the clients' pods on other nodes.
    pub clients: BTreeSet<IpAddr>,
    /// The addresses of these nodes.
    pub nodes: BTreeSet<IpAddr>,
}

/// Written as one argument: no address contains a comma or a slash.
impl fmt::Display for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |all: &BTreeSet<IpAddr>| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        write!(f, "{}/{}/{}", self.own, list(&self.clients), list(&self.nodes))
    }
}

impl FromStr for Peers {
    type Err = io::Error;

    fn from_str(word: &str) -> io::Result<Self> {
        let wrong = || io::Error::other(format!("`{word}` names no peers; is its wirelab of another version?"));
        let list = |text: &str| -> io::Result<BTreeSet<IpAddr>> {
            text.split(',').filter(|word| !word.is_empty()).map(|word| word.parse().map_err(|_| wrong())).collect()
        };
        let [own, clients, nodes] = word.split('/').collect::<Vec<_>>()[..] else { return Err(wrong()) };
        Ok(Self { own: own.parse().map_err(|_| wrong())?, clients: list(clients)?, nodes: list(nodes)? })
    }
}

impl Peers {
    /// The hosts whose packets are the server's.
    pub(crate) fn between(&self) -> Between {
        Between { these: [self.own].into(), those: self.clients.clone() }
    }

    /// The node's interface towards the clients' nodes, from the routes in `/proc/net/route`.
    pub(crate) fn interface<'a>(&self, routes: &'a str) -> io::Result<&'a str> {
        let lead = |node: &IpAddr| match node {
            IpAddr::V4(node) => interface(routes, *node)
                .ok_or_else(|| io::Error::other(format!("the server's node has no route to the client's node {node}"))),
            IpAddr::V6(_) => Err(io::Error::other("the routes of nodes are known here for IPv4 only")),
        };
        let found = self.nodes.iter().map(lead).collect::<io::Result<BTreeSet<_>>>()?;
        let mut found = found.into_iter();
        match (found.next(), found.next()) {
            (Some(interface), None) => Ok(interface),
            (Some(_), Some(_)) => {
                Err(io::Error::other("the server's node reaches those of the clients by several interfaces"))
            }
            (None, _) => Err(io::Error::other("the addresses of the clients' nodes are not known")),
        }
    }
}

/// Flags of a route (linux/route.h): in use; rejecting.
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;

/// The interface of the route to an address: longest prefix first, then lowest metric.
fn interface(routes: &str, to: Ipv4Addr) -> Option<&str> {
    let routes = routes.lines().skip(1).filter_map(|line| {
        // Iface Destination Gateway Flags RefCnt Use Metric Mask ...; addresses in memory order as hexadecimal numbers.
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok();
        let (destination, flags, mask) = (number(1)?, number(3)?, number(7)?);
        let metric: u32 = words.get(6)?.parse().ok()?;
        let leads = u32::from_ne_bytes(to.octets()) & mask == destination && flags & (UP | REJECT) == UP;
        leads.then_some((mask.count_ones(), std::cmp::Reverse(metric), *words.first()?))
    });
    routes.max_by_key(|(length, metric, _)| (*length, *metric)).map(|(.., interface)| interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(nodes: &[&str]) -> Peers {
        let addresses = |all: &[&str]| all.iter().map(|address| address.parse().unwrap()).collect();
        Peers {
            own: "10.244.1.5".parse().unwrap(),
            clients: addresses(&["10.244.2.7", "10.244.2.8"]),
            nodes: addresses(nodes),
        }
    }

    #[test]
    fn peers_are_one_word_and_another_one_is_refused() {
        for peers in [peers(&["172.30.0.12"]), peers(&["172.30.0.12", "fd00::12"]), peers(&[])] {
            let word = peers.to_string();
            assert!(!word.contains(' '), "{word}");
            assert_eq!(word.parse::<Peers>().unwrap(), peers);
        }
        for word in ["", "-", "10.0.0.1", "x//", "10.0.0.1/10.0.0.2/x", "10.0.0.1/10.0.0.2/10.0.0.3/"] {
            assert!(word.parse::<Peers>().is_err(), "{word}");
        }
    }

    /// A line of the table in this machine's byte order.
    fn route(interface: &str, to: [u8; 4], flags: u32, metric: u32, mask: [u8; 4]) -> String {
        let hex = |address| format!("{:08X}", u32::from_ne_bytes(address));
        format!("{interface}\t{}\t00000000\t{flags:04X}\t0\t0\t{metric}\t{}\t0\t0\t0\n", hex(to), hex(mask))
    }

    #[test]
    fn packets_leave_by_the_interface_of_the_most_specific_route_in_use() {
        const NO: [u8; 4] = [0; 4];
        let head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n".to_owned();
        let routes = [
            head,
            route("slow", NO, 3, 200, NO),
            route("eth0", NO, 3, 100, NO),
            route("cni0", [10, 244, 1, 0], 1, 0, [255, 255, 255, 0]),
            route("eth1", [172, 30, 0, 0], 1, 0, [255, 255, 255, 0]),
            route("down", [172, 30, 0, 12], 0, 0, [255; 4]),
            route("no", [172, 30, 0, 12], 0x201, 0, [255; 4]),
        ]
        .concat();
        assert_eq!(peers(&["172.30.0.12"]).interface(&routes).unwrap(), "eth1");
        assert_eq!(peers(&["192.168.7.7"]).interface(&routes).unwrap(), "eth0");
        let of = |nodes: &[&str], routes: &str| peers(nodes).interface(routes).unwrap_err().to_string();
        assert!(of(&["172.30.0.12", "192.168.7.7"], &routes).contains("several interfaces"));
        assert!(of(&["172.30.0.12"], "Iface\n").contains("no route to the client's node 172.30.0.12"));
        assert!(of(&["fd00::1"], &routes).contains("IPv4 only"));
        assert!(of(&[], &routes).contains("not known"));
    }
}
