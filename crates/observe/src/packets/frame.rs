//! Sizes of captured frames on the wire. A super-packet counts as the packets that it is split into.
//!
//! With segmentation offload (GSO, TSO) the kernel hands an interface one frame of up to 64 KiB with the size of its
//! segments (`struct virtio_net_hdr`, which a packet socket delivers with `PACKET_VNET_HDR`). The wire carries one
//! frame per segment, each with a copy of all headers; the last segment may be shorter.
//!
//! The counts need three offsets in the first 128 bytes. `etherparse` would parse more, reject truncated headers, and
//! save no line.

use std::net::IpAddr;

use wirelab_model::missing::Missing;
use wirelab_model::network::Between;

/// Bytes of an Ethernet header without a VLAN tag.
pub(crate) const ETHERNET: usize = 14;

/// Bytes that VXLAN adds to an Ethernet frame: Ethernet, IPv4, UDP, and its own header (RFC 7348, section 5).
pub(crate) const VXLAN: usize = ETHERNET + 20 + 8 + 8;

/// The UDP ports of VXLAN: the port of RFC 7348, and the older default of Linux.
const VXLAN_PORTS: [u16; 2] = [4789, 8472];

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A captured frame.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The captured beginning, headers included; may be shorter than the frame.
    pub bytes: &'a [u8],
    /// Length of the whole frame in bytes.
    pub length: usize,
    /// Payload bytes of each segment; `None`: no super-packet.
    pub segment: Option<u16>,
}

/// A frame as the wire carries it: `count` frames of `full` bytes, then one of `last` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire {
    /// Full frames.
    pub count: u64,
    /// Bytes of each full frame.
    pub full: usize,
    /// Bytes of a shorter last frame; `None`: every frame is full.
    pub last: Option<usize>,
    /// Whether each frame carries a frame in VXLAN.
    pub is_tunnelled: bool,
}

impl Frame<'_> {
    /// The frames on the wire. `has_tunnels`: whether UDP to the ports of VXLAN is VXLAN here.
    ///
    /// # Errors
    /// If a super-packet's headers are not understood.
    pub fn wire(&self, has_tunnels: bool) -> Result<Wire, Missing> {
        let tunnel = has_tunnels.then(|| tunnelled(self.bytes)).flatten();
        let is_tunnelled = tunnel.is_some();
        let Some(segment) = self.segment.map(usize::from).filter(|segment| *segment > 0) else {
            return Ok(Wire { count: 1, full: self.length, last: None, is_tunnelled });
        };
        let headers = tunnel
            .map_or_else(|| headers(self.bytes), |inner| headers(inner).map(|length| length + VXLAN))
            .filter(|headers| *headers < self.length)
            .ok_or(Missing::UnknownSuperPacket)?;
        let payload = self.length - headers;
        let rest = payload % segment;
        Ok(Wire {
            count: (payload / segment) as u64,
            full: headers + segment,
            last: (rest > 0).then_some(headers + rest),
            is_tunnelled,
        })
    }

    /// Whether the frame travels between the two groups of hosts, directly or, with `has_tunnels`, in VXLAN.
    #[must_use]
    pub fn is_between(&self, between: &Between, has_tunnels: bool) -> bool {
        let joins = |bytes: &[u8]| addresses(bytes).is_some_and(|(from, to)| between.joins(from, to));
        joins(self.bytes) || (has_tunnels && tunnelled(self.bytes).is_some_and(joins))
    }
}

impl Wire {
    /// Groups of equal frames: count, and bytes of each.
    pub fn parts(&self) -> impl Iterator<Item = (u64, usize)> {
        [(self.count, self.full), (u64::from(self.last.is_some()), self.last.unwrap_or(0))]
            .into_iter()
            .filter(|(count, _)| *count > 0)
    }
}

/// The frame inside a VXLAN frame.
pub(crate) fn tunnelled(bytes: &[u8]) -> Option<&[u8]> {
    let (protocol, udp) = transport(bytes)?;
    let port = u16::from_be_bytes(bytes.get(udp + 2..udp + 4)?.try_into().ok()?);
    (protocol == UDP && VXLAN_PORTS.contains(&port) && udp + 16 == VXLAN).then(|| bytes.get(VXLAN..)).flatten()
}

/// Length of all headers of a frame, up to the payload of TCP or UDP.
fn headers(bytes: &[u8]) -> Option<usize> {
    let (protocol, at) = transport(bytes)?;
    match protocol {
        TCP => Some(at + 4 * usize::from(bytes.get(at + 12)? >> 4)),
        UDP => Some(at + 8),
        _ => None,
    }
}

/// Source and destination of an IP packet (RFC 791, section 3.1; RFC 8200, section 3).
fn addresses(bytes: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let ip = bytes.get(ETHERNET..)?;
    let v4 = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(ip.get(at..at + 4)?).ok()?));
    let v6 = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(ip.get(at..at + 16)?).ok()?));
    match bytes.get(12..14)? {
        [0x08, 0x00] => Some((v4(12)?, v4(16)?)),
        [0x86, 0xdd] => Some((v6(8)?, v6(24)?)),
        _ => None,
    }
}

/// The protocol above IP, and the offset of its header.
pub(crate) fn transport(bytes: &[u8]) -> Option<(u8, usize)> {
    let ip = bytes.get(ETHERNET..)?;
    match bytes.get(12..14)? {
        [0x08, 0x00] => Some((*ip.get(9)?, ETHERNET + 4 * usize::from(ip.first()? & 0xf))),
        [0x86, 0xdd] => Some((*ip.get(6)?, ETHERNET + 40)),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The beginning of an IPv4 frame with UDP, or with TCP and 12 bytes of options.
    pub(crate) fn header(protocol: u8, port: u16) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        bytes.extend([0x08, 0x00, 0x45]);
        bytes.extend([0; 8]);
        bytes.push(protocol);
        bytes.extend([0; 10]);
        assert_eq!(bytes.len(), ETHERNET + 20);
        bytes.extend([0x80, 0]);
        bytes.extend(port.to_be_bytes());
        match protocol {
            TCP => bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x80].into_iter().chain([0; 19])),
            _ => bytes.extend([0; 4]),
        }
        bytes
    }

    /// A frame inside VXLAN.
    pub(crate) fn within_vxlan(inner: &[u8]) -> Vec<u8> {
        let mut bytes = header(UDP, 4789);
        bytes.extend([8, 0, 0, 0, 0, 0, 7, 0]);
        bytes.extend(inner);
        bytes
    }

    fn wire(bytes: &[u8], length: usize, segment: Option<u16>, has_tunnels: bool) -> Wire {
        Frame { bytes, length, segment }.wire(has_tunnels).unwrap()
    }

    #[test]
    fn a_plain_frame_stays_one_packet() {
        let seen = wire(&header(TCP, 443), 1514, None, true);
        assert_eq!(seen, Wire { count: 1, full: 1514, last: None, is_tunnelled: false });
    }

    #[test]
    fn each_segment_of_a_super_packet_has_its_own_headers() {
        // 66 bytes of headers (14 Ethernet, 20 IPv4, 32 TCP with time stamps), and 1448 of payload in 1500.
        let seen = wire(&header(TCP, 443), 66 + 10_000, Some(1448), false);
        assert_eq!(seen, Wire { count: 6, full: 1514, last: Some(66 + 10_000 - 6 * 1448), is_tunnelled: false });
        let exact = wire(&header(TCP, 443), 66 + 2 * 1448, Some(1448), false);
        assert_eq!(exact, Wire { count: 2, full: 1514, last: None, is_tunnelled: false });
        let udp = wire(&header(UDP, 443), 42 + 2500, Some(1200), false);
        assert_eq!(udp, Wire { count: 2, full: 1242, last: Some(142), is_tunnelled: false });
        // Less than one segment: the kernel marks the last piece of a long write so.
        let short = wire(&header(TCP, 443), 66 + 100, Some(1448), false);
        assert_eq!(short.parts().collect::<Vec<_>>(), [(1, 166)]);
    }

    #[test]
    fn an_ipv6_header_has_forty_bytes() {
        let mut bytes = vec![2; 12];
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, UDP, 64]);
        bytes.resize(ETHERNET + 40 + 8, 0);
        assert_eq!(wire(&bytes, 62 + 3000, Some(1200), false).parts().collect::<Vec<_>>(), [(2, 1262), (1, 662)]);
    }

    #[test]
    fn each_segment_in_a_tunnel_has_the_tunnels_headers_too() {
        let bytes = within_vxlan(&header(TCP, 443));
        let seen = wire(&bytes, 50 + 66 + 3000, Some(1398), true);
        assert_eq!(seen, Wire { count: 2, full: 50 + 66 + 1398, last: Some(50 + 66 + 204), is_tunnelled: true });
        let old = {
            let mut bytes = bytes;
            bytes[36..38].copy_from_slice(&8472_u16.to_be_bytes());
            bytes
        };
        assert!(wire(&old, 1000, None, true).is_tunnelled);
        // The same port in a network without tunnels, and another port.
        assert!(!wire(&old, 1000, None, false).is_tunnelled);
        assert!(!wire(&header(UDP, 443), 1000, None, true).is_tunnelled);
    }

    #[test]
    fn packets_between_two_groups_of_hosts_are_recognised_also_in_a_tunnel() {
        let from_to = |from: u8, to: u8| {
            let mut bytes = header(TCP, 443);
            bytes[26..34].copy_from_slice(&[10, 0, 0, from, 10, 0, 0, to]);
            bytes
        };
        let host = |last: u8| IpAddr::from([10, 0, 0, last]);
        let between = Between { these: [host(1), host(2)].into(), those: [host(7)].into() };
        let is =
            |bytes: &[u8], has_tunnels| Frame { bytes, length: 1000, segment: None }.is_between(&between, has_tunnels);
        assert!(is(&from_to(2, 7), false) && is(&from_to(7, 1), false), "either way");
        assert!(!is(&from_to(1, 2), false) && !is(&from_to(1, 8), false) && !is(&[0; 60], false));
        let tunnel = within_vxlan(&from_to(7, 1));
        assert!(is(&tunnel, true) && !is(&tunnel, false));
        assert!(!is(&within_vxlan(&from_to(7, 8)), true));
        for end in 0..=tunnel.len() {
            is(&tunnel[..end], true);
        }

        let mut bytes = vec![2; 12];
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, UDP, 64]);
        let [from, to] = ["fd00::1", "fd00::7"].map(|text| text.parse::<std::net::Ipv6Addr>().unwrap());
        bytes.extend([from.octets(), to.octets()].concat());
        assert_eq!(addresses(&bytes), Some((from.into(), to.into())));
    }

    #[test]
    fn a_super_packet_with_unknown_headers_is_an_error_and_not_one_packet() {
        for bytes in [&header(TCP, 443)[..40], &header(47, 0), &[0xff; 60], &[]] {
            assert!(Frame { bytes, length: 9000, segment: Some(1448) }.wire(true).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn truncated_frames_do_not_panic() {
        let whole = within_vxlan(&header(TCP, 443));
        for end in 0..=whole.len() {
            for segment in [None, Some(0), Some(1), Some(u16::MAX)] {
                for length in [0, end, 65_600] {
                    let _ = Frame { bytes: &whole[..end], length, segment }.wire(true);
                }
            }
        }
    }
}
