//! Distances between client and server: the placements of labs whose machines stand where they stand.

use wirelab_model::nearest::did_you_mean;

use crate::LabError;

/// The position of a server relative to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
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
    pub fn parse(lab: &str, placement: &str) -> Result<Self, LabError> {
        if let Some((_, distance)) = PLACEMENTS.iter().find(|(name, _)| *name == placement) {
            return Ok(*distance);
        }
        let names = PLACEMENTS.map(|(name, _)| name);
        Err(LabError::unsupported(format!(
            "the lab `{lab}` has no placement `{placement}`{}; it has {} (the last three as `lan`, `single-az` and `multi-az`, too)",
            did_you_mean(placement, names),
            wirelab_model::network::PLACEMENTS.join(", ")
        )))
    }

    /// The first name of the placement with this distance.
    #[must_use]
    pub fn placement(self) -> &'static str {
        PLACEMENTS.iter().find(|(_, of)| *of == self).map_or("", |(name, _)| name)
    }
}
