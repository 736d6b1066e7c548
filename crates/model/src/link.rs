//! The emulated link between client and server: its effects on packets, and named presets.

use serde::{Deserialize, Serialize};

use crate::queue::Queue;
use crate::units::{BitRate, Share, Size, Span};

/// Effects of a link on packets, the same in both directions except for the rate. All sizes count whole frames: 14
/// bytes of Ethernet header plus the IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Round-trip time without queueing and transmission.
    pub round_trip: Span,
    /// Largest deviation of a packet's one-way delay, up or down, uniformly distributed. Packets stay in order.
    pub jitter: Span,
    /// Rate from server to client; absent: not limited.
    pub rate: Option<BitRate>,
    /// Rate from client to server; absent: as `rate`.
    pub rate_up: Option<BitRate>,
    /// Size of the queue in each direction; a full queue drops packets.
    pub queue: Queue,
    /// Share of lost packets.
    pub loss: Share,
    /// Mean number of consecutive lost packets. 1: independent losses. Above 1: the simple model of Gilbert (Bell
    /// System Technical Journal 39, 1960), with a bad state in which every packet is lost.
    pub loss_burst: f64,
    /// Share of packets that skip the delay and overtake others.
    pub reorder: Share,
    /// Share of packets that arrive twice.
    pub duplicate: Share,
    /// Size of the largest IP packet in bytes.
    pub mtu: u32,
}

impl Link {
    /// A wire: no delay, no rate limit, no loss, an MTU of 1500.
    #[must_use]
    pub const fn wire() -> Self {
        Self {
            round_trip: Span(0),
            jitter: Span(0),
            rate: None,
            rate_up: None,
            queue: Queue::Bytes(Size(256 * 1024)),
            loss: Share(0.0),
            loss_burst: 1.0,
            reorder: Share(0.0),
            duplicate: Share(0.0),
            mtu: 1500,
        }
    }

    /// Whether it differs from a wire at most in the MTU, so that it needs no emulator.
    #[must_use]
    pub fn is_wire(&self) -> bool {
        *self == Self { mtu: self.mtu, queue: self.queue, loss_burst: self.loss_burst, ..Self::wire() }
    }
}

/// Sent and lost datagrams of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Number of lost datagrams.
    pub lost: u64,
    /// Number of sent datagrams.
    pub of: u64,
}

/// Measured properties of a link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Median round trip of a small datagram on the idle link, in nanoseconds; absent: none came back.
    pub round_trip_ns: Option<u64>,
    /// Shortest round trip on the idle link, in nanoseconds.
    pub round_trip_min_ns: Option<u64>,
    /// Median round trip while traffic from server to client fills the queue, in nanoseconds; absent if the link has no
    /// rate limit, or if no datagram came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_loaded_ns: Option<u64>,
    /// Rate from client to server in bits per second, whole frames; absent if the link has no rate limit.
    pub rate_up: Option<f64>,
    /// Rate from server to client in bits per second; absent if the link has no rate limit.
    pub rate: Option<f64>,
    /// Losses from client to server.
    pub loss_up: Loss,
    /// Losses from server to client.
    pub loss: Loss,
    /// Size of the largest IP packet that arrived whole, of three packets: MTU - 1, MTU and MTU + 1 bytes.
    pub mtu: u32,
    /// Frames that the emulator lost because it could not keep up.
    pub missed: u64,
}

/// Size of the frame that measures the round trip, in bytes.
const PING_FRAME: f64 = 58.0;

/// Size of an Ethernet header in bytes.
const ETHERNET: f64 = 14.0;

impl Link {
    /// Longest wait in a full queue in nanoseconds; if the queue counts packets, behind frames of the largest size.
    #[must_use]
    pub fn queue_ns(&self, rate: BitRate) -> f64 {
        self.queue.bytes_full_of(self.largest_frame()) as f64 * 8.0 * 1e9 / rate.0 as f64
    }

    /// Size of the largest frame in bytes.
    #[must_use]
    pub fn largest_frame(&self) -> u64 {
        u64::from(self.mtu) + ETHERNET as u64
    }

    /// Compares a measurement with the configuration. Returns the first deviation in words, or `None`. Tolerances: 0.2
    /// ms and 2 % of the round trip, plus the jitter; under load the same, above the delay of a full queue; 2 % of the
    /// rate; four standard errors of the loss, which chance exceeds once in 16,000 measurements.
    #[must_use]
    pub fn misses(&self, reading: &Reading) -> Option<String> {
        let transmission = |rate: Option<BitRate>| rate.map_or(0.0, |rate| PING_FRAME * 8.0 * 1e9 / rate.0 as f64);
        let up = self.rate_up.or(self.rate);
        let round_trip = self.round_trip.nanos() as f64 + transmission(self.rate) + transmission(up);
        let tolerance = 200_000.0 + 0.02 * round_trip + 2.0 * self.jitter.nanos() as f64;
        match reading.round_trip_ns {
            None if self.loss.0 < 0.9 => return Some("nothing came back over the link".to_owned()),
            Some(measured) if (measured as f64 - round_trip).abs() > tolerance => {
                let [measured, wanted] = [measured as f64, round_trip].map(|ns| ns / 1e6);
                return Some(format!("the round trip is {measured:.3} ms where {wanted:.3} ms were configured"));
            }
            _ => {}
        }
        if let (Some(loaded), Some(rate)) = (reading.round_trip_loaded_ns, self.rate) {
            let full = round_trip + self.queue_ns(rate);
            // The probe waits for the frame in transmission, and queues behind frames that arrive with it.
            let frames = 2.0 * (f64::from(self.mtu) + ETHERNET) * 8.0 * 1e9 / rate.0 as f64;
            let most = full + tolerance + 0.02 * full + frames;
            if loaded as f64 > most {
                let [loaded, full] = [loaded as f64, full].map(|ns| ns / 1e6);
                return Some(format!(
                    "the round trip under load is {loaded:.3} ms where a full queue makes it {full:.3} ms"
                ));
            }
        }
        for (wanted, measured) in [(up, reading.rate_up), (self.rate, reading.rate)] {
            if let (Some(wanted), Some(measured)) = (wanted, measured)
                && (measured / wanted.0 as f64 - 1.0).abs() > 0.02
            {
                return Some(format!("the rate is {:.3} Mbit/s where {wanted} was configured", measured / 1e6));
            }
        }
        for Loss { lost, of } in [reading.loss_up, reading.loss] {
            let (share, of) = (self.loss.0, of as f64);
            // Losses in bursts increase the variance like a sample that is smaller by the burst length.
            let error = (share * (1.0 - share) * 2.0 * self.loss_burst.max(1.0) / of).sqrt();
            if (lost as f64 / of - share).abs() > 4.0 * error {
                return Some(format!("{lost} of {of} datagrams were lost where {} was configured", self.loss));
            }
        }
        if reading.mtu != self.mtu {
            return Some(format!("packets of up to {} bytes arrive where the MTU is {}", reading.mtu, self.mtu));
        }
        (reading.missed > 0).then(|| format!("the emulator could not keep up and lost {} frames", reading.missed))
    }
}

/// A named link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preset {
    /// Name of the placement in study files.
    pub name: &'static str,
    pub link: Link,
    /// Source of the numbers.
    pub source: &'static str,
}

const WEBPAGETEST: &str = "WebPageTest's connectivity profiles (connectivity.ini.sample)";

/// Every preset, from near to far.
pub const PRESETS: [Preset; 10] = [
    Preset {
        name: "same-node",
        link: Link::wire(),
        source: "two network namespaces joined by a veth pair, as pods of one node are",
    },
    Preset {
        name: "lan",
        link: link(500_000, None, None),
        source: "own choice: half a millisecond, as through a switch or two",
    },
    Preset {
        name: "single-az",
        link: link(500_000, None, None),
        source: "own choice, to be replaced by a measurement of one's own cloud: half a millisecond within a zone",
    },
    Preset {
        name: "multi-az",
        link: link(1_500_000, None, None),
        source: "own choice within what cloud providers state for zones of a region (single-digit milliseconds)",
    },
    Preset { name: "home", link: link(28_000_000, Some(5_000_000), Some(1_000_000)), source: CABLE },
    Preset {
        name: "wifi",
        link: Link {
            loss: Share(0.01),
            loss_burst: 3.0,
            jitter: Span(2_000_000),
            ..link(28_000_000, Some(5_000_000), Some(1_000_000))
        },
        source: "`home` behind a radio: 1 % loss in bursts of 3 and 2 ms of jitter are own choices",
    },
    Preset { name: "4g", link: link(170_000_000, Some(9_000_000), None), source: WEBPAGETEST },
    Preset { name: "3g", link: link(300_000_000, Some(1_600_000), Some(768_000)), source: WEBPAGETEST },
    Preset {
        name: "satellite",
        link: link(560_000_000, Some(20_000_000), Some(2_000_000)),
        source: "a geostationary hop takes about 280 ms one way (RFC 2488, section 2); the rates are own choices",
    },
    Preset {
        name: "transatlantic",
        link: link(75_000_000, Some(100_000_000), None),
        source: "own choice near what carriers publish for London to New York; the rate is that of one well-connected user",
    },
];

const CABLE: &str = "WebPageTest's connectivity profile `Cable` (connectivity.ini.sample)";

const fn link(round_trip_ns: u64, rate: Option<u64>, rate_up: Option<u64>) -> Link {
    const fn bits(rate: Option<u64>) -> Option<BitRate> {
        match rate {
            Some(rate) => Some(BitRate(rate)),
            None => None,
        }
    }
    Link { round_trip: Span(round_trip_ns), rate: bits(rate), rate_up: bits(rate_up), ..Link::wire() }
}

/// Returns the preset of this name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The measurement of a link that behaves exactly as configured.
    fn exact(link: &Link) -> Reading {
        let bits = |rate: Option<BitRate>| rate.map(|rate| rate.0 as f64);
        let lost = Loss { lost: (link.loss.0 * 4000.0) as u64, of: 4000 };
        Reading {
            round_trip_ns: Some(link.round_trip.nanos()),
            round_trip_min_ns: Some(link.round_trip.nanos()),
            round_trip_loaded_ns: link.rate.map(|rate| link.round_trip.nanos() + link.queue_ns(rate) as u64),
            rate_up: bits(link.rate_up.or(link.rate)),
            rate: bits(link.rate),
            loss_up: lost,
            loss: lost,
            mtu: link.mtu,
            missed: 0,
        }
    }

    #[test]
    fn every_preset_that_behaves_as_configured_is_within_its_tolerances() {
        for Preset { name, link, .. } in PRESETS {
            assert_eq!(link.misses(&exact(&link)), None, "{name}");
        }
    }

    #[test]
    fn the_deviation_beyond_a_tolerance_is_named() {
        let link = link(10_000_000, Some(100_000_000), Some(10_000_000));
        let exact = exact(&link);
        let more = |ns: Option<u64>, share: f64| ns.map(|ns| (ns as f64 * share) as u64);
        for (reading, word) in [
            (Reading { round_trip_ns: more(exact.round_trip_ns, 1.06), ..exact }, "round trip is"),
            (Reading { round_trip_ns: more(exact.round_trip_ns, 0.94), ..exact }, "round trip is"),
            (Reading { round_trip_ns: None, ..exact }, "nothing came back"),
            (Reading { round_trip_loaded_ns: more(exact.round_trip_loaded_ns, 1.1), ..exact }, "under load"),
            (Reading { rate: exact.rate.map(|rate| rate * 1.03), ..exact }, "rate is"),
            (Reading { rate_up: exact.rate_up.map(|rate| rate * 0.97), ..exact }, "rate is"),
            (Reading { loss: Loss { lost: 1, of: 4000 }, ..exact }, "1 of 4000"),
            (Reading { mtu: 1499, ..exact }, "MTU"),
            (Reading { missed: 1, ..exact }, "lost 1 frames"),
        ] {
            let miss = link.misses(&reading).unwrap_or_default();
            assert!(miss.contains(word), "{word}: `{miss}`");
        }
        // A queue that was not full adds less delay, which is no fault of the link.
        assert_eq!(link.misses(&Reading { round_trip_loaded_ns: exact.round_trip_ns, ..exact }), None);
        let lossy = Link { loss: Share(0.05), ..link };
        let lost = |lost| Reading { loss: Loss { lost, of: 4000 }, loss_up: Loss { lost: 200, of: 4000 }, ..exact };
        assert_eq!(lossy.misses(&lost(230)), None);
        assert!(lossy.misses(&lost(300)).is_some() && lossy.misses(&lost(100)).is_some());
    }
}
