//! Datagrams and captured frames of the network.

use wirelab_endpoint::quic_padding::without_padding;
use wirelab_endpoint::{UdpCoverage, UdpHeader};
use wirelab_model::network::Between;
use wirelab_observe::packets::frame::Frame;

use crate::Target;
use crate::bytes::pieces;

pub const TARGETS: &[Target] = &[
    Target { name: "quic-padding", seeds: payloads, read: padding },
    Target { name: "udp", seeds: datagrams, read: udp },
    Target { name: "frame", seeds: frames, read: frame },
];

fn payloads() -> Vec<Vec<u8>> {
    vec![
        vec![
            0x03, 0x44, 0x00, 0x10, 0x01, 0x00, 0x05, 0x06, 0x00, 0x00, 0x00, 0x0f, 0x04, 0x40, 0x00, 0x02, 1, 2, 0, 0,
        ],
        vec![0x01, 0x12, 0x40, 0x00, 0x11, 0x04, 0x80, 0, 0, 0, 0x1e, 0x0d, 0x04, 0x00, 7, 0, 0],
        vec![0; 30],
    ]
}

/// Only zeros are removed, and nothing more the second time.
fn padding(input: &[u8]) {
    let size = without_padding(input);
    let (kept, removed) = input.split_at(size);
    assert!(removed.iter().all(|byte| *byte == 0), "a frame was removed");
    assert_eq!(without_padding(kept), size, "the rest has padding");
}

fn datagrams() -> Vec<Vec<u8>> {
    let header = |offset: u64, total: u64| [7, offset, total, 3, 9].into_iter().flat_map(u64::to_be_bytes);
    vec![[header(0, 3).collect(), b"abc".to_vec()].concat(), [header(5, 10).collect(), b"abcde".to_vec()].concat()]
}

/// Distinct bytes of a message are counted once, in any order.
fn udp(input: &[u8]) {
    let (mut coverage, mut known) = (UdpCoverage::default(), [false; 256]);
    for datagram in pieces(input, &[48]) {
        let Some((header, piece)) = UdpHeader::split(datagram) else { continue };
        let end = header.offset + piece.len() as u64;
        assert!(end <= header.total, "a piece is beyond its message");
        let _ = header.is_whole(piece.len());
        let (start, end) = (header.offset as usize & 0xff, (end & 0xff) as usize);
        if start < end {
            coverage.add(start as u64, end as u64);
            known[start..end].fill(true);
        }
    }
    assert_eq!(coverage.bytes(), known.iter().filter(|is_known| **is_known).count() as u64);
}

fn frames() -> Vec<Vec<u8>> {
    let ip = |protocol: u8| {
        let mut frame = vec![2; 12];
        frame.extend([0x08, 0x00, 0x45, 0, 0, 100, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x21, 0x18, 0x21, 0x18, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0]);
        frame
    };
    let inner = [ip(17), ip(6)].concat();
    [ip(6), ip(17), inner].map(|frame| [&[0x40, 0x10, 0x04, 0x00][..], &frame].concat()).to_vec()
}

/// The frames on the wire carry what the super-packet carries.
fn frame(input: &[u8]) {
    let Some(([a, b, c, d], bytes)) = input.split_first_chunk() else { return };
    let length = bytes.len() + usize::from(u16::from_be_bytes([*a, *b]));
    let segment = Some(u16::from_be_bytes([*c, *d]));
    let hosts = |last: u8| [[10, 0, 0, last].into()].into();
    let between = Between { these: hosts(1), those: hosts(2) };
    for has_tunnels in [false, true] {
        let frame = Frame { bytes, length, segment };
        let _ = frame.is_between(&between, has_tunnels);
        if let Ok(wire) = frame.wire(has_tunnels) {
            let sum: usize = wire.parts().map(|(count, size)| count as usize * size).sum();
            assert!(sum >= length, "{wire:?} carries less than {length} bytes");
        }
    }
}
