//! Header fields of responses, compressed by QPACK (RFC 9204) without a dynamic table. Only what frames a response is
//! kept of them.

use wirelab_contract::error_kind::ErrorKind;

use crate::http2::valid::{self, Flaw};
use crate::http2::{huffman, integer};
use crate::refusal::Failure;

/// Entries of the static table (RFC 9204, appendix A).
pub(super) const ENTRIES: u64 = 99;

/// The index of `content-length: 0`.
pub(super) const LENGTH: u64 = 4;

/// The fields that frame a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fields {
    pub status: Option<u16>,
    /// `content-length`.
    pub length: Option<u64>,
    /// Why the message is malformed.
    pub flaw: Option<Flaw>,
}

/// A field of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Status(u16),
    Length(u64),
    Other,
    Flawed(Flaw),
}

/// Decodes blocks; one per thread.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The last block and its fields: most responses repeat it.
    last: Vec<u8>,
    known: Option<Fields>,
    text: Vec<u8>,
}

impl Decoder {
    /// Decodes a block.
    ///
    /// # Errors
    ///
    /// [`Failure`] if it is not valid.
    pub fn decode(&mut self, block: &[u8]) -> Result<Fields, Failure> {
        if let Some(fields) = self.known.filter(|_| self.last == block) {
            return Ok(fields);
        }
        let (mut fields, mut is_late) = (Fields::default(), false);
        let mut rest = block;
        // A block that needs the dynamic table, which has no entries.
        if integer(&mut rest, 8)? != 0 {
            return Err(broken());
        }
        integer(&mut rest, 7)?;
        while !rest.is_empty() {
            let flaw = match self.field(&mut rest)? {
                Field::Status(_) if is_late => Some(valid::LATE),
                Field::Status(status) => fields.status.replace(status).map(|_| valid::TWICE),
                Field::Length(length) => {
                    let other = fields.length.replace(length);
                    is_late = true;
                    other.filter(|other| *other != length).map(|_| valid::LENGTHS)
                }
                Field::Other => {
                    is_late = true;
                    None
                }
                Field::Flawed(flaw) => Some(flaw),
            };
            fields.flaw = fields.flaw.or(flaw);
        }
        self.last.clear();
        self.last.extend_from_slice(block);
        self.known = Some(fields);
        Ok(fields)
    }

    /// Reads a field.
    fn field(&mut self, rest: &mut &[u8]) -> Result<Field, Failure> {
        Ok(match rest.first().copied().unwrap_or_default() {
            // An indexed field.
            0xc0.. => match integer(rest, 6)? {
                LENGTH => Field::Length(0),
                index @ 0..ENTRIES => match status(index) {
                    Some(status) => Field::Status(status),
                    None if is_of_requests(index) => Field::Flawed(valid::UNKNOWN),
                    None => Field::Other,
                },
                _ => return Err(broken()),
            },
            // A name of the static table, and a value.
            0x50..0x60 | 0x70..0x80 => {
                let index = integer(rest, 4)?;
                string(rest, 7, &mut self.text).ok_or_else(broken)?;
                match index {
                    LENGTH => self.length(),
                    ENTRIES.. => return Err(broken()),
                    _ if status(index).is_some() => self.status(),
                    _ if is_of_requests(index) => Field::Flawed(valid::UNKNOWN),
                    _ => self.other(),
                }
            }
            // A name and a value.
            0x20..0x40 => {
                string(rest, 3, &mut self.text).ok_or_else(broken)?;
                let name = match &self.text[..] {
                    b":status" => Ok(Some(Self::status as fn(&Self) -> Field)),
                    b"content-length" => Ok(Some(Self::length as fn(&Self) -> Field)),
                    [b':', ..] => Err(valid::UNKNOWN),
                    name => valid::name(name).map_or(Ok(None), Err),
                };
                string(rest, 7, &mut self.text).ok_or_else(broken)?;
                match name {
                    Ok(Some(value)) => value(self),
                    Ok(None) => self.other(),
                    Err(flaw) => Field::Flawed(flaw),
                }
            }
            _ => return Err(broken()),
        })
    }

    /// A status in `text`.
    fn status(&self) -> Field {
        valid::status(&self.text).map_or_else(Field::Flawed, Field::Status)
    }

    /// A length in `text`.
    fn length(&self) -> Field {
        valid::number(&self.text).map_or(Field::Flawed(valid::LENGTH), Field::Length)
    }

    /// Another value in `text`.
    fn other(&self) -> Field {
        valid::value(&self.text).map_or(Field::Other, Field::Flawed)
    }
}

/// Reads a string into `text`; `None` if it is not valid. Its length has this number of bits in the first byte, after a
/// bit for its code.
pub(super) fn string(rest: &mut &[u8], bits: u32, text: &mut Vec<u8>) -> Option<()> {
    let coded = rest.first().is_some_and(|first| first & (1 << bits) != 0);
    let length = usize::try_from(integer(rest, bits).ok()?).ok()?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    if coded {
        return huffman::decode(bytes, text);
    }
    text.clear();
    text.extend_from_slice(bytes);
    Some(())
}

/// Whether an index of the static table is that of a pseudo-header field of requests.
const fn is_of_requests(index: u64) -> bool {
    matches!(index, 0 | 1 | 15..=23)
}

/// The status at an index of the static table.
const fn status(index: u64) -> Option<u16> {
    Some(match index {
        24 => 103,
        25 => 200,
        26 => 304,
        27 => 404,
        28 => 503,
        63 => 100,
        64 => 204,
        65 => 206,
        66 => 302,
        67 => 400,
        68 => 403,
        69 => 421,
        70 => 425,
        71 => 500,
        _ => return None,
    })
}

fn broken() -> Failure {
    Failure::new(ErrorKind::Protocol, "the compressed header fields of a response are not valid")
}
