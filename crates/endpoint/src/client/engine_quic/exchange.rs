//! The requests of a connection whose responses are not complete.

use quinn_proto::{Connection, StreamId, VarInt, WriteError};
use wirelab_engine::http3::{Encoded, Response};
use wirelab_engine::machine::Slot;

/// A request on its stream.
pub(super) struct Exchange {
    pub id: StreamId,
    pub slot: Slot,
    /// The number of the request.
    pub number: usize,
    pub response: Response,
    /// Bytes of the request that QUIC took.
    sent: u64,
    is_sent: bool,
}

impl Exchange {
    pub fn new(id: StreamId, slot: Slot, number: usize, request: &Encoded) -> Self {
        Self { id, slot, number, response: Response::new(slot, request.is_head()), sent: 0, is_sent: false }
    }

    /// Hands the request to QUIC, as far as it takes it.
    pub fn send(&mut self, connection: &mut Connection, request: &Encoded) {
        let mut stream = connection.send_stream(self.id);
        while !self.is_sent {
            if self.sent == request.size() {
                // An error means that the server stopped reading, which ends the request as well.
                let _ = stream.finish();
                self.is_sent = true;
                return;
            }
            match stream.write(request.from(self.sent)) {
                Ok(count) => self.sent += count as u64,
                Err(WriteError::Blocked) => return,
                // The server answers without the rest of the request, or resets the stream.
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => self.is_sent = true,
            }
        }
    }

    /// Tells the server that the rest of the request, and of the response, is not needed.
    pub fn abandon(&self, connection: &mut Connection, code: VarInt) {
        if !self.is_sent {
            let _ = connection.send_stream(self.id).reset(code);
        }
        let _ = connection.recv_stream(self.id).stop(code);
    }
}

/// The requests on a connection, in the order of their streams.
#[derive(Default)]
pub(super) struct Exchanges(Vec<Exchange>);

impl Exchanges {
    pub fn push(&mut self, exchange: Exchange) {
        self.0.push(exchange);
    }

    fn place(&self, id: StreamId) -> Option<usize> {
        // Responses mostly come in the order of their requests.
        match self.0.first() {
            Some(first) if first.id == id => Some(0),
            _ => self.0.binary_search_by_key(&id, |exchange| exchange.id).ok(),
        }
    }

    pub fn find(&mut self, id: StreamId) -> Option<&mut Exchange> {
        let place = self.place(id)?;
        self.0.get_mut(place)
    }

    pub fn take(&mut self, id: StreamId) -> Option<Exchange> {
        let place = self.place(id)?;
        Some(self.0.remove(place))
    }

    pub fn take_slot(&mut self, slot: Slot) -> Option<Exchange> {
        let place = self.0.iter().position(|exchange| exchange.slot == slot)?;
        Some(self.0.remove(place))
    }

    /// Takes a request whose stream is `id` or a later one.
    pub fn take_from(&mut self, id: u64) -> Option<Exchange> {
        let place = self.0.iter().position(|exchange| VarInt::from(exchange.id).into_inner() >= id)?;
        Some(self.0.remove(place))
    }

    /// Takes all requests.
    pub fn drain(&mut self) -> impl Iterator<Item = Exchange> {
        self.0.drain(..)
    }
}
