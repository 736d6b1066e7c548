//! Distances between client and server: the placements of studies, and the real positions of pods.

use std::fmt;

pub(crate) use wirelab_lab::Distance;
use wirelab_lab::LabError;
use wirelab_model::nodes::Labels;

/// Whether pods at these two positions have this distance.
pub(crate) fn holds(distance: Distance, one: &Spot, other: &Spot) -> bool {
    let are_known = one.node.is_some() && other.node.is_some();
    let have_zones = one.zone.is_some() && other.zone.is_some();
    match distance {
        Distance::SameNode => are_known && one.node == other.node,
        Distance::OtherNode => are_known && one.node != other.node,
        Distance::SameZone => are_known && one.node != other.node && have_zones && one.zone == other.zone,
        Distance::OtherZone => have_zones && one.zone != other.zone,
    }
}

/// The prefix of the names of pods at this distance.
pub(crate) const fn word(distance: Distance) -> &'static str {
    match distance {
        Distance::SameNode => "near",
        Distance::OtherNode => "node",
        Distance::SameZone => "zone",
        Distance::OtherZone => "other",
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
            if !holds(place.distance, spot(client), spot(server)) {
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
        let which = |other: &Spot| all.map(|distance| holds(distance, &a1, other));
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
