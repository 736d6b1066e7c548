//! Messages of bare UDP, each split into datagrams with a header of 40 bytes, without retransmission.
//!
//! A datagram has five big-endian numbers of eight bytes (request, offset of the piece, size of the whole message,
//! wanted size of the response, delay in microseconds) and the piece. An empty message is one datagram without a piece.

use std::os::fd::AsFd;

use serde_json::json;
use wirelab_contract::event::Configured;
use wirelab_contract::spec::Transport;

use crate::refusal::Refusal;
use crate::{payload, udp_socket};

/// Length of the header in bytes.
pub const HEADER: usize = 40;

/// The UDP payload that fits an Ethernet frame: 1500 bytes less the headers of IPv4 and UDP.
const DEFAULT_PAYLOAD: u16 = 1500 - 28;

/// The largest UDP payload over IPv4: 65535 bytes less the headers of IPv4 and UDP.
const LARGEST_PAYLOAD: u16 = 65_507;

/// Maximum number of tracked gaps in a message; a message with more is abandoned.
const MOST_PIECES: usize = 4096;

/// The size of datagrams including the header, from the spec. Refuses settings that bare UDP does not have.
pub fn datagram_size(settings: &Transport) -> Result<usize, Refusal> {
    let foreign = [
        ("congestion", settings.congestion.is_some(), "bare UDP has no congestion control"),
        ("stream_window", settings.stream_window.is_some(), "bare UDP has no flow control"),
        ("connection_window", settings.connection_window.is_some(), "bare UDP has no flow control"),
        ("gso", settings.gso == Some(true), "the built-in `udp` sends datagrams one by one"),
        ("gro", settings.gro == Some(true), "the built-in `udp` receives datagrams one by one"),
        ("fast_open", settings.fast_open.is_some(), "it is an option of TCP"),
        ("no_delay", settings.no_delay.is_some(), "it is an option of TCP"),
    ];
    if let Some((field, _, why)) = foreign.into_iter().find(|(_, is_set, _)| *is_set) {
        return Err(Refusal::unsupported(format!("`{field}`: {why}")));
    }
    let size = settings.max_udp_payload.unwrap_or(DEFAULT_PAYLOAD);
    if usize::from(size) <= HEADER || size > LARGEST_PAYLOAD {
        return Err(Refusal::unsupported(format!(
            "`max_udp_payload` = {size}: bare UDP needs more than its header of {HEADER} bytes, and at most {LARGEST_PAYLOAD}"
        )));
    }
    Ok(size.into())
}

/// The effective settings of a socket whose datagrams have this size.
pub fn configured(socket: &impl AsFd, size: usize) -> Configured {
    let mut configured = Configured::new();
    configured.insert("max_udp_payload".to_owned(), json!(size));
    configured.insert("gso".to_owned(), json!(false));
    configured.insert("gro".to_owned(), json!(false));
    udp_socket::report(socket, &mut configured);
    configured
}

/// The header of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Identifier of the request, chosen by the client.
    pub request: u64,
    /// Offset of the piece in the message.
    pub offset: u64,
    /// Size of the message in this direction, in bytes.
    pub total: u64,
    /// Wanted size of the response in bytes.
    pub wanted: u64,
    /// Delay of the server's answer in microseconds.
    pub delay_us: u64,
}

impl Header {
    /// Splits a datagram into header and piece; `None` for a foreign datagram.
    pub fn split(datagram: &[u8]) -> Option<(Self, &[u8])> {
        let (fields, piece) = datagram.split_first_chunk::<HEADER>()?;
        let mut numbers = [0; 5];
        for (number, bytes) in numbers.iter_mut().zip(fields.chunks_exact(8)) {
            let mut field = [0; 8];
            field.copy_from_slice(bytes);
            *number = u64::from_be_bytes(field);
        }
        let [request, offset, total, wanted, delay_us] = numbers;
        let header = Self { request, offset, total, wanted, delay_us };
        let fits = offset.checked_add(piece.len() as u64)? <= total;
        (fits && (total == 0 || !piece.is_empty())).then_some((header, piece))
    }

    /// Whether the datagram of this header and a piece of `length` bytes is the whole message.
    pub const fn is_whole(&self, length: usize) -> bool {
        self.offset == 0 && self.total == length as u64
    }

    fn encode(self, datagram: &mut Vec<u8>) {
        datagram.clear();
        for number in [self.request, self.offset, self.total, self.wanted, self.delay_us] {
            datagram.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// The sequence of a message's datagrams; `header.offset` is the start of the next one.
#[derive(Debug)]
pub struct Outgoing {
    header: Header,
    size: usize,
    datagram: Vec<u8>,
    done: bool,
}

impl Outgoing {
    /// A message of `header.total` bytes of the pattern, in datagrams of at most `size` bytes.
    pub fn new(header: Header, size: usize) -> Self {
        Self { header: Header { offset: 0, ..header }, size, datagram: Vec::with_capacity(size), done: false }
    }

    /// The next datagram.
    pub fn next(&mut self) -> Option<&[u8]> {
        if self.done {
            return None;
        }
        let header = self.header;
        header.encode(&mut self.datagram);
        let piece =
            payload::piece_slice(header.offset, (header.total - header.offset).min((self.size - HEADER) as u64));
        self.datagram.extend_from_slice(piece);
        self.header.offset += piece.len() as u64;
        self.done = self.header.offset == header.total;
        Some(&self.datagram)
    }
}

/// The received bytes of a message as ordered disjoint ranges. One range as long as nothing is lost or reordered.
#[derive(Debug, Default)]
pub struct Coverage {
    ranges: Vec<(u64, u64)>,
    bytes: u64,
}

impl Coverage {
    /// Number of distinct bytes so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds the bytes from `start` up to `end`, which may overlap earlier ones. Returns false if the message has too
    /// many gaps.
    pub fn add(&mut self, start: u64, end: u64) -> bool {
        // The ranges that touch the new one are merged into it.
        let first = self.ranges.partition_point(|range| range.1 < start);
        let last = first + self.ranges[first..].partition_point(|range| range.0 <= end);
        let joined = self.ranges[first..last]
            .iter()
            .fold((start, end), |joined, range| (joined.0.min(range.0), joined.1.max(range.1)));
        let known: u64 = self.ranges[first..last].iter().map(|range| range.1 - range.0).sum();
        self.bytes += joined.1 - joined.0 - known;
        self.ranges.splice(first..last, [joined]);
        self.ranges.len() <= MOST_PIECES
    }
}

#[cfg(test)]
mod tests {
    use wirelab_contract::pattern;
    use wirelab_contract::spec::Congestion;

    use super::*;

    fn header(total: u64) -> Header {
        Header { request: 7, offset: 0, total, wanted: 3, delay_us: 9 }
    }

    #[test]
    fn the_datagrams_of_a_message_join_to_the_pattern() {
        for total in [0, 1, 59, 60, 61, 1000] {
            let mut outgoing = Outgoing::new(header(total), HEADER + 60);
            let mut body = Vec::new();
            let mut datagrams = 0;
            while let Some(datagram) = outgoing.next() {
                let (header, piece) = Header::split(datagram).unwrap();
                assert_eq!(header, Header { offset: body.len() as u64, ..self::header(total) });
                assert_eq!(header.is_whole(piece.len()), total <= 60);
                body.extend_from_slice(piece);
                datagrams += 1;
            }
            assert_eq!(body, pattern::body(total as usize));
            assert_eq!(datagrams, total.div_ceil(60).max(1), "{total} bytes");
        }
    }

    #[test]
    fn a_datagram_that_is_too_short_or_beyond_its_message_is_ignored() {
        let mut datagram = Vec::new();
        header(10).encode(&mut datagram);
        assert_eq!(Header::split(&datagram), None, "a message that is not empty has no empty pieces");
        datagram.extend_from_slice(&[0; 11]);
        assert_eq!(Header::split(&datagram), None);
        assert!(Header::split(&datagram[..50]).is_some());
        assert_eq!(Header::split(&datagram[..39]), None);
        Header { offset: u64::MAX, ..header(10) }.encode(&mut datagram);
        datagram.push(0);
        assert_eq!(Header::split(&datagram), None);
    }

    #[test]
    fn distinct_bytes_are_counted_in_any_order() {
        let mut coverage = Coverage::default();
        for (start, end, bytes) in [(10, 20, 10), (30, 40, 20), (10, 20, 20), (20, 30, 30), (0, 5, 35), (0, 50, 50)] {
            assert!(coverage.add(start, end));
            assert_eq!(coverage.bytes(), bytes, "after {start}..{end}");
        }
        assert_eq!(coverage.ranges, [(0, 50)]);
    }

    #[test]
    fn a_message_with_too_many_gaps_is_abandoned() {
        let mut coverage = Coverage::default();
        assert!((0..MOST_PIECES as u64).all(|i| coverage.add(2 * i, 2 * i + 1)));
        assert!(!coverage.add(1 << 40, (1 << 40) + 1));
    }

    #[test]
    fn settings_that_udp_does_not_have_are_unsupported() {
        let none = Transport::default;
        assert_eq!(datagram_size(&none()).unwrap(), 1472);
        assert_eq!(datagram_size(&Transport { gso: Some(false), gro: Some(false), ..none() }).unwrap(), 1472);
        for settings in [
            Transport { gso: Some(true), ..none() },
            Transport { gro: Some(true), ..none() },
            Transport { congestion: Some(Congestion::Bbr), ..none() },
            Transport { stream_window: Some(1), ..none() },
            Transport { connection_window: Some(1), ..none() },
            Transport { no_delay: Some(true), ..none() },
            Transport { fast_open: Some(false), ..none() },
            Transport { max_udp_payload: Some(40), ..none() },
            Transport { max_udp_payload: Some(65_508), ..none() },
        ] {
            assert!(matches!(datagram_size(&settings), Err(Refusal::Unsupported(_))), "{settings:?}");
        }
    }
}
