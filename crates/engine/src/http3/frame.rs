//! Frames of HTTP/3 (RFC 9114, section 7) in pieces.

use wirelab_contract::error_kind::ErrorKind;

use crate::refusal::Failure;

/// Largest frame that is kept whole, in bytes.
const LARGEST: u64 = 256 * 1024;

/// Types of frames.
pub(super) mod kind {
    pub const DATA: u64 = 0;
    pub const HEADERS: u64 = 1;
    pub const CANCEL_PUSH: u64 = 3;
    pub const SETTINGS: u64 = 4;
    pub const PUSH_PROMISE: u64 = 5;
    pub const GOAWAY: u64 = 7;

    /// Whether a frame belongs to a response.
    pub const fn is_of_response(kind: u64) -> bool {
        matches!(kind, DATA | HEADERS | PUSH_PROMISE)
    }

    /// Whether a frame belongs to the control stream, or to HTTP/2 (RFC 9114, section 7.2.8).
    pub const fn is_of_control_stream(kind: u64) -> bool {
        matches!(kind, 2 | 3 | 4 | 6 | 7 | 8 | 9 | 13)
    }
}

/// The next part that the bytes have.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Nothing yet.
    None,
    /// A frame that is complete, with its type.
    Whole(u64, &'a [u8]),
    /// A part of a frame that is not kept whole.
    Part(&'a [u8]),
}

/// The frames of one stream.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The beginning of an incomplete frame.
    partial: Vec<u8>,
    /// A complete frame that was in pieces; its memory is used again.
    whole: Vec<u8>,
    /// Bytes to come of a frame that is passed on in parts.
    left: u64,
}

impl Frames {
    /// Whether no frame is incomplete.
    pub fn is_between(&self) -> bool {
        self.partial.is_empty() && self.left == 0
    }

    /// Takes the next piece. Returns it, and the number of bytes that belong to it, at least one. `passes` says which
    /// types of frames are passed on in parts.
    pub fn next<'a>(
        &'a mut self,
        bytes: &'a [u8],
        passes: impl Fn(u64) -> bool,
    ) -> Result<(Piece<'a>, usize), Failure> {
        if self.left > 0 {
            let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            self.left -= count as u64;
            return Ok((Piece::Part(&bytes[..count]), count));
        }
        if self.partial.is_empty()
            && let Some((kind, length, head)) = header(bytes)
        {
            if passes(kind) && length > 0 {
                self.left = length;
                return Ok((Piece::None, head));
            }
            let end = head + checked(length)?;
            if let Some(payload) = bytes.get(head..end) {
                return Ok((Piece::Whole(kind, payload), end));
            }
        }
        self.go_on(bytes, passes)
    }

    /// Completes a frame that arrives in pieces.
    fn go_on(&mut self, bytes: &[u8], passes: impl Fn(u64) -> bool) -> Result<(Piece<'_>, usize), Failure> {
        let mut count = 0;
        loop {
            let wanted = match header(&self.partial) {
                // One byte more, until the header is complete.
                None => self.partial.len() + 1,
                Some((kind, length, _)) if passes(kind) && length > 0 => {
                    self.partial.clear();
                    self.left = length;
                    return Ok((Piece::None, count));
                }
                Some((_, length, head)) => head + checked(length)?,
            };
            if self.partial.len() == wanted {
                break;
            }
            let missing = (wanted - self.partial.len()).min(bytes.len() - count);
            if missing == 0 {
                return Ok((Piece::None, count));
            }
            self.partial.extend_from_slice(&bytes[count..count + missing]);
            count += missing;
        }
        std::mem::swap(&mut self.partial, &mut self.whole);
        self.partial.clear();
        let (kind, _, head) = header(&self.whole).unwrap_or_default();
        Ok((Piece::Whole(kind, &self.whole[head..]), count))
    }
}

fn checked(length: u64) -> Result<usize, Failure> {
    match usize::try_from(length) {
        Ok(size) if length <= LARGEST => Ok(size),
        _ => Err(Failure::new(ErrorKind::Protocol, "the server sent a frame that is too large")),
    }
}

/// Type, length and size of the header at the beginning; `None` if it is incomplete.
fn header(bytes: &[u8]) -> Option<(u64, u64, usize)> {
    let (kind, first) = integer(bytes)?;
    let (length, second) = integer(&bytes[first..])?;
    Some((kind, length, first + second))
}

/// The integer at the beginning and its size (RFC 9000, section 16); `None` if it is incomplete.
pub(super) fn integer(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let size = 1 << (first >> 6);
    let rest = bytes.get(1..size)?;
    Some((rest.iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)), size))
}

/// Appends an integer.
pub(super) fn put(out: &mut Vec<u8>, value: u64) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}
