//! The places of servers, and where their pods really are.

use wirelab_lab::LabError;
use wirelab_model::nodes::Labels;
use wirelab_model::placement::{Distance, Spot};

/// The prefix of the names of pods at this distance.
pub(crate) const fn word(distance: Distance) -> &'static str {
    match distance {
        Distance::SameNode => "near",
        Distance::OtherNode => "node",
        Distance::SameZone => "zone",
        Distance::OtherZone => "other",
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
    fn a_pod_that_is_not_at_its_place_is_named_with_its_position() {
        let spot = |node: &str, zone: &str| Spot { node: Some(node.to_owned()), zone: Some(zone.to_owned()) };
        let [a1, a2, b1] = [spot("a1", "a"), spot("a2", "a"), spot("b1", "b")];
        let servers = servers(&job("other-zone", SPREAD, Reach::Service)).unwrap();
        let at = |name: &str| Some(if name.starts_with("other") { &b1 } else { &a1 });
        assert_eq!(proven(&["client".to_owned()], &servers, at), Ok(()));
        let moved = |name: &str| if name == "other-1" { Some(&a2) } else { at(name) };
        let why = proven(&["client".to_owned()], &servers, moved).unwrap_err().to_string();
        assert!(why.contains("other-1 (node a2, zone a)") && why.contains("`other-zone`"), "{why}");
    }
}
