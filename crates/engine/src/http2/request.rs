//! The request of HTTP/2, encoded once.

use wirelab_contract::spec::ClientSpec;

use super::fields::{encode_literal, encode_named};
use super::frame::{self, flag, kind, setting};
use super::windows::Windows;
use crate::http1;
use crate::refusal::Refusal;

/// hyper's defaults for clients, so that both clients of wirelab grant the same credit.
const DEFAULT: Windows = Windows { stream: 2 << 20, connection: 5 << 20 };

/// Credit of a connection before the first update.
pub(super) const FIRST_CREDIT: u32 = 65_535;

/// Indices of the static table (RFC 7541, appendix A).
const AUTHORITY: usize = 1;
const METHOD: usize = 2;
const PATH: usize = 4;

/// An encoded request.
#[derive(Debug)]
pub struct Encoded {
    /// What a connection begins with.
    pub(super) preface: Vec<u8>,
    /// The fields, literally.
    pub(super) plain: Vec<u8>,
    /// The fields, which enter the peer's table.
    pub(super) first: Vec<u8>,
    /// The fields, by their places in that table.
    pub(super) repeated: Vec<u8>,
    /// Size of the table that the fields need.
    pub(super) table: u32,
    pub(super) body_size: u64,
    pub(super) is_head: bool,
    pub(super) windows: Windows,
}

impl Encoded {
    /// Encodes the request of the spec.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if a part of it is not valid, or a window does not exist in HTTP/2.
    pub fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let windows = Windows::of(&spec.transport, DEFAULT)?;
        let request = &spec.request;
        let authority = http1::checked_authority(spec)?;
        let mut fields: Vec<(&str, String)> = Vec::new();
        let mut has_length = false;
        for (name, value) in &request.headers {
            has_length |= name.eq_ignore_ascii_case("content-length");
            // The authority has this value already (RFC 9113, section 8.3.1).
            if !name.eq_ignore_ascii_case("host") {
                fields.push((name, value.clone()));
            }
        }
        if http1::has_body(request) && !has_length {
            fields.push(("content-length", request.body_size.to_string()));
        }
        let block = |indexed: bool| {
            let mut block = Vec::new();
            match request.method.as_str() {
                "GET" => block.push(0x82),
                "POST" => block.push(0x83),
                other => encode_named(&mut block, indexed, METHOD, other.as_bytes()),
            }
            block.push(if spec.protocol.is_secure() { 0x87 } else { 0x86 });
            encode_named(&mut block, indexed, PATH, request.path.as_bytes());
            encode_named(&mut block, indexed, AUTHORITY, authority.as_bytes());
            for (name, value) in &fields {
                encode_literal(&mut block, indexed, name.to_ascii_lowercase().as_bytes(), value.as_bytes());
            }
            block
        };
        // What entered the table, the newest at index 62.
        let is_known = ["GET", "POST"].contains(&request.method.as_str());
        let mut entered = vec![("path", 5 + request.path.len()), ("authority", 10 + authority.len())];
        if !is_known {
            entered.insert(0, ("method", 7 + request.method.len()));
        }
        entered.extend(fields.iter().map(|(name, value)| ("field", name.len() + value.len())));
        let table: usize = entered.iter().map(|(_, size)| size + 32).sum();
        let mut repeated = Vec::new();
        let place = |number: usize| 61 + entered.len() - number;
        let mut numbers = 0..entered.len();
        let mut next = |block: &mut Vec<u8>| {
            let number = numbers.next().unwrap_or_default();
            super::fields::encode_integer(block, 0x80, 7, place(number));
        };
        match request.method.as_str() {
            "GET" => repeated.push(0x82),
            "POST" => repeated.push(0x83),
            _ => next(&mut repeated),
        }
        repeated.push(if spec.protocol.is_secure() { 0x87 } else { 0x86 });
        for _ in 0..2 + fields.len() {
            next(&mut repeated);
        }
        Ok(Self {
            preface: preface(windows),
            plain: block(false),
            first: block(true),
            repeated,
            table: u32::try_from(table).unwrap_or(u32::MAX),
            body_size: request.body_size,
            is_head: request.method == "HEAD",
            windows,
        })
    }
}

/// The preface, the settings and the credit of a connection.
fn preface(windows: Windows) -> Vec<u8> {
    let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    frame::head(&mut out, 12, kind::SETTINGS, 0, 0);
    frame::set(&mut out, setting::ENABLE_PUSH, 0);
    frame::set(&mut out, setting::INITIAL_WINDOW_SIZE, windows.stream);
    if windows.connection > FIRST_CREDIT {
        frame::with_number(&mut out, kind::WINDOW_UPDATE, 0, windows.connection - FIRST_CREDIT);
    }
    out
}

/// Appends the frames of a block of fields.
pub(super) fn headers(out: &mut Vec<u8>, block: &[u8], largest: usize, stream: u32, ends: bool) {
    let mut pieces = block.chunks(largest).peekable();
    let mut kind = kind::HEADERS;
    let mut flags = if ends { flag::END_STREAM } else { 0 };
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            flags |= flag::END_HEADERS;
        }
        frame::head(out, piece.len(), kind, flags, stream);
        out.extend_from_slice(piece);
        (kind, flags) = (kind::CONTINUATION, 0);
    }
}
