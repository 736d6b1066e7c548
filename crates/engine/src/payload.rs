//! Bodies of requests and responses, as slices of one buffer, so that sending copies and allocates nothing.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use wirelab_contract::mix::Content;
use wirelab_contract::pattern::{self, PERIOD};
use wirelab_contract::spec::Request;

use crate::refusal::Refusal;

/// Maximum length of a [`piece`] in bytes.
pub const LONGEST: usize = 256 * 1024;

/// One period longer than the longest piece, so that a piece can start anywhere in the period.
static PATTERN: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(pattern::body(LONGEST + PERIOD as usize)));

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// So many bytes of the pattern.
    Pattern(u64),
    /// These bytes.
    Own(Bytes),
}

impl Payload {
    /// The body of a request of a spec.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the body is no base64, or has another size than the spec says.
    pub fn of(request: &Request) -> Result<Self, Refusal> {
        let bytes: Bytes = match &request.body {
            None => return Ok(Self::Pattern(request.body_size)),
            Some(Content::Text(text)) => text.clone().into_bytes().into(),
            Some(Content::Base64(text)) => decoded(text)?.into(),
            Some(Content::Messages(_)) => {
                return Err(Refusal::unsupported("a body of several messages, which only gRPC has"));
            }
        };
        if bytes.len() as u64 != request.body_size {
            let (got, said) = (bytes.len(), request.body_size);
            return Err(Refusal::failed(format!("`body` has {got} bytes, but `body_size` is {said}")));
        }
        Ok(Self::Own(bytes))
    }

    /// Its size in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        match self {
            Self::Pattern(size) => *size,
            Self::Own(bytes) => bytes.len() as u64,
        }
    }

    /// The bytes from `offset` on: as many as `most`, but at most [`LONGEST`].
    #[must_use]
    pub fn slice(&self, offset: u64, most: u64) -> &[u8] {
        let wanted = most.min(self.size() - offset);
        match self {
            // The pattern is not generated for a request without a body.
            _ if wanted == 0 => &[],
            Self::Pattern(_) => piece_slice(offset, wanted),
            Self::Own(bytes) => {
                let start = offset as usize;
                &bytes[start..start + wanted.min(LONGEST as u64) as usize]
            }
        }
    }

    /// The next bytes from `offset` on, at most [`LONGEST`].
    #[must_use]
    pub fn piece(&self, offset: u64) -> Bytes {
        match self {
            Self::Pattern(size) => piece(offset, size - offset),
            Self::Own(bytes) => {
                let start = offset as usize;
                bytes.slice(start..bytes.len().min(start + LONGEST))
            }
        }
    }
}

/// The bytes of a text in base64.
///
/// # Errors
///
/// [`Refusal`] if it is none.
pub(crate) fn decoded(base64: &str) -> Result<Vec<u8>, Refusal> {
    STANDARD.decode(base64).map_err(|error| Refusal::failed(format!("the body of a request is no base64: {error}")))
}

/// Largest beginning of a body that is encoded with its head, so that a small request takes one system call.
const JOINED: u64 = 64 * 1024;

/// A body behind its head.
#[derive(Debug)]
pub struct Headed {
    /// The head and the beginning of the body.
    opening: Vec<u8>,
    head_size: u64,
    payload: Payload,
}

impl Headed {
    /// Joins head and body.
    #[must_use]
    pub fn new(mut head: Vec<u8>, payload: Payload) -> Self {
        let head_size = head.len() as u64;
        head.extend_from_slice(payload.slice(0, JOINED));
        Self { opening: head, head_size, payload }
    }

    /// Size of both in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.head_size + self.payload.size()
    }

    /// Bytes from this offset on, not necessarily all.
    #[must_use]
    pub fn from(&self, offset: u64) -> &[u8] {
        match usize::try_from(offset) {
            Ok(start) if start < self.opening.len() => &self.opening[start..],
            _ => self.payload.slice(offset - self.head_size, u64::MAX),
        }
    }
}

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
    fn a_body_of_the_users_is_sent_byte_for_byte() {
        let request = |body: Content, body_size| Request {
            method: "POST".to_owned(),
            path: "/".to_owned(),
            body_size,
            body: Some(body),
            headers: Vec::new(),
            expect: None,
        };
        let long = "é".repeat(LONGEST);
        let payload = Payload::of(&request(Content::Text(long.clone()), 2 * LONGEST as u64)).unwrap();
        let mut sent = Vec::new();
        while (sent.len() as u64) < payload.size() {
            let at = sent.len() as u64;
            let piece = payload.piece(at);
            assert!(payload.slice(at, u64::MAX) == piece && payload.slice(at, 7) == &piece[..7.min(piece.len())]);
            sent.extend(piece);
        }
        assert!(sent == long.as_bytes());
        let payload = Payload::of(&request(Content::Base64("AP8=".to_owned()), 2)).unwrap();
        assert_eq!(payload.piece(0), [0, 255].as_slice());
        for (body, size) in [(Content::Text("ab".to_owned()), 3), (Content::Base64("?".to_owned()), 1)] {
            assert!(Payload::of(&request(body, size)).is_err());
        }
    }

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
