//! Splits UDP super-packets into datagrams for captures. A reader of a capture needs the datagrams' bounds to decrypt
//! QUIC. TCP segments need no splitting, because TCP is a stream.

use crate::packets::frame::{ETHERNET, Frame, VXLAN, transport, tunnelled};

const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// The frames of the datagrams, with correct lengths; `None` if the frame is no UDP super-packet or was not captured
/// whole. UDP checksums stay as they are: with this offload the interface would write them.
pub(crate) fn datagrams(frame: &Frame<'_>, has_tunnels: bool) -> Option<Vec<Vec<u8>>> {
    let segment = frame.segment.map(usize::from).filter(|segment| *segment > 0)?;
    let is_tunnelled = has_tunnels && tunnelled(frame.bytes).is_some();
    let inner = if is_tunnelled { VXLAN } else { 0 };
    let (protocol, udp) = transport(frame.bytes.get(inner..)?)?;
    let headers = inner + udp + UDP_HEADER;
    if protocol != UDP || frame.bytes.len() != frame.length || frame.length <= headers {
        return None;
    }
    let (head, payload) = frame.bytes.split_at(headers);
    let datagram = |piece: &[u8]| {
        let mut whole = [head, piece].concat();
        finish(&mut whole[inner..], udp);
        if is_tunnelled {
            finish(&mut whole, VXLAN - 2 * UDP_HEADER);
        }
        whole
    };
    Some(payload.chunks(segment).map(datagram).collect())
}

/// Writes the lengths of IP and UDP, and the IPv4 checksum, into a frame.
fn finish(frame: &mut [u8], udp: usize) {
    let length = frame.len();
    let mut write = |at: usize, number: usize| frame[at..at + 2].copy_from_slice(&(number as u16).to_be_bytes());
    write(udp + 4, length - udp);
    if udp == ETHERNET + 40 {
        write(ETHERNET + 4, length - udp);
        return;
    }
    write(ETHERNET + 2, length - ETHERNET);
    write(ETHERNET + 10, 0);
    let header = frame[ETHERNET..udp].chunks_exact(2);
    let mut sum: u32 = header.map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    // The ones' complement sum (RFC 1071).
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::frame::tests::{header, within_vxlan};

    fn with_payload(mut head: Vec<u8>, bytes: usize) -> Vec<u8> {
        head.extend((0..bytes).map(|number| number as u8));
        head
    }

    fn split(bytes: &[u8], segment: u16) -> Option<Vec<Vec<u8>>> {
        datagrams(&Frame { bytes, length: bytes.len(), segment: Some(segment) }, true)
    }

    fn number(frame: &[u8], at: usize) -> u16 {
        u16::from_be_bytes([frame[at], frame[at + 1]])
    }

    #[test]
    fn each_datagram_has_its_own_lengths_and_its_part_of_the_payload() {
        let whole = with_payload(header(UDP, 443), 2500);
        let parts = split(&whole, 1200).unwrap();
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [1242, 1242, 142]);
        assert_eq!((number(&parts[0], 16), number(&parts[0], 38)), (1228, 1208));
        assert_eq!((number(&parts[2], 16), number(&parts[2], 38)), (128, 108));
        assert_eq!(parts.iter().flat_map(|part| &part[42..]).copied().collect::<Vec<_>>(), whole[42..]);
    }

    #[test]
    fn the_checksum_equals_the_example_in_wikipedias_article_on_ipv4() {
        let mut frame = vec![0; 14];
        frame.extend([0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7]);
        frame.resize(14 + 0x73, 0);
        finish(&mut frame, 34);
        assert_eq!(number(&frame, 24), 0xb861);
    }

    #[test]
    fn in_a_tunnel_both_headers_are_finished() {
        let whole = with_payload(within_vxlan(&header(UDP, 443)), 2000);
        let parts = split(&whole, 1200).unwrap();
        assert_eq!(parts.len(), 2);
        let last = &parts[1];
        assert_eq!((number(last, 16), number(last, 38)), (50 + 42 + 800 - 14, 50 + 42 + 800 - 34));
        assert_eq!((number(last, 50 + 16), number(last, 50 + 38)), (828, 808));
    }

    #[test]
    fn other_frames_and_incomplete_super_packets_are_not_split() {
        assert_eq!(split(&with_payload(header(6, 443), 3000), 1448), None);
        let whole = with_payload(header(UDP, 443), 2500);
        assert_eq!(datagrams(&Frame { bytes: &whole, length: whole.len(), segment: None }, true), None);
        assert_eq!(datagrams(&Frame { bytes: &whole[..128], length: whole.len(), segment: Some(1200) }, true), None);
    }
}
