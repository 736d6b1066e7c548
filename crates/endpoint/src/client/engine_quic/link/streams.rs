//! The streams of a connection: requests with their responses, and what else the server sends.

use quinn_proto::{Connection, Dir, ReadError, StreamEvent, StreamId};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::protocol::Protocol;
use wirelab_engine::http3::{CONTROL, Inward, Refused, code};
use wirelab_engine::machine::{Inbox, Slot};

use super::{ATTEMPT, Phase, QuicLink};
use crate::client::engine_quic::exchange::Exchange;
use crate::client::transport::Failure;
use crate::quic_contract::given_up_code;

impl QuicLink {
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
                    self.inward.push((id, Inward::default()));
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
                    exchange.send(connection, &self.common.requests[exchange.number]);
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
        let request = &self.common.requests[number];
        let mut exchange = Exchange::new(id, slot, number, request);
        exchange.send(connection, request);
        self.exchanges.push(exchange);
        true
    }

    /// Reads a response.
    fn read(&mut self, connection: &mut Connection, id: StreamId, inbox: &mut Inbox) -> Result<(), Failure> {
        let Some(exchange) = self.exchanges.find(id) else { return Ok(()) };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return Ok(()) };
        let decoder = &mut *self.common.decoder.borrow_mut();
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    let Err(refused) = exchange.response.receive(&chunk.bytes, decoder, inbox) else { continue };
                    let _ = chunks.finalize();
                    let failure = match refused {
                        Refused::Connection(failure) => return Err(failure),
                        Refused::Response(failure) => failure,
                    };
                    inbox.failed(exchange.slot, failure);
                    if let Some(exchange) = self.exchanges.take(id) {
                        exchange.abandon(connection, code::MESSAGE_ERROR.into());
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
        exchange.abandon(connection, given_up_code(Protocol::H3).into());
        match end {
            Ok(()) => exchange.response.end(inbox),
            Err(code) => {
                let failure =
                    Failure::new(ErrorKind::Reset, format!("{ATTEMPT}: the server reset the stream with code {code}"));
                match code.into_inner() {
                    code::REQUEST_REJECTED => inbox.turned_away(exchange.slot, failure),
                    _ => inbox.failed(exchange.slot, failure),
                }
            }
        }
        Ok(())
    }

    /// Reads a unidirectional stream of the server.
    fn read_inward(&mut self, connection: &mut Connection, id: StreamId, inbox: &mut Inbox) -> Result<(), Failure> {
        let Some((_, inward)) = self.inward.iter_mut().find(|(known, _)| *known == id) else { return Ok(()) };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return Ok(()) };
        let mut goaway = None;
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => match inward.receive(&chunk.bytes) {
                    Ok(refused) => goaway = refused.or(goaway),
                    Err(failure) => break Err(failure),
                },
                Err(ReadError::Blocked) => break Ok(()),
                Ok(None) | Err(ReadError::Reset(_)) => break inward.end(),
            }
        };
        let _ = chunks.finalize();
        end?;
        let kind = inward.kind().filter(|kind| Inward::is_single(*kind));
        if kind.is_some_and(|kind| self.inward.iter().filter(|(_, inward)| inward.kind() == Some(kind)).count() > 1) {
            let message = "the server opened a second control stream, or a second stream of QPACK";
            return Err(Failure::new(ErrorKind::Protocol, message));
        }
        if let Some(id) = goaway {
            self.phase = Phase::Closing;
            let message = "the server closed the connection (GOAWAY) and refused the request";
            let failure = Failure::new(ErrorKind::Reset, message);
            while let Some(exchange) = self.exchanges.take_from(id) {
                inbox.turned_away(exchange.slot, failure.clone());
            }
            self.queued.drain(..).for_each(|(slot, _)| inbox.turned_away(slot, failure.clone()));
        }
        Ok(())
    }
}

/// Opens the control stream.
pub(super) fn open_control(connection: &mut Connection) {
    if let Some(id) = connection.streams().open(Dir::Uni) {
        // Three bytes fit any credit that a server may grant (RFC 9114, section 6.2).
        let _ = connection.send_stream(id).write(&CONTROL);
    }
}
