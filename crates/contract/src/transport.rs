//! Transport statistics that an endpoint reports: round trips, losses, congestion.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Statistics of the transport itself (TCP: `TCP_INFO`, tcp(7); QUIC: the library), over all connections of a period.
///
/// Client: connections that were open at any time from `warm` to `finish`, and their traffic in this period. Server:
/// all connections since `ready`, including check request and warm-up. A value that the endpoint does not know is
/// absent, never 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransportReport {
    /// Connections that the transport established.
    pub connections: u64,
    /// The smallest round trip of any connection, in nanoseconds (RFC 9002, section 5.2; `tcpi_min_rtt`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_min_ns: Option<u64>,
    /// The smoothed round trip of a connection at its end, or now if it is open, in nanoseconds; the mean over
    /// connections (RFC 9002, section 5.3; RFC 6298, section 2; `tcpi_rtt`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ns: Option<u64>,
    /// Packets (QUIC) or segments (TCP) sent, including pure acknowledgements and retransmissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_sent: Option<u64>,
    /// QUIC: packets declared lost (RFC 9002, section 6). TCP: retransmitted segments, TCP's only measure of losses.
    /// Both include packets that were only late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_lost: Option<u64>,
    /// Bytes of `packets_lost`: the whole QUIC packet, the payload of a TCP segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_lost: Option<u64>,
    /// Number of losses or marks that the congestion controller took as congestion (RFC 9002, section 7.3.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_events: Option<u64>,
    /// The largest congestion window of any connection, in bytes, read at the same time as the round trip. Neither TCP
    /// nor QUIC remembers earlier, larger windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_window: Option<u64>,
    /// The largest payload of a UDP datagram (QUIC) or TCP segment that any connection may send, in bytes, read at the
    /// same time as the round trip: the limit of QUIC's path, or TCP's maximum segment size (`tcpi_snd_mss`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_max: Option<u64>,
}

impl TransportReport {
    /// Merges two reports, for example of several servers. A value that one of them lacks is absent in the result; a
    /// mean weighs by connections.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        if self.connections == 0 || other.connections == 0 {
            return if self.connections == 0 { other.clone() } else { self.clone() };
        }
        let both = |a: Option<u64>, b: Option<u64>, of: fn(u64, u64) -> u64| Some(of(a?, b?));
        let weighed = |mean: u64, report: &Self| u128::from(mean) * u128::from(report.connections);
        let connections = self.connections.saturating_add(other.connections);
        let mean = self.round_trip_ns.zip(other.round_trip_ns).map(|(ours, theirs)| {
            let sum = weighed(ours, self) + weighed(theirs, other);
            u64::try_from(sum / u128::from(connections)).unwrap_or(u64::MAX)
        });
        Self {
            connections,
            round_trip_min_ns: both(self.round_trip_min_ns, other.round_trip_min_ns, u64::min),
            round_trip_ns: mean,
            packets_sent: both(self.packets_sent, other.packets_sent, u64::saturating_add),
            packets_lost: both(self.packets_lost, other.packets_lost, u64::saturating_add),
            bytes_lost: both(self.bytes_lost, other.bytes_lost, u64::saturating_add),
            congestion_events: both(self.congestion_events, other.congestion_events, u64::saturating_add),
            congestion_window: both(self.congestion_window, other.congestion_window, u64::max),
            payload_max: both(self.payload_max, other.payload_max, u64::max),
        }
    }

    /// Checks bounds that hold for every transport.
    ///
    /// # Errors
    /// The violated bound.
    pub fn check(&self) -> Result<(), Implausible> {
        let positive = [
            ("round_trip_min_ns", self.round_trip_min_ns),
            ("round_trip_ns", self.round_trip_ns),
            ("congestion_window", self.congestion_window),
            ("payload_max", self.payload_max),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == Some(0)) {
            return Err(Implausible::Zero { name });
        }
        if self.connections == 0 && *self != Self::default() {
            return Err(Implausible::NoConnection);
        }
        match (self.packets_lost, self.packets_sent) {
            (Some(lost), Some(sent)) if lost > sent => Err(Implausible::LostMoreThanSent { lost, sent }),
            _ => Ok(()),
        }
    }
}

/// A bound that a transport report violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Implausible {
    /// A value that is positive for every connection is 0.
    Zero {
        /// Name of the value.
        name: &'static str,
    },
    /// Values are reported without a connection.
    NoConnection,
    /// More packets were lost than sent.
    LostMoreThanSent {
        /// Lost packets.
        lost: u64,
        /// Sent packets.
        sent: u64,
    },
}

impl fmt::Display for Implausible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero { name } => {
                write!(f, "`{name}` is 0, which no connection can have; omit an unknown value")
            }
            Self::NoConnection => f.write_str("values are reported without a connection"),
            Self::LostMoreThanSent { lost, sent } => write!(f, "{lost} packets were lost of {sent} that were sent"),
        }
    }
}

impl std::error::Error for Implausible {}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> TransportReport {
        TransportReport {
            connections: 1,
            round_trip_min_ns: Some(10),
            round_trip_ns: Some(20),
            packets_sent: Some(100),
            packets_lost: Some(3),
            congestion_window: Some(14_000),
            ..TransportReport::default()
        }
    }

    #[test]
    fn merged_reports_add_up_and_values_that_one_lacks_are_unknown() {
        let three = TransportReport {
            connections: 3,
            round_trip_min_ns: Some(5),
            round_trip_ns: Some(40),
            packets_lost: None,
            congestion_window: Some(9_000),
            ..one()
        };
        let expected = TransportReport {
            connections: 4,
            round_trip_min_ns: Some(5),
            round_trip_ns: Some(35),
            packets_sent: Some(200),
            packets_lost: None,
            ..one()
        };
        assert_eq!(one().and(&three), expected);
        assert_eq!(three.and(&one()), expected);
        assert_eq!(TransportReport::default().and(&one()), one());
        assert_eq!(one().and(&TransportReport::default()), one());
    }

    #[test]
    fn impossible_reports_are_refused() {
        assert_eq!(one().check(), Ok(()));
        assert_eq!(TransportReport::default().check(), Ok(()));
        for wrong in [
            TransportReport { packets_lost: Some(101), ..one() },
            TransportReport { round_trip_min_ns: Some(0), ..one() },
            TransportReport { congestion_window: Some(0), ..one() },
            TransportReport { connections: 0, ..one() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
