//! The content of every generated body: the byte at offset i is i mod 251. The pattern is simple in any language, and
//! its period is no power of two, so the digest reveals a shifted or repeated block.

/// Period of the pattern: the largest prime that fits in a byte.
pub const PERIOD: u64 = 251;

/// Fills `buffer` with the pattern from `offset` on.
pub fn fill(buffer: &mut [u8], offset: u64) {
    let mut value = (offset % PERIOD) as u8;
    for byte in buffer {
        *byte = value;
        value = if u64::from(value) == PERIOD - 1 { 0 } else { value + 1 };
    }
}

/// The first `size` bytes of the pattern.
#[must_use]
pub fn body(size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    fill(&mut bytes, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_whole() {
        let whole = body(1000);
        let mut piece = vec![0; 300];
        fill(&mut piece, 400);
        assert_eq!(piece, whole[400..700]);
        assert_eq!((whole[0], whole[250], whole[251]), (0, 250, 0));
    }
}
