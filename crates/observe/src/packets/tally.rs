//! Counts of packets at an interface.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use wirelab_model::missing::Missing;

use crate::packets::frame::{ETHERNET, Frame, VXLAN};

/// Upper bounds of the size classes, in bytes of an IP packet. An acknowledgement without data is below 100 bytes with
/// every transport. Every IPv4 host accepts 576 (RFC 791). Packets above 1000 are the filled ones.
pub(crate) const CLASSES: [usize; 3] = [100, 576, 1000];

/// Packets in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flow {
    /// Number of packets.
    pub packets: u64,
    /// Bytes of their frames, with Ethernet headers, without checksums and preambles.
    pub bytes: u64,
    /// Size of the largest IP packet in bytes.
    pub largest: usize,
    /// Number of IP packets up to each size of [`CLASSES`].
    pub up_to: [u64; CLASSES.len()],
}

impl Flow {
    fn add(&mut self, count: u64, frame: usize) {
        let packet = frame.saturating_sub(ETHERNET);
        self.packets += count;
        self.bytes += count * frame as u64;
        self.largest = self.largest.max(packet);
        for (class, most) in self.up_to.iter_mut().zip(CLASSES) {
            *class += if packet <= most { count } else { 0 };
        }
    }
}

impl AddAssign for Flow {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.largest = self.largest.max(other.largest);
        for (own, other) in self.up_to.iter_mut().zip(other.up_to) {
            *own += other;
        }
    }
}

/// Packets in both directions, from the view of the interface's host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flows {
    /// Sent packets.
    pub sent: Flow,
    /// Received packets.
    pub received: Flow,
}

impl Flows {
    /// The sum of both directions.
    pub(crate) fn both(&self) -> Flow {
        let mut sum = self.sent;
        sum += self.received;
        sum
    }
}

/// The counts at an interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Packets as the wire carries them.
    pub outer: Flows,
    /// The frames inside VXLAN, without its 50 bytes.
    pub inner: Flows,
    /// Why the counts are incomplete.
    pub trouble: Option<Missing>,
}

impl Tally {
    /// Counts a frame.
    pub(crate) fn add(&mut self, frame: &Frame<'_>, is_sent: bool, has_tunnels: bool) {
        let wire = match frame.wire(has_tunnels) {
            Ok(wire) => wire,
            Err(why) => {
                self.trouble.get_or_insert(why);
                return;
            }
        };
        let way = |flows: &mut Flows, count, bytes| {
            let flow = if is_sent { &mut flows.sent } else { &mut flows.received };
            flow.add(count, bytes);
        };
        for (count, bytes) in wire.parts() {
            way(&mut self.outer, count, bytes);
            if wire.is_tunnelled {
                way(&mut self.inner, count, bytes.saturating_sub(VXLAN));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::frame::tests::{header, within_vxlan};

    #[test]
    fn packets_are_added_by_direction_and_class_of_size() {
        let (tcp, mut tally) = (header(6, 443), Tally::default());
        let plain = |length| Frame { bytes: &tcp, length, segment: None };
        tally.add(&plain(66), true, false);
        tally.add(&plain(14 + 100), true, false);
        tally.add(&plain(14 + 101), true, false);
        tally.add(&Frame { bytes: &tcp, length: 66 + 3000, segment: Some(1448) }, false, false);
        let sent = Flow { packets: 3, bytes: 66 + 114 + 115, largest: 101, up_to: [2, 3, 3] };
        let received = Flow { packets: 3, bytes: 3 * 66 + 3000, largest: 1500, up_to: [0, 1, 1] };
        assert_eq!(tally.outer, Flows { sent, received });
        assert_eq!(tally.inner, Flows::default());
        let both = Flow { packets: 6, bytes: 295 + 3198, largest: 1500, up_to: [2, 4, 4] };
        assert_eq!(tally.outer.both(), both);
    }

    #[test]
    fn a_frame_in_a_tunnel_counts_outside_with_the_tunnels_headers_and_inside_without() {
        let (tunnel, mut tally) = (within_vxlan(&header(6, 443)), Tally::default());
        tally.add(&Frame { bytes: &tunnel, length: 50 + 66 + 2796, segment: Some(1398) }, true, true);
        // A frame between the nodes that is in no tunnel.
        tally.add(&Frame { bytes: &header(17, 53), length: 90, segment: None }, true, true);
        assert_eq!((tally.outer.sent.packets, tally.outer.sent.bytes), (3, 2 * (50 + 66 + 1398) + 90));
        assert_eq!((tally.inner.sent.packets, tally.inner.sent.bytes), (2, 2 * (66 + 1398)));
        assert_eq!((tally.outer.sent.largest, tally.inner.sent.largest), (1500, 1450));
    }

    #[test]
    fn a_frame_that_cannot_be_counted_makes_the_counts_incomplete() {
        let mut tally = Tally::default();
        tally.add(&Frame { bytes: &[], length: 9000, segment: Some(1448) }, true, false);
        assert_eq!(tally.trouble, Some(Missing::UnknownSuperPacket));
    }
}
