//! Streams that carry one raw request each.

use std::future::poll_fn;

use bytes::Bytes;
use wirelab_endpoint::program::RawStream;

use crate::failure::Broken;
use crate::stream::Stream;

/// Error codes of the raw protocol: all is well; the request was not as announced.
pub const DONE: u64 = 0;
const BAD_REQUEST: u64 = 1;

/// A stream that carries one request. The last piece waits for the next one, or for the end, which then goes with it:
/// an end of its own would be a packet of its own.
pub struct Raw {
    stream: Stream,
    held: Bytes,
}

impl Raw {
    /// A request on this stream.
    pub const fn new(stream: Stream) -> Self {
        Self { stream, held: Bytes::new() }
    }
}

impl RawStream for Raw {
    type Error = Broken;

    async fn send(&mut self, piece: Bytes) -> Result<(), Broken> {
        let before = std::mem::replace(&mut self.held, piece);
        if before.is_empty() {
            return Ok(());
        }
        let outward = &mut self.stream.outward;
        poll_fn(|cx| outward.poll_ready(cx)).await?;
        outward.send(before, false)
    }

    async fn finish(&mut self) -> Result<(), Broken> {
        let last = std::mem::take(&mut self.held);
        self.stream.outward.send(last, true)
    }

    async fn receive(&mut self) -> Result<Option<Bytes>, Broken> {
        let inward = &self.stream.inward;
        poll_fn(|cx| inward.poll_receive(cx)).await
    }

    fn stop(&mut self) {
        self.stream.inward.stop(DONE);
    }

    fn reset(&mut self) {
        self.stream.outward.reset(BAD_REQUEST);
    }
}
