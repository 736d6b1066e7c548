//! The requests of HTTP/3, encoded once.

use wirelab_contract::spec::ClientSpec;

use super::frame::{kind, put};
use crate::http2::{Head, encode_integer};
use crate::payload::Payload;
use crate::refusal::Refusal;
use crate::requests::prepare;

/// Indices of the static table (RFC 9204, appendix A).
const AUTHORITY: usize = 0;
pub(super) const PATH: usize = 1;
pub(super) const METHOD: usize = 15;
const HTTPS: usize = 23;

/// Methods of the static table, with their indices.
pub(super) const METHODS: [(&str, usize); 7] =
    [("CONNECT", 15), ("DELETE", 16), ("GET", 17), ("HEAD", 18), ("OPTIONS", 19), ("POST", 20), ("PUT", 21)];

/// An encoded request.
#[derive(Debug)]
pub struct Encoded {
    /// The frame of its head, and the header of the frame of its body.
    opening: Vec<u8>,
    payload: Payload,
    is_head: bool,
}

impl Encoded {
    /// Encodes the requests of the spec.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if a part of one is not valid.
    pub fn all(spec: &ClientSpec) -> Result<Vec<Self>, Refusal> {
        prepare(spec, Self::new)
    }

    fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let head = Head::new(spec)?;
        let (method, path, authority) = (head.method(), head.path(), head.authority());
        // No entry of the dynamic table is needed.
        let mut block = vec![0, 0];
        match METHODS.iter().find(|(known, _)| *known == method) {
            Some((_, index)) => encode_integer(&mut block, 0xc0, 6, *index),
            None => named(&mut block, METHOD, method),
        }
        encode_integer(&mut block, 0xc0, 6, HTTPS);
        named(&mut block, AUTHORITY, authority);
        match path {
            "/" => encode_integer(&mut block, 0xc0, 6, PATH),
            _ => named(&mut block, PATH, path),
        }
        for (name, value) in &head.fields {
            encode_integer(&mut block, 0x20, 3, name.len());
            block.extend_from_slice(name.as_bytes());
            text(&mut block, value);
        }
        let mut opening = Vec::new();
        put(&mut opening, kind::HEADERS);
        put(&mut opening, block.len() as u64);
        opening.extend_from_slice(&block);
        let payload = Payload::of(&spec.request)?;
        if payload.size() > 0 {
            put(&mut opening, kind::DATA);
            put(&mut opening, payload.size());
        }
        Ok(Self { opening, payload, is_head: spec.request.method == "HEAD" })
    }

    /// Size in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.opening.len() as u64 + self.payload.size()
    }

    /// Bytes from this offset on, not necessarily all.
    #[must_use]
    pub fn from(&self, offset: u64) -> &[u8] {
        match usize::try_from(offset) {
            Ok(start) if start < self.opening.len() => &self.opening[start..],
            _ => self.payload.slice(offset - self.opening.len() as u64, u64::MAX),
        }
    }

    /// Whether responses have no body whatever they announce (RFC 9110, section 9.3.2).
    #[must_use]
    pub const fn is_head(&self) -> bool {
        self.is_head
    }
}

/// Appends a field with a name of the static table.
pub(super) fn named(block: &mut Vec<u8>, name: usize, value: &str) {
    encode_integer(block, 0x50, 4, name);
    text(block, value);
}

fn text(block: &mut Vec<u8>, value: &str) {
    encode_integer(block, 0, 7, value.len());
    block.extend_from_slice(value.as_bytes());
}
