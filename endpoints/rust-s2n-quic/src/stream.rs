//! Streams of s2n-quic for raw requests, and its errors in the classes of the contract.

use bytes::Bytes;
use s2n_quic::application;
use s2n_quic::connection::Error as ConnectionError;
use s2n_quic::stream::{BidirectionalStream, Error as StreamError};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_endpoint::program::{Failure, RawStream, kind_of_code};

/// Error codes of the raw protocol: all is well; the request was not as announced.
pub const DONE: application::Error = application::Error::UNKNOWN;
const BAD_REQUEST: u8 = 1;

/// A stream that carries one request.
pub struct Stream(pub BidirectionalStream);

impl RawStream for Stream {
    type Error = StreamError;

    async fn send(&mut self, piece: Bytes) -> Result<(), StreamError> {
        self.0.send(piece).await
    }

    async fn finish(&mut self) -> Result<(), StreamError> {
        self.0.finish()
    }

    async fn receive(&mut self) -> Result<Option<Bytes>, StreamError> {
        self.0.receive().await
    }

    fn stop(&mut self) {
        let _ = self.0.stop_sending(DONE);
    }

    fn reset(&mut self) {
        let _ = self.0.reset(BAD_REQUEST.into());
    }
}

/// The class of a failed stream.
pub fn of_stream(attempt: &str, error: &StreamError) -> Failure {
    match error {
        StreamError::ConnectionError { error, .. } => of_connection(attempt, error),
        StreamError::StreamReset { .. } => Failure::new(ErrorKind::Reset, format!("{attempt}: {error}")),
        _ => Failure::new(ErrorKind::Other, format!("{attempt}: {error}")),
    }
}

/// The class of a failed connection.
pub fn of_connection(attempt: &str, error: &ConnectionError) -> Failure {
    let kind = match error {
        ConnectionError::Transport { code, .. } => kind_of_code(code.as_u64()),
        ConnectionError::Application { .. }
        | ConnectionError::StatelessReset { .. }
        | ConnectionError::Closed { .. } => ErrorKind::Reset,
        ConnectionError::IdleTimerExpired { .. } | ConnectionError::MaxHandshakeDurationExceeded { .. } => {
            ErrorKind::Timeout
        }
        ConnectionError::NoValidPath { .. } => ErrorKind::Unreachable,
        _ => ErrorKind::Other,
    };
    Failure::new(kind, format!("{attempt}: {error}"))
}
