//! Conversion of errors to the contract's kinds.

use std::error::Error;
use std::io;

use hyper::StatusCode;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_engine::{failure, tls};

use crate::client::stream::InterimFlood;
use crate::client::transport::Failure;

/// Converts an error of the operating system, or of TLS or an HTTP stream above it.
pub(crate) fn io(attempt: &str, error: &io::Error) -> Failure {
    let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let what = refused.map_or_else(|| error.to_string(), tls::explain);
    Failure::new(kind(error), format!("{attempt}: {what}"))
}

fn kind(error: &io::Error) -> ErrorKind {
    if error.get_ref().is_some_and(|inner| inner.is::<InterimFlood>()) {
        return ErrorKind::Protocol;
    }
    match error.kind() {
        // Of the HTTP library, not of the kernel: a body whose framing is wrong.
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput if error.raw_os_error().is_none() => {
            match failure::kind(error) {
                ErrorKind::Other => ErrorKind::Protocol,
                known => known,
            }
        }
        _ => failure::kind(error),
    }
}

/// The text of the library `h2` for ENHANCE_YOUR_CALM, which says nothing about the cause.
const H2_FLOODED: &str = "detected excessive load generating behavior";

/// Converts an error of the HTTP library.
pub(crate) fn http(attempt: &str, error: &hyper::Error) -> Failure {
    let mut message = format!("{attempt}: {error}");
    let mut class = None;
    let mut source = error.source();
    while let Some(cause) = source {
        let is_remote = cause.downcast_ref::<h2::Error>().is_some_and(h2::Error::is_remote);
        message = format!("{message}: {}", plain(&cause.to_string(), is_remote));
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            class = Some(kind(error));
        } else if let Some(error) = cause.downcast_ref::<h2::Error>() {
            class = class.or_else(|| of_stream(error));
        }
        source = cause.source();
    }
    let class = match class {
        Some(class) => class,
        None if error.is_incomplete_message() => ErrorKind::Truncated,
        None if error.is_parse() => ErrorKind::Protocol,
        None if is_unasked(&message) => ErrorKind::Protocol,
        None if error.is_canceled() || error.is_closed() => ErrorKind::Reset,
        None => ErrorKind::Other,
    };
    Failure::new(class, message)
}

/// A message of a library in plain words: which side says that the other floods it.
fn plain(message: &str, is_remote: bool) -> String {
    let who = if is_remote {
        "the server says that the client sends too much (error code 11)"
    } else {
        "flooded with frames"
    };
    message.replace(H2_FLOODED, who)
}

/// The status of a response that is no interim one. A switch of protocols is a failure, because no request asks for it.
pub(crate) fn final_status(status: StatusCode) -> Result<u16, Failure> {
    if status == StatusCode::SWITCHING_PROTOCOLS {
        let message = "the server switched protocols (status 101), which no request asked for";
        return Err(Failure::new(ErrorKind::Protocol, message));
    }
    Ok(status.as_u16())
}

/// Whether the message of an error and its causes says that the peer sent data before a request. The HTTP library has
/// no kind for it.
fn is_unasked(message: &str) -> bool {
    message.contains("received unexpected message")
}

/// The kind of an HTTP/2 error.
fn of_stream(error: &h2::Error) -> Option<ErrorKind> {
    match error.get_io() {
        Some(io) => Some(kind(io)),
        // A RST_STREAM or GOAWAY of the peer.
        None if error.is_remote() => Some(ErrorKind::Reset),
        None if error.is_library() => Some(ErrorKind::Protocol),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_frames_is_called_a_flood() {
        let text = h2::Error::from(h2::Reason::ENHANCE_YOUR_CALM).to_string();
        assert!(plain(&text, false).contains("flooded with frames"), "{text}");
        let received = plain(H2_FLOODED, true);
        assert_eq!(received, "the server says that the client sends too much (error code 11)");
    }
}
