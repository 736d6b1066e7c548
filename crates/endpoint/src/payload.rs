//! Bodies of the pattern, as slices of one buffer, so that sending copies and allocates nothing.

use std::sync::LazyLock;

use bytes::Bytes;
use wirelab_contract::pattern::{self, PERIOD};

/// Maximum length of a [`piece`] in bytes.
pub const LONGEST: usize = 256 * 1024;

/// One period longer than the longest piece, so that a piece can start anywhere in the period.
static PATTERN: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(pattern::body(LONGEST + PERIOD as usize)));

/// The pattern from `offset` on: `wanted` bytes, but at most [`LONGEST`].
#[must_use]
pub fn piece(offset: u64, wanted: u64) -> Bytes {
    let start = (offset % PERIOD) as usize;
    let length = wanted.min(LONGEST as u64) as usize;
    PATTERN.slice(start..start + length)
}

/// Like [`piece`], borrowed.
#[must_use]
pub fn piece_slice(offset: u64, wanted: u64) -> &'static [u8] {
    let start = (offset % PERIOD) as usize;
    let length = wanted.min(LONGEST as u64) as usize;
    &PATTERN[start..start + length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_pattern_at_any_offset() {
        let whole = pattern::body(3 * LONGEST);
        let mut joined = Vec::new();
        while joined.len() < whole.len() {
            let wanted = (whole.len() - joined.len()).min(LONGEST - 7);
            let piece = piece(joined.len() as u64, wanted as u64);
            assert_eq!(piece_slice(joined.len() as u64, wanted as u64), piece);
            joined.extend_from_slice(&piece);
        }
        assert!(joined == whole);
    }
}
