//! A server's work on one stream: read a request, wait, answer.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use quiche::h3::Header;
use wirelab_endpoint::program::{Header as RawHeader, Reply, Site};
use wirelab_quiche::{number, text};

use crate::answer::Answer;
use crate::speaker::give_up;
use crate::wire::Wire;

/// The error code of the raw protocol: the request was not as announced.
const BAD_REQUEST: u64 = 1;

/// Bytes of the header of a raw request.
const RAW_HEADER: usize = 24;

/// A stream with a request on it.
pub enum Work {
    /// An incomplete raw request: its first bytes, and the number of all received bytes.
    Arriving(BytesMut, u64),
    /// An answer that waits for its time.
    Delayed(Answer),
    /// An answer on its way.
    Answering(Answer),
}

/// The result of a step.
pub enum Step {
    /// It goes on when more can be received or sent.
    Waits,
    /// It goes on at this time.
    Until(Instant),
    /// It is over; true: the request was answered.
    Over(bool),
}

impl Work {
    /// The response to an HTTP request; and its moment, if not at once.
    pub fn of_http(site: &Site, fields: &[Header]) -> (Self, Option<Instant>) {
        let arrival = Instant::now();
        let path = text(fields, b":path").unwrap_or("/");
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        let answer = match site.reply(text(fields, b":method").unwrap_or_default(), path) {
            Reply::Document(body) => Answer::document(body, &[]),
            Reply::Typed(body, kind) => Answer::document(body, &[("content-type", kind)]),
            Reply::Pattern(size) => Answer::pattern(size),
            Reply::Echo => Answer::echo(number(fields, b"content-length")),
            Reply::Delay(microseconds) => {
                let at = arrival + Duration::from_micros(microseconds);
                return (Self::Delayed(Answer::empty(200, &[])), Some(at));
            }
            Reply::Redirect(place) => Answer::empty(302, &[("location", place)]),
            Reply::Status(status) => Answer::empty(status, &[]),
        };
        (Self::Answering(answer), None)
    }

    /// A raw request that begins.
    pub fn of_raw() -> Self {
        Self::Arriving(BytesMut::with_capacity(RAW_HEADER), 0)
    }

    /// The time of a delayed answer has come.
    pub fn is_due(&mut self) {
        if let Self::Delayed(answer) = self {
            *self = Self::Answering(std::mem::replace(answer, Answer::raw(0)));
        }
    }

    /// The client has sent all of its request.
    pub const fn is_received(&mut self) {
        if let Self::Answering(answer) = self {
            answer.is_received();
        }
    }

    /// Whether arriving bytes of an HTTP request are part of the answer.
    pub const fn echoes(&self) -> bool {
        matches!(self, Self::Answering(answer) if answer.echoes())
    }

    /// Goes on as far as the connection allows.
    pub fn go_on(&mut self, wire: &mut Wire<'_>, stream: u64, site: &Site) -> Step {
        if let Self::Arriving(start, received) = self {
            match read_raw(wire, stream, start, received) {
                Arrival::Waits => return Step::Waits,
                Arrival::Request(header) if header.delay_us == 0 => {
                    *self = Self::Answering(Answer::raw(header.wanted));
                }
                Arrival::Request(header) if site.offers_delay() => {
                    *self = Self::Delayed(Answer::raw(header.wanted));
                    return Step::Until(Instant::now() + Duration::from_micros(header.delay_us));
                }
                Arrival::Request(_) | Arrival::Broken => {
                    give_up(wire.connection, stream, BAD_REQUEST);
                    return Step::Over(false);
                }
            }
        }
        let Self::Answering(answer) = self else { return Step::Waits };
        match answer.send(wire, stream) {
            Ok(true) => Step::Over(true),
            Ok(false) => Step::Waits,
            // A stream that fails is the client's to report.
            Err(()) => Step::Over(false),
        }
    }
}

enum Arrival {
    Waits,
    Broken,
    Request(RawHeader),
}

/// Reads the available part of a raw request: the header, the announced number of body bytes, the end of the stream.
fn read_raw(wire: &mut Wire<'_>, stream: u64, start: &mut BytesMut, received: &mut u64) -> Arrival {
    loop {
        match wire.connection.stream_recv(stream, wire.scratch) {
            Ok((length, is_last)) => {
                let missing = RAW_HEADER.saturating_sub(start.len()).min(length);
                start.extend_from_slice(&wire.scratch[..missing]);
                *received += length as u64;
                if is_last {
                    let Some(header) = start.first_chunk().map(RawHeader::decode) else { return Arrival::Broken };
                    let whole = *received - RAW_HEADER as u64 == header.body;
                    return if whole { Arrival::Request(header) } else { Arrival::Broken };
                }
            }
            Err(quiche::Error::Done) => return Arrival::Waits,
            Err(_) => return Arrival::Broken,
        }
    }
}
