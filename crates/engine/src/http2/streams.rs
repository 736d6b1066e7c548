//! The open streams of a connection.

use super::call::Reply;
use crate::machine::Slot;

/// An open stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub id: u32,
    pub slot: Slot,
    /// The number of the request.
    pub number: usize,
    /// The status, after the head.
    pub status: Option<u16>,
    /// The announced size of the body.
    pub length: Option<u64>,
    /// Bytes of interim responses.
    pub interim: usize,
    pub bytes_in: u64,
    /// The part of the reply to a call of gRPC that has arrived.
    pub reply: Reply,
    /// Body bytes of the request that were not prepared for sending.
    pub unsent: u64,
    /// The peer's credit for them.
    pub credit: i64,
    /// Body bytes of the response that were received and not credited again.
    pub owed: u32,
}

/// The open streams, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: Vec<Stream>,
    /// Number of streams that were opened.
    opened: u32,
    /// Whether requests have bodies.
    has_bodies: bool,
}

impl Streams {
    pub fn len(&self) -> usize {
        self.open.len()
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Opens a stream, and returns its number.
    pub fn add(&mut self, slot: Slot, number: usize, unsent: u64, credit: i64) -> u32 {
        let id = self.opened * 2 + 1;
        self.opened += 1;
        self.has_bodies |= unsent > 0;
        self.open.push(Stream {
            id,
            slot,
            number,
            status: None,
            length: None,
            interim: 0,
            bytes_in: 0,
            reply: Reply::default(),
            unsent,
            credit,
            owed: 0,
        });
        id
    }

    /// Whether this client opened the stream at some time.
    pub const fn was_opened(&self, id: u32) -> bool {
        id % 2 == 1 && id / 2 < self.opened
    }

    fn place(&self, id: u32) -> Option<usize> {
        // Responses mostly come in the order of their requests.
        match self.open.first() {
            Some(first) if first.id == id => Some(0),
            _ => self.open.binary_search_by_key(&id, |stream| stream.id).ok(),
        }
    }

    pub fn find(&mut self, id: u32) -> Option<&mut Stream> {
        let place = self.place(id)?;
        self.open.get_mut(place)
    }

    pub fn take(&mut self, id: u32) -> Option<Stream> {
        let place = self.place(id)?;
        Some(self.remove(place))
    }

    pub fn take_slot(&mut self, slot: Slot) -> Option<Stream> {
        let place = self.open.iter().position(|stream| stream.slot == slot)?;
        Some(self.remove(place))
    }

    /// Takes a stream with a number above `last`.
    pub fn take_above(&mut self, last: u32) -> Option<Stream> {
        let place = self.open.iter().position(|stream| stream.id > last)?;
        Some(self.remove(place))
    }

    fn remove(&mut self, place: usize) -> Stream {
        self.open.remove(place)
    }

    pub fn all(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.open.iter_mut()
    }

    /// The streams that may have body bytes to send.
    pub fn with_body(&mut self) -> impl Iterator<Item = &mut Stream> {
        let has_bodies = self.has_bodies;
        self.open.iter_mut().take_while(move |_| has_bodies).filter(|stream| stream.unsent > 0)
    }
}
