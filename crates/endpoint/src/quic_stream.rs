//! A bidirectional stream of quinn for raw requests.

use std::fmt;

use bytes::Bytes;
use quinn::{ReadError, RecvStream, SendStream, VarInt, WriteError};

use crate::raw_stream::RawStream;

/// Error code of the raw protocol for a request that differs from its header.
const BAD_REQUEST: VarInt = VarInt::from_u32(1);

/// The two halves of a stream.
pub struct QuicStream(pub SendStream, pub RecvStream);

#[derive(Debug)]
pub enum StreamError {
    /// Sending.
    Write(WriteError),
    /// Receiving.
    Read(ReadError),
}

impl StreamError {
    /// Whether the peer aborted only this stream.
    pub const fn is_reset(&self) -> bool {
        matches!(self, Self::Write(WriteError::Stopped(_)) | Self::Read(ReadError::Reset(_)))
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl RawStream for QuicStream {
    type Error = StreamError;

    async fn send(&mut self, piece: Bytes) -> Result<(), StreamError> {
        self.0.write_chunk(piece).await.map_err(StreamError::Write)
    }

    async fn finish(&mut self) -> Result<(), StreamError> {
        self.0.finish().map_err(|error| StreamError::Write(error.into()))
    }

    async fn receive(&mut self) -> Result<Option<Bytes>, StreamError> {
        let chunk = self.1.read_chunk(usize::MAX, true).await.map_err(StreamError::Read)?;
        Ok(chunk.map(|chunk| chunk.bytes))
    }

    fn stop(&mut self) {
        let _ = self.1.stop(VarInt::from_u32(0));
    }

    fn reset(&mut self) {
        let _ = self.0.reset(BAD_REQUEST);
    }
}
