//! Distances between client and server: the placements of studies, and the real positions of pods.

use std::fmt;

use wirelab_lab::LabError;
use wirelab_model::nearest::did_you_mean;
use wirelab_model::nodes::Labels;

use crate::INFO;

/// The position of a pod relative to the client's pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Distance {
    /// On the same node.
    SameNode,
    /// On another node, in any zone.
    OtherNode,
    /// On another node of the same zone.
    SameZone,
    /// In another zone.
    OtherZone,
}

/// Placements by name. Each except the first also has the name of the emulated link that stands for it in the lab
/// `netns`.
const PLACEMENTS: [(&str, Distance); 7] = [
    ("same-node", Distance::SameNode),
    ("other-node", Distance::OtherNode),
    ("lan", Distance::OtherNode),
    ("same-zone", Distance::SameZone),
    ("single-az", Distance::SameZone),
    ("other-zone", Distance::OtherZone),
    ("multi-az", Distance::OtherZone),
];

impl Distance {
    /// The distance of a placement.
    ///
    /// # Errors
    /// If no placement has this name; the message lists all.
    pub(crate) fn parse(placement: &str) -> Result<Self, LabError> {
        if let Some((_, distance)) = PLACEMENTS.iter().find(|(name, _)| *name == placement) {
            return Ok(*distance);
        }
        let names = PLACEMENTS.map(|(name, _)| name);
        Err(LabError::unsupported(format!(
            "the lab `{}` has no placement `{placement}`{}; it has {} (the last three as `lan`, `single-az` and `multi-az`, too)",
            INFO.name,
            did_you_mean(placement, names),
            wirelab_model::network::PLACEMENTS.join(", ")
        )))
    }

    /// The first name of the placement with this distance.
    pub(crate) fn placement(self) -> &'static str {
        PLACEMENTS.iter().find(|(_, of)| *of == self).map_or("", |(name, _)| name)
    }

    /// Whether pods at these two positions have this distance.
    pub(crate) fn holds(self, one: &Spot, other: &Spot) -> bool {
        let are_known = one.node.is_some() && other.node.is_some();
        let have_zones = one.zone.is_some() && other.zone.is_some();
        match self {
            Self::SameNode => are_known && one.node == other.node,
            Self::OtherNode => are_known && one.node != other.node,
            Self::SameZone => are_known && one.node != other.node && have_zones && one.zone == other.zone,
            Self::OtherZone => have_zones && one.zone != other.zone,
        }
    }

    /// The prefix of the names of pods at this distance.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::SameNode => "near",
            Self::OtherNode => "node",
            Self::SameZone => "zone",
            Self::OtherZone => "other",
        }
    }
}

/// The real position of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) node: Option<String>,
    pub(crate) zone: Option<String>,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |of: &Option<String>| of.clone().unwrap_or_else(|| "unknown".to_owned());
        write!(f, "node {}, zone {}", text(&self.node), text(&self.zone))
    }
}

/// The place of a server: its distance from the client, and the labels of its node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) distance: Distance,
    pub(crate) nodes: Option<Labels>,
}

/// Verifies that each server is at its place, as seen from each client.
///
/// # Errors
/// If a server is not; names it and its real position.
pub(crate) fn proven<'a>(
    clients: &[String],
    servers: &[(String, Place)],
    spot: impl Fn(&str) -> Option<&'a Spot>,
) -> Result<(), LabError> {
    let unknown = Spot::default();
    let spot = |name: &str| spot(name).unwrap_or(&unknown);
    for client in clients {
        for (server, place) in servers {
            if !place.distance.holds(spot(client), spot(server)) {
                return Err(LabError::unsupported(format!(
                    "the pod {server} ({}) is not at the placement `{}`, seen from the pod {client} ({}), though their affinities say so",
                    spot(server),
                    place.distance.placement(),
                    spot(client)
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wirelab_model::plan::Reach;

    use super::*;
    use crate::place::servers;
    use crate::place::tests::{SPREAD, job};

    #[test]
    fn a_distance_holds_between_the_nodes_and_zones_where_pods_really_are() {
        let spot = |node: &str, zone: Option<&str>| Spot { node: Some(node.to_owned()), zone: zone.map(str::to_owned) };
        let [a1, a2, b1, bare] = [spot("a1", Some("a")), spot("a2", Some("a")), spot("b1", Some("b")), spot("c", None)];
        let all = [Distance::SameNode, Distance::OtherNode, Distance::SameZone, Distance::OtherZone];
        let which = |other: &Spot| all.map(|distance| distance.holds(&a1, other));
        assert_eq!(which(&a1), [true, false, false, false]);
        assert_eq!(which(&a2), [false, true, true, false]);
        assert_eq!(which(&b1), [false, true, false, true]);
        assert_eq!(which(&bare), [false, true, false, false], "without a label there is no zone");
        assert_eq!(which(&Spot::default()), [false; 4], "what is not known does not hold");

        let servers = servers(&job("other-zone", SPREAD, Reach::Service)).unwrap();
        let at = |name: &str| Some(if name.starts_with("other") { &b1 } else { &a1 });
        assert_eq!(proven(&["client".to_owned()], &servers, at), Ok(()));
        let moved = |name: &str| if name == "other-1" { Some(&a2) } else { at(name) };
        let why = proven(&["client".to_owned()], &servers, moved).unwrap_err().to_string();
        assert!(why.contains("other-1 (node a2, zone a)") && why.contains("`other-zone`"), "{why}");
    }
}
