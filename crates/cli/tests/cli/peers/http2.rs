//! Requests and frames of HTTP/2 (RFC 9113).

use std::collections::HashMap;
use std::io::{Error, Result};

use super::script::{Peer, Piece, part, prefixed};
use super::server::{self, Wire, read};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const INITIAL_WINDOW_SIZE: u16 = 4;

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
    /// Reads `TYPE [FLAG...] [flags=N] [@STREAM] [length=N] [| PART]...`, as documented in `tests/peers/README.md`.
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
                _ => match (word.strip_prefix('@'), word.split_once('=')) {
                    (Some(stream), _) => frame.stream = Some(stream.parse().unwrap()),
                    (_, Some(("length", length))) => frame.length = Some(length.parse().unwrap()),
                    (_, Some(("flags", flags))) => frame.flags |= flags.parse::<u8>().unwrap(),
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

/// Reads requests; acknowledges the client's settings. A client that breaks a rule here loses the connection.
pub(super) struct Requests {
    /// The script, if it counts on this connection.
    peer: Option<Peer>,
    is_grpc: bool,
    /// Whether several requests are under way at once.
    has_several: bool,
    has_preface: bool,
    /// Whether a frame has come.
    has_frame: bool,
    /// Frames that demand an acknowledgement, of those before the last response's end, and of all.
    owed: (u32, u32),
    /// Acknowledgements that have come.
    paid: u32,
    /// The initial window of streams; negative below what a stream has used.
    window: i64,
    /// Bytes that each stream may still carry, apart from the initial window.
    credit: HashMap<u32, i64>,
}

impl Requests {
    pub(super) fn new(peer: &Peer, by_script: bool) -> Self {
        Self {
            peer: by_script.then(|| peer.clone()),
            is_grpc: peer.protocol.is_grpc(),
            has_several: peer.args.iter().any(|word| word == "--streams"),
            has_preface: false,
            has_frame: false,
            owed: (0, 0),
            paid: 0,
            window: 65535,
            credit: HashMap::new(),
        }
    }

    /// Reads the preface, which must be that of a client (RFC 9113, section 3.4).
    fn preface(&mut self, wire: &mut dyn Wire) -> Result<()> {
        match std::mem::replace(&mut self.has_preface, true) || read(wire, 24)? == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" {
            true => Ok(()),
            false => Err(Error::other("the client has another preface")),
        }
    }

    fn note(&mut self, frame: &Frame, request: u32) {
        let settings = frame.payload.chunks_exact(6).map(|of| (u16::from_be_bytes([of[0], of[1]]), &of[2..]));
        match frame.kind {
            SETTINGS if frame.flags & ACK == 0 => {
                let mut windows = settings.filter(|setting| setting.0 == INITIAL_WINDOW_SIZE);
                self.window = windows.next_back().map_or(self.window, |(_, value)| number(value));
                self.owed.1 += 1;
            }
            PING if frame.flags & ACK == 0 => self.owed.1 += 1,
            WINDOW_UPDATE if frame.stream.is_none() => {
                *self.credit.entry(request).or_default() += number(&frame.payload);
            }
            HEADERS | DATA if frame.flags & END_STREAM != 0 => self.owed.0 = self.owed.1,
            _ => {}
        }
    }
}

/// A number of 32 bits.
fn number(bytes: &[u8]) -> i64 {
    bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))
}

impl server::Requests for Requests {
    fn next(&mut self, wire: &mut dyn Wire) -> Result<u32> {
        self.preface(wire)?;
        loop {
            let head = read(wire, 9)?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            read(wire, length as usize)?;
            let (kind, flags) = (head[3], head[4]);
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            if !std::mem::replace(&mut self.has_frame, true) && kind != SETTINGS {
                return Err(Error::other("the first frame is none of settings (RFC 9113, section 3.4)"));
            }
            match kind {
                SETTINGS | PING if flags & ACK != 0 => self.paid += 1,
                // A server that sent no settings acknowledges none.
                SETTINGS if self.peer.as_ref().is_none_or(|peer| !peer.opening.is_empty()) => {
                    wire.write_all(&Frame::read("SETTINGS ack").bytes(0))?;
                }
                HEADERS if self.paid < self.owed.0 && !self.has_several => {
                    return Err(Error::other(
                        "settings or a ping without acknowledgement (RFC 9113, sections 6.5, 6.7)",
                    ));
                }
                HEADERS => {
                    if let Some(peer) = self.peer.take() {
                        server::send(&peer, &peer.at_head, stream, wire)?;
                        peer.at_head.iter().for_each(|piece| piece.frame(|frame| self.note(frame, stream)));
                        self.peer = Some(peer);
                    }
                }
                DATA => {
                    let credit = self.credit.entry(stream).or_default();
                    *credit -= i64::from(length);
                    // Before its acknowledgement, a client need not know the settings.
                    if self.paid > 0 && self.window + *credit < 0 {
                        return Err(Error::other("more than the window allows (RFC 9113, section 6.9.1)"));
                    }
                }
                _ => {}
            }
            if matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
                return Ok(stream);
            }
        }
    }

    fn sent(&mut self, pieces: &[Piece]) {
        pieces.iter().for_each(|piece| piece.frame(|frame| self.note(frame, 0)));
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
