//! A connection of the null server over QUIC.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::{
    Connection, ConnectionHandle, Dir, Endpoint, Event, ReadError, StreamEvent, StreamId, VarInt, WriteError,
};
use wirelab_contract::protocol::Protocol;
use wirelab_engine::http3::server::Answers;
use wirelab_engine::http3::{self, CONTROL, code};
use wirelab_engine::null::Content;
use wirelab_engine::raw;
use wirelab_engine::refusal::Failure;

use super::Common;
use crate::quic_contract::{done_code, given_up_code};
use crate::quic_meter::Shared;
use crate::transport_accounts::Account;

/// A request and its answer.
enum Exchange {
    Http3(http3::server::Exchange),
    Raw(raw::server::Exchange),
}

impl Exchange {
    fn new(protocol: Protocol) -> Self {
        if protocol == Protocol::H3 { Self::Http3(Default::default()) } else { Self::Raw(Default::default()) }
    }

    fn receive(&mut self, bytes: &[u8], answers: &mut Answers) -> Result<(), Failure> {
        match self {
            Self::Http3(exchange) => exchange.receive(bytes, answers),
            Self::Raw(exchange) => exchange.receive(bytes),
        }
    }

    fn end(&mut self, answers: &Answers, content: &dyn Content) -> Result<(), Failure> {
        match self {
            Self::Http3(exchange) => exchange.end(answers),
            Self::Raw(exchange) => exchange.end(content),
        }
    }

    fn output(&self) -> &[u8] {
        match self {
            Self::Http3(exchange) => exchange.output(),
            Self::Raw(exchange) => exchange.output(),
        }
    }

    fn sent(&mut self, count: usize) {
        match self {
            Self::Http3(exchange) => exchange.sent(count),
            Self::Raw(exchange) => exchange.sent(count),
        }
    }

    const fn is_complete(&self) -> bool {
        match self {
            Self::Http3(exchange) => exchange.is_complete(),
            Self::Raw(exchange) => exchange.is_complete(),
        }
    }
}

/// A connection.
pub(super) struct Served {
    /// The first field, because fields drop in order: it reads the connection.
    _account: Account,
    pub connection: Shared,
    common: Arc<Common>,
    handle: ConnectionHandle,
    answers: Answers,
    /// Requests that are not answered, in the order of their streams.
    exchanges: Vec<(StreamId, Exchange)>,
}

impl Served {
    pub fn new(handle: ConnectionHandle, connection: Connection, common: &Arc<Common>) -> Self {
        let connection = Shared::new(connection);
        Self {
            _account: common.accounts.of(Arc::new(connection.clone())),
            connection,
            common: Arc::clone(common),
            handle,
            answers: Answers::new(&common.content),
            exchanges: Vec::new(),
        }
    }

    /// Answers what arrived.
    pub fn proceed(&mut self, endpoint: &mut Endpoint) {
        let shared = self.connection.clone();
        let connection = &mut *shared.lock();
        loop {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = endpoint.handle_event(self.handle, event) {
                    connection.handle_event(event);
                }
            }
            match connection.poll() {
                None => return,
                Some(Event::Connected) if self.common.protocol == Protocol::H3 => {
                    if let Some(id) = connection.streams().open(Dir::Uni) {
                        // Three bytes fit any credit that a client may grant (RFC 9114, section 6.2).
                        let _ = connection.send_stream(id).write(&CONTROL);
                    }
                }
                Some(Event::Stream(event)) => self.stream(connection, &event),
                // The end of a connection needs nothing: quinn says goodbye, and the worker removes it later.
                Some(_) => {}
            }
        }
    }

    /// Says goodbye.
    pub fn close(&self) {
        let code = VarInt::from_u32(done_code(self.common.protocol));
        self.connection.lock().close(Instant::now(), code, Bytes::from_static(b"stop"));
    }

    fn stream(&mut self, connection: &mut Connection, event: &StreamEvent) {
        match *event {
            StreamEvent::Opened { dir: Dir::Bi } => {
                while let Some(id) = connection.streams().accept(Dir::Bi) {
                    self.exchanges.push((id, Exchange::new(self.common.protocol)));
                    self.read(connection, id);
                }
            }
            StreamEvent::Opened { dir: Dir::Uni } => {
                while let Some(id) = connection.streams().accept(Dir::Uni) {
                    drain(connection, id);
                }
            }
            StreamEvent::Readable { id } if id.dir() == Dir::Uni => drain(connection, id),
            StreamEvent::Readable { id } => self.read(connection, id),
            StreamEvent::Writable { id } => self.send(connection, id),
            StreamEvent::Stopped { id, .. } => self.exchanges.retain(|(known, _)| *known != id),
            StreamEvent::Finished { .. } | StreamEvent::Available { .. } => {}
        }
    }

    fn place(&self, id: StreamId) -> Option<usize> {
        self.exchanges.binary_search_by_key(&id, |(known, _)| *known).ok()
    }

    /// Reads a request.
    fn read(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(place) = self.place(id) else { return drain(connection, id) };
        let exchange = &mut self.exchanges[place].1;
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let received = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => match exchange.receive(&chunk.bytes, &mut self.answers) {
                    Ok(()) => {}
                    Err(failure) => break Err(failure),
                },
                Ok(None) => break exchange.end(&self.answers, &*self.common.content),
                Err(ReadError::Blocked) => break Ok(()),
                Err(ReadError::Reset(_)) => {
                    let _ = chunks.finalize();
                    return self.refuse(connection, place);
                }
            }
        };
        let _ = chunks.finalize();
        match received {
            Ok(()) => self.send(connection, id),
            Err(failure) if self.common.protocol == Protocol::H3 => {
                let code = VarInt::from_u32(code::GENERAL_PROTOCOL_ERROR);
                connection.close(Instant::now(), code, Bytes::from(failure.message));
            }
            Err(_) => self.refuse(connection, place),
        }
    }

    /// Resets the stream of a request that has no answer.
    fn refuse(&mut self, connection: &mut Connection, place: usize) {
        let (id, _) = self.exchanges.remove(place);
        let code = VarInt::from_u32(given_up_code(self.common.protocol));
        let _ = connection.recv_stream(id).stop(code);
        let _ = connection.send_stream(id).reset(code);
    }

    /// Hands the answer to QUIC, as far as it takes it.
    fn send(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(place) = self.place(id) else { return };
        let exchange = &mut self.exchanges[place].1;
        let mut stream = connection.send_stream(id);
        while !exchange.output().is_empty() {
            match stream.write(exchange.output()) {
                Ok(count) => exchange.sent(count),
                Err(WriteError::Blocked) => return,
                // The client does not want the answer.
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    self.exchanges.remove(place);
                    return;
                }
            }
        }
        if exchange.is_complete() {
            let _ = stream.finish();
            self.exchanges.remove(place);
        }
    }
}

/// Reads a stream whose content changes no answer: the settings of the client, and its empty tables of QPACK.
fn drain(connection: &mut Connection, id: StreamId) {
    let mut stream = connection.recv_stream(id);
    if let Ok(mut chunks) = stream.read(false) {
        while let Ok(Some(_)) = chunks.next(usize::MAX) {}
        let _ = chunks.finalize();
    }
}
