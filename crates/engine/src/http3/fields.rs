//! Header fields of responses, compressed by QPACK (RFC 9204) without a dynamic table. Only what frames a response is
//! kept of them.

use wirelab_contract::error_kind::ErrorKind;

use crate::http2::{huffman, integer};
use crate::refusal::Failure;

/// Entries of the static table (RFC 9204, appendix A).
const ENTRIES: u64 = 99;

/// The index of `content-length: 0`.
const LENGTH: u64 = 4;

/// What frames a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fields {
    /// `:status`.
    pub status: Option<u16>,
    /// `content-length`.
    pub length: Option<u64>,
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
        let mut fields = Fields::default();
        let mut rest = block;
        // A block that needs the dynamic table, which has no entries.
        if integer(&mut rest, 8)? != 0 {
            return Err(broken());
        }
        integer(&mut rest, 7)?;
        while let Some(first) = rest.first().copied() {
            match first {
                // An indexed field.
                0xc0.. => match integer(&mut rest, 6)? {
                    LENGTH => set(&mut fields.length, 0)?,
                    index @ 0..ENTRIES => {
                        if let Some(status) = status(index) {
                            set(&mut fields.status, status)?;
                        }
                    }
                    _ => return Err(broken()),
                },
                // A name of the static table, and a value.
                0x50..0x60 | 0x70..0x80 => {
                    let index = integer(&mut rest, 4)?;
                    self.string(&mut rest, 7)?;
                    match index {
                        LENGTH => set(&mut fields.length, self.number().ok_or_else(broken)?)?,
                        ENTRIES.. => return Err(broken()),
                        _ if status(index).is_some() => set(&mut fields.status, self.status()?)?,
                        _ => {}
                    }
                }
                // A name and a value.
                0x20..0x40 => {
                    self.string(&mut rest, 3)?;
                    let (is_status, is_length) = (self.text == b":status", self.text == b"content-length");
                    self.string(&mut rest, 7)?;
                    if is_status {
                        set(&mut fields.status, self.status()?)?;
                    } else if is_length {
                        set(&mut fields.length, self.number().ok_or_else(broken)?)?;
                    }
                }
                _ => return Err(broken()),
            }
        }
        self.last.clear();
        self.last.extend_from_slice(block);
        self.known = Some(fields);
        Ok(fields)
    }

    /// Reads a string into `text`. Its length has this number of bits in the first byte, after a bit for its code.
    fn string(&mut self, rest: &mut &[u8], bits: u32) -> Result<(), Failure> {
        let coded = rest.first().is_some_and(|first| first & (1 << bits) != 0);
        let length = usize::try_from(integer(rest, bits)?).map_err(|_| broken())?;
        let (text, after) = rest.split_at_checked(length).ok_or_else(broken)?;
        *rest = after;
        if coded {
            huffman::decode(text, &mut self.text).ok_or_else(broken)?;
        } else {
            self.text.clear();
            self.text.extend_from_slice(text);
        }
        Ok(())
    }

    fn status(&self) -> Result<u16, Failure> {
        self.number().filter(|_| self.text.len() == 3).ok_or_else(broken)
    }

    /// The number in `text`.
    fn number<T: std::str::FromStr>(&self) -> Option<T> {
        let digits = self.text.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(&self.text).ok().filter(|_| digits)?.parse().ok()
    }
}

/// Sets a field that a response has once, or several times with the same value.
fn set<T: PartialEq>(field: &mut Option<T>, value: T) -> Result<(), Failure> {
    if field.as_ref().is_some_and(|known| *known != value) {
        return Err(broken());
    }
    *field = Some(value);
    Ok(())
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
