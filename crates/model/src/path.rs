//! Measurements of a path: the network between two hosts, as datagrams between them show it. No clock is compared
//! across hosts, so times are round trips.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::missing::Missing;
use crate::units::BitRate;

/// A measured value, or the reason for a missing one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Measured<T> {
    /// The value.
    Is(T),
    /// The reason.
    Missing(Missing),
}

impl<T> Measured<T> {
    /// The value, if measured.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Missing(_) => None,
        }
    }

    /// The value as text, or `not measured` with the reason.
    pub fn text(&self, write: impl FnOnce(&T) -> String) -> String {
        match self {
            Self::Is(value) => write(value),
            Self::Missing(why) => format!("not measured: {why}"),
        }
    }
}

/// A measurement of the path between two hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathRecord {
    /// The placement; several names of one pair of hosts are separated by commas.
    pub placement: String,
    /// Name of the client's host.
    pub client: String,
    /// Name of the server's host.
    pub server: String,
    /// The measured properties.
    pub reading: Measured<PathReading>,
}

impl PathRecord {
    /// The placement with its hosts.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} ({} → {})", self.placement, self.client, self.server)
    }
}

/// Measured properties of a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathReading {
    /// Round trips of small datagrams while nothing else of the run uses the path.
    pub round_trip: RoundTrips,
    /// From client to server.
    pub up: PathDirection,
    /// From server to client.
    pub down: PathDirection,
}

impl PathReading {
    /// Both directions with their names, up first.
    #[must_use]
    pub const fn directions(&self) -> [(&'static str, &PathDirection); 2] {
        [("up", &self.up), ("down", &self.down)]
    }

    /// Size of the largest IP packet that arrives in both directions, in bytes.
    #[must_use]
    pub fn mtu(&self) -> Option<u32> {
        Some(*self.up.mtu.value()?.min(self.down.mtu.value()?))
    }
}

/// The distribution of round trips, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// Number of round trips.
    pub count: u32,
    pub min_ns: u64,
    pub p25_ns: u64,
    pub median_ns: u64,
    pub p75_ns: u64,
    pub max_ns: u64,
}

impl RoundTrips {
    /// The distribution of these round trips in nanoseconds; `None` if there are none.
    #[must_use]
    pub fn of(mut ns: Vec<u64>) -> Option<Self> {
        ns.sort_unstable();
        let at = |quarters: usize| ns.get(ns.len().checked_sub(1)? * quarters / 4).copied();
        Some(Self {
            count: ns.len() as u32,
            min_ns: at(0)?,
            p25_ns: at(1)?,
            median_ns: at(2)?,
            p75_ns: at(3)?,
            max_ns: at(4)?,
        })
    }
}

/// Measured properties of a direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathDirection {
    /// What became of numbered datagrams, which leave in groups.
    pub delivery: Delivery,
    /// Size of the largest IP packet that arrives, in bytes.
    pub mtu: Measured<u32>,
    /// What became of the marks in IP headers.
    pub marks: Measured<Vec<Mark>>,
    /// Numbers of routers on the way, as far as the packets' remaining hops show them. Several: the route changed.
    pub hops: Measured<Vec<u8>>,
    /// The path under load.
    pub load: Measured<LoadedPath>,
}

/// What became of numbered datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Number of sent datagrams.
    pub sent: u32,
    /// Datagrams that never arrived.
    pub lost: u32,
    /// Runs of consecutive lost datagrams, each followed by one that arrived; 0 also in records of older versions.
    #[serde(default)]
    pub lost_runs: u32,
    /// The fewest datagrams without which the others arrived in the order in which they were sent.
    pub reordered: u32,
    /// Arrivals beyond the first of a datagram.
    pub duplicates: u32,
}

/// The fate of a value of the IP header's byte with DSCP (upper six bits) and ECN (lower two bits).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The byte that was sent.
    pub sent: u8,
    /// The different bytes that arrived; empty: no such packet arrived.
    pub arrived: Vec<u8>,
}

impl Mark {
    /// The two bits of ECN.
    pub const ECN: u8 = 0b11;
    /// The six bits of DSCP.
    pub const DSCP: u8 = 0b1111_1100;

    /// Whether these bits arrived as they were sent. `None`: no such packet arrived.
    #[must_use]
    pub fn keeps(&self, bits: u8) -> Option<bool> {
        (!self.arrived.is_empty()).then(|| self.arrived.iter().all(|arrived| arrived & bits == self.sent & bits))
    }
}

/// A direction under load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadedPath {
    /// Rate of the load in bits per second, IP packets with 14 bytes of Ethernet header.
    pub sent: f64,
    /// Rate at which it arrived.
    pub arrived: f64,
    /// Round trips of small datagrams during the load; `None`: none came back.
    pub round_trip: Option<RoundTrips>,
}

impl LoadedPath {
    /// The rate of the path, if the load exceeded it.
    #[must_use]
    pub fn limit(&self) -> Option<BitRate> {
        (self.arrived < 0.95 * self.sent).then_some(BitRate(self.arrived as u64))
    }
}

/// A property of a link or path that may change during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathProperty {
    RoundTrip,
    Mtu,
    /// The number of routers.
    Route,
    Marks,
}

impl fmt::Display for PathProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RoundTrip => "round trip",
            Self::Mtu => "path MTU",
            Self::Route => "number of routers",
            Self::Marks => "fate of ECN and DSCP marks",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_is_read_as_it_was_written() {
        let values: [Measured<u32>; 2] = [Measured::Is(1500), Measured::Missing(Missing::LoadNotAllowed)];
        for value in values {
            let text = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<Measured<u32>>(&text).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn marks_of_a_bleaching_network_are_not_kept() {
        let mark = |arrived: &[u8]| Mark { sent: 0b1011_1010, arrived: arrived.to_vec() };
        let keeps = |arrived: &[u8]| [Mark::DSCP, Mark::ECN].map(|bits| mark(arrived).keeps(bits));
        assert_eq!(keeps(&[0b1011_1010]), [Some(true), Some(true)]);
        assert_eq!(keeps(&[0b1011_1000]), [Some(true), Some(false)]);
        assert_eq!(keeps(&[0b10, 0b1011_1010]), [Some(false), Some(true)]);
        assert_eq!(keeps(&[]), [None, None]);
    }

    #[test]
    fn round_trips_have_quartiles() {
        let of = RoundTrips::of((1..=5).rev().collect()).unwrap();
        assert_eq!([of.min_ns, of.p25_ns, of.median_ns, of.p75_ns, of.max_ns], [1, 2, 3, 4, 5]);
        assert_eq!(RoundTrips::of(Vec::new()), None);
    }
}
