//! Removes the padding at the end of decrypted packets. quinn takes each byte of PADDING for a frame of its own, which
//! costs more than decrypting it. nginx, for one, pads every packet that it sends by segmentation offload.

use bytes::BytesMut;
use quinn_proto::crypto::{CryptoError, PacketKey};

/// A key whose decrypted payloads have no padding at their end.
pub struct Unpadded(pub Box<dyn PacketKey>);

impl PacketKey for Unpadded {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        self.0.encrypt(packet, buf, header_len);
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.0.decrypt(packet, header, payload)?;
        let size = without_padding(payload);
        // A payload of padding alone is a packet all the same, and one without a frame is an error.
        payload.truncate(size.max(1));
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

/// The size of a payload without the PADDING frames at its end (RFC 9000, section 19). Behind a frame that is rare or
/// damaged nothing is removed.
#[must_use]
pub fn without_padding(payload: &[u8]) -> usize {
    let mut rest = payload;
    loop {
        let Some(after) = rest.iter().position(|byte| *byte != 0) else { return payload.len() - rest.len() };
        rest = match after_frame(&rest[after..]) {
            Some(rest) => rest,
            None => return payload.len(),
        };
    }
}

/// The bytes behind the first frame; `None` if it reaches to the end, or is not one of the frequent ones.
fn after_frame(bytes: &[u8]) -> Option<&[u8]> {
    let (kind, rest) = bytes.split_first()?;
    match kind {
        // PING, HANDSHAKE_DONE
        0x01 | 0x1e => Some(rest),
        // ACK: the largest number, the delay, the count of ranges, the first range, ranges, and counts of ECN.
        0x02 | 0x03 => {
            let (ranges, rest) = number(after_numbers(rest, 2)?)?;
            let counts = if *kind == 0x03 { 3 } else { 0 };
            after_numbers(rest, ranges.checked_mul(2)?.checked_add(1 + counts)?)
        }
        // STREAM: the stream, the offset, and the length of the data if it does not reach to the end.
        0x08..=0x0f if kind & 0x02 != 0 => {
            let (length, rest) = number(after_numbers(rest, if kind & 0x04 == 0 { 1 } else { 2 })?)?;
            rest.get(usize::try_from(length).ok()?..)
        }
        // MAX_DATA, MAX_STREAMS
        0x10 | 0x12 | 0x13 => after_numbers(rest, 1),
        // MAX_STREAM_DATA
        0x11 => after_numbers(rest, 2),
        _ => None,
    }
}

fn after_numbers(mut bytes: &[u8], count: u64) -> Option<&[u8]> {
    for _ in 0..count {
        bytes = number(bytes)?.1;
    }
    Some(bytes)
}

/// A number of variable length (RFC 9000, section 16), and the bytes behind it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = *bytes.first()?;
    let (encoded, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = encoded.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some((value & (u64::MAX >> (66 - 8 * encoded.len())), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stream(with_length: bool, data: &[u8]) -> Vec<u8> {
        let kind = if with_length { 0x0f } else { 0x0d };
        let mut frame = vec![kind, 0x04, 0x40, 0x00];
        if with_length {
            frame.extend_from_slice(&[0x40 | (data.len() >> 8) as u8, data.len() as u8]);
        }
        frame.extend_from_slice(data);
        frame
    }

    /// RFC 9000, appendix A.1.
    #[test]
    fn numbers_have_four_sizes() {
        for (encoded, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(number(encoded), Some((value, &[][..])));
            assert_eq!(number(&encoded[..encoded.len() - 1]), None);
        }
    }

    #[test]
    fn zeros_of_data_stay_and_zeros_behind_all_frames_go() {
        let ack = vec![0x03, 0x44, 0x00, 0x10, 0x01, 0x00, 0x05, 0x06, 0x00, 0x00, 0x00];
        for frames in
            [ack.clone(), stream(true, &[0; 300]), [vec![0x01], vec![0x12, 0x40, 0x00], stream(true, &[])].concat()]
        {
            let padded = [frames.clone(), vec![0; 900]].concat();
            assert_eq!(without_padding(&padded), frames.len(), "{frames:?}");
            assert_eq!(without_padding(&[vec![0; 3], padded].concat()), frames.len() + 3);
        }
        for whole in [
            stream(false, &[0; 300]),
            vec![0x18, 0x00, 0x00],
            vec![0x02, 0x00],
            vec![0x0f, 0x00, 0x00, 0x7f, 0xff, 0x00],
        ] {
            assert_eq!(without_padding(&whole), whole.len(), "{whole:?}");
        }
        assert_eq!(without_padding(&[0; 1200]), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_size_and_only_zeros_are_removed(bytes in prop::collection::vec(0..0x20_u8, 0..200), zeros in 0..100_usize) {
            let payload = [bytes, vec![0; zeros]].concat();
            let size = without_padding(&payload);
            prop_assert!(payload[size..].iter().all(|byte| *byte == 0));
        }
    }
}
