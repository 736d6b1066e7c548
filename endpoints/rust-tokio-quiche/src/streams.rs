//! Bare bidirectional streams as an application of tokio-quiche: its driver for connections on which no HTTP/3 is
//! spoken.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::pending;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use quiche::{Error, Shutdown};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio_quiche::quic::{HandshakeInfo, QuicheConnection};
use tokio_quiche::{ApplicationOverQuic, QuicResult};

use crate::raw::Stream;

/// Error codes of the raw protocol: all is well; the request was not as announced.
const DONE: u64 = 0;
const BAD_REQUEST: u64 = 1;

/// Bytes that are read at once, at most.
const PIECE: usize = 65_536;

/// Pieces of a stream that may wait for quiche, as many as of tokio-quiche's own HTTP/3.
const AHEAD: usize = 16;

/// Messages from the user of a stream to the driver.
#[derive(Debug)]
pub enum Command {
    /// Open it from this side; its reader listens here.
    Open {
        stream: u64,
        /// Events of the other side.
        inward: UnboundedSender<Option<Bytes>>,
        /// The number of pieces that may be sent ahead.
        room: Arc<Semaphore>,
    },
    /// Send a piece.
    Send {
        stream: u64,
        piece: Bytes,
        /// Whether this side ends with it.
        is_last: bool,
    },
    /// The rest of the incoming bytes is not wanted.
    Stop(u64),
    /// The rest of the bytes to send is given up.
    Reset(u64),
    /// The stream has no user any more.
    Leave(u64),
}

/// Opens streams of a client.
pub struct Opener {
    commands: UnboundedSender<Command>,
    next: Cell<u64>,
}

impl Opener {
    /// Opens a stream; `None`: the connection is over. If the server allows no further one now, bytes sent on it wait.
    pub fn open(&self) -> Option<Stream> {
        // Bidirectional streams of clients (RFC 9000, section 2.1).
        let id = self.next.replace(self.next.get() + 4);
        let (inward, comes) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(AHEAD));
        self.commands.send(Command::Open { stream: id, inward, room: Arc::clone(&room) }).ok()?;
        Some(Stream::new(id, self.commands.clone(), comes, room))
    }
}

/// The driver of a connection's streams.
pub struct Streams {
    commands: UnboundedReceiver<Command>,
    /// At a server, the receiver of the streams that clients open, and the channel from these streams to their driver.
    accepting: Option<(UnboundedSender<Stream>, UnboundedSender<Command>)>,
    flows: BTreeMap<u64, Flow>,
    /// Streams with bytes to send, the oldest first: it goes on if two of them block each other.
    outgoing: BTreeSet<u64>,
    is_established: bool,
}

/// A stream, from its driver's side.
struct Flow {
    /// The reader, until the end of the stream.
    inward: Option<UnboundedSender<Option<Bytes>>>,
    outward: VecDeque<(Bytes, bool)>,
    room: Arc<Semaphore>,
    /// Whether quiche knows of it.
    is_open: bool,
    /// Whether this side ends with what waits.
    has_last: bool,
    /// Whether the stream has a user.
    is_used: bool,
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.room.close();
    }
}

impl Streams {
    /// A client's, and what opens streams.
    pub fn of_client() -> (Self, Opener) {
        let (sender, commands) = mpsc::unbounded_channel();
        (Self::new(commands, None), Opener { commands: sender, next: Cell::new(0) })
    }

    /// A server's, and where the streams of its client come from.
    pub fn of_server() -> (Self, UnboundedReceiver<Stream>) {
        let (sender, commands) = mpsc::unbounded_channel();
        let (accept, accepted) = mpsc::unbounded_channel();
        (Self::new(commands, Some((accept, sender))), accepted)
    }

    const fn new(
        commands: UnboundedReceiver<Command>,
        accepting: Option<(UnboundedSender<Stream>, UnboundedSender<Command>)>,
    ) -> Self {
        Self { commands, accepting, flows: BTreeMap::new(), outgoing: BTreeSet::new(), is_established: false }
    }

    fn carry_out(&mut self, connection: &mut QuicheConnection, command: Command) {
        match command {
            Command::Open { stream, inward, room } => {
                self.flows.insert(stream, Flow::new(inward, room, false));
            }
            Command::Send { stream, piece, is_last } => {
                if let Some(flow) = self.flows.get_mut(&stream) {
                    flow.outward.push_back((piece, is_last));
                    flow.has_last |= is_last;
                    self.outgoing.insert(stream);
                }
            }
            Command::Stop(stream) => shut(connection, stream, Shutdown::Read, DONE),
            Command::Reset(stream) => {
                shut(connection, stream, Shutdown::Write, BAD_REQUEST);
                if let Some(flow) = self.flows.get_mut(&stream) {
                    flow.give_up_sending();
                }
            }
            Command::Leave(stream) => self.leave(connection, stream),
        }
    }

    /// A stream has no user any more: a complete request is answered to its end, an incomplete one is given up.
    fn leave(&mut self, connection: &mut QuicheConnection, stream: u64) {
        let Some(flow) = self.flows.get_mut(&stream) else { return };
        flow.is_used = false;
        if flow.inward.take().is_some() {
            shut(connection, stream, Shutdown::Read, DONE);
            if flow.is_open {
                if !flow.outward.is_empty() || !flow.has_last {
                    shut(connection, stream, Shutdown::Write, DONE);
                }
                flow.give_up_sending();
            } else {
                // Its number counts against the peer's limit, and is free again only after the stream's end.
                flow.outward = [(Bytes::new(), true)].into();
                self.outgoing.insert(stream);
            }
        } else if !flow.has_last {
            shut(connection, stream, Shutdown::Write, DONE);
            flow.give_up_sending();
        }
        if flow.outward.is_empty() {
            self.flows.remove(&stream);
        }
    }

    /// Reads the available bytes of a stream.
    fn read(&mut self, connection: &mut QuicheConnection, stream: u64) {
        let Some(flow) = self.flows.get_mut(&stream) else {
            // Its user left before it came.
            return shut(connection, stream, Shutdown::Read, DONE);
        };
        while let Some(inward) = &flow.inward {
            let size = connection.stream_readable_len(stream, PIECE).max(1);
            let mut piece = BytesMut::with_capacity(size).limit(size);
            let goes_on = match connection.stream_recv_buf(stream, &mut piece) {
                Ok((length, is_last)) => {
                    // A reader that stops listening leaves, and reports it.
                    if length > 0 {
                        let _ = inward.send(Some(piece.into_inner().freeze()));
                    }
                    if is_last {
                        let _ = inward.send(None);
                    }
                    !is_last
                }
                Err(Error::Done) => return,
                Err(_) => false,
            };
            if !goes_on {
                flow.inward = None;
            }
        }
        if !flow.is_used && flow.outward.is_empty() {
            self.flows.remove(&stream);
        }
    }

    fn accept(&mut self, stream: u64) {
        // Bidirectional streams of clients (RFC 9000, section 2.1).
        if let Some((accept, commands)) = self.accepting.as_ref().filter(|_| stream.is_multiple_of(4))
            && !self.flows.contains_key(&stream)
        {
            let (inward, comes) = mpsc::unbounded_channel();
            let room = Arc::new(Semaphore::new(AHEAD));
            self.flows.insert(stream, Flow::new(inward, Arc::clone(&room), true));
            // No receiver: the server stops.
            let _ = accept.send(Stream::new(stream, commands.clone(), comes, room));
        }
    }
}

impl Flow {
    const fn new(inward: UnboundedSender<Option<Bytes>>, room: Arc<Semaphore>, is_open: bool) -> Self {
        let outward = VecDeque::new();
        Self { inward: Some(inward), outward, room, is_open, has_last: false, is_used: true }
    }

    fn give_up_sending(&mut self) {
        self.outward.clear();
        self.room.close();
        self.has_last = true;
    }

    /// Hands bytes to quiche. True: some are left.
    fn send(&mut self, connection: &mut QuicheConnection, stream: u64) -> bool {
        while let Some((piece, is_last)) = self.outward.pop_front() {
            match connection.stream_send_zc(stream, piece.clone(), is_last) {
                Ok((_, None)) => {
                    self.is_open = true;
                    self.room.add_permits(1);
                }
                Ok((_, Some(rest))) => {
                    self.is_open = true;
                    self.outward.push_front((rest, is_last));
                    return true;
                }
                Err(error @ (Error::Done | Error::StreamLimit)) => {
                    self.is_open |= error == Error::Done;
                    self.outward.push_front((piece, is_last));
                    return true;
                }
                // The peer does not want it, or has reset it; its own direction shows which.
                Err(_) => self.give_up_sending(),
            }
        }
        false
    }
}

/// Gives up a direction of a stream; an ended one cannot be given up.
fn shut(connection: &mut QuicheConnection, stream: u64, direction: Shutdown, code: u64) {
    let _ = connection.stream_shutdown(stream, direction, code);
}

impl ApplicationOverQuic for Streams {
    fn on_conn_established(&mut self, _: &mut QuicheConnection, _: &HandshakeInfo) -> QuicResult<()> {
        self.is_established = true;
        Ok(())
    }

    fn should_act(&self) -> bool {
        self.is_established
    }

    async fn wait_for_data(&mut self, connection: &mut QuicheConnection) -> QuicResult<()> {
        if connection.is_draining() || connection.is_closed() {
            // Reports to the streams' users now, not after the time for the last packets.
            self.flows.clear();
            self.outgoing.clear();
            self.commands.close();
        }
        match self.commands.recv().await {
            Some(command) => self.carry_out(connection, command),
            None => pending().await,
        }
        while let Ok(command) = self.commands.try_recv() {
            self.carry_out(connection, command);
        }
        Ok(())
    }

    fn process_reads(&mut self, connection: &mut QuicheConnection) -> QuicResult<()> {
        for stream in connection.readable() {
            self.accept(stream);
            self.read(connection, stream);
        }
        Ok(())
    }

    fn process_writes(&mut self, connection: &mut QuicheConnection) -> QuicResult<()> {
        let Self { flows, outgoing, .. } = self;
        outgoing.retain(|stream| {
            let Some(flow) = flows.get_mut(stream) else { return false };
            let is_left = flow.send(connection, *stream);
            if !is_left && !flow.is_used {
                flows.remove(stream);
            }
            is_left
        });
        Ok(())
    }
}
