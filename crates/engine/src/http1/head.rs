//! Heads of responses. Consecutive responses mostly have the same head, which is recognised and not parsed again.

use httparse::{EMPTY_HEADER, Header, Response, Status};
use wirelab_contract::error_kind::ErrorKind;

use crate::refusal::Failure;

/// Largest head in bytes.
const LARGEST: usize = 256 * 1024;

/// Largest number of fields.
const FIELDS: usize = 128;

/// The facts from a head about its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    /// How the body ends.
    pub framing: Framing,
    /// Whether the connection can carry another request.
    pub persists: bool,
    /// Size in bytes.
    pub size: usize,
}

/// How a body ends (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// After this number of bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    UntilEnd,
}

/// The result of reading.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// More bytes are needed; those given are stored.
    Incomplete,
    /// The head, and the number of the given bytes that belong to it.
    Complete(Head, usize),
}

fn too_large() -> Failure {
    Failure::new(ErrorKind::Protocol, format!("the head of the response is larger than {LARGEST} bytes"))
}

/// Reads heads.
#[derive(Debug, Default)]
pub struct Heads {
    /// The beginning of an incomplete head.
    partial: Vec<u8>,
    /// The bytes of the last complete head.
    last: Vec<u8>,
    known: Option<Head>,
}

impl Heads {
    /// Reads bytes of a head.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Parsed, Failure> {
        if !self.partial.is_empty() {
            return self.go_on(bytes);
        }
        if let Some(head) = self.known.filter(|_| bytes.starts_with(&self.last)) {
            return Ok(Parsed::Complete(head, self.last.len()));
        }
        match parse(bytes)? {
            Some((head, size)) => {
                self.keep(head, &bytes[..size]);
                Ok(Parsed::Complete(head, size))
            }
            None => self.store(bytes),
        }
    }

    fn go_on(&mut self, bytes: &[u8]) -> Result<Parsed, Failure> {
        let before = self.partial.len();
        // What follows a head may be longer than any head.
        let room = LARGEST.saturating_sub(before);
        self.partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
        match parse(&self.partial)? {
            Some((head, size)) => {
                let whole = std::mem::take(&mut self.partial);
                self.keep(head, &whole[..size]);
                Ok(Parsed::Complete(head, size - before))
            }
            None if bytes.len() > room => Err(too_large()),
            None => Ok(Parsed::Incomplete),
        }
    }

    fn store(&mut self, bytes: &[u8]) -> Result<Parsed, Failure> {
        if bytes.len() > LARGEST {
            return Err(too_large());
        }
        self.partial.extend_from_slice(bytes);
        Ok(Parsed::Incomplete)
    }

    fn keep(&mut self, head: Head, bytes: &[u8]) {
        self.last.clear();
        self.last.extend_from_slice(bytes);
        self.known = Some(head);
    }
}

/// The head at the beginning of `bytes` and its size; `None` if it is incomplete.
fn parse(bytes: &[u8]) -> Result<Option<(Head, usize)>, Failure> {
    let mut fields = [EMPTY_HEADER; FIELDS];
    let mut response = Response::new(&mut fields);
    match response.parse(bytes) {
        Ok(Status::Partial) => Ok(None),
        Ok(Status::Complete(size)) => {
            let (status, minor) = (response.code.unwrap_or_default(), response.version.unwrap_or_default());
            Ok(Some((Head { size, ..head(status, minor, response.headers)? }, size)))
        }
        Err(error) => Err(broken(&format!("the head of the response is not valid: {error}"))),
    }
}

fn head(status: u16, minor: u8, fields: &[Header<'_>]) -> Result<Head, Failure> {
    let mut length = None;
    let mut coding = None;
    let mut persists = minor > 0;
    for field in fields {
        if field.name.eq_ignore_ascii_case("content-length") {
            for item in field.value.split(|byte| *byte == b',') {
                let value =
                    number(item.trim_ascii()).ok_or_else(|| broken("the field `content-length` is no number"))?;
                if length.replace(value).is_some_and(|other| other != value) {
                    return Err(broken("the fields `content-length` contradict each other"));
                }
            }
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            coding = field.value.split(|byte| *byte == b',').next_back().map(<[u8]>::trim_ascii);
        } else if field.name.eq_ignore_ascii_case("connection") {
            for item in field.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                persists &= !item.eq_ignore_ascii_case(b"close");
                persists |= minor == 0 && item.eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }
    let framing = match (status, coding, length) {
        (100..=199 | 204 | 304, _, _) => Framing::Length(0),
        (_, Some(coding), _) if coding.eq_ignore_ascii_case(b"chunked") => Framing::Chunked,
        (_, Some(_), _) | (_, None, None) => Framing::UntilEnd,
        (_, None, Some(length)) => Framing::Length(length),
    };
    // Two lengths are a way to smuggle responses (RFC 9112, section 6.1).
    persists &= coding.is_none() || length.is_none();
    Ok(Head { status, framing, persists, size: 0 })
}

pub(super) fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
}

fn broken(message: &str) -> Failure {
    Failure::new(ErrorKind::Protocol, message)
}
