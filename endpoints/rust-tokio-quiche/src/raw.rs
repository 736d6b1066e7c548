//! A stream that carries one raw request, from its user's side.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use wirelab_endpoint::program::RawStream;

use crate::streams::Command;

/// A stream. The last piece waits for the next one, or for the end, which then goes with it: an end of its own would be
/// a packet of its own.
pub struct Stream {
    id: u64,
    commands: UnboundedSender<Command>,
    /// Received bytes; none: the end.
    inward: UnboundedReceiver<Option<Bytes>>,
    /// The number of pieces that may wait for quiche.
    room: Arc<Semaphore>,
    held: Bytes,
}

/// The other side gave up the stream, or the connection is over.
#[derive(Debug)]
pub struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the peer reset the stream")
    }
}

impl Stream {
    /// The stream of a number.
    pub const fn new(
        id: u64,
        commands: UnboundedSender<Command>,
        inward: UnboundedReceiver<Option<Bytes>>,
        room: Arc<Semaphore>,
    ) -> Self {
        Self { id, commands, inward, room, held: Bytes::new() }
    }

    async fn hand_over(&self, piece: Bytes, is_last: bool) -> Result<(), Broken> {
        // The driver gives it back when quiche has taken the piece.
        self.room.acquire().await.map_err(|_| Broken)?.forget();
        self.tell(Command::Send { stream: self.id, piece, is_last })
    }

    fn tell(&self, command: Command) -> Result<(), Broken> {
        self.commands.send(command).map_err(|_| Broken)
    }
}

impl RawStream for Stream {
    type Error = Broken;

    async fn send(&mut self, piece: Bytes) -> Result<(), Broken> {
        let before = std::mem::replace(&mut self.held, piece);
        if before.is_empty() { Ok(()) } else { self.hand_over(before, false).await }
    }

    async fn finish(&mut self) -> Result<(), Broken> {
        let last = std::mem::take(&mut self.held);
        self.hand_over(last, true).await
    }

    async fn receive(&mut self) -> Result<Option<Bytes>, Broken> {
        self.inward.recv().await.ok_or(Broken)
    }

    fn stop(&mut self) {
        let _ = self.tell(Command::Stop(self.id));
    }

    fn reset(&mut self) {
        let _ = self.tell(Command::Reset(self.id));
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.tell(Command::Leave(self.id));
    }
}
