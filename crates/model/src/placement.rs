//! Placements between machines that wirelab does not emulate: the position of a server relative to its client.

use std::fmt;

/// The position of a server relative to its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    SameNode,
    /// On another node, in any zone.
    OtherNode,
    /// On another node of the same zone.
    SameZone,
    /// In another zone.
    OtherZone,
}

impl Distance {
    /// Every distance, from near to far.
    pub const ALL: [Self; 4] = [Self::SameNode, Self::OtherNode, Self::SameZone, Self::OtherZone];

    /// The distance of a placement, by either of its names.
    #[must_use]
    pub fn of(placement: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|distance| distance.placement() == placement || distance.link() == Some(placement))
    }

    /// The name of the placement in study files.
    #[must_use]
    pub const fn placement(self) -> &'static str {
        match self {
            Self::SameNode => "same-node",
            Self::OtherNode => "other-node",
            Self::SameZone => "same-zone",
            Self::OtherZone => "other-zone",
        }
    }

    /// The second name of the placement: that of the emulated link that stands for it in the lab `netns`.
    #[must_use]
    pub const fn link(self) -> Option<&'static str> {
        match self {
            Self::SameNode => None,
            Self::OtherNode => Some("lan"),
            Self::SameZone => Some("single-az"),
            Self::OtherZone => Some("multi-az"),
        }
    }

    /// Whether a server at one position has this distance from a client at another. An unknown node or zone is at no
    /// distance that depends on it.
    #[must_use]
    pub fn holds(self, client: &Spot, server: &Spot) -> bool {
        let are_equal = |one: &Option<String>, other: &Option<String>| Some(one.as_ref()? == other.as_ref()?);
        let on_one_node = are_equal(&client.node, &server.node);
        let in_one_zone = are_equal(&client.zone, &server.zone);
        match self {
            Self::SameNode => on_one_node == Some(true),
            Self::OtherNode => on_one_node == Some(false),
            Self::SameZone => on_one_node == Some(false) && in_one_zone == Some(true),
            Self::OtherZone => in_one_zone == Some(false),
        }
    }
}

/// The known position of a machine or pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spot {
    /// Name of the node or host.
    pub node: Option<String>,
    /// Name of the zone.
    pub zone: Option<String>,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |of: &Option<String>| of.clone().unwrap_or_else(|| "unknown".to_owned());
        write!(f, "node {}, zone {}", text(&self.node), text(&self.zone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::preset;

    #[test]
    fn each_name_of_a_placement_leads_to_its_distance() {
        for distance in Distance::ALL {
            assert_eq!(Distance::of(distance.placement()), Some(distance));
            if let Some(link) = distance.link() {
                assert_eq!((Distance::of(link), preset(link).is_some()), (Some(distance), true), "{link}");
            }
        }
        assert_eq!(Distance::of("local"), None);
    }

    #[test]
    fn a_distance_holds_between_the_known_nodes_and_zones() {
        let spot = |node: &str, zone: Option<&str>| Spot { node: Some(node.to_owned()), zone: zone.map(str::to_owned) };
        let [a1, a2, b1, bare] = [spot("a1", Some("a")), spot("a2", Some("a")), spot("b1", Some("b")), spot("c", None)];
        let which = |other: &Spot| Distance::ALL.map(|distance| distance.holds(&a1, other));
        assert_eq!(which(&a1), [true, false, false, false]);
        assert_eq!(which(&a2), [false, true, true, false]);
        assert_eq!(which(&b1), [false, true, false, true]);
        assert_eq!(which(&bare), [false, true, false, false], "without a label there is no zone");
        assert_eq!(which(&Spot::default()), [false; 4], "an unknown position is at no distance");
    }
}
