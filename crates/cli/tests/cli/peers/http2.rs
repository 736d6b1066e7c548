//! Requests and frames of HTTP/2 (RFC 9113).

use std::io::Result;

use super::script::{part, prefixed};
use super::server::{self, Wire, read};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;

/// The frame types by number.
pub(super) const TYPES: [&str; 10] = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
];

/// Types whose frames belong to the request's stream if the script does not say otherwise.
const OF_STREAM: [&str; 6] = ["DATA", "HEADERS", "PRIORITY", "RST_STREAM", "PUSH_PROMISE", "CONTINUATION"];

/// A frame of a script.
#[derive(Clone)]
pub(super) struct Frame {
    kind: u8,
    flags: u8,
    /// `None`: the request's.
    stream: Option<u32>,
    payload: Vec<u8>,
    /// A length other than the payload's.
    length: Option<usize>,
}

impl Frame {
    /// Reads `TYPE [FLAG...] [@STREAM] [length=N] [| PART]...`, as documented in `tests/peers/README.md`.
    pub(super) fn read(line: &str) -> Self {
        let mut parts = line.split(" | ");
        let mut words = parts.next().unwrap().split_whitespace();
        let name = words.next().unwrap();
        let kind = TYPES.iter().position(|known| *known == name).map_or_else(
            || name.parse().unwrap_or_else(|_| panic!("`{name}` is no type of frame")),
            |kind| u8::try_from(kind).unwrap(),
        );
        let stream = if OF_STREAM.contains(&name) { None } else { Some(0) };
        let mut frame = Self { kind, flags: 0, stream, payload: Vec::new(), length: None };
        for word in words {
            match word {
                "end_stream" | "ack" => frame.flags |= 1,
                "end_headers" => frame.flags |= 4,
                "padded" => frame.flags |= 8,
                "priority" => frame.flags |= 0x20,
                "@request" => frame.stream = None,
                _ => match (word.strip_prefix('@'), word.strip_prefix("length=")) {
                    (Some(stream), _) => frame.stream = Some(stream.parse().unwrap()),
                    (_, Some(length)) => frame.length = Some(length.parse().unwrap()),
                    _ => panic!("`{word}` in `{line}`"),
                },
            }
        }
        frame.payload = parts.flat_map(|text| part(text, field)).collect();
        frame
    }

    pub(super) fn bytes(&self, request: u32) -> Vec<u8> {
        let length = u32::try_from(self.length.unwrap_or(self.payload.len())).unwrap().to_be_bytes();
        let stream = self.stream.unwrap_or(request).to_be_bytes();
        [&length[1..], &[self.kind, self.flags], &stream, &self.payload].concat()
    }
}

/// The status that an index of the static table stands for (RFC 7541, appendix A).
pub(super) fn status(byte: u8) -> Option<u16> {
    let at = byte.checked_sub(0x88)?;
    [200, 204, 206, 304, 400, 404, 500].get(usize::from(at)).copied()
}

/// A literal field that does not enter the table (RFC 7541, section 6.2.2).
fn field(name: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0], &prefixed(0, 7, name.len())[..], name, &prefixed(0, 7, value.len()), value].concat()
}

/// Reads requests; acknowledges the client's settings.
pub(super) struct Requests {
    pub(super) is_grpc: bool,
    pub(super) has_preface: bool,
    /// Whether it acknowledges no settings, because it sent none.
    pub(super) is_mute: bool,
}

impl server::Requests for Requests {
    fn next(&mut self, wire: &mut dyn Wire) -> Result<u32> {
        if !std::mem::replace(&mut self.has_preface, true) {
            read(wire, 24)?;
        }
        loop {
            let head = read(wire, 9)?;
            read(wire, u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize)?;
            let (kind, flags) = (head[3], head[4]);
            if kind == SETTINGS && flags & ACK == 0 && !self.is_mute {
                wire.write_all(&Frame::read("SETTINGS ack").bytes(0))?;
            }
            if matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
                return Ok(u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
            }
        }
    }

    fn well(&self, stream: u32) -> Vec<u8> {
        let well: &[&str] = match self.is_grpc {
            true => &[
                "HEADERS end_headers | :status: 200 | content-type: application/grpc",
                "DATA | hex 0000000000",
                "HEADERS end_headers end_stream | grpc-status: 0",
            ],
            false => &["HEADERS end_headers end_stream | :status: 200"],
        };
        well.iter().flat_map(|frame| Frame::read(frame).bytes(stream)).collect()
    }

    fn opening(&self) -> Vec<u8> {
        Frame::read("SETTINGS").bytes(0)
    }
}
