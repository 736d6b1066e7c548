//! Header fields, compressed by HPACK (RFC 7541). Only what frames a response, or addresses a request, is kept of them.

use std::collections::VecDeque;
use std::rc::Rc;

use wirelab_contract::error_kind::ErrorKind;

use super::huffman;
use super::valid::{self, Flaw};
use crate::refusal::Failure;

/// Size of the dynamic table, which is the default of HTTP/2.
const TABLE: u32 = 4096;

/// The size of an entry in addition to its name and value, in bytes (RFC 7541, section 4.1).
const OVERHEAD: u32 = 32;

/// Lengths of the names in the static table (RFC 7541, appendix A).
const NAMES: [u8; 61] = [
    10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16, 14, 16, 13, 12, 6, 4,
    4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11, 6, 10, 25, 17, 10, 4, 3, 16,
];

/// The statuses in the static table, from index 8 on.
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];

/// Indices of names in the static table: the first of those with this name.
pub(super) const METHOD: usize = 2;
pub(super) const PATH: usize = 4;
pub(super) const STATUS: usize = 8;
pub(super) const LENGTH: usize = 28;

/// The index of `transfer-encoding`.
const CODING: usize = 57;

/// The values of the static table from [`METHOD`] on, and from [`PATH`] on.
const METHODS: [&[u8]; 2] = [b"GET", b"POST"];
const PATHS: [&[u8]; 2] = [b"/", b"/index.html"];

/// The fields that frame a response or the body of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub status: Option<u16>,
    /// `content-length`.
    pub length: Option<u64>,
    pub grpc_status: Option<u32>,
    /// Whether it has `grpc-message`, which is then in `message` of the decoder.
    pub has_message: bool,
    /// Whether it has pseudo-header fields of requests.
    pub is_request: bool,
    /// Why the message is malformed.
    pub flaw: Option<Flaw>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Status(u16),
    Length(u64),
    GrpcStatus(u32),
    /// The value is in the table, or in `text` of the decoder.
    GrpcMessage,
    Method,
    Path,
    /// Another pseudo-header field of requests.
    Pseudo,
    Other,
    Flawed(Flaw),
}

impl Field {
    const fn is_pseudo(self) -> bool {
        matches!(self, Self::Status(_) | Self::Method | Self::Path | Self::Pseudo)
    }
}

/// The name of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Status,
    Length,
    GrpcStatus,
    GrpcMessage,
    Method,
    Path,
    Pseudo,
    Other,
    Flawed(Flaw),
}

#[derive(Debug, Clone)]
struct Entry {
    name: Name,
    name_size: u32,
    size: u32,
    field: Field,
    /// The value of `:method`, `:path` or `grpc-message`.
    value: Option<Rc<[u8]>>,
}

/// The decoder of one connection.
#[derive(Debug)]
pub(super) struct Decoder {
    /// The newest entry first.
    table: VecDeque<Entry>,
    size: u32,
    largest: u32,
    /// The last block, if it means the same when it comes again, and its fields: most responses repeat it.
    last: Vec<u8>,
    known: Option<Fields>,
    /// The entries that the last block inserted. Some servers insert the same ones with each response.
    inserted: Vec<Entry>,
    /// Whether the last block refers to entries of the table, whose indices each insertion changes.
    refers: bool,
    text: Vec<u8>,
    /// `:method` and `:path` of the last block that had them.
    pub method: Vec<u8>,
    pub path: Vec<u8>,
    /// `grpc-message` of the last block that had it.
    pub message: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        let (table, last, inserted, text, method, path, message) = Default::default();
        Self { table, size: 0, largest: TABLE, last, known: None, inserted, refers: false, text, method, path, message }
    }
}

impl Decoder {
    /// Decodes a block of fields.
    pub fn decode(&mut self, block: &[u8]) -> Result<Fields, Failure> {
        if let Some(fields) = self.known.filter(|_| self.last == block) {
            for place in 0..self.inserted.len() {
                self.insert(self.inserted[place].clone());
            }
            return Ok(fields);
        }
        self.known = None;
        self.inserted.clear();
        self.refers = false;
        let (mut fields, mut resized) = (Fields::default(), false);
        let (mut began, mut is_late) = (false, false);
        let mut rest = block;
        while let Some(first) = rest.first().copied() {
            let field = if first & 0x80 != 0 {
                let index = integer(&mut rest, 7)?;
                self.field(index)?
            } else if first & 0xe0 == 0x20 {
                // Only at the beginning of a block (RFC 7541, section 4.2).
                if began {
                    return Err(broken());
                }
                resized = true;
                let size = integer(&mut rest, 5)?;
                self.largest = u32::try_from(size).ok().filter(|size| *size <= TABLE).ok_or_else(broken)?;
                self.evict(0);
                continue;
            } else {
                let indexed = first & 0x40 != 0;
                let entry = self.literal(&mut rest, if indexed { 6 } else { 4 })?;
                let field = entry.field;
                if indexed {
                    self.inserted.push(entry.clone());
                    self.insert(entry);
                }
                field
            };
            began = true;
            let flaw = match field {
                _ if is_late && field.is_pseudo() => Some(valid::LATE),
                Field::Status(status) => fields.status.replace(status).map(|_| valid::TWICE),
                Field::Length(length) => {
                    let other = fields.length.replace(length);
                    other.filter(|other| *other != length).map(|_| valid::LENGTHS)
                }
                Field::GrpcStatus(status) => {
                    fields.grpc_status = Some(status);
                    None
                }
                Field::GrpcMessage => {
                    fields.has_message = true;
                    None
                }
                Field::Method | Field::Path | Field::Pseudo => {
                    fields.is_request = true;
                    None
                }
                Field::Other => None,
                Field::Flawed(flaw) => Some(flaw),
            };
            is_late |= !field.is_pseudo();
            fields.flaw = fields.flaw.or(flaw);
        }
        if !resized && (self.inserted.is_empty() || !self.refers) {
            self.last.clear();
            self.last.extend_from_slice(block);
            self.known = Some(fields);
        }
        Ok(fields)
    }

    /// The field at an index.
    fn field(&mut self, index: u64) -> Result<Field, Failure> {
        let index = usize::try_from(index).map_err(|_| broken())?;
        let (field, value) = match index {
            0 => return Err(broken()),
            METHOD..PATH => (Field::Method, Some(METHODS[index - METHOD])),
            PATH..6 => (Field::Path, Some(PATHS[index - PATH])),
            STATUS..15 => (Field::Status(STATUSES[index - STATUS]), None),
            1 | 6 | 7 => (Field::Pseudo, None),
            CODING => (Field::Flawed(valid::CONNECTION), None),
            1..=61 => (Field::Other, None),
            _ => {
                self.refers = true;
                let entry = self.table.get(index - 62).ok_or_else(broken)?;
                (entry.field, entry.value.as_deref())
            }
        };
        match field {
            Field::Method => replace(&mut self.method, value),
            Field::Path => replace(&mut self.path, value),
            Field::GrpcMessage => replace(&mut self.message, value),
            _ => {}
        }
        Ok(field)
    }

    /// The name at an index, and its size.
    fn name(&self, index: u64) -> Result<(Name, u32), Failure> {
        match usize::try_from(index).map_err(|_| broken())? {
            0 => Err(broken()),
            index @ 1..=61 => {
                let name = match index {
                    METHOD..PATH => Name::Method,
                    PATH..6 => Name::Path,
                    STATUS..15 => Name::Status,
                    LENGTH => Name::Length,
                    1 | 6 | 7 => Name::Pseudo,
                    CODING => Name::Flawed(valid::CONNECTION),
                    _ => Name::Other,
                };
                Ok((name, NAMES[index - 1].into()))
            }
            index => self.table.get(index - 62).map(|entry| (entry.name, entry.name_size)).ok_or_else(broken),
        }
    }

    fn literal(&mut self, rest: &mut &[u8], bits: u32) -> Result<Entry, Failure> {
        let index = integer(rest, bits)?;
        let (name, name_size) = match index {
            0 => {
                let size = self.string(rest)?;
                let name = match &self.text[..] {
                    b":status" => Name::Status,
                    b"content-length" => Name::Length,
                    b"grpc-status" => Name::GrpcStatus,
                    b"grpc-message" => Name::GrpcMessage,
                    b":method" => Name::Method,
                    b":path" => Name::Path,
                    b":scheme" | b":authority" | b":protocol" => Name::Pseudo,
                    [b':', ..] => Name::Flawed(valid::UNKNOWN),
                    name => valid::name(name).map_or(Name::Other, Name::Flawed),
                };
                (name, size)
            }
            _ => {
                self.refers |= index > 61;
                self.name(index)?
            }
        };
        let size = self.string(rest)?;
        let field = match name {
            Name::Status => valid::status(&self.text).map_or_else(Field::Flawed, Field::Status),
            Name::Length => valid::number(&self.text).map_or(Field::Flawed(valid::LENGTH), Field::Length),
            Name::GrpcStatus => {
                let status = valid::number(&self.text).and_then(|number| number.try_into().ok());
                Field::GrpcStatus(status.unwrap_or(u32::MAX))
            }
            Name::GrpcMessage => match valid::value(&self.text) {
                Some(flaw) => Field::Flawed(flaw),
                None => {
                    self.message.clone_from(&self.text);
                    Field::GrpcMessage
                }
            },
            Name::Method => {
                self.method.clone_from(&self.text);
                Field::Method
            }
            Name::Path => {
                self.path.clone_from(&self.text);
                Field::Path
            }
            Name::Pseudo => Field::Pseudo,
            Name::Other => valid::value(&self.text).map_or(Field::Other, Field::Flawed),
            Name::Flawed(flaw) => Field::Flawed(flaw),
        };
        let value = matches!(field, Field::Method | Field::Path | Field::GrpcMessage).then(|| Rc::from(&self.text[..]));
        Ok(Entry { name, name_size, size: name_size.saturating_add(size).saturating_add(OVERHEAD), field, value })
    }

    /// Reads a string into `text`, and returns its size.
    fn string(&mut self, rest: &mut &[u8]) -> Result<u32, Failure> {
        let coded = rest.first().is_some_and(|first| first & 0x80 != 0);
        let length = usize::try_from(integer(rest, 7)?).map_err(|_| broken())?;
        let (text, after) = rest.split_at_checked(length).ok_or_else(broken)?;
        *rest = after;
        if coded {
            huffman::decode(text, &mut self.text).ok_or_else(broken)?;
        } else {
            self.text.clear();
            self.text.extend_from_slice(text);
        }
        u32::try_from(self.text.len()).map_err(|_| broken())
    }

    fn insert(&mut self, entry: Entry) {
        self.evict(entry.size);
        if entry.size <= self.largest {
            self.size += entry.size;
            self.table.push_front(entry);
        }
    }

    /// Removes the oldest entries until there is room.
    fn evict(&mut self, room: u32) {
        while self.size.saturating_add(room) > self.largest {
            let Some(entry) = self.table.pop_back() else { return };
            self.size -= entry.size;
        }
    }
}

fn replace(text: &mut Vec<u8>, value: Option<&[u8]>) {
    text.clear();
    text.extend_from_slice(value.unwrap_or_default());
}

/// Reads an integer with a prefix of this number of bits (RFC 7541, section 5.1).
pub(crate) fn integer(rest: &mut &[u8], bits: u32) -> Result<u64, Failure> {
    let (first, mut after) = rest.split_first().ok_or_else(broken)?;
    let mask = (1 << bits) - 1;
    let mut value = u64::from(*first) & mask;
    if value == mask {
        for shift in (0..=28).step_by(7) {
            let (byte, later) = after.split_first().ok_or_else(broken)?;
            after = later;
            value += u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                *rest = after;
                return Ok(value);
            }
        }
        return Err(broken());
    }
    *rest = after;
    Ok(value)
}

fn broken() -> Failure {
    Failure::new(ErrorKind::Protocol, "the compressed header fields are not valid")
}

/// Appends a literal field with a new name, which enters the dynamic table if `indexed`.
pub(super) fn encode_literal(block: &mut Vec<u8>, indexed: bool, name: &[u8], value: &[u8]) {
    block.push(if indexed { 0x40 } else { 0 });
    encode_integer(block, 0, 7, name.len());
    block.extend_from_slice(name);
    encode_integer(block, 0, 7, value.len());
    block.extend_from_slice(value);
}

/// Appends a literal field with the name at an index of the static table.
pub(super) fn encode_named(block: &mut Vec<u8>, indexed: bool, name: usize, value: &[u8]) {
    if indexed {
        encode_integer(block, 0x40, 6, name)
    } else {
        encode_integer(block, 0, 4, name)
    }
    encode_integer(block, 0, 7, value.len());
    block.extend_from_slice(value);
}

/// Appends an integer with a prefix of this number of bits.
pub(crate) fn encode_integer(block: &mut Vec<u8>, flags: u8, bits: u32, mut value: usize) {
    let mask = (1 << bits) - 1;
    if value < mask {
        return block.push(flags | value as u8);
    }
    block.push(flags | mask as u8);
    value -= mask;
    while value >= 0x80 {
        block.push(value as u8 | 0x80);
        value >>= 7;
    }
    block.push(value as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::cases;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<_> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn the_responses_of_the_specification_are_decoded_with_their_table() {
        // RFC 7541, appendix C.6: a table of 256 bytes, from which entries are evicted.
        let mut decoder = Decoder { largest: 256, ..Decoder::default() };
        let first = "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9\
                     ae82ae43d3";
        for (block, status, entries, size) in [
            (first, 302, 4, 222),
            ("4883640effc1c0bf", 307, 4, 222),
            (
                "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5\
                 af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
                200,
                3,
                215,
            ),
        ] {
            let fields = decoder.decode(&hex(block)).unwrap();
            assert_eq!(fields, Fields { status: Some(status), ..Fields::default() });
            assert_eq!((decoder.table.len(), decoder.size), (entries, size));
        }
    }

    #[test]
    fn a_repeated_block_is_known_and_inserts_its_entries_again() {
        let mut decoder = Decoder::default();
        let mut block = Vec::new();
        encode_named(&mut block, true, LENGTH, b"12");
        encode_literal(&mut block, false, b"grpc-status", b"3");
        let expected = Fields { length: Some(12), grpc_status: Some(3), ..Fields::default() };
        for entries in 1..4 {
            assert_eq!(decoder.decode(&block).unwrap(), expected);
            assert_eq!((decoder.table.len(), decoder.known), (entries, Some(expected)));
        }
        for _ in 0..2 {
            // The status 404, and the indexed length.
            assert_eq!(
                decoder.decode(&[0x8d, 0xbe]).unwrap(),
                Fields { status: Some(404), length: Some(12), ..Fields::default() }
            );
            assert!(decoder.known.is_some());
        }
        // An insertion changes what the index in the same block means the next time.
        decoder.decode(&[0xbe, 0x5c, 0x01, b'7']).unwrap();
        assert_eq!(decoder.known, None);
        assert_eq!(decoder.decode(&[0xbe]).unwrap().length, Some(7));
        // So does a new size of the table.
        decoder.decode(&[0x20, 0x88]).unwrap();
        assert_eq!((decoder.known, decoder.table.len()), (None, 0));
    }

    #[test]
    fn what_is_not_valid_is_refused() {
        for wrong in [&[0x80][..], &[0xbe], &[0x48, 0x03, b'2'], &[0x3f, 0xff, 0xff], &[0x88, 0x20]] {
            assert!(Decoder::default().decode(wrong).is_err(), "{wrong:?}");
        }
        for (malformed, flaw) in [
            (&[0x88, 0x88][..], valid::TWICE),
            (&[0x48, 1, b'x'], valid::STATUS),
            (&[0x5c, 1, b'x', 0x88], valid::LENGTH),
            (&[0xa0, 0x88], valid::LATE),
            (&[0x88, 0xb9], valid::CONNECTION),
            (&[0x88, 0x00, 2, b':', b'x', 0], valid::UNKNOWN),
        ] {
            assert_eq!(Decoder::default().decode(malformed).unwrap().flaw, Some(flaw), "{malformed:?}");
        }
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn a_decoder_that_recognises_blocks_agrees_with_one_that_does_not(
            blocks in prop::collection::vec(
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..40),
                    prop::collection::vec(prop::sample::select(&[0x88, 0x8d, 0xbe, 0xbf, 0x48, 0x40, 0x5c, 1, 3, b'2'][..]), 0..6),
                ],
                1..20,
            ),
        ) {
            let (mut one, mut two) = (Decoder::default(), Decoder::default());
            for block in blocks.iter().flat_map(|block| [block, block, block]) {
                two.known = None;
                let (found, expected) = (one.decode(block), two.decode(block));
                prop_assert_eq!(found.as_ref().ok(), expected.as_ref().ok());
                prop_assert_eq!(format!("{:?}", one.table), format!("{:?}", two.table));
                if found.is_err() {
                    break;
                }
            }
        }
    }
}
