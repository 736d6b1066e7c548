//! The server's side of HTTP/3 above the streams of QUIC, without input or output. A head that repeats the last one of
//! its connection is compared, not decoded, and its answer is encoded already.

use std::sync::Arc;

use wirelab_contract::error_kind::ErrorKind;

use super::fields::{ENTRIES, LENGTH, string};
use super::frame::{Frames, Piece, kind, put};
use super::request::{METHOD, METHODS, PATH, named};
use crate::http2::{encode_integer, integer};
use crate::null::{Answer, Body, Content, Name, Outbox};
use crate::refusal::Failure;

/// Indices of the static table (RFC 9204, appendix A).
const LOCATION: usize = 12;
const STATUS: usize = 24;
const STATUS_200: usize = 25;
const CONTENT_TYPE: usize = 44;

/// The answers of one connection.
pub struct Answers {
    content: Arc<dyn Content>,
    /// The last block of request fields, and what follows from it.
    last: Vec<u8>,
    known: Option<Known>,
}

/// What follows from the head of a request.
#[derive(Clone)]
struct Known {
    /// The frame of the head of the answer, and the header of the frame of its body.
    opening: Arc<[u8]>,
    body: Body,
}

/// A request as its stream arrives, and its answer.
#[derive(Default)]
pub struct Exchange {
    frames: Frames,
    /// The answer, until it is sent.
    known: Option<Known>,
    is_headed: bool,
    echoes: bool,
    ended: bool,
    out: Outbox,
}

impl Answers {
    /// For a new connection.
    #[must_use]
    pub fn new(content: &Arc<dyn Content>) -> Self {
        Self { content: Arc::clone(content), last: Vec::new(), known: None }
    }

    fn to(&mut self, block: &[u8]) -> Result<Known, Failure> {
        if let Some(known) = self.known.as_ref().filter(|_| self.last == block) {
            return Ok(known.clone());
        }
        let Asked { method, path, length } = Asked::of(block).ok_or_else(|| broken("header fields are not valid"))?;
        let without_query = path.split(|byte| *byte == b'?').next().unwrap_or_default();
        let answer = match (std::str::from_utf8(&method), std::str::from_utf8(without_query)) {
            (Ok(method), Ok(path)) => self.content.answer(method, path),
            _ => Answer::empty(400),
        };
        let known = Known { opening: opening(&answer, length).into(), body: answer.body };
        self.last.clear();
        self.last.extend_from_slice(block);
        self.known = Some(known.clone());
        Ok(known)
    }
}

impl Exchange {
    /// Takes bytes of the request.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the client broke the protocol, which ends the connection.
    pub fn receive(&mut self, mut bytes: &[u8], answers: &mut Answers) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let (piece, count) = self.frames.next(bytes, |frame| frame == kind::DATA)?;
            match piece {
                Piece::None => {}
                Piece::Whole(kind::HEADERS, block) if !self.is_headed => {
                    self.is_headed = true;
                    let known = answers.to(block)?;
                    self.echoes = matches!(known.body, Body::Echo);
                    if self.echoes {
                        self.out.push(&known.opening);
                    } else {
                        self.known = Some(known);
                    }
                }
                Piece::Part(_) | Piece::Whole(kind::DATA, _) if !self.is_headed => {
                    return Err(broken("a body is before its head"));
                }
                Piece::Part(body) if self.echoes => {
                    let mut head = Vec::new();
                    put(&mut head, kind::DATA);
                    put(&mut head, body.len() as u64);
                    self.out.push(&head);
                    self.out.push(body);
                }
                Piece::Whole(kind, _) if kind::is_of_control_stream(kind) || kind == kind::PUSH_PROMISE => {
                    return Err(broken("a frame is at a wrong place"));
                }
                // A body that is not echoed, trailers, and frames of unknown types.
                Piece::Part(_) | Piece::Whole(..) => {}
            }
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Takes the end of the request, which its answer follows.
    ///
    /// # Errors
    ///
    /// [`Failure`] if it is incomplete.
    pub fn end(&mut self, answers: &Answers) -> Result<(), Failure> {
        if !self.is_headed || !self.frames.is_between() {
            return Err(broken("a request ended before it was complete"));
        }
        if let Some(known) = self.known.take() {
            self.out.push(&known.opening);
            if let Body::Known(payload) = &known.body {
                self.out.body(payload);
            }
        }
        self.ended = true;
        answers.content.count();
        Ok(())
    }

    /// Bytes to send; empty if there are none now.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.out.output()
    }

    /// Removes the first `count` bytes of the output, which were sent.
    pub fn sent(&mut self, count: usize) {
        self.out.sent(count);
    }

    /// Whether nothing follows the output.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.ended
    }
}

/// The fields that select the answer to a request.
#[derive(Default)]
struct Asked {
    method: Vec<u8>,
    path: Vec<u8>,
    length: Option<u64>,
}

impl Asked {
    /// Decodes a block; `None` if it is not valid, or needs a dynamic table.
    fn of(block: &[u8]) -> Option<Self> {
        let (mut asked, mut rest, mut text) = (Self::default(), block, Vec::new());
        if integer(&mut rest, 8).ok()? != 0 {
            return None;
        }
        integer(&mut rest, 7).ok()?;
        while let Some(first) = rest.first() {
            match first {
                // An indexed field.
                0xc0.. => {
                    let index = integer(&mut rest, 6).ok().filter(|index| *index < ENTRIES)? as usize;
                    if index == PATH {
                        asked.path = b"/".to_vec();
                    } else if let Some((method, _)) = METHODS.iter().find(|(_, place)| *place == index) {
                        asked.method = method.as_bytes().to_vec();
                    }
                }
                // A name of the static table, and a value.
                0x50..0x60 | 0x70..0x80 => {
                    let index = integer(&mut rest, 4).ok().filter(|index| *index < ENTRIES)?;
                    string(&mut rest, 7, &mut text)?;
                    match index as usize {
                        PATH => asked.path.clone_from(&text),
                        METHOD..=21 => asked.method.clone_from(&text),
                        _ if index == LENGTH => asked.length = std::str::from_utf8(&text).ok()?.parse().ok(),
                        _ => {}
                    }
                }
                // A name and a value.
                0x20..0x40 => {
                    string(&mut rest, 3, &mut text)?;
                    let is_length = text == b"content-length";
                    let place = match &text[..] {
                        b":path" => Some(&mut asked.path),
                        b":method" => Some(&mut asked.method),
                        _ => None,
                    };
                    let mut value = Vec::new();
                    string(&mut rest, 7, &mut value)?;
                    if is_length {
                        asked.length = std::str::from_utf8(&value).ok()?.parse().ok();
                    }
                    if let Some(place) = place {
                        *place = value;
                    }
                }
                _ => return None,
            }
        }
        Some(asked)
    }
}

/// The head of an answer; `length` is that of the request.
fn opening(answer: &Answer, length: Option<u64>) -> Vec<u8> {
    // No entry of the dynamic table is needed.
    let mut block = vec![0, 0];
    match answer.status {
        200 => encode_integer(&mut block, 0xc0, 6, STATUS_200),
        status => named(&mut block, STATUS, &status.to_string()),
    }
    let size = match &answer.body {
        Body::Known(payload) => Some(payload.size()),
        Body::Echo => length,
    };
    if let Some(size) = size {
        named(&mut block, LENGTH as usize, &size.to_string());
    }
    if let Some((name, value)) = answer.field {
        let index = match name {
            Name::ContentType => CONTENT_TYPE,
            Name::Location => LOCATION,
        };
        named(&mut block, index, value);
    }
    let mut out = Vec::new();
    put(&mut out, kind::HEADERS);
    put(&mut out, block.len() as u64);
    out.extend_from_slice(&block);
    if let Body::Known(payload) = &answer.body
        && payload.size() > 0
    {
        put(&mut out, kind::DATA);
        put(&mut out, payload.size());
    }
    out
}

fn broken(message: &str) -> Failure {
    Failure::new(ErrorKind::Protocol, message)
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
