//! The Huffman code of HPACK (RFC 7541, appendix B). The code is canonical, so that the lengths define it.

use std::sync::LazyLock;

/// Length in bits of the code of each byte.
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26,
];

/// The longest code in bits.
const LONGEST: usize = 30;

/// The code, sorted by length.
struct Code {
    /// Bytes in the order of their codes.
    bytes: Vec<u8>,
    /// For each length, the first code and the place of its byte.
    first: [(u32, usize); LONGEST + 2],
}

static CODE: LazyLock<Code> = LazyLock::new(|| {
    let mut bytes: Vec<u8> = (0..=255).collect();
    bytes.sort_by_key(|byte| (LENGTHS[usize::from(*byte)], *byte));
    let mut first = [(0, 0); LONGEST + 2];
    let (mut code, mut place) = (0_u32, 0);
    for (length, entry) in first.iter_mut().enumerate() {
        code <<= 1;
        *entry = (code, place);
        let count = LENGTHS.iter().filter(|known| usize::from(**known) == length).count();
        code += count as u32;
        place += count;
    }
    Code { bytes, first }
});

/// Decodes a string. `None` if it is not valid.
pub(crate) fn decode(text: &[u8], into: &mut Vec<u8>) -> Option<()> {
    into.clear();
    let code = &*CODE;
    let (mut bits, mut length) = (0_u32, 0);
    for byte in text {
        for shift in (0..8).rev() {
            bits = bits << 1 | u32::from(byte >> shift & 1);
            length += 1;
            let ((first, place), (_, next)) = (code.first[length], code.first[length + 1]);
            if let Some(index) = bits.checked_sub(first)
                && (index as usize) < next - place
            {
                into.push(code.bytes[place + index as usize]);
                (bits, length) = (0, 0);
            } else if length == LONGEST {
                return None;
            }
        }
    }
    // The padding is less than a byte of ones.
    (length < 8 && bits == (1 << length) - 1).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification_are_decoded() {
        // RFC 7541, appendix C.4 and C.6.
        for (bytes, text) in [
            (&[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff][..], "www.example.com"),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (&[0x64, 0x02], "302"),
            (&[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f], "custom-key"),
            (&[], ""),
        ] {
            let mut into = Vec::new();
            decode(bytes, &mut into).unwrap();
            assert_eq!(std::str::from_utf8(&into).unwrap(), text);
        }
        let mut into = Vec::new();
        // Padding of zeros, a whole byte of padding, and the end-of-string symbol.
        for wrong in [&[0x64][..], &[0x64, 0x02, 0xff], &[0xff, 0xff, 0xff, 0xff]] {
            assert_eq!(decode(wrong, &mut into), None, "{wrong:?}");
        }
    }
}
