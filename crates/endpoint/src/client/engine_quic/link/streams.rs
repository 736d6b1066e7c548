//! The streams of a connection: requests with their responses, and what else the server sends.

use quinn_proto::{Connection, Dir, ReadError, StreamEvent, StreamId};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_engine::machine::{Inbox, Slot};
use wirelab_engine::refusal::Unreadable;

use super::{Phase, QuicLink};
use crate::client::engine_quic::application::Application;
use crate::client::engine_quic::exchange::Exchange;
use crate::client::transport::Failure;
use crate::quic_contract::given_up_code;

impl<A: Application> QuicLink<A> {
    /// Handles what happened at a stream.
    pub(super) fn stream(
        &mut self,
        connection: &mut Connection,
        event: &StreamEvent,
        inbox: &mut Inbox,
    ) -> Result<(), Failure> {
        match *event {
            StreamEvent::Opened { dir: Dir::Uni } => {
                while let Some(id) = connection.streams().accept(Dir::Uni) {
                    self.application.opened(id);
                    self.read_inward(connection, id, inbox)?;
                }
                Ok(())
            }
            StreamEvent::Opened { dir: Dir::Bi } => {
                Err(Failure::new(ErrorKind::Protocol, "the server opened a stream for requests"))
            }
            StreamEvent::Readable { id } if id.dir() == Dir::Uni => self.read_inward(connection, id, inbox),
            StreamEvent::Readable { id } => self.read(connection, id, inbox),
            StreamEvent::Writable { id } => {
                if let Some(exchange) = self.exchanges.find(id) {
                    exchange.send(connection, &self.common.plan);
                }
                Ok(())
            }
            StreamEvent::Available { .. } => {
                while let Some((slot, number)) = self.queued.front().copied()
                    && self.begin(connection, slot, number)
                {
                    self.queued.pop_front();
                }
                Ok(())
            }
            StreamEvent::Finished { .. } | StreamEvent::Stopped { .. } => Ok(()),
        }
    }

    /// Sends a request on a stream of its own. Returns whether the server allows one.
    pub(super) fn begin(&mut self, connection: &mut Connection, slot: Slot, number: usize) -> bool {
        let Some(id) = connection.streams().open(Dir::Bi) else { return false };
        let mut exchange = Exchange::new(id, slot, number, &self.common.plan);
        exchange.send(connection, &self.common.plan);
        self.exchanges.push(exchange);
        true
    }

    /// Reads a response.
    fn read(&mut self, connection: &mut Connection, id: StreamId, inbox: &mut Inbox) -> Result<(), Failure> {
        let Some(exchange) = self.exchanges.find(id) else { return Ok(()) };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return Ok(()) };
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    let received = A::receive(&self.common.plan, &mut exchange.response, &chunk.bytes, inbox);
                    let Err(refused) = received else { continue };
                    let _ = chunks.finalize();
                    let failure = match refused {
                        Unreadable::Connection(failure) => return Err(failure),
                        Unreadable::Response(failure) => failure,
                    };
                    inbox.failed(exchange.slot, failure);
                    if let Some(exchange) = self.exchanges.take(id) {
                        exchange.abandon(connection, A::CODES.malformed.into());
                    }
                    return Ok(());
                }
                Ok(None) => break Ok(()),
                Err(ReadError::Blocked) => {
                    // `flush` follows, and sends the credit.
                    let _ = chunks.finalize();
                    return Ok(());
                }
                Err(ReadError::Reset(code)) => break Err(code),
            }
        };
        let _ = chunks.finalize();
        let Some(exchange) = self.exchanges.take(id) else { return Ok(()) };
        exchange.abandon(connection, given_up_code(A::PROTOCOL).into());
        match end {
            Ok(()) => A::end(exchange.response, inbox),
            Err(code) => {
                let message = format!("{}: the server reset the stream with code {code}", A::ATTEMPT);
                let failure = Failure::new(ErrorKind::Reset, message);
                if A::CODES.rejected == Some(code.into_inner()) {
                    inbox.turned_away(exchange.slot, failure);
                } else {
                    inbox.failed(exchange.slot, failure);
                }
            }
        }
        Ok(())
    }

    /// Reads a unidirectional stream of the server.
    fn read_inward(&mut self, connection: &mut Connection, id: StreamId, inbox: &mut Inbox) -> Result<(), Failure> {
        let Some(refused) = self.application.read(connection, id)? else { return Ok(()) };
        self.phase = Phase::Closing;
        let message = "the server closed the connection (GOAWAY) and refused the request";
        let failure = Failure::new(ErrorKind::Reset, message);
        while let Some(exchange) = self.exchanges.take_from(refused) {
            inbox.turned_away(exchange.slot, failure.clone());
        }
        self.queued.drain(..).for_each(|(slot, _)| inbox.turned_away(slot, failure.clone()));
        Ok(())
    }
}
