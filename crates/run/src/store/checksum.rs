//! Checksums of journal lines and of files.
//!
//! The checksum of a line is its last key: the first 16 hexadecimal digits of the SHA-256 of the bytes before that key.
//! It covers bytes, not JSON values, so no rule for the form of numbers or the order of keys is necessary.

use std::fmt::Write;

use ring::digest::{SHA256, digest};

/// The bytes before the digits.
const KEY: &[u8] = br#","checksum":""#;

/// The number of digits: 64 bits make a damage that fits its checksum practically impossible.
const DIGITS: usize = 16;

/// The bytes after the digits.
const END: &[u8] = br#""}"#;

/// The result of checking a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checked {
    /// The line is as it was written.
    Right,
    /// The line was changed.
    Wrong,
    /// The line has no checksum.
    Absent,
}

/// SHA-256, hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Adds the checksum to a JSON object without a line feed.
pub(crate) fn add(object: &mut Vec<u8>) {
    debug_assert!(object.ends_with(b"}"));
    object.pop();
    let digits = sha256(object);
    object.extend(KEY);
    object.extend(&digits.as_bytes()[..DIGITS]);
    object.extend(END);
}

/// Checks a line without its line feed.
pub(crate) fn check(line: &[u8]) -> Checked {
    let Some(start) = line.len().checked_sub(KEY.len() + DIGITS + END.len()) else { return Checked::Absent };
    let (content, seal) = line.split_at(start);
    let digits = seal.strip_prefix(KEY).and_then(|rest| rest.strip_suffix(END));
    match digits {
        None => Checked::Absent,
        Some(digits) if digits == &sha256(content).as_bytes()[..DIGITS] => Checked::Right,
        Some(_) => Checked::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_any_byte_is_noticed() {
        let mut line = br#"{"entry":"started","at":"x"}"#.to_vec();
        assert_eq!(check(&line), Checked::Absent);
        add(&mut line);
        assert_eq!(check(&line), Checked::Right);
        serde_json::from_slice::<serde_json::Value>(&line).unwrap();
        for place in 0..line.len() {
            let mut damaged = line.clone();
            damaged[place] ^= 1;
            assert_ne!(check(&damaged), Checked::Right, "byte {place}");
        }
    }

    #[test]
    fn digests_are_those_of_the_program_sha256sum() {
        assert!(sha256(b"abc").starts_with("ba7816bf8f01cfea414140de5dae2223"));
    }
}
