//! Failures of requests, and refusals of specs.

use std::fmt;

use wirelab_contract::error_kind::ErrorKind;

/// The failure of a connection or a request.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The attempted operation and what went wrong.
    pub message: String,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// Why a response over QUIC cannot be read on.
#[derive(Debug)]
pub enum Unreadable {
    /// It is wrong, which fails its request alone (of HTTP/3: RFC 9114, section 4.1.2).
    Response(Failure),
    /// The server broke the protocol, which ends the connection.
    Connection(Failure),
}

impl From<Failure> for Unreadable {
    fn from(failure: Failure) -> Self {
        Self::Connection(failure)
    }
}

/// The reason why an endpoint cannot execute its spec.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// The endpoint or the machine does not support what the spec asks for: exit status 127.
    Unsupported(String),
    /// An error: exit status 1.
    Failed(Failure),
}

impl Refusal {
    /// A refusal of an unsupported spec.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }

    /// An error of kind `other`.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(Failure { kind: ErrorKind::Other, message: message.into() })
    }

    /// Converts a refusal to a failure, when it is too late to refuse: a setting that was honoured at first no longer
    /// is.
    #[must_use]
    pub fn into_failure(self) -> Failure {
        match self {
            Self::Failed(failure) => failure,
            Self::Unsupported(message) => Failure::new(ErrorKind::Other, message),
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(message) => write!(f, "unsupported: {message}"),
            Self::Failed(failure) => f.write_str(&failure.message),
        }
    }
}
