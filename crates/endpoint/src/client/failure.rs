//! Conversion of errors to the contract's kinds.

use std::error::Error;
use std::io;

use wirelab_contract::error_kind::ErrorKind;

use crate::client::transport::Failure;
use crate::tls;

/// Converts an error of the operating system, or of TLS above it.
pub(crate) fn io(attempt: &str, error: &io::Error) -> Failure {
    Failure::new(kind(error), format!("{attempt}: {error}"))
}

/// Converts an error of the HTTP library.
pub(crate) fn http(attempt: &str, error: &hyper::Error) -> Failure {
    let mut message = format!("{attempt}: {error}");
    let mut class = None;
    let mut source = error.source();
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            class = Some(kind(error));
        } else if class.is_none() {
            class = of_stream(&cause.to_string());
        }
        source = cause.source();
    }
    let class = match class {
        Some(class) => class,
        None if error.is_incomplete_message() => ErrorKind::Truncated,
        None if error.is_parse() => ErrorKind::Protocol,
        // The peer sent data before a request; only the library's message says so.
        None if message.contains("received unexpected message") => ErrorKind::Protocol,
        None if error.is_canceled() || error.is_closed() => ErrorKind::Reset,
        None => ErrorKind::Other,
    };
    Failure::new(class, message)
}

/// The kind of an HTTP/2 error, which only the library's message reveals.
fn of_stream(text: &str) -> Option<ErrorKind> {
    if text.contains("connection reset") {
        Some(ErrorKind::Reset)
    } else if text.contains("broken pipe") {
        Some(ErrorKind::Truncated)
    } else if text.contains("received") {
        // A RST_STREAM or GOAWAY of the peer.
        Some(ErrorKind::Reset)
    } else if text.contains("detected") || text.contains("malformed") {
        Some(ErrorKind::Protocol)
    } else {
        None
    }
}

fn kind(error: &io::Error) -> ErrorKind {
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
