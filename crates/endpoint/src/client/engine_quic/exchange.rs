//! The requests of a connection whose responses are not complete.

use quinn_proto::{Connection, StreamId, VarInt, WriteError};
use wirelab_engine::machine::Slot;

use super::application::Application;

/// A request on its stream.
pub(super) struct Exchange<A: Application> {
    pub id: StreamId,
    pub slot: Slot,
    /// The number of the request.
    pub number: usize,
    pub response: A::Response,
    /// Bytes of the request that QUIC took.
    sent: u64,
    is_sent: bool,
}

impl<A: Application> Exchange<A> {
    pub fn new(id: StreamId, slot: Slot, number: usize, plan: &A::Plan) -> Self {
        Self { id, slot, number, response: A::response(plan, slot, number), sent: 0, is_sent: false }
    }

    /// Hands the request to QUIC, as far as it takes it.
    pub fn send(&mut self, connection: &mut Connection, plan: &A::Plan) {
        let mut stream = connection.send_stream(self.id);
        let size = A::size(plan, self.number);
        while !self.is_sent {
            if self.sent == size {
                // An error means that the server stopped reading, which ends the request as well.
                let _ = stream.finish();
                self.is_sent = true;
                return;
            }
            match stream.write(A::bytes(plan, self.number, self.sent)) {
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
pub(super) struct Exchanges<A: Application>(Vec<Exchange<A>>);

impl<A: Application> Default for Exchanges<A> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<A: Application> Exchanges<A> {
    pub fn push(&mut self, exchange: Exchange<A>) {
        self.0.push(exchange);
    }

    fn place(&self, id: StreamId) -> Option<usize> {
        // Responses mostly come in the order of their requests.
        match self.0.first() {
            Some(first) if first.id == id => Some(0),
            _ => self.0.binary_search_by_key(&id, |exchange| exchange.id).ok(),
        }
    }

    pub fn find(&mut self, id: StreamId) -> Option<&mut Exchange<A>> {
        let place = self.place(id)?;
        self.0.get_mut(place)
    }

    pub fn take(&mut self, id: StreamId) -> Option<Exchange<A>> {
        let place = self.place(id)?;
        Some(self.0.remove(place))
    }

    pub fn take_slot(&mut self, slot: Slot) -> Option<Exchange<A>> {
        let place = self.0.iter().position(|exchange| exchange.slot == slot)?;
        Some(self.0.remove(place))
    }

    /// Takes a request whose stream is `id` or a later one.
    pub fn take_from(&mut self, id: u64) -> Option<Exchange<A>> {
        let place = self.0.iter().position(|exchange| VarInt::from(exchange.id).into_inner() >= id)?;
        Some(self.0.remove(place))
    }

    /// Takes all requests.
    pub fn drain(&mut self) -> impl Iterator<Item = Exchange<A>> {
        self.0.drain(..)
    }
}
