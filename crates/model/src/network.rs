//! How the hosts of a trial are joined: directly, or as pods of a small Kubernetes cluster.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// What is between the hosts of client and servers, besides the link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Nothing: an interface each, and the link.
    #[default]
    Direct,
    /// They are pods on nodes, whose packets cross the link between the nodes in VXLAN (RFC 7348): the path of a packet in a
    /// Kubernetes cluster with an overlay network.
    Overlay,
}

/// What the client connects to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Address {
    /// The address of the one server.
    #[default]
    Server,
    /// The address of a service, which the client's node translates, for each connection, to that of a server chosen at
    /// random, as kube-proxy does.
    Service,
    /// A name that resolves to all servers, as that of a headless service: the client itself turns to one after the other,
    /// connection by connection.
    Headless,
    /// A port of a node, which translates it as it does the address of a service: the way into a cluster from outside.
    NodePort,
}

/// The lab in which hosts are pods of a real cluster, so that this is its default: pods, on one node.
pub const CLUSTER_LAB: &str = "kubernetes";

/// What stands for the mesh of a cluster, Linkerd, where otherwise the endpoint is named that plays the sidecars.
pub const LINKERD: &str = "linkerd";

/// The placements of pods in a real cluster: the servers seen from the client.
pub const PLACEMENTS: [&str; 4] = ["same-node", "other-node", "same-zone", "other-zone"];

/// The name that the server of a trial has; that of all servers, where the client connects to a name.
pub const SERVER_NAME: &str = "wirelab.test";

/// How many servers there are, and on which nodes. Written `far`, `2 far`, `near + far`, `3 near + 2 far`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Servers {
    /// On the client's node.
    pub near: u32,
    /// On another node.
    pub far: u32,
}

impl Servers {
    /// One, on another node.
    pub const ONE: Self = Self { near: 0, far: 1 };

    /// The most that there can be.
    pub const MOST: u32 = 100;

    /// How many there are.
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

/// An interface at which packets can be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vantage {
    /// Whose it is.
    pub place: Place,
    /// The network namespace that it is in, as a file that this user can open.
    pub namespace: PathBuf,
    /// The user namespace that owns that one, where it is not wirelab's own.
    pub owner: Option<PathBuf>,
    /// Its name.
    pub interface: String,
    /// The largest IP packet that it sends.
    pub mtu: u32,
    /// Whether packets between hosts are in VXLAN there; where only some packets count: whether they may be.
    pub is_encapsulated: bool,
    /// Whose packets count there; absent: everybody's, because nobody else's pass.
    pub between: Option<Between>,
}

impl Vantage {
    /// Whether others' packets pass there too, of which nobody knows how many there are.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self.place, Place::ServerNode) && self.between.is_some()
    }
}

/// Two groups of hosts, by their addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Between {
    /// The one.
    pub these: BTreeSet<IpAddr>,
    /// The other.
    pub those: BTreeSet<IpAddr>,
}

impl Between {
    /// Whether a packet from the one address to the other goes from a group to the other.
    #[must_use]
    pub fn joins(&self, from: IpAddr, to: IpAddr) -> bool {
        let is_from_to = |one: &BTreeSet<_>, other: &BTreeSet<_>| one.contains(&from) && other.contains(&to);
        is_from_to(&self.these, &self.those) || is_from_to(&self.those, &self.these)
    }
}

/// Where packets are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The client's own interface (that of its pod).
    Client,
    /// The outer interface of the server's host or node: what the link carries.
    ServerNode,
    /// The interface of the server's pod, where that of its node is shared: what passes the one has to be found at the other.
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
