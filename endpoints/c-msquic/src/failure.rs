//! Failures, in the classes of the contract.

use std::fmt;

use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming};
use msquic::{Status, StatusCode};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_endpoint::program::{Failure, kind_of_code};

/// Why a connection cannot be used any more.
#[derive(Debug, Clone)]
pub enum Closed {
    /// The application of the peer closed it with this code.
    ByPeer(u64),
    /// QUIC or TLS gave up, on either side: MsQuic's status, and the code of QUIC.
    ByTransport(Status, u64),
    /// This side closed it.
    Here,
}

/// Why a stream cannot be used any more.
#[derive(Debug, Clone)]
pub enum Broken {
    /// The peer reset it with this code.
    Reset(u64),
    /// The peer does not want the stream's bytes, and gave this code.
    Stopped(u64),
    /// Its connection is closed.
    Connection(Closed),
    /// MsQuic refused a call.
    Refused(Status),
}

impl Closed {
    /// As a failure of `attempt`.
    pub fn failure(&self, attempt: &str) -> Failure {
        Failure::new(self.kind(), format!("{attempt}: {self}"))
    }

    fn kind(&self) -> ErrorKind {
        let Self::ByTransport(status, code) = self else { return ErrorKind::Reset };
        match status.try_as_status_code() {
            Ok(StatusCode::QUIC_STATUS_CONNECTION_TIMEOUT | StatusCode::QUIC_STATUS_CONNECTION_IDLE) => {
                ErrorKind::Timeout
            }
            // MsQuic hears of ICMP, and does not say which message it was.
            Ok(StatusCode::QUIC_STATUS_UNREACHABLE | StatusCode::QUIC_STATUS_CONNECTION_REFUSED) => ErrorKind::Refused,
            Ok(StatusCode::QUIC_STATUS_ALPN_NEG_FAILURE | StatusCode::QUIC_STATUS_VER_NEG_ERROR) => ErrorKind::Protocol,
            Ok(StatusCode::QUIC_STATUS_ABORTED) => ErrorKind::Reset,
            _ => kind_of_code(*code),
        }
    }

    fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByPeer(code) => write!(f, "the peer closed the connection with {code:#x}"),
            Self::ByTransport(status, code) => write!(f, "the connection failed: {status}, code {code:#x}"),
            Self::Here => f.write_str("the connection was closed"),
        }
    }
}

impl std::error::Error for Closed {}

impl Broken {
    /// As a failure of `attempt`.
    pub fn failure(&self, attempt: &str) -> Failure {
        match self {
            Self::Connection(closed) => closed.failure(attempt),
            Self::Reset(_) | Self::Stopped(_) => Failure::new(ErrorKind::Reset, format!("{attempt}: {self}")),
            Self::Refused(_) => Failure::new(ErrorKind::Other, format!("{attempt}: {self}")),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset(code) => write!(f, "the peer reset the stream with {code:#x}"),
            Self::Stopped(code) => write!(f, "the peer does not want the stream any more, and gave {code:#x}"),
            Self::Connection(closed) => closed.fmt(f),
            Self::Refused(status) => write!(f, "MsQuic refused: {status}"),
        }
    }
}

impl std::error::Error for Broken {}

impl From<Closed> for ConnectionErrorIncoming {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::ByPeer(error_code) => Self::ApplicationClose { error_code },
            other if other.is_timeout() => Self::Timeout,
            other => Self::Undefined(std::sync::Arc::new(other)),
        }
    }
}

impl From<Broken> for StreamErrorIncoming {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Reset(error_code) | Broken::Stopped(error_code) => Self::StreamTerminated { error_code },
            Broken::Connection(closed) => Self::ConnectionErrorIncoming { connection_error: closed.into() },
            refused @ Broken::Refused(_) => Self::Unknown(Box::new(refused)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_msquic_says_of_a_closed_connection_is_a_class_of_the_contract() {
        let closed = |status: StatusCode, code| Closed::ByTransport(Status::new(status), code).kind();
        assert_eq!(closed(StatusCode::QUIC_STATUS_CONNECTION_IDLE, 0), ErrorKind::Timeout);
        assert_eq!(closed(StatusCode::QUIC_STATUS_UNREACHABLE, 0), ErrorKind::Refused);
        assert_eq!(closed(StatusCode::QUIC_STATUS_TLS_ERROR, 0x130), ErrorKind::Certificate);
        assert_eq!(closed(StatusCode::QUIC_STATUS_HANDSHAKE_FAILURE, 0x178), ErrorKind::Protocol);
        assert_eq!(Closed::ByPeer(0x100).kind(), ErrorKind::Reset);
    }
}
