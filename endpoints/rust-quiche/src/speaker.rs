//! A client's protocol on the streams of a connection: HTTP/3 by quiche's own module, or raw requests.

use quiche::{Connection, Shutdown};
use wirelab_endpoint::program::{Answer, ClientSpec, Failure, Refusal};

use crate::exchange::Exchanges;

/// The size of pieces in which bodies are read.
pub const PIECE: usize = 65_536;

/// One protocol on one connection.
pub trait Speaker: Sized + 'static {
    /// The parts of a request.
    type Request: 'static;

    /// The action that a failure names.
    const ATTEMPT: &'static str;

    /// The code that closes a connection without an error.
    const DONE: u64;

    /// The request of the spec.
    fn order(spec: &ClientSpec) -> Result<Self::Request, Refusal>;

    /// Begins to speak on a connection that can send.
    fn begin(connection: &mut Connection) -> Result<Self, Failure>;

    /// Opens a stream, and sends what of a request is not in its bytes. `None`: the peer allows no further stream now.
    fn open(&mut self, connection: &mut Connection, request: &Self::Request) -> Result<Option<u64>, Failure>;

    /// The number of bytes of a request for [`Self::send`].
    fn length(request: &Self::Request) -> u64;

    /// Those bytes from an offset on, or the first of them.
    fn piece(request: &Self::Request, offset: u64) -> &[u8];

    /// Sends a piece, and the end after the last one; how many bytes were taken.
    fn send(&mut self, connection: &mut Connection, stream: u64, piece: &[u8], is_last: bool)
    -> Result<usize, Failure>;

    /// Whether an answer that came whole is one to this request.
    fn judge(_: &Self::Request, answer: Answer) -> Result<Answer, Failure> {
        Ok(answer)
    }

    /// Looks at everything that arrived.
    fn receive(&mut self, connection: &mut Connection, exchanges: &mut Exchanges, scratch: &mut Vec<u8>);
}

/// Gives up both directions of a stream.
pub fn give_up(connection: &mut Connection, stream: u64, code: u64) {
    for direction in [Shutdown::Read, Shutdown::Write] {
        // A stream that has ended cannot be given up.
        let _ = connection.stream_shutdown(stream, direction, code);
    }
}
