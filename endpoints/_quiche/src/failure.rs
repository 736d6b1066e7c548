//! Failures of a connection of quiche, in the classes of the contract.

use quiche::{BufFactory, Connection, ConnectionError};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_endpoint::program::{Failure, kind_of_code};

/// Why a connection cannot carry requests any more; absent while it can.
pub fn of_connection<F: BufFactory>(attempt: &str, connection: &Connection<F>) -> Option<Failure> {
    let fail = |kind, message: String| Some(Failure::new(kind, format!("{attempt}: {message}")));
    if let Some(error) = connection.peer_error() {
        return fail(kind(error), format!("the peer closed the connection: {}", words(error)));
    }
    if let Some(error) = connection.local_error() {
        return fail(kind(error), format!("the connection was closed: {}", words(error)));
    }
    if connection.is_timed_out() {
        return fail(ErrorKind::Timeout, "the connection was idle for too long".to_owned());
    }
    if connection.is_closed() || connection.is_draining() {
        return fail(ErrorKind::Reset, "the connection is closed".to_owned());
    }
    None
}

fn kind(error: &ConnectionError) -> ErrorKind {
    if error.is_app { ErrorKind::Reset } else { kind_of_code(error.error_code) }
}

fn words(error: &ConnectionError) -> String {
    let whose = if error.is_app { "application" } else { "transport" };
    format!("{whose} error {:#x} {}", error.error_code, String::from_utf8_lossy(&error.reason))
}
