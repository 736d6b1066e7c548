//! Conversion of errors of the operating system, and of TLS above it, to the contract's kinds.

use std::io;

use wirelab_contract::error_kind::ErrorKind;

use crate::refusal::Failure;
use crate::tls;

/// Converts an error of the operating system, or of TLS above it.
#[must_use]
pub fn io(attempt: &str, error: &io::Error) -> Failure {
    Failure::new(kind(error), format!("{attempt}: {error}"))
}

/// The kind of an error of the operating system, or of TLS above it.
#[must_use]
pub fn kind(error: &io::Error) -> ErrorKind {
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return tls::classify(tls);
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ErrorKind::Refused,
        io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown
        | io::ErrorKind::TimedOut => ErrorKind::Unreachable,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => ErrorKind::Reset,
        // From the kernel (write(2)): the peer reset the connection earlier.
        io::ErrorKind::BrokenPipe if error.raw_os_error().is_some() => ErrorKind::Reset,
        // HTTP/2 reports a connection that ended as a broken pipe.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::NotConnected => ErrorKind::Truncated,
        _ => ErrorKind::Other,
    }
}
