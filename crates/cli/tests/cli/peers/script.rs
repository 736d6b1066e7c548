//! The format of `tests/peers/*.toml`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_model::protocol::Protocol;

use super::{http2, http3};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    protocol: Protocol,
    peer: Vec<Written>,
}

/// The pace of a peer that writes in pieces. No outcome depends on it.
pub(super) const PACE: Duration = Duration::from_millis(1);

/// A peer as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    rule: String,
    #[serde(default)]
    opening: Option<Lines>,
    #[serde(default)]
    at_head: Option<Lines>,
    #[serde(default)]
    answer: Option<Lines>,
    #[serde(default)]
    endless: Option<Lines>,
    #[serde(default)]
    pieces: Option<usize>,
    #[serde(default)]
    end: End,
    #[serde(default)]
    alpn: Option<String>,
    #[serde(default)]
    instead_of_tls: Option<Lines>,
    #[serde(default)]
    args: Vec<String>,
    expect: Outcome,
    #[serde(default)]
    first: Option<String>,
    #[serde(default)]
    lenient: Option<String>,
    #[serde(default)]
    limit: Option<String>,
}

/// A text with the bytes of HTTP/1.1, or one line per frame.
#[derive(Deserialize, Clone)]
#[serde(untagged)]
pub(super) enum Lines {
    Text(String),
    Frames(Vec<String>),
}

/// An outcome as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outcome {
    #[serde(default)]
    bytes: Option<u64>,
    #[serde(default)]
    connections: Option<u64>,
    #[serde(default)]
    fails: Option<ErrorKind>,
    #[serde(default)]
    says: String,
    #[serde(default)]
    succeed: u64,
}

/// The action of the server after its answer.
#[derive(Deserialize, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    /// It waits for the next request.
    #[default]
    Keep,
    /// It closes the connection in order.
    Close,
    /// It closes the transport, without a goodbye of TLS.
    Cut,
    /// It resets the connection.
    Reset,
}

/// A piece of an answer.
#[derive(Clone)]
pub(super) enum Piece {
    /// Bytes as they are.
    Bytes(Vec<u8>),
    /// A frame of HTTP/2, whose stream may be that of the request.
    Frame(http2::Frame),
    /// A step of HTTP/3.
    Step(http3::Step),
}

impl Piece {
    /// Calls `look` with a frame of HTTP/2.
    pub(super) fn frame(&self, look: impl FnOnce(&http2::Frame)) {
        if let Self::Frame(frame) = self {
            look(frame);
        }
    }

    /// The bytes, for a request on a stream.
    pub(super) fn bytes(&self, stream: u32) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Frame(frame) => frame.bytes(stream),
            Self::Step(_) => panic!("only HTTP/3 has steps"),
        }
    }
}

/// A scripted server.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) name: String,
    /// The source of the expectation.
    pub(super) rule: String,
    pub(super) protocol: Protocol,
    /// The bytes that it sends when a client has connected.
    pub(super) opening: Vec<Piece>,
    /// The frames that it sends when the head of a request has come; HTTP/2 only.
    pub(super) at_head: Vec<Piece>,
    /// The bytes that it sends for each request.
    pub(super) answer: Vec<Piece>,
    /// The bytes that it repeats after the answer until the client is gone.
    pub(super) endless: Vec<Piece>,
    /// The largest number of bytes that it writes at once.
    pub(super) pieces: usize,
    pub(super) end: End,
    /// The protocol of ALPN that it offers; absent: the right one.
    pub(super) alpn: Option<String>,
    /// The bytes that it sends in place of a TLS handshake, before its end.
    pub(super) instead_of_tls: Vec<Piece>,
    /// Further arguments of `wirelab load`.
    pub(super) args: Vec<String>,
    pub(super) expected: Expected,
    /// Words of the error if the first request of all meets the script.
    pub(super) first: Option<String>,
    /// Why the built-in client is not held to the outcome.
    pub(super) lenient: Option<String>,
    /// The deadline of its requests, where it waits for it.
    pub(super) limit: Option<String>,
}

/// The required result of wirelab for a peer.
#[derive(Clone)]
pub(super) enum Expected {
    /// All requests succeed, each with this number of bytes of body, on this number of connections.
    Answer { bytes: u64, connections: u64 },
    /// Requests fail, except some; on this number of connections, if it is given.
    Failure { kind: ErrorKind, says: String, succeed: u64, connections: Option<u64> },
}

impl Expected {
    /// The deadline of the requests. A correct server must not run into it on a busy machine.
    pub(super) fn limit(&self) -> &'static str {
        match self {
            Self::Failure { kind: ErrorKind::Timeout, .. } => "400ms",
            Self::Failure { .. } => "10s",
            Self::Answer { .. } => "60s",
        }
    }
}

/// Reads the peers of a file.
pub(super) fn read(file: &str) -> Vec<Peer> {
    let File { protocol, peer } = parsed(file);
    peer.into_iter().map(|written| written.peer(protocol)).collect()
}

/// A file of `tests/peers`.
pub(super) fn parsed<T: DeserializeOwned>(file: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(file);
    toml::from_str(&fs::read_to_string(path).unwrap()).unwrap_or_else(|error| panic!("{file}: {error}"))
}

impl Written {
    fn peer(self, protocol: Protocol) -> Peer {
        let pieces = |lines| pieces(protocol, lines);
        let opening = match (self.opening, protocol) {
            (None, Protocol::H3) => vec![Piece::Step(http3::Step::read("SETTINGS @control"))],
            (None, _) if protocol.multiplexes() => vec![Piece::Frame(http2::Frame::read("SETTINGS"))],
            (opening, _) => pieces(opening),
        };
        Peer {
            name: self.name,
            rule: self.rule,
            protocol,
            opening,
            at_head: pieces(self.at_head),
            answer: pieces(self.answer),
            endless: pieces(self.endless),
            pieces: self.pieces.unwrap_or(usize::MAX),
            end: self.end,
            alpn: self.alpn,
            instead_of_tls: pieces(self.instead_of_tls),
            args: self.args,
            expected: self.expect.expected(),
            first: self.first,
            lenient: self.lenient,
            limit: self.limit,
        }
    }
}

/// The pieces that lines stand for.
pub(super) fn pieces(protocol: Protocol, lines: Option<Lines>) -> Vec<Piece> {
    match lines {
        None => Vec::new(),
        Some(Lines::Text(text)) => vec![Piece::Bytes(unescape(&text))],
        Some(Lines::Frames(frames)) => frames.iter().flat_map(|line| repeated(protocol, line)).collect(),
    }
}

/// A line such as `100 x PING`, or a frame alone.
fn repeated(protocol: Protocol, line: &str) -> Vec<Piece> {
    let several = line.split_once(" x ").and_then(|(count, frame)| Some((count.parse().ok()?, frame)));
    let (count, frame) = several.unwrap_or((1, line));
    let piece = match frame.strip_prefix("BYTES | ") {
        _ if protocol == Protocol::H3 => Piece::Step(http3::Step::read(frame)),
        Some(text) => Piece::Bytes(unescape(text)),
        None => Piece::Frame(http2::Frame::read(frame)),
    };
    vec![piece; count]
}

/// The bytes of a text, in which `\xHH` is a byte, and `{N:TEXT}` a text N times.
pub(super) fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\\x") {
            bytes.push(u8::from_str_radix(&after[..2], 16).unwrap());
            rest = &after[2..];
        } else if let Some((count, repeated, after)) = repetition(rest) {
            bytes.extend(unescape(repeated).repeat(count));
            rest = after;
        } else {
            bytes.extend(next.to_string().bytes());
            rest = &rest[next.len_utf8()..];
        }
    }
    bytes
}

/// The bytes of a part of a payload: `text T`, `hex H`, `u32 N`, `var N`, `set ID=VALUE`, or a field `NAME: VALUE`,
/// which `field` encodes.
pub(super) fn part(part: &str, field: fn(&[u8], &[u8]) -> Vec<u8>) -> Vec<u8> {
    if let Some(text) = part.strip_prefix("text ") {
        unescape(text)
    } else if let Some(digits) = part.strip_prefix("hex ") {
        let digits: String = digits.split_whitespace().collect();
        let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    } else if let Some(number) = part.strip_prefix("u32 ") {
        number.parse::<u32>().unwrap().to_be_bytes().to_vec()
    } else if let Some(number) = part.strip_prefix("var ") {
        variable(number.parse().unwrap())
    } else if let Some((id, value)) = part.strip_prefix("set ").and_then(|setting| setting.split_once('=')) {
        [&id.parse::<u16>().unwrap().to_be_bytes()[..], &value.parse::<u32>().unwrap().to_be_bytes()].concat()
    } else {
        // The colon of a pseudo-header field is no separator.
        let (name, value) = part[1..].split_once(": ").unwrap_or_else(|| panic!("`{part}` is no part of a frame"));
        field(&unescape(&format!("{}{name}", &part[..1])), &unescape(value))
    }
}

/// An integer of variable length (RFC 9000, section 16).
pub(super) fn variable(value: u64) -> Vec<u8> {
    match value {
        0..0x40 => vec![value as u8],
        0x40..0x4000 => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        0x4000..0x4000_0000 => (value as u32 | 0x8000_0000).to_be_bytes().to_vec(),
        _ => (value | 0xc000_0000_0000_0000).to_be_bytes().to_vec(),
    }
}

/// An integer with a prefix of some bits (RFC 7541, section 5.1).
pub(super) fn prefixed(flags: u8, bits: u32, value: usize) -> Vec<u8> {
    let most = (1 << bits) - 1;
    let Some(mut rest) = value.checked_sub(most) else { return vec![flags | value as u8] };
    let mut bytes = vec![flags | most as u8];
    while rest >= 128 {
        bytes.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    bytes.push(rest as u8);
    bytes
}

/// `{N:TEXT}` at the beginning of a text, and what follows it.
fn repetition(text: &str) -> Option<(usize, &str, &str)> {
    let (count, rest) = text.strip_prefix('{')?.split_once(':')?;
    let (repeated, after) = rest.split_once('}')?;
    Some((count.parse().ok()?, repeated, after))
}

impl Outcome {
    fn expected(self) -> Expected {
        match (self.fails, self.bytes) {
            (Some(kind), None) => {
                Expected::Failure { kind, says: self.says, succeed: self.succeed, connections: self.connections }
            }
            (None, Some(bytes)) => Expected::Answer { bytes, connections: self.connections.unwrap_or(1) },
            _ => panic!("an outcome has either `fails` or `bytes`"),
        }
    }
}
