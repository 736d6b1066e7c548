//! The network of a trial's hosts: direct, or as pods of a small Kubernetes cluster.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The network between the hosts of client and servers, in addition to the link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// One interface per host, and the link.
    #[default]
    Direct,
    /// Pods on nodes; packets cross the link between the nodes in VXLAN (RFC 7348), as in a Kubernetes cluster with an
    /// overlay network.
    Overlay,
}

/// The kind of address that the client connects to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Address {
    /// The address of the single server.
    #[default]
    Server,
    /// The address of a service: the client's node translates it, for each connection, to the address of a random
    /// server, as kube-proxy does.
    Service,
    /// A name that resolves to all servers, like the name of a headless service; the client uses the servers in turn,
    /// connection by connection.
    Headless,
    /// A port of a node, which translates it like the address of a service: the entry to a cluster from outside.
    NodePort,
}

/// Value of the setting `mesh` for the Linkerd mesh of a cluster, in place of a sidecar endpoint.
pub const LINKERD: &str = "linkerd";

/// Name of the server of a trial, or of all its servers if the client connects by name.
pub const SERVER_NAME: &str = "wirelab.test";

/// Number and location of servers. Written `far`, `2 far`, `near + far`, `3 near + 2 far`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Servers {
    /// Number on the client's node.
    pub near: u32,
    /// Number on another node.
    pub far: u32,
}

impl Servers {
    /// One server, on another node.
    pub const ONE: Self = Self { near: 0, far: 1 };

    /// Maximum number of servers.
    pub const MOST: u32 = 100;

    /// Total number of servers.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.near + self.far
    }

    /// Whether the server of this number, from 0, runs on the client's node.
    #[must_use]
    pub const fn is_near(self, number: u32) -> bool {
        number < self.near
    }

    fn parse(text: &str) -> Option<Self> {
        let mut servers = Self { near: 0, far: 0 };
        for term in text.split('+') {
            let (count, place) = match term.split_whitespace().collect::<Vec<_>>()[..] {
                [place] => (1, place),
                [count, place] => (count.parse().ok()?, place),
                _ => return None,
            };
            let sum = match place {
                "near" => &mut servers.near,
                "far" => &mut servers.far,
                _ => return None,
            };
            *sum = sum.checked_add(count)?;
        }
        let count = servers.near.checked_add(servers.far)?;
        (1..=Self::MOST).contains(&count).then_some(servers)
    }
}

impl Default for Servers {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let term = |count: u32, place: &str| match count {
            0 => None,
            1 => Some(place.to_owned()),
            count => Some(format!("{count} {place}")),
        };
        let terms: Vec<_> = [term(self.near, "near"), term(self.far, "far")].into_iter().flatten().collect();
        f.write_str(&terms.join(" + "))
    }
}

impl Serialize for Servers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Servers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            let expected =
                format!("servers and where they run, 1 to {} of them: `far`, `2 far`, `near + far`", Self::MOST);
            de::Error::invalid_value(de::Unexpected::Str(&text), &expected.as_str())
        })
    }
}

impl JsonSchema for Servers {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Servers".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": ["far", "2 far", "near + far"] })
    }
}

/// An interface at which packets can be observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vantage {
    /// The owner of the interface.
    pub place: Place,
    /// Network namespace of the interface, as a file that this user can open.
    pub namespace: PathBuf,
    /// User namespace that owns `namespace`, if different from wirelab's own.
    pub owner: Option<PathBuf>,
    /// Name of the interface.
    pub interface: String,
    /// Size of the largest IP packet that it sends, in bytes.
    pub mtu: u32,
    /// Whether packets between hosts are in VXLAN there; with `between`: whether they may be.
    pub is_encapsulated: bool,
    /// The hosts whose packets count; absent: all packets, because no other packets pass the interface.
    pub between: Option<Between>,
}

impl Vantage {
    /// Whether an unknown number of unrelated packets pass the interface.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self.place, Place::ServerNode) && self.between.is_some()
    }
}

/// Two groups of hosts by address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Between {
    /// The first group.
    pub these: BTreeSet<IpAddr>,
    /// The second group.
    pub those: BTreeSet<IpAddr>,
}

impl Between {
    /// Whether a packet between these addresses goes from one group to the other.
    #[must_use]
    pub fn joins(&self, from: IpAddr, to: IpAddr) -> bool {
        let is_from_to = |one: &BTreeSet<_>, other: &BTreeSet<_>| one.contains(&from) && other.contains(&to);
        is_from_to(&self.these, &self.those) || is_from_to(&self.those, &self.these)
    }
}

/// Location of an observed interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The client's interface (in a pod, the pod's).
    Client,
    /// The outer interface of the server's host or node: the traffic of the link.
    ServerNode,
    /// The interface of the server's pod, if the node's interface is shared: each packet of one must appear at the
    /// other.
    ServerPod,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_written_as_they_are_read() {
        for (text, near, far) in [("far", 0, 1), ("2 far", 0, 2), ("near + far", 1, 1), ("3 near + 2 far", 3, 2)] {
            let servers = Servers { near, far };
            assert_eq!(Servers::parse(text), Some(servers));
            assert_eq!(servers.to_string(), text);
        }
        assert_eq!(Servers::parse("far+near"), Some(Servers { near: 1, far: 1 }));
        for text in ["", "0 far", "far far", "2", "101 far", "4294967295 near + 2 far", "there"] {
            assert_eq!(Servers::parse(text), None, "{text}");
        }
    }
}
